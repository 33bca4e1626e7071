/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: what a thread works for, and which of them are asked for. Context: CALLER. */
#ifndef WEFT_ANALYZE_CONTEXT_H
#define WEFT_ANALYZE_CONTEXT_H

#include "analyze/analysis.h"

struct weft__threads;
struct weft__event;
struct weft__thread;

int weft__context_set(struct weft__threads *threads, struct weft__thread *s, const struct weft__event *ev);
/* Those in force during a poll that has ended, into the poll. */
void weft__context_poll(const struct weft__thread *s, struct weft__poll *poll);
/* Whether the context of a thread is asked for. */
bool weft__context_asked(const struct weft__analysis_opts *opts, const struct weft__thread *s);

#endif
