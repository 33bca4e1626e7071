/* SPDX-License-Identifier: Apache-2.0 */
/* Which request a thread works for: a context of trace, span, endpoint and labels. What a thread records while it
 * has one, each sample, poll and wait, belongs to it, and `weft report --span` and `--label` find it by that.
 *
 * A thread that handles a request from its begin to its end:
 *
 *     static uint32_t upload;
 *     if (!upload)
 *             upload = weft_endpoint("POST /upload");
 *     struct weft_context ctx = {.trace_hi = hi, .trace_lo = lo, .span = span, .root = span, .endpoint = upload};
 *     weft_context_set(&ctx);
 *     ...
 *     weft_context_clear();
 *
 * A runtime that resumes tasks keeps a context in each and swaps:
 *
 *     struct weft_context outer;
 *     weft_context_swap(&task->context, &outer);
 *     run(task);
 *     weft_context_swap(&outer, &task->context);
 *
 * A context is the thread's own; it stays while nothing records and is there when recording begins. Setting one that
 * is equal to the present one costs a comparison. Otherwise it is one event, some tens of ns: no lock, no memory, no
 * system call. While the recorder only counts wakes, to stay within its budget, there is an event only if something is
 * recorded in the context. Any thread, for itself; not from signal handlers.
 *
 * The context is also published as an OpenTelemetry thread context (OTEP 4947), so that other profilers see it: the
 * thread-local variable otel_thread_ctx_v1 points to a record of trace id, span id, flags and attributes. They are:
 * the local root span ("datadog.local_root_span_id", 16 hex digits), the endpoint ("http.route") and the labels by
 * their keys; what does not fit into 164 bytes is left out. What the keys are called is in the process context (OTEP
 * 4719), which exists while a recorder is open. A program that links libweft.a has to export the variable,
 * -Wl,--export-dynamic-symbol=otel_thread_ctx_v1, which CMake (weft::static) and pkg-config --static do.
 *
 * When the variable points to a record of somebody else, a tracer's, that one is left in place, and each sample of a
 * thread that has no context of weft's takes trace, span and local root span from it. So it does where a tracer's
 * library has a variable of that name for itself, in thread-local memory that all threads have from their beginning
 * on; such a library stays loaded from then on.
 */
#ifndef WEFT_SPAN_H
#define WEFT_SPAN_H

#include <stdint.h>

#include "event.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All zero: none. A context with a trace has a span, and the other way round. */
struct weft_context {
	uint64_t trace_hi; /* trace id, its first eight bytes in network order; W3C: the first 16 of the 32 digits */
	uint64_t trace_lo;
	uint64_t span;
	uint64_t root;     /* span with which the request entered this process; 0: not known */
	uint32_t endpoint; /* an id of weft_endpoint */
	uint32_t labels;   /* an id of weft_labels */
	uint32_t flags;    /* W3C trace flags, which are published and not recorded: 1 sampled, 2 random */
	uint32_t reserved; /* 0 */
};

/* Not promised: use the functions. */
extern WEFT_API __thread struct weft_context weft_context_self WEFT_LAYOUT_OF(weft_context_self)
	__attribute__((tls_model("initial-exec")));
WEFT_API void weft_slow_context(const struct weft_context *next);

/* An endpoint: what a request is for ("GET /users/:id"). The same text gives the same id, which is also one of
 * weft_string. Takes a mutex: once for each endpoint, not for each request. Returns an id > 0, or 0 when the limit
 * of weft_string is reached. */
WEFT_API uint32_t weft_endpoint(const char *text);

/* A set of labels: "key=value" strings, NULL-terminated, in any order; of two with one key the last counts. The same
 * set gives the same id. A comma in them, which separates labels in the segment, becomes "_", and a string without
 * "=" is a key with an empty value. Takes a mutex: once for each set. Returns an id > 0; 0 for no labels; or 0 and
 * -WEFT_E_LIMIT in `err`, which may be NULL, for more than 32 of them or more than 4,095 bytes, or when the limit of
 * weft_string is reached. Values that never repeat, such as ids of requests, would fill the table: they belong into
 * events. */
WEFT_API uint32_t weft_labels(const char *const *labels, struct weft_error *err);

/* Whether they are the same, flags included. */
WEFT_EMIT(int weft_context_equal(const struct weft_context *a, const struct weft_context *b), {
	return !((a->trace_lo ^ b->trace_lo) | (a->trace_hi ^ b->trace_hi) | (a->span ^ b->span) | (a->root ^ b->root) |
		 (a->endpoint ^ b->endpoint) | (a->labels ^ b->labels) | (a->flags ^ b->flags));
})

/* The calling thread has this context from here on. NULL: none. */
WEFT_EMIT(void weft_context_set(const struct weft_context *next), {
	struct weft_context none;
	if (!next) {
		memset(&none, 0, sizeof(none));
		next = &none;
	}
	if (!weft_context_equal(next, &weft_context_self))
		weft_slow_context(next);
})

/* The same, and *before is the one that it had. `next` and `before` may be the same. */
WEFT_EMIT(void weft_context_swap(const struct weft_context *next, struct weft_context *before), {
	struct weft_context had = weft_context_self;
	weft_context_set(next);
	*before = had;
})

/* The calling thread has none from here on. */
WEFT_EMIT(void weft_context_clear(void), { weft_context_set(0); })

/* What the calling thread has. */
WEFT_EMIT(void weft_context_get(struct weft_context *ret), { *ret = weft_context_self; })

#ifdef __cplusplus
}
#endif
#endif
