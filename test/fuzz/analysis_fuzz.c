/* SPDX-License-Identifier: Apache-2.0 */
/* An analysis of any events in any order: a byte of options, then events of 4 bytes (kind, thread, step of time) and
 * one for each field of their kind. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "segment/event.h"

static const uint16_t fields_of[WEFT_KIND_BUILTIN_END] = {
#define X(NAME, number, ...) [number] = WEFT_FIELDS_OF_##NAME,
	WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
};

/* Two workers and a thread that is none, with tids from 101 on, and two locations. */
static void define(struct weft__names *names)
{
	static const struct weft_thread threads[] = {
		{1, 101, 0, "w0", 100}, {2, 102, 1, "w1", 100}, {3, 103, WEFT_WORKER_NONE, "io", 100}};
	static const struct weft_location_def locations[] = {{1, 80, "accept", "server.c"},
							     {2, 120, "echo", "server.c"}};
	size_t i;
	int rc = 0;

	for (i = 0; i < 3; i++)
		rc |= weft__names_add_thread(names, &threads[i]);
	for (i = 0; i < 2; i++)
		rc |= weft__names_add_location(names, &locations[i]);
	if (rc < 0)
		abort();
}

/* Small numbers, the tids above, times, and now and then one of any size. */
static uint64_t value_of(uint8_t byte, uint64_t now_ns)
{
	if (byte < 32)
		return byte;
	if (byte < 48)
		return 100u + (byte & 7);
	if (byte < 128)
		return now_ns - (uint64_t)(byte - 48) * 250000;
	if (byte < 240)
		return (uint64_t)(byte - 127) * 500000;
	return UINT64_MAX >> ((byte & 15) * 4);
}

static void check_polls(const struct weft__poll *polls, size_t n)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		const struct weft__breakdown *breakdown = &polls[i].breakdown;
		uint64_t sum = 0;

		for (k = 0; k < WEFT__N_PARTS; k++)
			sum += breakdown->split.ns[k];
		if (breakdown->known && sum != polls[i].rank_ns)
			abort();
		for (k = 0; k < breakdown->n_causes; k++)
			if (breakdown->causes[k].ns > polls[i].rank_ns ||
			    (k && breakdown->causes[k].ns > breakdown->causes[k - 1].ns))
				abort();
	}
}

static void check_samples(const struct weft__samples *samples)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < WEFT__N_WHERE; i++)
		n += samples->where[i].n;
	if (n != samples->all.n)
		abort();
	for (i = 0, n = samples->beyond_rows.n; i < samples->n_rows; i++)
		n += samples->rows[i].weight.n;
	if (n != samples->all.n)
		abort();
}

/* Single ones, and what they add up to. */
struct rows {
	uint64_t polls, poll_ns[WEFT__N_PARTS], slice_ns[WEFT__N_PARTS];
	uint64_t samples, sample_ns, in_poll, waits;
};

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int add_poll(void *data, const struct weft__poll *poll, const struct weft__breakdown *breakdown)
{
	struct rows *rows = data;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < WEFT__N_PARTS; i++) {
		sum += breakdown->split.ns[i];
		rows->slice_ns[i] = breakdown->split.ns[i]; /* to come */
		rows->poll_ns[i] = plus(rows->poll_ns[i], poll->end_ns ? breakdown->split.ns[i] : 0);
	}
	if (sum != poll->rank_ns)
		abort();
	rows->polls += poll->end_ns != 0;
	return 0;
}

static int add_slice(void *data, const struct weft__slice_view *slice)
{
	struct rows *rows = data;

	if (slice->ns == 0 || slice->ns > rows->slice_ns[slice->part] || slice->begin_ns > slice->end_ns ||
	    (slice->end_ns && slice->begin_ns < slice->poll->begin_ns))
		abort();
	rows->slice_ns[slice->part] -= slice->ns;
	return 0;
}

static int add_wait(void *data, const struct weft__wait_view *wait)
{
	struct rows *rows = data;

	if (wait->begin_ns > wait->wait->end_ns)
		abort();
	rows->waits = plus(rows->waits, 1);
	return 0;
}

static int add_wait_sum(void *data, const struct weft__wait_sum_view *sum)
{
	struct rows *rows = data;

	rows->waits = plus(rows->waits, sum->n);
	return 0;
}

static int add_sample(void *data, const struct weft__sample_one *sample)
{
	struct rows *rows = data;

	if ((sample->where == WEFT__IN_POLL) != (sample->poll != 0))
		abort();
	rows->samples++;
	rows->in_poll += sample->poll != 0;
	rows->sample_ns = plus(rows->sample_ns, sample->ns);
	return 0;
}

/* They are exactly what the result is made of. */
static void check_rows(const struct rows *rows, const struct weft__result *r, bool reported)
{
	uint64_t waits = 0;
	size_t i;

	for (i = 0; i < WEFT__N_PARTS; i++)
		if (rows->slice_ns[i] || rows->poll_ns[i] != r->split.ns[i])
			abort();
	for (i = 0; i < r->wait.n_rows; i++)
		waits = plus(waits, r->wait.rows[i].n);
	if (rows->polls != r->split.n || rows->samples != r->samples.all.n || rows->waits != waits ||
	    rows->sample_ns != r->samples.all.ns)
		abort();
	/* Of polls that come at their end in a recording that does not say so, samples are not held back. */
	if (reported && rows->in_poll != r->samples.where[WEFT__IN_POLL].n)
		abort();
}

static void choose(struct weft__names *names, struct weft__analysis_opts *opts, uint8_t bits)
{
	static const struct weft_fact facts[] = {{"sample.hz", "100"}, {"poll.mode", "caught"}};

	opts->top = 1 + (bits & 3);
	opts->max_intervals = bits & 4 ? 20 : 0;
	opts->location = bits & 8 ? "echo" : NULL;
	opts->span = bits & 16 ? 3 : 0;
	opts->from_ns = bits & 32 ? 20000000 : 0;
	opts->thread = bits & 64 ? "w*" : NULL;
	if (weft__names_add_fact(names, &facts[0]) < 0 || (bits & 128 && weft__names_add_fact(names, &facts[1]) < 0))
		abort();
}

#define EVENTS_MOST 4096

/* What the input says, in its order. */
static struct weft__record events[EVENTS_MOST];
static uint64_t wide[EVENTS_MOST][WEFT_FIELDS_MAX];

static size_t read_events(const uint8_t *data, size_t size)
{
	uint64_t time_ns = 10000000;
	size_t at = 1, n = 0, i;

	for (; at + 4 <= size && n < EVENTS_MOST; n++) {
		struct weft__record *ev = &events[n];

		ev->kind = (uint16_t)(1 + data[at] % (WEFT_KIND_BUILTIN_END + 1));
		ev->thread = data[at + 1] & 7;
		time_ns += (uint64_t)((data[at + 2] | data[at + 3] << 8) << 4);
		if (data[at + 1] >= 0xf8)
			time_ns -= 3000000;
		ev->time_ns = time_ns;
		ev->n_fields = ev->kind < WEFT_KIND_BUILTIN_END ? fields_of[ev->kind] : 2;
		at += 4;
		for (i = 0; i < ev->n_fields; i++)
			wide[n][i] = at < size ? value_of(data[at++], time_ns) : 0;
		for (i = 0; i < RECORD_FIELDS; i++)
			ev->fields[i] = i < ev->n_fields ? wide[n][i] : 0;
		if (ev->n_fields > RECORD_FIELDS)
			ev->fields[0] = (uint64_t)(uintptr_t)wide[n];
	}
	return n;
}

/* As a recording gives them: of one thread, in order of time. */
static size_t run_end(size_t at, size_t n)
{
	size_t end = at + 1;

	while (end < n && events[end].thread == events[at].thread && events[end].time_ns >= events[end - 1].time_ns)
		end++;
	return end;
}

/* One by one, or run by run: that must not matter. */
static struct weft__analysis *analyze(const struct weft__analysis_opts *opts, size_t n, bool runs,
				      const struct weft__result **r)
{
	struct weft__analysis *analysis;
	size_t at = 0, end;
	int rc = 0;

	if (weft__analysis_open(&analysis, opts) < 0)
		abort();
	for (; at < n && rc == 0; at = end) {
		struct weft__event ev = weft__event_of_record(&events[at]);

		end = runs ? run_end(at, n) : at + 1;
		rc = runs ? weft__analysis_push_run(analysis, &events[at], &events[end])
			  : weft__analysis_push(analysis, &ev);
	}
	if (rc < 0 || weft__analysis_finish(analysis, 0, r) < 0)
		abort();
	return analysis;
}

static void check_same_polls(const struct weft__poll *a, const struct weft__poll *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (a[i].rank_ns != b[i].rank_ns || a[i].thread_id != b[i].thread_id ||
		    memcmp(&a[i].breakdown.split, &b[i].breakdown.split, sizeof(a->breakdown.split)) != 0)
			abort();
}

static void check_same(const struct weft__result *a, const struct weft__result *b)
{
	size_t i;

	if (a->n_events != b->n_events || a->malformed != b->malformed || a->first_ns != b->first_ns ||
	    a->last_ns != b->last_ns || a->lane.n_lanes != b->lane.n_lanes || a->poll.n_longest != b->poll.n_longest ||
	    a->poll.n_running != b->poll.n_running || a->wait.n_rows != b->wait.n_rows ||
	    a->samples.all.ns != b->samples.all.ns || memcmp(a->n_kind, b->n_kind, sizeof(a->n_kind)) != 0 ||
	    memcmp(&a->split, &b->split, sizeof(a->split)) != 0)
		abort();
	for (i = 0; i < a->lane.n_lanes; i++)
		if (memcmp(&a->lane.lanes[i].split, &b->lane.lanes[i].split, sizeof(a->split)) != 0)
			abort();
	check_same_polls(a->poll.longest, b->poll.longest, a->poll.n_longest);
	check_same_polls(a->poll.running, b->poll.running, a->poll.n_running);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct weft__result *r, *by_runs;
	struct weft__names names = {0};
	struct weft__analysis_opts opts = {.names = &names};
	struct rows rows = {0}, rows_by_runs = {0};
	struct weft__row_sink sink = {.poll = add_poll,
				      .slice = add_slice,
				      .wait = add_wait,
				      .wait_sum = add_wait_sum,
				      .sample = add_sample,
				      .data = &rows,
				      .behind = true};
	struct weft__analysis *analysis, *other;
	size_t n;

	if (size < 1)
		return 0;
	define(&names);
	choose(&names, &opts, data[0]);
	opts.rows = size & 1 ? &sink : NULL;
	opts.rows_only = opts.rows && size & 2 && !(data[0] & 0x78); /* without filters and window */
	weft__names_settle(&names);
	n = read_events(data, size);
	analysis = analyze(&opts, n, false, &r);
	sink.data = &rows_by_runs;
	other = analyze(&opts, n, true, &by_runs);
	check_same(r, by_runs);
	if (memcmp(&rows, &rows_by_runs, sizeof(rows)) != 0)
		abort();
	check_polls(r->poll.longest, r->poll.n_longest);
	check_polls(r->poll.running, r->poll.n_running);
	check_samples(&r->samples);
	if (opts.rows && !opts.rows_only)
		check_rows(&rows, r, data[0] & 128);
	weft__analysis_close(analysis);
	weft__analysis_close(other);
	weft__names_fini(&names);
	return 0;
}
