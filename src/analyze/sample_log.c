/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of polls that are open. Whether a poll is among the longest is known when it ends, so its samples are
 * kept until then, and with them the list, or forgotten. A thread has one log for all polls that are open on it:
 * each knows where its own part begins, and those nested in it are behind that. A poll that stays open for hours has
 * its samples put together by stack, and beyond a limit only counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/state.h"
#include "base/alloc.h"

#define LOG_MAX 65536u        /* samples of one thread */
#define POLL_STACKS_MAX 4096u /* of one poll in a list */

static int trace_order(const void *left, const void *right)
{
	const struct weft__logged *a = left, *b = right;

	return a->trace < b->trace ? -1 : a->trace > b->trace;
}

/* Puts samples of equal stacks together; answers how many are left. */
static size_t put_together(struct weft__logged *log, size_t n)
{
	size_t i, kept = 0;

	if (n == 0)
		return 0;
	qsort(log, n, sizeof(*log), trace_order);
	for (i = 1; i < n; i++) {
		if (log[i].trace == log[kept].trace) {
			log[kept].n += log[i].n;
			log[kept].ns += log[i].ns;
		} else {
			log[++kept] = log[i];
		}
	}
	return kept + 1;
}

/* Each open poll keeps its own part of the log. */
static void tighten(struct weft__sampling *samples, struct weft__thread *s)
{
	size_t before = s->n_log, i, to = 0;

	if (before == 0)
		return;
	for (i = 0; i < s->n_open; i++) {
		size_t from = s->open[i].first_sample;
		size_t end = i + 1 < s->n_open ? s->open[i + 1].first_sample : before, n;

		n = put_together(s->log + from, end - from);
		memmove(s->log + to, s->log + from, n * sizeof(*s->log));
		s->open[i].first_sample = to;
		to += n;
	}
	s->n_log = to;
	s->log_tight = to > before / 2;
	samples->n_logged -= before - to;
}

int weft__log_add(struct weft__sampling *samples, struct weft__threads *threads, struct weft__thread *s, uint32_t trace,
		  uint64_t weight_ns)
{
	bool full = s->n_log >= LOG_MAX || samples->n_logged >= samples->opts->max_samples;
	struct weft__logged *grown;

	if (full && !s->log_tight) {
		tighten(samples, s);
		full = s->n_log >= LOG_MAX || samples->n_logged >= samples->opts->max_samples;
	}
	if (full || trace == NO_ROW) {
		samples->result->samples.beyond_polls++;
		weft__weight_add(&s->open[s->n_open - 1].stacks_beyond, 1, weight_ns);
		return 0;
	}
	grown = weft__arena_grow(&threads->arena, s->log, &s->cap_log, s->n_log, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	s->log = grown;
	grown[s->n_log++] = (struct weft__logged){trace, 1, weight_ns};
	samples->n_logged++;
	return 0;
}

void weft__log_clear(struct weft__sampling *samples, struct weft__thread *s)
{
	samples->n_logged -= s->n_log;
	s->n_log = 0;
	s->log_tight = false;
}

static int heaviest_first(const void *left, const void *right)
{
	const struct weft__poll_stack *a = left, *b = right;

	if (a->weight.ns != b->weight.ns)
		return a->weight.ns > b->weight.ns ? -1 : 1;
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return a->kernel < b->kernel ? -1 : a->kernel > b->kernel;
}

static int take_stacks(struct weft__sampling *samples, struct weft__polls *polls, struct weft__poll *poll,
		       const struct weft__logged *log, size_t n)
{
	struct weft__poll_stack *stacks = weft__arena_new(&polls->arena, n, sizeof(*stacks));
	size_t i;

	if (!stacks)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		const struct weft__trace *trace = &samples->traces[log[i].trace];

		stacks[i] = (struct weft__poll_stack){trace->stack, trace->kernel, {log[i].n, log[i].ns}};
	}
	qsort(stacks, n, sizeof(*stacks), heaviest_first);
	for (i = POLL_STACKS_MAX; i < n; i++)
		weft__weight_add(&poll->stacks_beyond, stacks[i].weight.n, stacks[i].weight.ns);
	poll->stacks = stacks;
	poll->n_stacks = n < POLL_STACKS_MAX ? n : POLL_STACKS_MAX;
	return 0;
}

int weft__log_take(struct weft__sampling *samples, struct weft__polls *polls, const struct weft__thread *s,
		   struct weft__poll *poll)
{
	size_t n = s->n_log - poll->first_sample;
	struct weft__logged *copy;
	int rc;

	if (n == 0)
		return 0;
	copy = weft__calloc(n, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, s->log + poll->first_sample, n * sizeof(*copy));
	n = put_together(copy, n);
	rc = take_stacks(samples, polls, poll, copy, n);
	weft__free(copy);
	return rc;
}
