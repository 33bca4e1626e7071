/* SPDX-License-Identifier: Apache-2.0 */
/* Staging: what was drained from rings, or found out by the collector, and is not in the file yet. COLLECTOR. */
#ifndef WEFT_COLLECT_STAGING_H
#define WEFT_COLLECT_STAGING_H

#include <stddef.h>

#include "record/collect/collector.h"

static inline size_t weft__run_bytes(size_t payload)
{
	return sizeof(struct staged_run) + (payload + 7) / 8 * 8;
}

static inline size_t weft__staging_room(const struct weft__collector *c)
{
	return STAGING_BYTES - c->region->head->staging_used[c->region->head->staging_now];
}

static inline char *weft__staging_end(const struct weft__collector *c)
{
	const struct rings_head *head = c->region->head;

	return staging_half(c->region->base, head, head->staging_now) + head->staging_used[head->staging_now];
}

/* So many bytes more are there. */
void weft__staging_publish(struct weft__collector *c, size_t bytes);
/* There is room for `bytes` after success; 0 or the error of a flush. */
int weft__staging_need(struct weft__collector *c, size_t bytes);
/* A half was written and is empty. */
void weft__staging_emptied(struct weft__collector *c, uint32_t half);
/* The name that the thread has now; "" when it is gone. */
void weft__staging_comm(uint32_t tid, char name[16]);

/* A collector's thread begins: what it finds out is in streams of its own. */
void weft__found_begin(struct weft__collector *c);
/* Defines the streams of the lanes again, as weft__drain_define_again does. */
void weft__found_define_again(struct weft__collector *c);
/* What was found out and could not be staged, as losses. 0 or an error. */
int weft__found_losses(struct weft__collector *c);

#endif
