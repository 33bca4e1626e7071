/* SPDX-License-Identifier: Apache-2.0 */
/* The definitions of one recording, gathered from all its segments: what the numbers in events mean. Everything is
 * copied, so segments may be closed. Lookups answer NULL for what is not defined. Context: CALLER. */
#ifndef WEFT_ANALYZE_NAMES_H
#define WEFT_ANALYZE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "weft/runtime.h"
#include "weft/segment.h"

struct weft__name_table {
	struct weft__map by_id;
	void *rows;
	size_t n;
	size_t cap;
	size_t row_bytes;
};

struct weft__names {
	struct weft__arena arena; /* of rows and texts */
	struct weft__name_table threads, workers, runtimes, locations, kinds, strings;
	struct weft__map thread_by_tid;
	struct weft_clock *clocks;
	size_t n_clocks, cap_clocks;
	struct weft_loss *losses;
	size_t n_losses, cap_losses;
	struct weft_fact *facts;
	size_t n_facts, cap_facts;
};

/* {0} is ready for use. Each returns 0 or -ENOMEM. A definition that repeats an id replaces the earlier one, but a
 * thread keeps the first worker that it is said to have: events report later ones. */
int weft__names_add_segment(struct weft__names *names, const struct weft_segment *seg);
int weft__names_add_thread(struct weft__names *names, const struct weft_thread *thread);
int weft__names_add_worker(struct weft__names *names, const struct weft_worker *worker);
int weft__names_add_runtime(struct weft__names *names, const struct weft_runtime_def *runtime);
int weft__names_add_location(struct weft__names *names, const struct weft_location_def *location);
int weft__names_add_kind(struct weft__names *names, const struct weft_kind_def *kind);
int weft__names_add_string(struct weft__names *names, const struct weft_string_def *string);
int weft__names_add_clock(struct weft__names *names, const struct weft_clock *clock);
int weft__names_add_loss(struct weft__names *names, const struct weft_loss *loss);
int weft__names_add_fact(struct weft__names *names, const struct weft_fact *fact);
void weft__names_fini(struct weft__names *names);

/* Puts clocks and losses in order, after the last was added and before anything is looked up. A loss that was said
 * twice counts once. */
void weft__names_settle(struct weft__names *names);

const struct weft_thread *weft__names_thread(const struct weft__names *names, uint32_t id);
const struct weft_worker *weft__names_worker(const struct weft__names *names, uint32_t id);
const struct weft_runtime_def *weft__names_runtime(const struct weft__names *names, uint32_t id);
const struct weft_location_def *weft__names_location(const struct weft__names *names, uint32_t id);
const struct weft_kind_def *weft__names_kind(const struct weft__names *names, uint32_t id);
/* The id of the thread with that tid, the last one where a tid was used again; 0: none. */
uint32_t weft__names_thread_of(const struct weft__names *names, uint32_t tid);
const char *weft__names_string(const struct weft__names *names, uint32_t id);
const char *weft__names_fact(const struct weft__names *names, const char *key);

/* Wall time of a trace time, from the nearest reading of both clocks; 0 when there is none. */
uint64_t weft__names_real_ns(const struct weft__names *names, uint64_t mono_ns);

#endif
