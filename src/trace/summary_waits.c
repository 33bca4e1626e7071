/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of waits, and polls that were found while they ran. */
#include "analyze/label.h"
#include "trace/reasons.h"
#include "trace/summary.h"
#include "weft/wait.h"

static void fill_object(struct weft__filling *f, const struct weft__wait_row *row)
{
	const char *one = row->n_reported ? row->objects ? "more than one" : NULL : "no wait was recorded by itself";
	bool call = row->what == WEFT_WAIT_CALL;
	struct weft__cell *cell = &f->row[WEFT__COL_WAIT_SUMMARY_FOR];
	const char *name = weft__names_string(&f->of->rec->names, row->name), *about;

	cell->set = !one || (name && name[0]);
	cell->wait.what = row->what;
	cell->wait.name = row->name;
	cell->wait.object = row->object;
	cell->wait.one = !one;
	if (!one && call && row->object == UINT64_MAX)
		one = "the call has no descriptor";
	weft__fill_u64(f, WEFT__COL_WAIT_SUMMARY_OBJECT, one, call ? (uint32_t)row->object : row->object);
	about = !one && call ? weft__names_string(&f->of->rec->names, (uint32_t)(row->object >> WEFT_WAIT_ABOUT_AT))
			     : NULL;
	weft__fill_text(f, WEFT__COL_WAIT_SUMMARY_ABOUT, about && about[0] ? about : NULL);
}

void weft__fill_waits(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->wait.n_rows && weft__fill_row(f); i++) {
		const struct weft__wait_row *row = &r->wait.rows[i];
		const char *no_cpu = row->n_cpu        ? NULL
				     : row->n_reported ? "the thread's CPU clock was not read"
						       : "no wait was recorded by itself";

		weft__fill_text(f, WEFT__COL_WAIT_SUMMARY_KIND, weft__label_wait(row->what));
		weft__fill_text(f, WEFT__COL_WAIT_SUMMARY_NAME, weft__names_string(&f->of->rec->names, row->name));
		weft__fill_times(f, WEFT__COL_WAIT_SUMMARY_TIMES, row->n, row->ns, row->longest_ns);
		weft__fill_u64(f, WEFT__COL_WAIT_SUMMARY_MEAN, NULL, row->n ? row->ns / row->n : 0);
		weft__fill_u64(f, WEFT__COL_WAIT_SUMMARY_ONE_BY_ONE, NULL, row->n_reported);
		weft__fill_u64(f, WEFT__COL_WAIT_SUMMARY_ON_WORKERS, NULL, row->worker_ns);
		weft__fill_u64(f, WEFT__COL_WAIT_SUMMARY_ON_CPU, no_cpu, row->cpu_ns);
		weft__fill_u64(f, WEFT__COL_WAIT_SUMMARY_ON_CPU_OF, no_cpu, row->cpu_of_ns);
		fill_object(f, row);
	}
}

void weft__fill_locks(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->wait.n_objects && weft__fill_row(f); i++) {
		const struct weft__wait_object *row = &r->wait.objects[i];
		struct weft__cell *holder = &f->row[WEFT__COL_LOCK_SUMMARY_HOLDER];
		struct weft__cell *data = &f->row[WEFT__COL_LOCK_SUMMARY_DATA];

		weft__fill_text(f, WEFT__COL_LOCK_SUMMARY_KIND, row->what ? weft__label_wait(row->what) : NULL);
		weft__fill_text(f, WEFT__COL_LOCK_SUMMARY_NAME, weft__names_string(&f->of->rec->names, row->name));
		weft__fill_u64(f, WEFT__COL_LOCK_SUMMARY_OBJECT, NULL, row->object);
		data->set = true;
		data->data.name = weft__frames_data(&f->of->rec->frames, row->object);
		data->data.address = row->object;
		weft__fill_times(f, WEFT__COL_LOCK_SUMMARY_TIMES, row->n, row->ns, row->longest_ns);
		holder->set = row->holder.tid != 0;
		holder->why = holder->set ? NULL : "not known";
		holder->holder = &row->holder;
	}
}

void weft__fill_wait_threads(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->wait.n_threads && weft__fill_row(f); i++) {
		const struct weft__wait_thread *row = &r->wait.threads[i];
		const struct weft_thread *def = weft__names_thread(&f->of->rec->names, row->thread_id);

		weft__fill_u64(f, WEFT__COL_THREAD_WAIT_SUMMARY_TID, NULL, def ? def->tid : 0);
		weft__fill_thread(f, WEFT__COL_THREAD_WAIT_SUMMARY_THREAD, 0, row->thread_id);
		weft__fill_text(f, WEFT__COL_THREAD_WAIT_SUMMARY_KIND, row->what ? weft__label_wait(row->what) : NULL);
		weft__fill_text(f, WEFT__COL_THREAD_WAIT_SUMMARY_NAME,
				weft__names_string(&f->of->rec->names, row->name));
		weft__fill_times(f, WEFT__COL_THREAD_WAIT_SUMMARY_TIMES, row->n, row->ns, row->longest_ns);
		weft__fill_stack_of(f, WEFT__COL_THREAD_WAIT_SUMMARY_STACK, row->stack, 0);
	}
}

void weft__fill_stuck(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->off.n_stucks && weft__fill_row(f); i++) {
		const struct weft__stuck *stuck = &r->off.stucks[i];

		weft__fill_u64(f, WEFT__COL_STUCK_SUMMARY_AGE, NULL, stuck->rank_ns);
		weft__fill_u64(f, WEFT__COL_STUCK_SUMMARY_SEEN, NULL,
			       weft__recording_since(f->of->rec, stuck->time_ns));
		weft__fill_u64(f, WEFT__COL_STUCK_SUMMARY_TIMES, NULL, stuck->n_reports);
		weft__fill_u64(f, WEFT__COL_STUCK_SUMMARY_TASK,
			       weft__label_is_loop(&f->of->rec->names, stuck->location) ? WEFT__NONE_HERE : NULL,
			       stuck->task);
		weft__fill_location(f, WEFT__COL_STUCK_SUMMARY_LOCATION, stuck->location);
		weft__fill_u64(f, WEFT__COL_STUCK_SUMMARY_TID, NULL, stuck->tid);
		weft__fill_thread(f, WEFT__COL_STUCK_SUMMARY_THREAD, stuck->tid, stuck->thread_id);
		weft__fill_u64(f, WEFT__COL_STUCK_SUMMARY_DURATION, stuck->ended ? NULL : "its end was not seen",
			       stuck->duration_ns);
		weft__fill_stack_of(f, WEFT__COL_STUCK_SUMMARY_STACK, stuck->stack, 0);
	}
}

static void fill_waker(struct weft__filling *f, const struct weft__waiting *one)
{
	const struct weft__wake *wake = &one->wake;

	if (!wake->known)
		return;
	weft__fill_u64(f, WEFT__COL_WAITING_SUMMARY_WAKE, NULL, one->since_wake_ns);
	if (!wake->in_poll)
		return;
	weft__fill_u64(f, WEFT__COL_WAITING_SUMMARY_WAKER, NULL, wake->task);
	weft__fill_location(f, WEFT__COL_WAITING_SUMMARY_WAKER_LOCATION, wake->location);
}

void weft__fill_waiting(struct weft__filling *f)
{
	const struct weft__result *r = f->of->result;
	size_t i;

	for (i = 0; i < r->task.n_waiting && weft__fill_row(f); i++) {
		const struct weft__waiting *one = &r->task.waiting[i];

		weft__fill_u64(f, WEFT__COL_WAITING_SUMMARY_SILENT, NULL, one->silent_ns);
		weft__fill_u64(f, WEFT__COL_WAITING_SUMMARY_POLLED, NULL, one->polled);
		weft__fill_u64(f, WEFT__COL_WAITING_SUMMARY_WOKEN, NULL, one->woken);
		weft__fill_u64(f, WEFT__COL_WAITING_SUMMARY_TASK, NULL, one->task);
		weft__fill_location(f, WEFT__COL_WAITING_SUMMARY_LOCATION, one->location);
		fill_waker(f, one);
		weft__fill_stack_of(f, WEFT__COL_WAITING_SUMMARY_STACK, one->stack, 0);
	}
}
