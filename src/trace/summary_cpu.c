/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of CPU samples. */
#include "trace/summary.h"

#include "trace/reasons.h"

void weft__fill_functions(struct weft__filling *f)
{
	const struct weft__profile *profile = f->of->profile;
	size_t i;

	for (i = 0; i < profile->n_functions && weft__fill_row(f); i++) {
		const struct weft__function_weight *row = &profile->functions[i];
		const struct weft__function *function = &f->of->rec->frames.functions[row->function];

		f->row[WEFT__COL_FUNCTION_SUMMARY_FUNCTION].set = true;
		f->row[WEFT__COL_FUNCTION_SUMMARY_FUNCTION].function = function;
		weft__fill_text(f, WEFT__COL_FUNCTION_SUMMARY_MODULE, function->module[0] ? function->module : NULL);
		weft__fill_u64(f, WEFT__COL_FUNCTION_SUMMARY_KERNEL, NULL, function->kernel);
		weft__fill_u64(f, WEFT__COL_FUNCTION_SUMMARY_KNOWN, NULL, function->known);
		weft__fill_u64(f, WEFT__COL_FUNCTION_SUMMARY_SELF, NULL, row->self.ns);
		weft__fill_u64(f, WEFT__COL_FUNCTION_SUMMARY_SELF_SAMPLES, NULL, row->self.n);
		weft__fill_share(f, WEFT__COL_FUNCTION_SUMMARY_SELF_SHARE, NULL, row->self.ns, profile->all.ns);
		weft__fill_u64(f, WEFT__COL_FUNCTION_SUMMARY_TOTAL, NULL, row->total.ns);
		weft__fill_u64(f, WEFT__COL_FUNCTION_SUMMARY_TOTAL_SAMPLES, NULL, row->total.n);
		weft__fill_share(f, WEFT__COL_FUNCTION_SUMMARY_TOTAL_SHARE, NULL, row->total.ns, profile->all.ns);
	}
}

static const struct {
	const char *name, *meaning, *of_ticks; /* where polls are ticks of an event loop */
} states[WEFT__N_WHERE] = {
	[WEFT__IN_POLL] = {"in_polls", "in polls", "in ticks"},
	[WEFT__BETWEEN_POLLS] = {"between_polls", "outside polls: in the runtime, between them", "between ticks"},
	[WEFT__PARKED] = {"parked", "outside polls: while parked", "outside ticks: while the loop waited"},
	[WEFT__NEVER_POLLS] = {"never_polls", "outside polls: on threads that never poll",
			       "on threads without an event loop"},
	[WEFT__WHERE_UNKNOWN] = {"unknown",
				 "not known: in a poll that began before the recording or in a gap, or was "
				 "not recorded",
				 "not known: in a tick that began before the recording or in a gap, or was not "
				 "recorded"},
};

void weft__fill_cpu(struct weft__filling *f)
{
	const struct weft__samples *samples = &f->of->result->samples;
	bool ticks = weft__only_ticks(f->of->result, &f->of->rec->names);
	size_t i;

	if (weft__no_samples(f->of->result, &f->of->rec->names))
		return;
	for (i = 0; i < WEFT__N_WHERE && weft__fill_row(f); i++) {
		weft__fill_text(f, WEFT__COL_CPU_SUMMARY_STATE, states[i].name);
		weft__fill_u64(f, WEFT__COL_CPU_SUMMARY_SAMPLES, NULL, samples->where[i].n);
		weft__fill_u64(f, WEFT__COL_CPU_SUMMARY_CPU, NULL, samples->where[i].ns);
		weft__fill_share(f, WEFT__COL_CPU_SUMMARY_SHARE, NULL, samples->where[i].ns, samples->all.ns);
		weft__fill_text(f, WEFT__COL_CPU_SUMMARY_MEANING, ticks ? states[i].of_ticks : states[i].meaning);
	}
}

void weft__fill_stacks(struct weft__filling *f)
{
	const struct weft__quality *q = &f->of->profile->quality;
	const struct {
		const char *name;
		struct weft__weight weight;
	} rows[] = {
		{"complete", q->complete},
		{"cut", q->cut},
		{"lost", q->lost},
		{"none", q->none},
		{"undefined", q->undefined},
		{"with_frame_pointers", q->fp},
		{"in_unknown_code", q->no_code},
		{"before_their_tables", q->early},
		{"with_kernel", q->kernel},
	};
	size_t i;

	if (weft__no_samples(f->of->result, &f->of->rec->names))
		return;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]) && weft__fill_row(f); i++) {
		weft__fill_text(f, WEFT__COL_STACK_SUMMARY_STATE, rows[i].name);
		weft__fill_u64(f, WEFT__COL_STACK_SUMMARY_SAMPLES, NULL, rows[i].weight.n);
		weft__fill_u64(f, WEFT__COL_STACK_SUMMARY_CPU, NULL, rows[i].weight.ns);
	}
}

static void fill_measured(struct weft__filling *f, const struct weft__sampled_thread *thread)
{
	const char *why = weft__no_measured(thread);

	weft__fill_u64(f, WEFT__COL_THREAD_CPU_SUMMARY_SPAN, why, thread->measured_span_ns);
	weft__fill_u64(f, WEFT__COL_THREAD_CPU_SUMMARY_MEASURED, why, thread->measured_ns);
	weft__fill_u64(f, WEFT__COL_THREAD_CPU_SUMMARY_SAMPLED, why, thread->measured_sampled_ns);
	if (!why && !thread->measured_ns)
		why = WEFT__NONE_HERE;
	weft__fill_share(f, WEFT__COL_THREAD_CPU_SUMMARY_OF_IT, why, thread->measured_sampled_ns, thread->measured_ns);
}

void weft__fill_cpu_threads(struct weft__filling *f)
{
	const struct weft__samples *samples = &f->of->result->samples;
	size_t i, k;

	for (i = 0; i < samples->n_threads && weft__fill_row(f); i++) {
		const struct weft__sampled_thread *thread = &samples->threads[i];

		weft__fill_lane(f, WEFT__COL_THREAD_CPU_SUMMARY_WORKER, thread->worker, thread->thread_id);
		weft__fill_u64(f, WEFT__COL_THREAD_CPU_SUMMARY_SAMPLES, NULL, thread->all.n);
		weft__fill_u64(f, WEFT__COL_THREAD_CPU_SUMMARY_CPU, NULL, thread->all.ns);
		weft__fill_share(f, WEFT__COL_THREAD_CPU_SUMMARY_SHARE, NULL, thread->all.ns, samples->all.ns);
		for (k = 0; k < WEFT__N_WHERE; k++) {
			size_t column = WEFT__COL_THREAD_CPU_SUMMARY_IN_POLLS_SAMPLES + 2 * k;

			weft__fill_u64(f, column, NULL, thread->where[k].n);
			weft__fill_u64(f, column + 1, NULL, thread->where[k].ns);
		}
		weft__fill_u64(f, WEFT__COL_THREAD_CPU_SUMMARY_OUTSIDE, NULL,
			       thread->all.ns - thread->where[WEFT__IN_POLL].ns);
		fill_measured(f, thread);
	}
}

void weft__fill_off_threads(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->off.n_threads && weft__fill_row(f); i++) {
		const struct weft__off_thread *thread = &r->off.threads[i];

		weft__fill_u64(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_TID, NULL, thread->tid);
		weft__fill_thread(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_THREAD, thread->tid, thread->thread_id);
		weft__fill_u64(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_BLOCKED, NULL, thread->blocked_ns);
		weft__fill_u64(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_N_BLOCKED, NULL, thread->n_blocked);
		weft__fill_u64(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_PREEMPTED, NULL, thread->preempted_ns);
		weft__fill_u64(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_N_PREEMPTED, NULL, thread->n_preempted);
		weft__fill_u64(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_THROTTLED, NULL, thread->throttled_ns);
		weft__fill_u64(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_SWITCHING, NULL, thread->over_ns);
		weft__fill_u64(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_LONGEST, NULL, thread->longest_ns);
		weft__fill_u64(f, WEFT__COL_THREAD_OFFCPU_SUMMARY_SAMPLES, NULL, thread->samples);
	}
}

void weft__fill_off_stacks(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->off.n_rows; i++) {
		const struct weft__off_row *row = &r->off.rows[i];

		if (!row->stack && !row->kernel)
			continue;
		if (!weft__fill_row(f))
			return;
		weft__fill_u64(f, WEFT__COL_OFFCPU_SUMMARY_TID, NULL, row->tid);
		weft__fill_thread(f, WEFT__COL_OFFCPU_SUMMARY_THREAD, row->tid, row->thread_id);
		weft__fill_text(f, WEFT__COL_OFFCPU_SUMMARY_REASON,
				row->what == WEFT_OFFCPU_PREEMPTED ? "preempted" : "blocked");
		weft__fill_u64(f, WEFT__COL_OFFCPU_SUMMARY_TIMES, NULL, row->n);
		weft__fill_u64(f, WEFT__COL_OFFCPU_SUMMARY_TOTAL, NULL, row->ns);
		weft__fill_u64(f, WEFT__COL_OFFCPU_SUMMARY_SAMPLES, NULL, row->samples);
		weft__fill_stack_of(f, WEFT__COL_OFFCPU_SUMMARY_STACK, row->stack, row->kernel);
	}
}

void weft__fill_wall(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	uint64_t all_ns = 0;
	size_t i;

	for (i = 0; i < r->off.n_walls; i++)
		all_ns += r->off.walls[i].ns;
	for (i = 0; i < r->off.n_walls && weft__fill_row(f); i++) {
		const struct weft__off_row *row = &r->off.walls[i];

		weft__fill_u64(f, WEFT__COL_WALL_SUMMARY_TID, NULL, row->tid);
		weft__fill_thread(f, WEFT__COL_WALL_SUMMARY_THREAD, row->tid, row->thread_id);
		weft__fill_u64(f, WEFT__COL_WALL_SUMMARY_SAMPLES, NULL, row->n);
		weft__fill_u64(f, WEFT__COL_WALL_SUMMARY_TOTAL, NULL, row->ns);
		weft__fill_share(f, WEFT__COL_WALL_SUMMARY_SHARE, NULL, row->ns, all_ns);
		weft__fill_u64(f, WEFT__COL_WALL_SUMMARY_CALL, row->what ? NULL : "not known", row->what - 1);
		weft__fill_stack_of(f, WEFT__COL_WALL_SUMMARY_STACK, row->stack, 0);
	}
}
