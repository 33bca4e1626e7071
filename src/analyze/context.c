/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: which request a thread works for. A poll has those that were in force at any time in it; runtimes often
 * set one just behind its begin. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "analyze/state.h"

static bool has_label(const char *labels, const char *wanted)
{
	size_t n = strlen(wanted);

	while (labels && *labels) {
		size_t length = strcspn(labels, ",");

		if (length == n && memcmp(labels, wanted, n) == 0)
			return true;
		labels += length + (labels[length] == ',');
	}
	return false;
}

static bool matches(const struct weft__analysis_opts *asked, const struct weft__context *context)
{
	const struct weft__analysis_opts *opts = asked;
	const char *endpoint = weft__names_string(opts->names, context->endpoint);

	if (opts->span && context->span != opts->span && context->root != opts->span)
		return false;
	if ((opts->trace_hi || opts->trace_lo) &&
	    (context->trace_hi != opts->trace_hi || context->trace_lo != opts->trace_lo))
		return false;
	if (opts->endpoint && (!endpoint || fnmatch(opts->endpoint, endpoint, 0) != 0))
		return false;
	return !opts->label || has_label(weft__names_string(opts->names, context->labels), opts->label);
}

static void give(struct weft__poll *poll, const struct weft__context *context, bool match)
{
	if (weft__context_is_set(context)) {
		poll->context = *context;
		poll->has_context = true;
	}
	poll->in_context |= match;
}

int weft__context_set(struct weft__threads *threads, struct weft__thread *s, const struct weft__event *ev)
{
	struct weft__context context = {
		.trace_hi = WEFT_FIELD(ev, CONTEXT, TRACE_HI),
		.trace_lo = WEFT_FIELD(ev, CONTEXT, TRACE_LO),
		.span = WEFT_FIELD(ev, CONTEXT, SPAN),
		.root = WEFT_FIELD(ev, CONTEXT, ROOT),
		.endpoint = (uint32_t)WEFT_FIELD(ev, CONTEXT, ENDPOINT),
		.labels = (uint32_t)WEFT_FIELD(ev, CONTEXT, LABELS),
	};
	bool match = threads->opts->by_context && weft__context_is_set(&context) && matches(threads->opts, &context);
	size_t i;

	s->context = context;
	s->has_context = weft__context_is_set(&context);
	s->sample_context = 0;
	if (match != s->in_context)
		s->in_context_ns = ev->time_ns;
	s->in_context = match;
	threads->result->context_met |= match;
	for (i = 0; i < s->n_open; i++)
		give(&s->open[i], &context, s->in_context);
	if (!s->past_contexts)
		s->past_contexts = weft__arena_new(&threads->arena, PAST_CONTEXTS, sizeof(*s->past_contexts));
	if (!s->past_contexts)
		return -ENOMEM;
	s->past_contexts[s->n_past_contexts++ % PAST_CONTEXTS] =
		(struct weft__past_context){ev->time_ns, context, s->in_context};
	return 0;
}

void weft__context_poll(const struct weft__thread *s, struct weft__poll *poll)
{
	uint64_t n = s->n_past_contexts < PAST_CONTEXTS ? s->n_past_contexts : PAST_CONTEXTS, i;

	if (poll->has_context)
		poll->context = (struct weft__context){0};
	poll->has_context = poll->in_context = false;

	/* From the last one that was set before the poll began. */
	for (i = n; i > 1; i--)
		if (s->past_contexts[(s->n_past_contexts - n + i - 1) % PAST_CONTEXTS].time_ns <= poll->begin_ns)
			break;
	for (i -= i > 0; i < n; i++) {
		const struct weft__past_context *past = &s->past_contexts[(s->n_past_contexts - n + i) % PAST_CONTEXTS];

		if (past->time_ns <= poll->end_ns)
			give(poll, &past->context, past->match);
	}
}

bool weft__context_asked(const struct weft__analysis_opts *opts, const struct weft__thread *s)
{
	return !opts->by_context || (s && s->in_context);
}
