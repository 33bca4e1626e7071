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

static bool matches(const struct weft__analysis *a, const struct weft__context *context)
{
	const struct weft__analysis_opts *opts = &a->opts;
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

int weft__context_set(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	struct weft__context context = {
		.trace_hi = WEFT_FIELD(ev, CONTEXT, TRACE_HI),
		.trace_lo = WEFT_FIELD(ev, CONTEXT, TRACE_LO),
		.span = WEFT_FIELD(ev, CONTEXT, SPAN),
		.root = WEFT_FIELD(ev, CONTEXT, ROOT),
		.endpoint = (uint32_t)WEFT_FIELD(ev, CONTEXT, ENDPOINT),
		.labels = (uint32_t)WEFT_FIELD(ev, CONTEXT, LABELS),
	};
	bool match = a->by_context && weft__context_is_set(&context) && matches(a, &context);
	size_t i;

	s->context = context;
	s->has_context = weft__context_is_set(&context);
	if (match != s->in_context)
		s->in_context_ns = ev->time_ns;
	s->in_context = match;
	a->result.context_met |= match;
	for (i = 0; i < s->n_open; i++)
		give(&s->open[i], &context, s->in_context);
	if (!s->past_contexts)
		s->past_contexts = weft__arena_new(&a->threads.arena, PAST_CONTEXTS, sizeof(*s->past_contexts));
	if (!s->past_contexts)
		return -ENOMEM;
	s->past_contexts[s->n_past_contexts++ % PAST_CONTEXTS] =
		(struct weft__past_context){ev->time_ns, context, 0, s->in_context};
	return 0;
}

/* The last that was set up to then; NULL: it is not known any more, or there was none. */
static struct weft__past_context *in_force(const struct weft__thread *s, uint64_t time_ns)
{
	uint64_t n = s->n_past_contexts < PAST_CONTEXTS ? s->n_past_contexts : PAST_CONTEXTS, i;

	for (i = 1; i <= n; i++) {
		struct weft__past_context *past = &s->past_contexts[(s->n_past_contexts - i) % PAST_CONTEXTS];

		if (past->time_ns <= time_ns)
			return past;
	}
	return NULL;
}

static bool are_wanted(const struct weft__analysis *a)
{
	return (a->opts.rows && (a->opts.rows->sample || a->opts.rows->off)) || a->opts.time_sample;
}

int weft__context_keep(struct weft__analysis *a, const struct weft__thread *s, uint64_t time_ns, uint32_t *ret)
{
	struct weft__sampling *sampling = &a->samples;
	struct weft__past_context *past;

	*ret = 0;
	if (!s || !s->n_past_contexts || !are_wanted(a))
		return 0;
	past = in_force(s, time_ns);
	if (!past || !weft__context_is_set(&past->context))
		return 0;
	if (!sampling->contexts)
		sampling->contexts =
			weft__arena_new(&sampling->arena, WEFT__KEPT_CONTEXTS, sizeof(*sampling->contexts));
	if (!sampling->contexts)
		return -ENOMEM;
	if (!past->number) {
		past->number = ++sampling->n_kept_contexts;
		sampling->contexts[past->number % WEFT__KEPT_CONTEXTS] =
			(struct weft__kept_context){past->number, past->context};
	}
	*ret = past->number;
	return 0;
}

const struct weft__context *weft__context_kept(const struct weft__analysis *a, uint32_t number)
{
	const struct weft__kept_context *kept = a->samples.contexts;

	if (!number || !kept || kept[number % WEFT__KEPT_CONTEXTS].number != number)
		return NULL;
	return &kept[number % WEFT__KEPT_CONTEXTS].context;
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

bool weft__context_asked(const struct weft__analysis *a, const struct weft__thread *s)
{
	return !a->by_context || (s && s->in_context);
}
