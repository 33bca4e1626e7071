/* SPDX-License-Identifier: Apache-2.0 */
/* Which time of threads is known already: so that what overlaps is counted once. Context: CALLER. */
#ifndef WEFT_VIEW_COVER_H
#define WEFT_VIEW_COVER_H

#include "view.h"

struct view_span {
	int64_t thread;
	double begin_ns, end_ns;
	uint32_t row;
};

/* Intervals of all threads. */
struct view_cover {
	struct view_span *at;
	size_t n, cap;
};

/* Each returns 0 or -ENOMEM. `table` has a begin and an end. */
int view_cover_add(struct view_cover *cover, enum weft__table_id table);
/* Puts them in order of thread and begin. */
void view_cover_sort(struct view_cover *cover);
/* The same, and makes one of those that touch. */
void view_cover_merge(struct view_cover *cover);
void view_cover_fini(struct view_cover *cover);

/* How much of the interval is covered, after view_cover_merge. */
double view_cover_ns(const struct view_cover *cover, int64_t thread, double begin_ns, double end_ns);

/* The thread of a row, also of one that recorded nothing itself. */
int64_t view_thread_of(const struct view_store *store, size_t who, uint32_t row);

#endif
