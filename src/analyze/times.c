/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/times.h"

#include "analyze/state.h"

#define AHEAD 64u /* intervals behind one among which may be the wait that it is in */

static int give(struct weft__analysis *a, const struct weft__thread_timeline *timeline,
		struct weft__time_sample *sample)
{
	struct weft__time_sum *sum = &a->result.times[sample->state];

	if (sample->end_ns < a->opts.from_ns)
		return 0;
	/* A switch that is missing must not make more of it than there was. */
	if (sample->state == WEFT__TIME_CPU && sample->wall_ns && sample->cpu_ns > sample->wall_ns)
		sample->cpu_ns = sample->wall_ns;
	sample->tid = timeline->tid;
	sample->thread_id = timeline->thread_id;
	sum->n = weft__sum(sum->n, sample->count);
	sum->wall_ns = weft__sum(sum->wall_ns, sample->wall_ns);
	sum->cpu_ns = weft__sum(sum->cpu_ns, sample->cpu_ns);
	sum->cpu_unknown += !sample->cpu_known;
	return a->opts.time_sample ? a->opts.time_sample(a->opts.time_data, sample) : 0;
}

/* The wait that a time off the CPU is in, which ends later; NULL: it is in none. */
static const struct weft__interval *wait_around(const struct weft__thread_timeline *timeline, size_t at)
{
	const struct weft__interval *off = &timeline->log[at];
	size_t i;

	for (i = at + 1; i < timeline->n_log && i - at <= AHEAD; i++)
		if (timeline->log[i].kind == INTERVAL_WAIT && timeline->log[i].begin_ns <= off->begin_ns)
			return &timeline->log[i];
	return NULL;
}

/* What was summed up before switches went missing is not the CPU time of what comes behind. */
static void look_for_gap(const struct weft__analysis *a, struct weft__times *times, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t from_ns = times->done_ns < begin_ns ? times->done_ns : begin_ns;

	if (!weft__gaps_switches(&a->gaps, from_ns, end_ns))
		return;
	times->sampler = (struct weft__offcpu){.interval_ns = a->opts.period_ns};
	times->before_ns = 0;
	times->cut = true;
}

/* Sets the CPU time apart that was before a wait. */
static void begin_wait(struct weft__times *times, uint64_t begin_ns)
{
	struct weft__offcpu_group group;
	uint64_t cpu_ns;

	if (times->wait_ns == begin_ns || times->sampler.state == OFFCPU_UNKNOWN || begin_ns < times->sampler.since_ns)
		return;
	weft__offcpu_sample(&times->sampler, begin_ns, &group, &cpu_ns);
	times->before_ns += cpu_ns;
	times->wait_ns = begin_ns;
}

static int add_off(struct weft__analysis *a, struct weft__thread_timeline *timeline, size_t at)
{
	const struct weft__interval *off = &timeline->log[at];
	struct weft__times *times = &timeline->times;
	const struct weft__interval *wait;
	struct weft__offcpu_group group;
	struct weft__time_sample sample = {.state = off->what == WEFT_OFFCPU_PREEMPTED ? WEFT__TIME_PREEMPTED
										       : WEFT__TIME_BLOCKED,
					   .stack = off->stack,
					   .kernel = off->kernel,
					   .context = weft__context_kept(a, off->context)};

	wait = wait_around(timeline, at);
	times->sampler.interval_ns = a->opts.period_ns;
	if (wait) {
		begin_wait(times, wait->begin_ns);
		times->off_ns = off->end_ns;
		weft__offcpu_waited(&times->sampler, off->begin_ns, off->end_ns);
		return 0;
	}
	weft__offcpu_out(&times->sampler, off->begin_ns);
	if (!weft__offcpu_in(&times->sampler, off->end_ns, &group))
		return 0;
	weft__delta_from(&times->delta, group.end_ns);
	sample.begin_ns = group.begin_ns;
	sample.end_ns = group.end_ns;
	sample.count = group.count;
	sample.wall_ns = group.count * a->opts.period_ns;
	sample.cpu_ns = weft__sum(group.cpu_ns, times->before_ns);
	sample.cpu_known = !times->cut;
	times->before_ns = 0;
	times->cut = false;
	return give(a, timeline, &sample);
}

static bool knows_cpu(const struct weft__thread_timeline *timeline)
{
	return timeline->n_off && !timeline->off_sampled && timeline->times.sampler.state != OFFCPU_UNKNOWN &&
	       !timeline->times.cut;
}

static int add_sample(struct weft__analysis *a, struct weft__thread_timeline *timeline,
		      const struct weft__interval *interval)
{
	struct weft__times *times = &timeline->times;
	struct weft__time_sample sample = {.state = WEFT__TIME_CPU,
					   .end_ns = interval->end_ns,
					   .count = 1,
					   .stack = interval->stack,
					   .kernel = interval->kernel,
					   .context = weft__context_kept(a, interval->context)};

	bool known = knows_cpu(timeline);
	struct weft__offcpu_group group;

	sample.wall_ns = weft__delta_sample(&times->delta, interval->end_ns);
	sample.begin_ns = interval->end_ns - sample.wall_ns;
	weft__offcpu_sample(&times->sampler, interval->end_ns, &group, &sample.cpu_ns);
	sample.cpu_ns = known ? weft__sum(sample.cpu_ns, times->before_ns) : interval->ns;
	sample.cpu_known = true;
	times->before_ns = 0;
	times->cut = false;
	return give(a, timeline, &sample);
}

/* Two samples. Of waits inside of one another the time before is in the first that ends, and each has the time since
 * the one before ended. */
static int add_wait(struct weft__analysis *a, struct weft__thread_timeline *timeline, const struct weft__interval *wait)
{
	struct weft__times *times = &timeline->times;
	struct weft__time_sample before = {.state = WEFT__TIME_CPU,
					   .end_ns = wait->begin_ns,
					   .count = 1,
					   .stack = wait->stack,
					   .context = weft__context_kept(a, wait->context)};
	struct weft__time_sample sample = {.state = WEFT__TIME_WAITING,
					   .begin_ns = wait->begin_ns,
					   .end_ns = wait->end_ns,
					   .count = 1,
					   .cpu_known = true,
					   .what = wait->what,
					   .name = wait->name,
					   .object = wait->object,
					   .stack = wait->stack,
					   .context = weft__context_kept(a, wait->context)};
	uint64_t off_ns = wait->end_ns - wait->begin_ns;
	int rc = 0;

	if (wait->cpu_ns != WEFT_NOT_MEASURED)
		off_ns = weft__since(off_ns, wait->cpu_ns);
	if (off_ns < (wait->end_ns - wait->begin_ns) / 10)
		return 0; /* it computed: the next sample has that */
	if (wait->begin_ns > times->delta.since_ns || !times->delta.known) {
		before.cpu_known = knows_cpu(timeline);
		begin_wait(times, wait->begin_ns);
		before.wall_ns = weft__delta_sample(&times->delta, wait->begin_ns);
		before.begin_ns = wait->begin_ns - before.wall_ns;
		before.cpu_ns = before.cpu_known ? times->before_ns : 0;
		times->before_ns = 0;
		times->cut = false;
		rc = give(a, timeline, &before);
	} else {
		sample.begin_ns = times->delta.since_ns;
	}
	/* Where no switch says when it slept in it, it did all the time. */
	if (times->off_ns <= wait->begin_ns && times->sampler.state != OFFCPU_UNKNOWN)
		weft__offcpu_waited(&times->sampler, wait->begin_ns, wait->begin_ns + off_ns);
	sample.wall_ns = weft__since(wait->end_ns, sample.begin_ns);
	sample.wall_ns = sample.wall_ns < off_ns ? sample.wall_ns : off_ns;
	weft__delta_from(&times->delta, wait->end_ns);
	return rc < 0 ? rc : give(a, timeline, &sample);
}

int weft__times_run(struct weft__analysis *a, struct weft__thread_timeline *timeline, uint64_t until_ns)
{
	struct weft__times *times = &timeline->times;
	size_t i;
	int rc = 0;

	for (i = weft__thread_timeline_after(timeline, times->done_ns); i < timeline->n_log && rc >= 0; i++) {
		const struct weft__interval *interval = &timeline->log[i];

		if (interval->end_ns > until_ns)
			break;
		if (interval->kind == INTERVAL_WALL)
			continue;
		look_for_gap(a, times, interval->begin_ns, interval->end_ns);
		rc = interval->kind == INTERVAL_OFF      ? add_off(a, timeline, i)
		     : interval->kind == INTERVAL_SAMPLE ? add_sample(a, timeline, interval)
							 : add_wait(a, timeline, interval);
		times->done_ns = interval->end_ns;
	}
	if (until_ns != UINT64_MAX && until_ns > times->done_ns)
		times->done_ns = until_ns;
	return rc;
}

int weft__times_settle(struct weft__analysis *a)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < a->timelines.n && rc >= 0; i++)
		if (a->timelines.at[i].used)
			rc = weft__times_run(a, &a->timelines.at[i], UINT64_MAX);
	return rc;
}
