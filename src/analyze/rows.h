/* SPDX-License-Identifier: Apache-2.0 */
/* Who hears of each poll, slice, wait, sample and time off the CPU, as it is resolved: src/trace makes rows of them.
 * What is given here is exactly what the sums of the result are made of. Pointers are good during the call. Each
 * function may be NULL; a negative value ends the push that it came in. Polls and their slices come in order of time
 * for each thread, when no more is expected of them; a sample whose poll is recorded at its end comes after that
 * poll. Everything else comes in order of time. Context: CALLER. */
#ifndef WEFT_ANALYZE_ROWS_H
#define WEFT_ANALYZE_ROWS_H

#include "analyze/breakdown.h"
#include "analyze/samples.h"

struct weft__poll;
struct weft__analysis;
struct weft__closed;
struct weft__thread_timeline;
struct weft__thread;
struct weft__interval;

/* Some of a poll's time. Those of one poll and part add up to that part. */
struct weft__slice_view {
	const struct weft__poll *poll;
	enum weft__part part;
	uint64_t ns;
	uint64_t begin_ns,
		end_ns; /* the interval that it is in, inside of the poll; 0 and 0: when it was is not known */
	uint32_t what;  /* enum weft_wait; 0: no event said it */
	uint32_t call;  /* of the system, plus 1; 0: not known */
	uint32_t name;
	uint64_t object;
	uint32_t stack, kernel;
};

struct weft__wait_view {
	const struct weft__wait *wait; /* its holder, too, without those who held what that one waited for */
	uint64_t begin_ns;
	uint64_t cpu_ns; /* WEFT_NOT_MEASURED: not known */
	uint64_t poll;   /* serial; 0: in none that is known now */
};

struct weft__wait_sum_view {
	uint64_t time_ns, n, ns, longest_ns;
	uint32_t thread_id, worker, what, name;
};

struct weft__sample_one {
	uint64_t time_ns, ns;
	uint64_t poll;     /* serial; 0: in none */
	uint32_t location; /* of that poll */
	uint32_t stack, kernel, thread_id, worker, cpu, engine;
	enum weft__where where;              /* a thread that never polls is not distinguished from one that does */
	const struct weft__context *context; /* NULL: none */
};

struct weft__off_view {
	uint64_t begin_ns, end_ns;
	uint64_t count; /* switches that it stands for */
	uint32_t tid, thread_id, worker;
	uint32_t what; /* enum weft_offcpu */
	uint32_t stack, kernel;
	const struct weft__context *context; /* NULL: none */
};

struct weft__row_sink {
	/* Whether a poll that has ended, or has not as the recording ends, is wanted, before its time is divided.
	 * NULL: each is. */
	bool (*wants)(void *data, const struct weft__poll *poll);
	/* Of one that has not ended, rank_ns is its age. What only lists of polls have is not there; its context is
	 * if has_context is set. */
	int (*poll)(void *data, const struct weft__poll *poll, const struct weft__breakdown *breakdown);
	int (*slice)(void *data, const struct weft__slice_view *slice);
	int (*wait)(void *data, const struct weft__wait_view *wait);
	int (*wait_sum)(void *data, const struct weft__wait_sum_view *sum);
	int (*sample)(void *data, const struct weft__sample_one *sample);
	int (*off)(void *data, const struct weft__off_view *off);
	void *data;
	bool behind; /* polls say which one held the worker while their task waited */
};

/* The analysis gives them to opts.rows, which is not NULL, by these. A poll that has ended is kept until its time is
 * divided. */
int weft__rows_keep(struct weft__analysis *a, struct weft__thread_timeline *timeline, const struct weft__poll *poll,
		    bool *kept);
/* The first one that is kept, which is `closed`, has its time divided. */
int weft__rows_poll(struct weft__analysis *a, struct weft__thread_timeline *timeline, const struct weft__closed *closed,
		    const struct weft__breakdown *breakdown);
int weft__rows_wait(struct weft__analysis *a, struct weft__wait *wait, const struct weft__interval *interval,
		    const struct weft__poll *poll);
int weft__rows_wait_sum(struct weft__analysis *a, const struct weft__thread *s, const struct weft__wait_row *sum,
			uint64_t time_ns);
int weft__rows_off(struct weft__analysis *a, const struct weft__off_row *row, uint32_t worker,
		   const struct weft__interval *interval);
/* Samples wait in the log of their timeline where their poll may be recorded at its end. The first `n` of it go. */
int weft__rows_sample(struct weft__analysis *a, const struct weft__interval *mark);
int weft__rows_samples(struct weft__analysis *a, struct weft__thread_timeline *timeline, size_t n);
int weft__rows_settle(struct weft__analysis *a);

#endif
