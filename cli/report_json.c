/* SPDX-License-Identifier: Apache-2.0 */
/* The report as JSON. Keys are stable: new ones may come, none changes its meaning (weft-report(1) describes them).
 * Times are ns: those that end in _ns are durations or moments relative to the recording's start, real_ns is wall
 * time. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "page.h"
#include "report.h"

void report_json_lane(struct weft__json *json, const struct report *report, uint32_t worker, uint32_t thread_id)
{
	const struct weft__names *names = &report->rec->names;
	const struct weft_worker *def = weft__names_worker(names, worker);
	const struct weft_runtime_def *runtime = def ? weft__names_runtime(names, def->runtime) : NULL;
	const struct weft_thread *thread = weft__names_thread(names, thread_id);
	char label[WEFT__LABEL_BYTES];

	weft__json_text(json, "worker", weft__label_lane(names, worker, thread_id, label, sizeof(label)));
	weft__json_bool(json, "is_worker", worker < WEFT_WORKER_NONE);
	weft__json_text(json, "runtime", runtime ? runtime->name : NULL);
	if (def)
		weft__json_u64(json, "index", def->index);
	else
		weft__json_null(json, "index");
	weft__json_u64(json, "thread_id", thread_id);
	weft__json_text(json, "thread", thread ? thread->name : NULL);
	if (thread)
		weft__json_u64(json, "tid", thread->tid);
	else
		weft__json_null(json, "tid");
}

void report_json_location(struct weft__json *json, const struct report *report, uint32_t location)
{
	const struct weft_location_def *def = weft__names_location(&report->rec->names, location);

	weft__json_text(json, "location", weft__label_location(&report->rec->names, location));
	weft__json_text(json, "file", def && def->file[0] ? def->file : NULL);
	if (def && def->line)
		weft__json_u64(json, "line", def->line);
	else
		weft__json_null(json, "line");
}

/* Which task was polled, and where it was spawned. */
void report_json_task(struct weft__json *json, const struct report *report, uint32_t worker, uint64_t task,
		      uint32_t location)
{
	if (weft__label_is_tick(&report->rec->names, worker, location))
		weft__json_absent(json, "task", "a tick of an event loop: there are no tasks");
	else
		weft__json_u64(json, "task", task);
	report_json_location(json, report, location);
}

static void duration(struct weft__json *json, const char *key, const char *why, uint64_t ns)
{
	if (why)
		weft__json_absent(json, key, why);
	else
		weft__json_u64(json, key, ns);
}

static void wake(struct weft__json *json, const struct report *report, const struct weft__poll *poll)
{
	const struct weft__wake *w = &poll->wake;

	if (!w->known) {
		weft__json_absent(json, "wake",
				  report_no_wake(report, poll) ? report_no_wake(report, poll)
							       : "no wake seen since the task's last poll");
		return;
	}
	weft__json_begin(json, "wake", '{');
	weft__json_u64(json, "at_ns", report_since_start(report, w->time_ns));
	duration(json, "delay_ns",
		 w->measured ? NULL
		 : w->again  ? "not all polls are recorded one by one"
			     : "events are missing between the wake and the poll",
		 poll->begin_ns - w->time_ns);
	weft__json_bool(json, "in_poll", w->in_poll);
	if (w->in_poll) {
		report_json_task(json, report, w->worker, w->task, w->location);
	} else {
		weft__json_absent(json, "task",
				  w->unlisted ? "outside any poll, or in one that was only counted"
					      : "outside any poll");
	}
	report_json_lane(json, report, w->worker, w->thread_id);
	weft__json_end(json, '}');
}

static void behind(struct weft__json *json, const struct report *report, const struct weft__behind *b)
{
	weft__json_begin(json, "behind", '{');
	weft__json_u64(json, "held_ns", b->held_ns);
	weft__json_u64(json, "duration_ns", b->duration_ns);
	report_json_task(json, report, WEFT_WORKER_NONE, b->task, b->location);
	weft__json_end(json, '}');
}

static void polls(struct weft__json *json, const struct report *report, const char *key, const char *rank,
		  const struct weft__poll *list, size_t n)
{
	size_t i;

	weft__json_begin(json, key, '[');
	for (i = 0; i < n; i++) {
		const struct weft__poll *poll = &list[i];

		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, rank, poll->rank_ns);
		weft__json_u64(json, "begin_ns", report_since_start(report, poll->begin_ns));
		weft__json_u64(json, "begin_mono_ns", poll->begin_ns);
		weft__json_u64(json, "begin_real_ns", weft__names_real_ns(&report->rec->names, poll->begin_ns));
		report_json_task(json, report, poll->worker, poll->task, poll->location);
		report_json_lane(json, report, poll->worker, poll->thread_id);
		duration(json, "queue_depth", poll->depth == WEFT_DEPTH_UNKNOWN ? "the runtime does not tell it" : NULL,
			 poll->depth);
		weft__json_u64(json, "nested_in", poll->level);
		if (poll->end_ns)
			duration(json, "wakes_issued", poll->reported ? "it was recorded as a whole, at its end" : NULL,
				 poll->n_wakes);
		if (strcmp(rank, "delay_ns") != 0)
			report_json_poll(json, report, poll);
		if (strcmp(rank, "delay_ns") != 0)
			report_json_breakdown(json, report, poll);
		report_json_context(json, report, &poll->context);
		wake(json, report, poll);
		if (poll->behind.held_ns)
			behind(json, report, &poll->behind);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void number(struct weft__json *json, const char *key, uint32_t type, union weft__number value)
{
	if (type == WEFT_TYPE_F64)
		weft__json_f64(json, key, value.f);
	else if (type == WEFT_TYPE_I64)
		weft__json_i64(json, key, value.i);
	else
		weft__json_u64(json, key, value.u);
}

static void customs(struct weft__json *json, const struct report *report)
{
	const struct weft__result *r = report->result;
	size_t i, j;

	weft__json_begin(json, "program_events", '[');
	for (i = 0; i < r->custom.n_kinds; i++) {
		const struct weft__custom *custom = &r->custom.kinds[i];
		const struct weft_kind_def *def = weft__names_kind(&report->rec->names, custom->kind);

		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "kind", custom->kind);
		weft__json_text(json, "name", def ? def->name : NULL);
		weft__json_u64(json, "count", custom->n);
		weft__json_begin(json, "fields", '[');
		for (j = 0; def && j < def->n_fields && j < WEFT_FIELDS_MAX; j++) {
			const struct weft__field_stat *stat = &custom->fields[j];

			if (stat->n == 0)
				continue;
			weft__json_begin(json, NULL, '{');
			weft__json_text(json, "name", def->fields[j].name);
			weft__json_text(json, "unit", def->fields[j].unit[0] ? def->fields[j].unit : NULL);
			weft__json_u64(json, "count", stat->n);
			number(json, "min", def->fields[j].type, stat->min);
			weft__json_f64(json, "mean", stat->sum / (double)stat->n);
			number(json, "max", def->fields[j].type, stat->max);
			weft__json_end(json, '}');
		}
		weft__json_end(json, ']');
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void files(struct weft__json *json, const struct weft__recording *rec)
{
	size_t i;

	weft__json_begin(json, "segments", '[');
	for (i = 0; i < rec->n_files; i++) {
		const struct weft__file *file = &rec->files[i];

		weft__json_begin(json, NULL, '{');
		weft__json_text(json, "path", file->path);
		weft__json_u64(json, "sequence", file->info.sequence);
		weft__json_u64(json, "events", file->info.n_events);
		weft__json_u64(json, "bytes", file->info.n_bytes);
		weft__json_bool(json, "sealed", file->info.sealed);
		weft__json_bool(json, "recovered", file->info.recovered);
		weft__json_text(json, "error", file->status < 0 ? weft_strerror(file->status) : NULL);
		weft__json_u64(json, "damaged_places", file->damaged_places);
		weft__json_u64(json, "missing_bytes", file->missing_bytes);
		weft__json_text(json, "damage", file->damage);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
	weft__json_u64(json, "missing_segments", rec->missing_segments);
}

static void head(struct weft__json *json, const struct report *report)
{
	const struct weft__recording *rec = report->rec;
	char id[33];
	size_t i;

	for (i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", rec->id[i]);
	weft__json_text(json, "recording", id);
	weft__json_begin(json, "facts", '{');
	for (i = 0; i < rec->names.n_facts; i++)
		weft__json_text(json, rec->names.facts[i].key, rec->names.facts[i].value);
	weft__json_end(json, '}');
	files(json, rec);
	weft__json_u64(json, "start_mono_ns", rec->start_ns);
	weft__json_u64(json, "start_real_ns", rec->start_real_ns);
	weft__json_u64(json, "span_ns", weft__recording_since(rec, rec->last_ns));
	weft__json_begin(json, "window", '{');
	weft__json_u64(json, "from_ns", report->from_ns);
	weft__json_u64(json, "to_ns", report_since_start(report, report->end_ns));
	weft__json_end(json, '}');
	weft__json_u64(json, "events", report->result->n_events);
}

void report_json(struct weft__json *json, const struct report *report)
{
	const struct weft__result *r = report->result;

	weft__json_begin(json, NULL, '{');
	head(json, report);
	report_json_one(json, report, WEFT__TABLE_TOTAL_SUMMARY);
	report_json_cpu_clock(json, report);
	report_json_table(json, report, "losses", WEFT__TABLE_LOSS_SUMMARY);
	polls(json, report, "longest_polls", "duration_ns", r->poll.longest, r->poll.n_longest);
	polls(json, report, "still_running", "age_ns", r->poll.running, r->poll.n_running);
	polls(json, report, "longest_delays", "delay_ns", r->poll.delayed, r->poll.n_delayed);
	report_json_table(json, report, "workers", WEFT__TABLE_WORKER_SUMMARY);
	report_json_table(json, report, "locations", WEFT__TABLE_LOCATION_SUMMARY);
	page_json(json, report);
	report_json_missing(json, report);
	report_json_offcpu(json, report);
	report_json_samples(json, report);
	if (weft__no_global_queue(r))
		weft__json_absent(json, "global_queues", weft__no_global_queue(r));
	else
		report_json_table(json, report, "global_queues", WEFT__TABLE_QUEUE_SUMMARY);
	customs(json, report);
	report_json_notes(json, report);
	weft__json_end(json, '}');
}
