/* SPDX-License-Identifier: Apache-2.0 */
/* Time off the CPU, held against the clock of a thread's CPU time.
 *
 * The kernel writes down when a thread leaves the CPU and when it has come back, and does some of the work of a
 * switch in between, which it counts as the thread's CPU time: 1 us or so. Of a thread that switches 100,000 times a
 * second that is a tenth of its time. So where the CPU time is known at two moments, the times off the CPU between
 * them cannot be more than the rest; what they are more is taken off them, the same of each. */
#include "analyze/state.h"

void weft__excess_off(struct weft__thread_timeline *timeline, const struct weft__interval *off, uint64_t count)
{
	struct weft__excess *excess = &timeline->excess;
	uint64_t begin_ns = off->begin_ns > excess->from_ns ? off->begin_ns : excess->from_ns, ns;

	if (!excess->read_ns || off->end_ns <= begin_ns || count == 0)
		return;
	ns = off->end_ns - begin_ns;
	excess->off_ns = weft__sum(excess->off_ns, ns);
	excess->n = weft__sum(excess->n, 1);
	excess->weighted |= count > 1;
}

static void add_up(struct weft__off_thread *thread, const struct weft__excess *excess, uint64_t rest_ns)
{
	thread->held_ns = weft__sum(thread->held_ns, excess->off_ns);
	thread->held_n = weft__sum(thread->held_n, excess->n);
	thread->rest_ns = weft__sum(thread->rest_ns, rest_ns);
}

void weft__excess_read(struct weft__thread_timelines *timelines, struct weft__gaps *gaps, const struct weft__event *ev)
{
	struct weft__thread_timeline *timeline =
		weft__thread_timeline_find(timelines, (uint32_t)WEFT_FIELD(ev, THREAD_CPU, TID));
	struct weft__excess *excess;
	uint64_t wall_ns, cpu_ns;

	if (!timeline)
		return;
	excess = &timeline->excess;
	wall_ns = weft__since(ev->time_ns, excess->read_ns);
	cpu_ns = weft__since(WEFT_FIELD(ev, THREAD_CPU, CPU), excess->cpu_ns);
	if (!excess->read_ns || excess->weighted || weft__gaps_switches(gaps, excess->read_ns, ev->time_ns)) {
		excess->from_ns = ev->time_ns;
	} else if (timeline->off_row != NO_ROW) {
		add_up(&timelines->result->threads[timeline->off_row], excess, weft__since(wall_ns, cpu_ns));
	}
	excess->read_ns = ev->time_ns;
	excess->cpu_ns = WEFT_FIELD(ev, THREAD_CPU, CPU);
	excess->off_ns = excess->n = 0;
	excess->weighted = false;
}

static uint64_t less(uint64_t ns, uint64_t n, double each_ns)
{
	double off = (double)n * each_ns;

	return off < (double)ns ? ns - (uint64_t)off : 0;
}

void weft__excess_settle(struct weft__off_result *r)
{
	size_t i, j;

	for (i = 0; i < r->n_threads; i++) {
		struct weft__off_thread *thread = &r->threads[i];
		uint64_t over_ns = weft__since(thread->held_ns, thread->rest_ns);
		uint64_t off_ns;
		double each_ns = thread->held_n ? (double)over_ns / (double)thread->held_n : 0;

		if (each_ns <= 0)
			continue;
		thread->over_ns = weft__sum(thread->blocked_ns, thread->preempted_ns);
		thread->blocked_ns = less(thread->blocked_ns, thread->n_blocked, each_ns);
		thread->preempted_ns = less(thread->preempted_ns, thread->n_preempted, each_ns);
		off_ns = weft__sum(thread->blocked_ns, thread->preempted_ns);
		if (thread->over_ns)
			thread->samples =
				(uint64_t)((double)thread->samples * (double)off_ns / (double)thread->over_ns + 0.5);
		thread->over_ns -= off_ns;
		if (thread->throttled_ns > thread->preempted_ns)
			thread->throttled_ns = thread->preempted_ns;
		for (j = 0; j < r->n_rows; j++)
			if (r->rows[j].tid == thread->tid)
				r->rows[j].ns = less(r->rows[j].ns, r->rows[j].n, each_ns);
	}
}
