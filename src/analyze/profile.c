/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Chains are short. */
static void want_holder(struct weft__frames *frames, const struct weft__holder *holder)
{
	for (; holder; holder = holder->also) {
		weft__frames_want(frames, holder->stack);
		weft__frames_want(frames, holder->kernel);
		weft__frames_want_object(frames, holder->what, holder->object);
		want_holder(frames, holder->next);
	}
}

static void want_breakdown(const struct weft__breakdown *breakdown, struct weft__frames *frames)
{
	size_t i;

	for (i = 0; i < breakdown->n_causes; i++) {
		weft__frames_want(frames, breakdown->causes[i].stack);
		weft__frames_want(frames, breakdown->causes[i].kernel);
		weft__frames_want_object(frames, breakdown->causes[i].what, breakdown->causes[i].object);
		want_holder(frames, &breakdown->causes[i].holder);
	}
}

static void want_polls(const struct weft__poll *polls, size_t n, struct weft__frames *frames)
{
	size_t i, j;

	for (i = 0; i < n; i++) {
		for (j = 0; j < polls[i].n_stacks; j++) {
			weft__frames_want(frames, polls[i].stacks[j].stack);
			weft__frames_want(frames, polls[i].stacks[j].kernel);
		}
		want_breakdown(&polls[i].breakdown, frames);
	}
}

static void want_rows(const struct weft__off_row *rows, size_t n, struct weft__frames *frames)
{
	size_t i;

	for (i = 0; i < n; i++) {
		weft__frames_want(frames, rows[i].stack);
		weft__frames_want(frames, rows[i].kernel);
	}
}

void weft__profile_want(const struct weft__result *r, struct weft__frames *frames)
{
	size_t i;

	for (i = 0; i < r->samples.n_rows; i++) {
		weft__frames_want(frames, r->samples.rows[i].stack);
		weft__frames_want(frames, r->samples.rows[i].kernel);
	}
	want_polls(r->poll.longest, r->poll.n_longest, frames);
	want_polls(r->poll.running, r->poll.n_running, frames);
	want_rows(r->off.rows, r->off.n_rows, frames);
	want_rows(r->off.walls, r->off.n_walls, frames);
	for (i = 0; i < r->wait.n_threads; i++)
		weft__frames_want(frames, r->wait.threads[i].stack);
	for (i = 0; i < r->wait.n_longest; i++) {
		weft__frames_want(frames, r->wait.longest[i].stack);
		weft__frames_want_object(frames, r->wait.longest[i].what, r->wait.longest[i].object);
		want_holder(frames, &r->wait.longest[i].holder);
	}
	for (i = 0; i < r->wait.n_objects; i++) {
		weft__frames_want_object(frames, r->wait.objects[i].what, r->wait.objects[i].object);
		want_holder(frames, &r->wait.objects[i].holder);
	}
	for (i = 0; i < r->wait.n_pendings; i++) {
		weft__frames_want(frames, r->wait.pendings[i].stack);
		weft__frames_want(frames, r->wait.pendings[i].holder_stack);
		weft__frames_want_object(frames, r->wait.pendings[i].what, r->wait.pendings[i].object);
	}
	for (i = 0; i < r->off.n_stucks; i++)
		weft__frames_want(frames, r->off.stucks[i].stack);
	for (i = 0; i < r->task.n_waiting; i++)
		weft__frames_want(frames, r->task.waiting[i].stack);
}

static void add_if(struct weft__weight *to, bool is, struct weft__weight weight)
{
	if (is)
		weft__weight_add(to, weight.n, weight.ns);
}

static void judge(struct weft__quality *q, const struct weft__frames *frames, const struct weft__sample_row *row)
{
	const struct weft__code_stack *stack = weft__frames_stack(frames, row->stack);
	uint32_t flags = stack ? stack->flags : 0;
	bool has = stack && stack->n > 0, cut = has && flags & WEFT_STACK_CUT;
	bool complete = has && !cut && flags & WEFT_STACK_COMPLETE;

	add_if(&q->complete, complete, row->weight);
	add_if(&q->cut, cut, row->weight);
	add_if(&q->lost, has && !cut && !complete, row->weight);
	add_if(&q->none, row->stack == 0 || (stack && !has), row->weight);
	add_if(&q->undefined, row->stack != 0 && !stack, row->weight);
	add_if(&q->fp, flags & WEFT_STACK_FP, row->weight);
	add_if(&q->no_code, flags & WEFT_STACK_NO_CODE, row->weight);
	add_if(&q->early, flags & WEFT_STACK_EARLY, row->weight);
	add_if(&q->kernel, row->kernel != 0 || flags & WEFT_STACK_KERNEL, row->weight);
}

struct adding {
	const struct weft__frames *frames;
	struct weft__line_list lines;
	struct weft__function_weight *by_function;
	size_t *seen; /* the last row, counted from 1, that a function was in */
};

static int add_row(struct weft__profile *profile, struct adding *adding, const struct weft__sample_row *row,
		   size_t turn)
{
	int rc = weft__frames_lines(adding->frames, row->stack, row->kernel, &adding->lines);
	size_t i;

	if (rc < 0)
		return rc;
	weft__weight_add(&profile->all, row->weight.n, row->weight.ns);
	judge(&profile->quality, adding->frames, row);
	if (adding->lines.n == 0)
		weft__weight_add(&profile->nameless, row->weight.n, row->weight.ns);
	for (i = 0; i < adding->lines.n; i++) {
		uint32_t function = adding->lines.at[i].function;

		if (i == 0)
			add_if(&adding->by_function[function].self, true, row->weight);
		add_if(&adding->by_function[function].total, adding->seen[function] != turn, row->weight);
		adding->seen[function] = turn;
	}
	return 0;
}

static int most_self_first(const void *left, const void *right)
{
	const struct weft__function_weight *a = left, *b = right;

	if (a->self.ns != b->self.ns)
		return a->self.ns > b->self.ns ? -1 : 1;
	if (a->total.ns != b->total.ns)
		return a->total.ns > b->total.ns ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

static int fill(struct weft__profile *profile, struct adding *adding, const struct weft__samples *samples)
{
	size_t i, kept = 0, n = adding->frames->n_functions;

	for (i = 0; i < samples->n_rows; i++)
		if (add_row(profile, adding, &samples->rows[i], i + 1) < 0)
			return -ENOMEM;
	for (i = 0; i < n; i++) {
		adding->by_function[i].function = (uint32_t)i;
		if (adding->by_function[i].total.n)
			adding->by_function[kept++] = adding->by_function[i];
	}
	qsort(adding->by_function, kept, sizeof(*adding->by_function), most_self_first);
	profile->functions = adding->by_function;
	profile->n_functions = kept;
	return 0;
}

int weft__profile_init(struct weft__profile *ret, const struct weft__samples *samples,
		       const struct weft__frames *frames)
{
	struct weft__profile profile = {0};
	struct adding adding = {.frames = frames};
	int rc = -ENOMEM;

	adding.by_function = weft__calloc(frames->n_functions + 1, sizeof(*adding.by_function));
	adding.seen = weft__calloc(frames->n_functions + 1, sizeof(*adding.seen));
	if (adding.by_function && adding.seen)
		rc = fill(&profile, &adding, samples);
	weft__free(adding.lines.at);
	weft__free(adding.seen);
	if (rc < 0)
		weft__free(adding.by_function);
	else
		*ret = profile;
	return rc;
}

void weft__profile_fini(struct weft__profile *profile)
{
	weft__free(profile->functions);
	memset(profile, 0, sizeof(*profile));
}
