/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: which request a thread works for. A poll has those that were in force at any time in it; runtimes often
 * set one just behind its begin. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "analyze/state.h"
#include "base/alloc.h"

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

static bool matches(const struct weft__analysis *a, const struct weft__scope *scope)
{
	const struct weft__analysis_opts *opts = &a->opts;
	const char *endpoint = weft__names_string(opts->names, scope->endpoint);

	if (opts->span && scope->span != opts->span && scope->root != opts->span)
		return false;
	if ((opts->trace_hi || opts->trace_lo) &&
	    (scope->trace_hi != opts->trace_hi || scope->trace_lo != opts->trace_lo))
		return false;
	if (opts->endpoint && (!endpoint || fnmatch(opts->endpoint, endpoint, 0) != 0))
		return false;
	return !opts->label || has_label(weft__names_string(opts->names, scope->labels), opts->label);
}

static void give(struct weft__poll *poll, const struct weft__scope *scope, bool match)
{
	if (weft__scope_is_set(scope)) {
		poll->scope = *scope;
		poll->has_scope = true;
	}
	poll->in_scope |= match;
}

int weft__scope_set(struct weft__analysis *a, struct weft__stream *s, const struct weft__event *ev)
{
	struct weft__scope scope = {
		.trace_hi = WEFT_FIELD(ev, CONTEXT, TRACE_HI),
		.trace_lo = WEFT_FIELD(ev, CONTEXT, TRACE_LO),
		.span = WEFT_FIELD(ev, CONTEXT, SPAN),
		.root = WEFT_FIELD(ev, CONTEXT, ROOT),
		.endpoint = (uint32_t)WEFT_FIELD(ev, CONTEXT, ENDPOINT),
		.labels = (uint32_t)WEFT_FIELD(ev, CONTEXT, LABELS),
	};
	bool match = a->scoped && weft__scope_is_set(&scope) && matches(a, &scope);
	size_t i;

	s->scope = scope;
	s->has_scope = weft__scope_is_set(&scope);
	if (match != s->in_scope)
		s->in_scope_ns = ev->time_ns;
	s->in_scope = match;
	a->result.context_met |= match;
	for (i = 0; i < s->n_open; i++)
		give(&s->open[i], &scope, s->in_scope);
	if (!s->past_scopes)
		s->past_scopes = weft__calloc(PAST_SCOPES, sizeof(*s->past_scopes));
	if (!s->past_scopes)
		return -ENOMEM;
	s->past_scopes[s->n_past_scopes++ % PAST_SCOPES] = (struct weft__past_scope){ev->time_ns, scope, s->in_scope};
	return 0;
}

void weft__scope_poll(const struct weft__stream *s, struct weft__poll *poll)
{
	uint64_t n = s->n_past_scopes < PAST_SCOPES ? s->n_past_scopes : PAST_SCOPES, i;

	if (poll->has_scope)
		poll->scope = (struct weft__scope){0};
	poll->has_scope = poll->in_scope = false;

	/* From the last one that was set before the poll began. */
	for (i = n; i > 1; i--)
		if (s->past_scopes[(s->n_past_scopes - n + i - 1) % PAST_SCOPES].time_ns <= poll->begin_ns)
			break;
	for (i -= i > 0; i < n; i++) {
		const struct weft__past_scope *past = &s->past_scopes[(s->n_past_scopes - n + i) % PAST_SCOPES];

		if (past->time_ns <= poll->end_ns)
			give(poll, &past->scope, past->match);
	}
}

bool weft__scope_asked(const struct weft__analysis *a, const struct weft__stream *s)
{
	return !a->scoped || (s && s->in_scope);
}
