/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/summary.h"

#include <errno.h>
#include <string.h>

#include "analyze/label.h"
#include "analyze/loss.h"
#include "base/alloc.h"
#include "trace/reasons.h"

bool weft__fill_row(struct weft__filling *f)
{
	struct weft__summary *s = f->summary;
	size_t bytes = s->table->n_columns * sizeof(*s->cells);
	struct weft__cell *grown = weft__grow(s->cells, &s->cap_rows, s->n_rows, bytes);

	f->failed = !grown;
	if (!grown)
		return false;
	s->cells = grown;
	f->row = s->cells + s->n_rows++ * s->table->n_columns;
	memset(f->row, 0, bytes);
	return true;
}

static struct weft__cell *put(struct weft__filling *f, size_t column, const char *why)
{
	f->row[column].set = !why;
	f->row[column].why = why;
	return &f->row[column];
}

void weft__fill_u64(struct weft__filling *f, size_t column, const char *why, uint64_t value)
{
	put(f, column, why)->u = value;
}

void weft__fill_real(struct weft__filling *f, size_t column, const char *why, double value)
{
	put(f, column, why)->f = value;
}

void weft__fill_share(struct weft__filling *f, size_t column, const char *why, uint64_t part, uint64_t whole)
{
	weft__fill_real(f, column, why, whole ? (double)part / (double)whole : 0);
}

void weft__fill_text(struct weft__filling *f, size_t column, const char *text)
{
	put(f, column, NULL)->text = text;
	f->row[column].set = text && text[0];
}

void weft__fill_thread(struct weft__filling *f, size_t column, uint32_t tid, uint32_t thread_id)
{
	struct weft__cell *cell = put(f, column, NULL);

	cell->thread.thread_id = thread_id;
	cell->thread.tid = tid;
}

void weft__fill_lane(struct weft__filling *f, size_t first, uint32_t worker, uint32_t thread_id)
{
	const struct weft__names *names = &f->of->rec->names;
	const struct weft_worker *def = weft__names_worker(names, worker);
	const struct weft_runtime_def *runtime = def ? weft__names_runtime(names, def->runtime) : NULL;
	const struct weft_thread *thread = weft__names_thread(names, thread_id);
	struct weft__cell *cell = put(f, first, NULL);

	cell->lane.worker = worker;
	cell->lane.thread_id = thread_id;
	weft__fill_u64(f, first + 1, NULL, worker < WEFT_WORKER_NONE);
	weft__fill_text(f, first + 2, runtime ? runtime->name : NULL);
	if (def)
		weft__fill_u64(f, first + 3, NULL, def->index);
	weft__fill_u64(f, first + 4, NULL, thread_id);
	if (thread || worker == WEFT_WORKER_NONE)
		weft__fill_thread(f, first + 5, thread ? thread->tid : 0, thread_id);
	if (thread)
		weft__fill_u64(f, first + 6, NULL, thread->tid);
}

void weft__fill_location(struct weft__filling *f, size_t first, uint32_t location)
{
	const struct weft_location_def *def = weft__names_location(&f->of->rec->names, location);

	put(f, first, NULL)->location = location;
	weft__fill_text(f, first + 1, def ? def->file : NULL);
	if (def && def->line)
		weft__fill_u64(f, first + 2, NULL, def->line);
}

void weft__fill_stack_of(struct weft__filling *f, size_t column, uint32_t stack, uint32_t kernel)
{
	struct weft__cell *cell = put(f, column, stack || kernel ? NULL : "no stack");

	cell->stack.stack = stack;
	cell->stack.kernel = kernel;
}

void weft__fill_times(struct weft__filling *f, size_t first, uint64_t n, uint64_t ns, uint64_t longest_ns)
{
	weft__fill_u64(f, first, NULL, n);
	weft__fill_u64(f, first + 1, NULL, ns);
	weft__fill_u64(f, first + 2, NULL, longest_ns);
}

void weft__fill_hist(struct weft__filling *f, size_t first, const char *why, const struct weft__hist *hist)
{
	if (hist->n == 0 && !why)
		why = WEFT__NONE_HERE;
	weft__fill_u64(f, first, why, hist->n);
	weft__fill_u64(f, first + 1, why, weft__hist_at(hist, 5000));
	weft__fill_u64(f, first + 2, why, weft__hist_at(hist, 9900));
	weft__fill_u64(f, first + 3, why, weft__hist_at(hist, 9990));
	weft__fill_u64(f, first + 4, why, hist->min);
	weft__fill_u64(f, first + 5, why, hist->max);
	weft__fill_u64(f, first + 6, why, hist->sum);
}

void weft__fill_depth(struct weft__filling *f, size_t first, const char *why, const struct weft__hist *hist)
{
	if (hist->n == 0 && !why)
		why = WEFT__NONE_HERE;
	weft__fill_u64(f, first, why, hist->n);
	weft__fill_u64(f, first + 1, why, hist->min);
	weft__fill_real(f, first + 2, why, weft__hist_mean(hist));
	weft__fill_u64(f, first + 3, why, weft__hist_at(hist, 9900));
	weft__fill_u64(f, first + 4, why, hist->max);
}

void weft__fill_split(struct weft__filling *f, size_t first, const struct weft__split *split)
{
	const char *none = split->n ? NULL : "no poll that was asked for ended here";
	const char *no_switches = weft__no_switches(f->of->result, &f->of->rec->names);
	uint64_t total_ns = 0;
	size_t i;

	for (i = 0; i < WEFT__N_PARTS; i++) {
		const char *why = weft__no_part(&f->of->rec->names, split, (enum weft__part)i, no_switches);

		weft__fill_u64(f, first + 2 + i, none ? none : why, split->ns[i]);
		total_ns += split->ns[i];
	}
	weft__fill_u64(f, first, none, split->n);
	weft__fill_u64(f, first + 1, none, total_ns);
	weft__fill_u64(f, first + 2 + WEFT__N_PARTS, none, split->throttled_ns);
}

static void fill_workers(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->lane.n_lanes && weft__fill_row(f); i++) {
		const struct weft__lane *lane = &r->lane.lanes[i];
		const char *no_busy = weft__no_busy(r, lane), *no_parked = weft__no_parked(lane);
		const char *no_cpu = weft__no_cpu(lane);

		weft__fill_lane(f, WEFT__COL_WORKER_SUMMARY_WORKER, lane->worker, lane->thread_id);
		weft__fill_hist(f, WEFT__COL_WORKER_SUMMARY_POLLS_COUNT, weft__no_polls(r), &lane->polls);
		weft__fill_hist(f, WEFT__COL_WORKER_SUMMARY_DELAYS_COUNT, weft__no_delays(r), &lane->delays);
		weft__fill_u64(f, WEFT__COL_WORKER_SUMMARY_OBSERVED, NULL, lane->observed_ns);
		weft__fill_u64(f, WEFT__COL_WORKER_SUMMARY_BUSY, no_busy, lane->busy_ns);
		weft__fill_share(f, WEFT__COL_WORKER_SUMMARY_BUSY_SHARE, no_busy, lane->busy_ns, lane->observed_ns);
		weft__fill_u64(f, WEFT__COL_WORKER_SUMMARY_PARKED, no_parked, lane->parked_ns);
		weft__fill_share(f, WEFT__COL_WORKER_SUMMARY_PARKED_SHARE, no_parked, lane->parked_ns,
				 lane->observed_ns);
		weft__fill_u64(f, WEFT__COL_WORKER_SUMMARY_CPU, no_cpu, lane->cpu_ns);
		weft__fill_share(f, WEFT__COL_WORKER_SUMMARY_CPU_SHARE, no_cpu, lane->cpu_ns, lane->sched_ns);
		weft__fill_u64(f, WEFT__COL_WORKER_SUMMARY_RUNQUEUE, no_cpu, lane->runqueue_ns);
		weft__fill_u64(f, WEFT__COL_WORKER_SUMMARY_SCHED, no_cpu, lane->sched_ns);
		weft__fill_depth(f, WEFT__COL_WORKER_SUMMARY_QUEUE_SAMPLES, weft__no_local_queue(lane), &lane->depths);
		weft__fill_u64(f, WEFT__COL_WORKER_SUMMARY_COUNTED, NULL, lane->counted);
		weft__fill_split(f, WEFT__COL_WORKER_SUMMARY_TIME_POLLS, &lane->split);
	}
}

static void fill_locations(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	const char *no_samples = weft__no_samples(r, &f->of->rec->names);
	const char *no_period = r->samples.period_ns ? NULL : "the sampling period is not known";
	size_t i;

	for (i = 0; i < r->lane.n_locations && weft__fill_row(f); i++) {
		const struct weft__location *location = &r->lane.locations[i];

		weft__fill_location(f, WEFT__COL_LOCATION_SUMMARY_LOCATION, location->id);
		weft__fill_hist(f, WEFT__COL_LOCATION_SUMMARY_POLLS_COUNT, weft__no_polls(r), &location->polls);
		weft__fill_hist(f, WEFT__COL_LOCATION_SUMMARY_DELAYS_COUNT, weft__no_delays(r), &location->delays);
		weft__fill_u64(f, WEFT__COL_LOCATION_SUMMARY_SPAWNED, NULL, location->spawned);
		weft__fill_u64(f, WEFT__COL_LOCATION_SUMMARY_ENDED, NULL, location->ended);
		weft__fill_u64(f, WEFT__COL_LOCATION_SUMMARY_ALIVE, weft__no_alive(r), location->alive);
		weft__fill_u64(f, WEFT__COL_LOCATION_SUMMARY_SAMPLES, no_samples, location->sampled.n);
		weft__fill_u64(f, WEFT__COL_LOCATION_SUMMARY_CPU, no_samples, location->sampled.ns);
		weft__fill_u64(f, WEFT__COL_LOCATION_SUMMARY_SHORT, no_period, location->n_short);
		weft__fill_u64(f, WEFT__COL_LOCATION_SUMMARY_SHORT_TOTAL, no_period, location->short_ns);
		weft__fill_u64(f, WEFT__COL_LOCATION_SUMMARY_SHORT_SAMPLES, no_period, location->short_sampled.n);
		weft__fill_u64(f, WEFT__COL_LOCATION_SUMMARY_SHORT_CPU, no_period, location->short_sampled.ns);
		weft__fill_share(f, WEFT__COL_LOCATION_SUMMARY_SHORT_SHARE,
				 no_period || location->short_ns ? no_period : WEFT__NONE_HERE,
				 location->short_sampled.ns, location->short_ns);
		weft__fill_split(f, WEFT__COL_LOCATION_SUMMARY_TIME_POLLS, &location->split);
	}
}

static void fill_queues(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->custom.n_queues && weft__fill_row(f); i++) {
		const struct weft_runtime_def *runtime =
			weft__names_runtime(&f->of->rec->names, r->custom.queues[i].runtime);

		weft__fill_text(f, WEFT__COL_QUEUE_SUMMARY_RUNTIME, runtime ? runtime->name : NULL);
		weft__fill_u64(f, WEFT__COL_QUEUE_SUMMARY_RUNTIME_ID, NULL, r->custom.queues[i].runtime);
		weft__fill_depth(f, WEFT__COL_QUEUE_SUMMARY_SAMPLES, NULL, &r->custom.queues[i].depths);
	}
}

static void fill_losses(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->loss.n_rows && weft__fill_row(f); i++) {
		const struct weft__lost *lost = &r->loss.rows[i];
		bool paused = !weft__loss_counted(lost->reason);
		bool threads = lost->reason == WEFT_LOSS_UNCOVERED;
		bool held_back = lost->reason == WEFT_LOSS_SWITCH && lost->count == 0;

		weft__fill_text(f, WEFT__COL_LOSS_SUMMARY_REASON, weft__label_reason(lost->reason));
		weft__fill_u64(f, WEFT__COL_LOSS_SUMMARY_THREAD_ID, NULL, lost->thread_id);
		if (lost->thread_id)
			weft__fill_thread(f, WEFT__COL_LOSS_SUMMARY_THREAD, 0, lost->thread_id);
		else if (!paused)
			f->row[WEFT__COL_LOSS_SUMMARY_THREAD].why =
				held_back ? "held back for all threads" : "which thread is not known";
		weft__fill_u64(f, WEFT__COL_LOSS_SUMMARY_EVENTS,
			       paused      ? "not counted while recording is paused"
			       : threads   ? "not counted: the thread was not sampled at all"
			       : held_back ? "not counted: held back to save CPU time"
					   : NULL,
			       lost->count);
		if (threads)
			weft__fill_u64(f, WEFT__COL_LOSS_SUMMARY_THREADS, NULL, lost->count);
		weft__fill_u64(f, WEFT__COL_LOSS_SUMMARY_RECORDS, NULL, lost->records);
		weft__fill_u64(f, WEFT__COL_LOSS_SUMMARY_FROM, NULL, weft__recording_since(f->of->rec, lost->from_ns));
		weft__fill_u64(f, WEFT__COL_LOSS_SUMMARY_TO, NULL, weft__recording_since(f->of->rec, lost->to_ns));
		weft__fill_u64(f, WEFT__COL_LOSS_SUMMARY_TOGETHER, NULL, lost->span_ns);
	}
}

static void fill_costs(struct weft__filling *f)
{
	const struct weft__cost *all = f->of->result->off.costs;
	size_t i;

	for (i = 0; i < WEFT__COSTS; i++) {
		if (all[i].n == 0)
			continue;
		if (!weft__fill_row(f))
			return;
		weft__fill_text(f, WEFT__COL_COST_SUMMARY_WHAT, weft__label_cost(i));
		weft__fill_u64(f, WEFT__COL_COST_SUMMARY_CPU, NULL, all[i].cpu_ns);
		weft__fill_u64(f, WEFT__COL_COST_SUMMARY_SPAN, NULL, all[i].span_ns);
		if (i == WEFT_COST_SAMPLES || i == WEFT_COST_WALL)
			weft__fill_u64(f, WEFT__COL_COST_SUMMARY_HZ, NULL, all[i].rate);
		if (i == WEFT_COST_SWITCH)
			weft__fill_share(f, WEFT__COL_COST_SUMMARY_RECORDED, NULL, all[i].rate, 1000);
	}
}

static void fill_total(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;

	if (!weft__fill_row(f))
		return;
	weft__fill_u64(f, WEFT__COL_TOTAL_SUMMARY_EVENTS, NULL, r->loss.events);
	weft__fill_u64(f, WEFT__COL_TOTAL_SUMMARY_SAMPLES, NULL, r->loss.samples);
	weft__fill_u64(f, WEFT__COL_TOTAL_SUMMARY_MISSED, NULL, r->loss.missed_samples);
	weft__fill_u64(f, WEFT__COL_TOTAL_SUMMARY_UNCOVERED, NULL, r->loss.uncovered + r->cpu_clock.threads);
	weft__fill_u64(f, WEFT__COL_TOTAL_SUMMARY_SWITCHES, NULL, r->loss.switches);
	weft__fill_u64(f, WEFT__COL_TOTAL_SUMMARY_CAP, NULL, r->loss.polls);
	weft__fill_u64(f, WEFT__COL_TOTAL_SUMMARY_MIXED, NULL, r->wait.n_mixed);
	weft__fill_u64(f, WEFT__COL_TOTAL_SUMMARY_MIXED_NS, NULL, r->wait.mixed_ns);
	weft__fill_hist(f, WEFT__COL_TOTAL_SUMMARY_POLLS_COUNT, weft__no_polls(r), &r->polls);
	weft__fill_hist(f, WEFT__COL_TOTAL_SUMMARY_DELAYS_COUNT, weft__no_delays(r), &r->delays);
	weft__fill_split(f, WEFT__COL_TOTAL_SUMMARY_TIME_POLLS, &r->split);
}

static void fill_times(struct weft__filling *f)
{
	static const char *const names[WEFT__TIME_STATES] = {[WEFT__TIME_CPU] = "on_cpu",
							     [WEFT__TIME_WAITING] = "waiting",
							     [WEFT__TIME_BLOCKED] = "blocked",
							     [WEFT__TIME_PREEMPTED] = "preempted"};
	size_t i;

	for (i = 0; i < WEFT__TIME_STATES && weft__fill_row(f); i++) {
		const struct weft__time_sum *sum = &f->of->result->times[i];

		weft__fill_text(f, WEFT__COL_TIME_SUMMARY_STATE, names[i]);
		weft__fill_u64(f, WEFT__COL_TIME_SUMMARY_SAMPLES, NULL, sum->n);
		weft__fill_u64(f, WEFT__COL_TIME_SUMMARY_WALL, NULL, sum->wall_ns);
		weft__fill_u64(f, WEFT__COL_TIME_SUMMARY_CPU, NULL, sum->cpu_ns);
		weft__fill_u64(f, WEFT__COL_TIME_SUMMARY_UNKNOWN, NULL, sum->cpu_unknown);
	}
}

int weft__summary_init(struct weft__summary *ret, enum weft__table_id table, const struct weft__summary_of *of)
{
	static void (*const fill[])(struct weft__filling *) = {
		[WEFT__TABLE_WORKER_SUMMARY] = fill_workers,
		[WEFT__TABLE_LOCATION_SUMMARY] = fill_locations,
		[WEFT__TABLE_FUNCTION_SUMMARY] = weft__fill_functions,
		[WEFT__TABLE_CPU_SUMMARY] = weft__fill_cpu,
		[WEFT__TABLE_THREAD_CPU_SUMMARY] = weft__fill_cpu_threads,
		[WEFT__TABLE_WAIT_SUMMARY] = weft__fill_waits,
		[WEFT__TABLE_LOCK_SUMMARY] = weft__fill_locks,
		[WEFT__TABLE_THREAD_WAIT_SUMMARY] = weft__fill_wait_threads,
		[WEFT__TABLE_THREAD_OFFCPU_SUMMARY] = weft__fill_off_threads,
		[WEFT__TABLE_OFFCPU_SUMMARY] = weft__fill_off_stacks,
		[WEFT__TABLE_WALL_SUMMARY] = weft__fill_wall,
		[WEFT__TABLE_STUCK_SUMMARY] = weft__fill_stuck,
		[WEFT__TABLE_WAITING_SUMMARY] = weft__fill_waiting,
		[WEFT__TABLE_QUEUE_SUMMARY] = fill_queues,
		[WEFT__TABLE_LOSS_SUMMARY] = fill_losses,
		[WEFT__TABLE_COST_SUMMARY] = fill_costs,
		[WEFT__TABLE_TOTAL_SUMMARY] = fill_total,
		[WEFT__TABLE_TIME_SUMMARY] = fill_times,
		[WEFT__TABLE_STACK_SUMMARY] = weft__fill_stacks,
	};
	struct weft__filling f = {.summary = ret, .of = of};

	*ret = (struct weft__summary){.table = &weft__tables[table]};
	fill[table](&f);
	if (f.failed)
		weft__summary_fini(ret);
	return f.failed ? -ENOMEM : 0;
}

void weft__summary_fini(struct weft__summary *summary)
{
	weft__free(summary->cells);
	summary->cells = NULL;
	summary->n_rows = summary->cap_rows = 0;
}
