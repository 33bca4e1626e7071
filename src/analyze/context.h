/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: what a thread works for, and which of them are asked for. Context: CALLER. */
#ifndef WEFT_ANALYZE_CONTEXT_H
#define WEFT_ANALYZE_CONTEXT_H

#include "analyze/analysis.h"

struct weft__analysis;
struct weft__event;
struct weft__thread;

int weft__context_set(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev);
/* Those in force during a poll that has ended, into the poll. */
void weft__context_poll(const struct weft__thread *s, struct weft__poll *poll);
/* Contexts of samples, waits and times off the CPU that somebody is to hear of later: the last WEFT__KEPT_CONTEXTS of
 * them are kept, by number. */
#define WEFT__KEPT_CONTEXTS (1u << 16)
struct weft__kept_context {
	uint32_t number; /* from 1 on */
	struct weft__context context;
};
/* The number of the one that was in force at a time; 0: there was none, or too many since, or nobody wants to know.
 * 0 or -ENOMEM. `s` may be NULL. */
int weft__context_keep(struct weft__analysis *a, const struct weft__thread *s, uint64_t time_ns, uint32_t *ret);
/* The context of that number; NULL: none, or there were too many since. */
const struct weft__context *weft__context_kept(const struct weft__analysis *a, uint32_t number);
/* Whether the context of a thread is asked for. */
bool weft__context_asked(const struct weft__analysis *a, const struct weft__thread *s);

#endif
