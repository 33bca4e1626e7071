/* SPDX-License-Identifier: Apache-2.0 */
/* The analysis of one recording: events in, in order of time, figures out. It does not know files (recording.h
 * does), so it can be fed anything. Memory is bounded: what a limit cuts off is counted, and the counters are part
 * of the result.
 *
 * Three rules hold for every figure. A time that spans a gap (gap.h) is left out. A poll belongs to the window when
 * it ends in it or is still open at its end, with all its samples, a wake-to-poll delay when the poll begins in it,
 * a sample by itself when it was taken in it, and shares are cut at its borders. And what was not recorded has no
 * value at all, rather than zero. Context: CALLER. */
#ifndef WEFT_ANALYZE_ANALYSIS_H
#define WEFT_ANALYZE_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/names.h"
#include "analyze/result.h"
#include "analyze/rows.h"
#include "segment/event.h"
#include "weft/segment.h"

struct weft__analysis_opts {
	const struct weft__names *names; /* settled; must outlive the analysis */
	uint64_t
		/* from here on nothing is missing but gaps: threads that existed before are observed from here */
		start_ns;
	uint64_t from_ns;     /* the window; everything before it is read for what it says about the window */
	uint64_t to_ns;       /* not included; 0: no end */
	const char *worker;   /* shell pattern of the lanes whose polls and samples count; NULL: all */
	const char *location; /* shell pattern of the locations whose polls, and samples in them, count; NULL: all */
	const char *
		/* shell pattern of the endpoints in whose context polls, samples and waits count; NULL: all */
		endpoint;
	const char *label;           /* "key=value" that the context has; NULL: any */
	uint64_t span;               /* of the context, as span or local root; 0: any */
	uint64_t trace_hi, trace_lo; /* of the context; 0 and 0: any */
	const char *thread; /* tid, or shell pattern of the names of threads whose polls and samples count; NULL: all */
	uint64_t
		/* between two samples of a thread's CPU time; 0: as the facts sample.period_ns or sample.hz say */
		period_ns;
	size_t top;             /* length of the lists of worst things; 10 */
	size_t max_tasks;       /* that live at one time; 1 Mi */
	size_t max_threads;     /* threads that live at one time; 1 Mi */
	size_t max_rows;        /* lanes, locations, and sampled threads; 4096 of each */
	size_t max_samples;     /* in polls that are open at one time; 4 Mi */
	size_t max_sample_rows; /* 1 Mi */
	size_t max_intervals;   /* waits, switches, wall samples and samples that are kept for polls; 1 Mi */
	/* Hears of each sample that is in the window and asked for. A negative value ends the push that it came in. */
	int (*sample)(void *data, const struct weft__sample_view *sample);
	void *sample_data;
	/* Hears of samples of all the time of threads (times.h), as far as those are asked for by opts.from_ns and
	 * to_ns. The same. */
	int (*time_sample)(void *data, const struct weft__time_sample *sample);
	void *time_data;
	const struct weft__row_sink *rows; /* hears of single ones (rows.h); NULL: nobody */
	/* and nothing else is asked for: sums and lists of polls are not made; without filters and window */
	bool rows_only;

	/* Inside: found by weft__analysis_open. */
	bool by_context;     /* only some contexts are asked for */
	bool polls_reported; /* not all polls are reported one by one */
	uint64_t tick_ns;    /* of the kernel; 0: not known */
};

struct weft__analysis;

/* Returns 0 or -ENOMEM. `*ret` is the caller's. */
int weft__analysis_open(struct weft__analysis **ret, const struct weft__analysis_opts *opts);

/* The next event. Events of the past do no harm beyond figures that are off. Returns 0, -ENOMEM, or what opts.sample
 * did. */
int weft__analysis_push(struct weft__analysis *analysis, const struct weft__event *ev);

/* The next events: of one thread, in order of time, as a recording gives them. The same. */
int weft__analysis_push_run(struct weft__analysis *analysis, const struct weft__record *at,
			    const struct weft__record *end);

/* No more events; the recording (or the window) ends at `end_ns`, or with the last event when that is 0. Once.
 * Returns 0 or -ENOMEM. The result lives as long as the analysis. */
int weft__analysis_finish(struct weft__analysis *analysis, uint64_t end_ns, const struct weft__result **ret);

/* NULL is allowed. */
void weft__analysis_close(struct weft__analysis *analysis);

#endif
