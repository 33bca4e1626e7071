/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the times that a thread was preempted were a CPU quota's.
 *
 * The kernel counts how long a quota withheld CPUs and how often, when it gives them back, and the collector reads
 * that every 200 ms or so. A thread that the quota stops leaves the CPU as one that is preempted does, and comes
 * back when the period of the quota is over: mostly much later than after a slice of another thread. So of what
 * ended between two readings the longest times are taken, as many as the quota was used up, and together no longer
 * than CPUs were withheld. */
#include "analyze/state.h"

#define SLACK_NS 4000000u /* a thread is back on a CPU some time after the quota is */

#define SLICES_NS 5000000u  /* longer than a thread waits for another's slice, mostly */
#define GRACE_NS 500000000u /* two drains */
#define CLOSED_MAX 8192u
#define READING_NS 1200000000u    /* between two readings, at most, and some more */
#define CLOSED_READING_MAX 65536u /* polls of one thread in that time */

void weft__throttled_init(struct weft__throttled *throttled, struct weft__breakdowns *breakdowns)
{
	throttled->quota = weft__names_fact(throttled->opts->names, "cgroup.cpu.max") != NULL;
	breakdowns->grace_ns = throttled->quota ? READING_NS : GRACE_NS;
	breakdowns->max_closed = throttled->quota ? CLOSED_READING_MAX : CLOSED_MAX;
}

static bool preempted(const struct weft__interval *interval)
{
	return interval->kind == INTERVAL_OFF && interval->what == WEFT_OFFCPU_PREEMPTED;
}

/* In an interval off the CPU, `ns` is how much of it was the quota's, by the span whose number is `object`. */
static void set_throttled(struct weft__off_result *off, struct weft__thread_timeline *timeline,
			  struct weft__interval *interval, uint64_t ns, uint64_t span)
{
	if (timeline->off_row != NO_ROW) {
		struct weft__off_thread *thread = &off->threads[timeline->off_row];

		thread->throttled_ns = weft__sum(weft__since(thread->throttled_ns, interval->ns), ns);
	}
	interval->ns = ns;
	interval->object = span;
}

static struct weft__interval *longest(const struct weft__thread_timeline *timeline, size_t first, uint64_t to_ns)
{
	struct weft__interval *best = NULL;
	size_t i;

	for (i = first; i < timeline->n_log && timeline->log[i].end_ns <= to_ns; i++) {
		struct weft__interval *interval = &timeline->log[i];

		if (preempted(interval) && !interval->ns && interval->end_ns > interval->begin_ns &&
		    (!best || interval->end_ns - interval->begin_ns > best->end_ns - best->begin_ns))
			best = interval;
	}
	return best;
}

/* What ends soon after a reading may be of either span: it is of the first that has room for it. */
static void mark(struct weft__off_result *off, struct weft__thread_timeline *timeline,
		 const struct weft__throttled_span *span)
{
	size_t first = weft__thread_timeline_after(timeline, span->from_ns), i;
	uint64_t left_ns = span->throttled_ns, to_ns = weft__sum(span->to_ns, SLACK_NS), times;

	for (i = first; i < timeline->n_log && timeline->log[i].end_ns <= to_ns; i++)
		if (preempted(&timeline->log[i]) && timeline->log[i].object == span->number)
			set_throttled(off, timeline, &timeline->log[i], 0, 0);
	for (times = span->times ? span->times : 1; times > 0 && left_ns; times--) {
		struct weft__interval *interval = longest(timeline, first, to_ns);
		uint64_t ns;

		if (!interval || (interval->end_ns > span->to_ns && interval->begin_ns >= span->to_ns))
			break;
		ns = interval->end_ns - interval->begin_ns;
		ns = ns < left_ns ? ns : left_ns;
		set_throttled(off, timeline, interval, ns, span->number);
		left_ns -= ns;
	}
}

void weft__throttled_add(struct weft__throttled *throttled, struct weft__thread_timelines *timelines,
			 const struct weft__event *ev)
{
	struct weft__throttled_span *span = &throttled->spans[throttled->n++ % THROTTLED_SPANS];
	struct weft__throttling *sum = &throttled->result->throttling;
	size_t i;

	*span = (struct weft__throttled_span){weft__since(ev->time_ns, WEFT_FIELD(ev, THROTTLED, SPAN)), ev->time_ns,
					      WEFT_FIELD(ev, THROTTLED, TIME), WEFT_FIELD(ev, THROTTLED, TIMES),
					      throttled->n};
	if (ev->time_ns >= throttled->opts->from_ns) {
		sum->n++;
		sum->span_ns = weft__sum(sum->span_ns, WEFT_FIELD(ev, THROTTLED, SPAN));
		sum->ns = weft__sum(sum->ns, WEFT_FIELD(ev, THROTTLED, TIME));
		sum->times = weft__sum(sum->times, WEFT_FIELD(ev, THROTTLED, TIMES));
		sum->pressure_ns = weft__sum(sum->pressure_ns, WEFT_FIELD(ev, THROTTLED, PRESSURE));
	}
	for (i = 0; i < timelines->n; i++)
		if (timelines->at[i].used)
			mark(&throttled->result->off, &timelines->at[i], span);
}

/* Of what the quota withheld in a span, what times off the CPU have of it. */
static uint64_t marked_in(const struct weft__thread_timeline *timeline, const struct weft__throttled_span *span)
{
	uint64_t sum_ns = 0;
	size_t i;

	for (i = weft__thread_timeline_after(timeline, span->from_ns); i < timeline->n_log; i++)
		if (preempted(&timeline->log[i]) && timeline->log[i].object == span->number)
			sum_ns += timeline->log[i].ns;
	return sum_ns;
}

/* Where no switch says so, a thread that was kept from the CPU for longer than another's slice, in a time in which
 * the quota was used up, was kept by the quota; no longer than that withheld CPUs. */
uint64_t weft__throttled_rest(struct weft__throttled *throttled, struct weft__breakdowns *breakdowns,
			      const struct weft__closed *poll, uint64_t ns)
{
	uint64_t i, first = throttled->n > THROTTLED_SPANS ? throttled->n - THROTTLED_SPANS : 0, taken_ns = 0;
	struct weft__thread_timeline *timeline = breakdowns->settling;

	if (ns < SLICES_NS)
		return 0;
	for (i = first; i < throttled->n && taken_ns < ns; i++) {
		const struct weft__throttled_span *span = &throttled->spans[i % THROTTLED_SPANS];
		uint64_t begin_ns = span->from_ns > poll->begin_ns ? span->from_ns : poll->begin_ns;
		uint64_t end_ns = span->to_ns < poll->end_ns ? span->to_ns : poll->end_ns;
		uint64_t in_ns = weft__since(end_ns, begin_ns), left_ns;

		if (timeline->rest_span != span->number && in_ns) {
			timeline->rest_span = span->number;
			timeline->rest_ns = marked_in(timeline, span);
		}
		left_ns = in_ns ? weft__since(span->throttled_ns, timeline->rest_ns) : 0;
		in_ns = in_ns < left_ns ? in_ns : left_ns;
		in_ns = in_ns < ns - taken_ns ? in_ns : ns - taken_ns;
		taken_ns += in_ns;
		timeline->rest_ns += in_ns;
	}
	return taken_ns;
}

void weft__throttled_late(struct weft__throttled *throttled, struct weft__thread_timeline *timeline, uint64_t end_ns)
{
	uint64_t i, first = throttled->n > THROTTLED_SPANS ? throttled->n - THROTTLED_SPANS : 0;

	for (i = first; i < throttled->n; i++) {
		const struct weft__throttled_span *span = &throttled->spans[i % THROTTLED_SPANS];

		if (end_ns > span->from_ns && end_ns <= span->to_ns + SLACK_NS) {
			mark(&throttled->result->off, timeline, span);
			return;
		}
	}
}
