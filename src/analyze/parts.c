/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a poll's time. What its thread read from its own CPU clock decides how much of it was on the CPU and
 * how much was ready without one; intervals say in what, and are shortened or lengthened until they fit. */
#include "analyze/slices.h"

#define SURE_NS 50000u /* an error that does not matter, as that of the readings */

static uint64_t scaled(uint64_t ns, uint64_t by, uint64_t of)
{
	unsigned __int128 part = of ? (unsigned __int128)ns * by / of : 0;

	return part < UINT64_MAX ? (uint64_t)part : UINT64_MAX;
}

/* Of a wait, as it said itself when it ended; anything else is one of them. */
static void share_one(struct weft__slice *slice)
{
	const struct weft__interval *interval = slice->interval;
	uint64_t ns = weft__since(interval->end_ns, interval->begin_ns), own_ns = slice->own_ns;

	slice->cpu_ns = slice->ready_ns = 0;
	if (weft__part_of(interval) == WEFT__PREEMPTED) {
		slice->ready_ns = own_ns;
	} else if (interval->kind == INTERVAL_WAIT && interval->cpu_ns != WEFT_NOT_MEASURED) {
		slice->cpu_ns = scaled(own_ns, weft__least(interval->cpu_ns, ns), ns);
		if (interval->ready_ns != WEFT_NOT_MEASURED)
			slice->ready_ns = weft__least(scaled(own_ns, interval->ready_ns, ns), own_ns - slice->cpu_ns);
	}
	slice->off_ns = own_ns - slice->cpu_ns - slice->ready_ns;
}

struct sums {
	uint64_t cpu_ns, ready_ns, off_ns, wall_ns;
};

static struct sums sum_up(const struct weft__breakdowns *breakdowns)
{
	struct sums sums = {0};
	size_t i;

	for (i = 0; i < breakdowns->n_slices; i++) {
		const struct weft__slice *slice = &breakdowns->slices[i];

		if (slice->interval->kind == INTERVAL_SAMPLE)
			continue;
		sums.cpu_ns += slice->cpu_ns;
		sums.ready_ns += slice->ready_ns;
		sums.off_ns += slice->off_ns;
		sums.wall_ns += slice->interval->kind == INTERVAL_WALL ? slice->off_ns : 0;
	}
	return sums;
}

/* No more than `ready_ns` and `off_ns` in all. What is off and in no interval was where the thread was found
 * waiting. */
static void make_fit(struct weft__breakdowns *breakdowns, uint64_t ready_ns, uint64_t off_ns)
{
	struct sums sums = sum_up(breakdowns);
	uint64_t walls_ns = sums.wall_ns + weft__since(off_ns, sums.off_ns);
	size_t i;

	for (i = 0; i < breakdowns->n_slices; i++) {
		struct weft__slice *slice = &breakdowns->slices[i];

		if (slice->interval->kind == INTERVAL_SAMPLE)
			continue;
		if (sums.ready_ns > ready_ns)
			slice->ready_ns = scaled(slice->ready_ns, ready_ns, sums.ready_ns);
		if (sums.off_ns > off_ns)
			slice->off_ns = scaled(slice->off_ns, off_ns, sums.off_ns);
		else if (slice->interval->kind == INTERVAL_WALL)
			slice->off_ns = scaled(slice->off_ns, walls_ns, sums.wall_ns);
		slice->cpu_ns = weft__since(slice->own_ns, slice->ready_ns + slice->off_ns);
	}
}

/* Answers how long the thread was ready without a CPU by the switches. */
static uint64_t add_slices(const struct weft__breakdowns *breakdowns, struct weft__split *split)
{
	uint64_t recorded_ns = 0;
	size_t i;

	for (i = 0; i < breakdowns->n_slices; i++) {
		const struct weft__slice *slice = &breakdowns->slices[i];
		const struct weft__interval *off = slice->interval;

		if (off->kind == INTERVAL_SAMPLE)
			continue;
		split->ns[WEFT__ON_CPU] += slice->cpu_ns;
		split->ns[WEFT__PREEMPTED] += slice->ready_ns;
		split->ns[weft__part_of(off)] += slice->off_ns;
		/* In an interval off the CPU, `ns` is what a CPU quota took. */
		if (off->kind == INTERVAL_OFF) {
			split->throttled_ns +=
				scaled(slice->ready_ns, off->ns, weft__since(off->end_ns, off->begin_ns));
			recorded_ns += slice->ready_ns;
		}
	}
	return recorded_ns;
}

static bool is_unsure(const struct weft__cpu *cpu, uint64_t whole_ns)
{
	return cpu->unsure_ns > SURE_NS + whole_ns / 50;
}

/* Off the CPU in calls that were reported. */
static uint64_t calls_ns(const struct weft__breakdowns *breakdowns)
{
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < breakdowns->n_slices; i++)
		if (breakdowns->slices[i].interval->kind == INTERVAL_WAIT &&
		    weft__part_of(breakdowns->slices[i].interval) == WEFT__BLOCKED)
			ns += breakdowns->slices[i].off_ns;
	return ns;
}

/* By what the thread said. */
static void divide_known(struct weft__breakdowns *breakdowns, struct weft__throttled *throttled,
			 const struct weft__closed *poll, uint64_t whole_ns, struct weft__split *split)
{
	const struct weft__cpu *cpu = &breakdowns->extra.cpu;
	uint64_t unsure_ns = 0, cpu_ns = whole_ns, off_ns, ready_ns, waited_ns, recorded_ns;

	if (poll->cpu == WEFT__CPU_SPLIT) {
		if (is_unsure(cpu, whole_ns))
			unsure_ns = weft__least(cpu->unsure_ns, whole_ns);
		cpu_ns = weft__least(cpu->cpu_ns, whole_ns - unsure_ns);
	}
	off_ns = whole_ns - unsure_ns - cpu_ns;
	ready_ns = poll->cpu == WEFT__CPU_ALL           ? 0
		   : cpu->ready_ns == WEFT_NOT_MEASURED ? weft__least(sum_up(breakdowns).ready_ns, off_ns)
							: weft__least(cpu->ready_ns, off_ns);
	off_ns -= ready_ns;
	make_fit(breakdowns, ready_ns, off_ns);
	recorded_ns = add_slices(breakdowns, split);
	split->ns[WEFT__ON_CPU] = cpu_ns;
	split->ns[WEFT__PREEMPTED] = ready_ns;
	split->throttled_ns += weft__throttled_rest(throttled, breakdowns, poll, weft__since(ready_ns, recorded_ns));
	split->ns[WEFT__BLOCKED] += weft__since(off_ns, split->ns[WEFT__BLOCKED] + split->ns[WEFT__WAITING]);
	/* Of what no reported wait has, some was in waits that were too short to be reported one by one. */
	waited_ns = poll->cpu == WEFT__CPU_SPLIT
			    ? weft__least(weft__since(split->ns[WEFT__BLOCKED], calls_ns(breakdowns)), cpu->waiting_ns)
			    : 0;
	split->ns[WEFT__BLOCKED] -= waited_ns;
	split->ns[WEFT__WAITING] += waited_ns;
	split->ns[WEFT__NOT_MEASURED] = 0;
	split->ns[WEFT__NOT_MEASURED] =
		weft__since(whole_ns, cpu_ns + ready_ns + split->ns[WEFT__BLOCKED] + split->ns[WEFT__WAITING]);
}

/* CPU time that samples from `from_ns` on say, but for those that an interval has. A sample stands for more time
 * than a short poll has, most of it before. So may the first in a poll, which counts only where the sum of many
 * polls is what matters. */
static uint64_t sampled_from(const struct weft__breakdowns *breakdowns, const struct weft__closed *poll,
			     uint64_t from_ns)
{
	uint64_t cpu_ns = 0;
	bool first = true;
	size_t i;

	if (weft__since(poll->end_ns, poll->begin_ns) < breakdowns->opts->period_ns)
		return 0;
	for (i = 0; i < breakdowns->n_slices; i++) {
		const struct weft__slice *slice = &breakdowns->slices[i];

		if (slice->interval->kind != INTERVAL_SAMPLE)
			continue;
		if (slice->end_ns && slice->begin_ns >= from_ns && !(first && poll->running))
			cpu_ns += slice->interval->ns;
		else if (slice->end_ns && from_ns > poll->begin_ns)
			cpu_ns += weft__least(slice->interval->ns, weft__since(slice->begin_ns, from_ns));
		first = false;
	}
	return cpu_ns;
}

/* Records of switches say that the thread ran where there are none, up to the last of them. Of a poll that has not
 * ended, more may be missing behind it, without a word. */
static uint64_t ran_until(const struct weft__breakdowns *breakdowns, const struct weft__closed *poll,
			  uint64_t *until_ns)
{
	uint64_t given_ns = 0;
	size_t i;

	*until_ns = poll->begin_ns;
	for (i = 0; i < breakdowns->n_slices; i++)
		if (breakdowns->slices[i].interval->kind == INTERVAL_OFF && breakdowns->slices[i].end_ns > *until_ns)
			*until_ns = breakdowns->slices[i].end_ns;
	for (i = 0; i < breakdowns->n_slices; i++)
		if (breakdowns->slices[i].interval->kind != INTERVAL_SAMPLE &&
		    breakdowns->slices[i].begin_ns < *until_ns)
			given_ns += breakdowns->slices[i].own_ns;
	return weft__since(*until_ns - poll->begin_ns, given_ns);
}

/* By intervals and samples. */
static void divide_unknown(struct weft__breakdowns *breakdowns, const struct weft__closed *poll,
			   enum weft__switches switches, uint64_t whole_ns, uint64_t given_ns,
			   struct weft__split *split)
{
	uint64_t rest_ns = weft__since(whole_ns, given_ns), cpu_ns = 0, until_ns = poll->begin_ns;

	add_slices(breakdowns, split);
	if (switches == WEFT__SWITCHES_ALL && !poll->running)
		cpu_ns = rest_ns;
	else if (switches == WEFT__SWITCHES_ALL)
		cpu_ns = ran_until(breakdowns, poll, &until_ns);
	cpu_ns = weft__least(rest_ns, cpu_ns + sampled_from(breakdowns, poll, until_ns));
	split->ns[WEFT__ON_CPU] += cpu_ns;
	split->ns[WEFT__NOT_MEASURED] = rest_ns - cpu_ns;
}

void weft__parts_divide(struct weft__breakdowns *breakdowns, struct weft__throttled *throttled,
			const struct weft__closed *poll, enum weft__switches switches, uint64_t given_ns,
			struct weft__split *split)
{
	uint64_t whole_ns = weft__since(poll->end_ns, poll->begin_ns);
	size_t i;

	for (i = 0; i < breakdowns->n_slices; i++)
		if (breakdowns->slices[i].interval->kind != INTERVAL_SAMPLE)
			share_one(&breakdowns->slices[i]);
	split->n = 1;
	if (poll->cpu == WEFT__CPU_UNKNOWN || (switches == WEFT__SWITCHES_ALL && poll->cpu == WEFT__CPU_SPLIT &&
					       is_unsure(&breakdowns->extra.cpu, whole_ns)))
		divide_unknown(breakdowns, poll, switches, whole_ns, given_ns, split);
	else
		divide_known(breakdowns, throttled, poll, whole_ns, split);
}
