/* SPDX-License-Identifier: Apache-2.0 */
/* CPU samples: which poll each is in, and the sums by stack and thread. Context: CALLER. */
#ifndef WEFT_ANALYZE_SAMPLE_H
#define WEFT_ANALYZE_SAMPLE_H

#include "analyze/analysis.h"
#include "base/arena.h"
#include "base/map.h"

struct weft__analysis;
struct weft__threads;
struct weft__polls;
struct weft__lanes;
struct weft__event;
struct weft__thread;
struct weft__interval;

struct weft__trace {
	uint32_t stack, kernel;
};

struct weft__sampling {
	const struct weft__analysis_opts *opts;
	struct weft__result *result;
	struct weft__arena arena;
	struct weft__trace *traces;
	size_t n_traces, cap_traces;
	size_t cap_rows, cap_threads, n_contexts;
	struct weft__map trace_by_ids, context_by_key, row_by_key, thread_by_key;
	size_t n_logged;                     /* in all logs */
	struct weft__kept_context *contexts; /* context.h */
	uint32_t n_kept_contexts;
};

int weft__sample_add(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev);
/* A sample that came before turns out to be in the innermost open poll. */
int weft__sample_found(struct weft__sampling *samples, struct weft__threads *threads, struct weft__lanes *lanes,
		       struct weft__thread *s, struct weft__interval *mark);
/* A reading of the thread's CPU time came, which is `cpu_ns` more than the last, `span_ns` before; 0 and 0: the
 * first. */
int weft__sample_measured(struct weft__sampling *samples, struct weft__thread *s, uint64_t cpu_ns, uint64_t span_ns);
int weft__log_add(struct weft__sampling *samples, struct weft__threads *threads, struct weft__thread *s, uint32_t trace,
		  uint64_t weight_ns);
void weft__log_clear(struct weft__sampling *samples, struct weft__thread *s);
/* The samples of a poll that ends or is about to be put into a list, by stack, into the poll. */
int weft__log_take(struct weft__sampling *samples, struct weft__polls *polls, const struct weft__thread *s,
		   struct weft__poll *poll);
int weft__samples_settle(struct weft__samples *samples);
void weft__samples_fini(struct weft__sampling *sampling);

#endif
