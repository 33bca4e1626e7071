/* SPDX-License-Identifier: Apache-2.0 */
/* What the time of polls was spent on, waits, and what threads did when they did not run, as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "cli.h"
#include "report.h"
#include "weft/wait.h"

static void parts(struct weft__json *json, const struct report *report, const struct weft__split *split,
		  const char *why)
{
	static const char *const names[WEFT__N_PARTS] = {
		[WEFT__ON_CPU] = "on_cpu_ns",
		[WEFT__BLOCKED] = "blocked_ns",
		[WEFT__WAITING] = "waiting_ns",
		[WEFT__PREEMPTED] = "preempted_ns",
		[WEFT__NOT_MEASURED] = "not_measured_ns",
	};
	size_t i;

	for (i = 0; i < WEFT__N_PARTS; i++) {
		const char *none = weft__no_part(&report->rec->names, split, (enum weft__part)i, why);

		if (none)
			weft__json_absent(json, names[i], none);
		else
			weft__json_u64(json, names[i], split->ns[i]);
	}
	weft__json_u64(json, "throttled_ns", split->throttled_ns);
}

/* The descriptor of a call, and what it is. */
static void json_object(struct weft__json *json, const struct report *report, uint32_t what, uint64_t object)
{
	bool has = what == WEFT_WAIT_CALL && object != UINT64_MAX;
	const char *about =
		has ? weft__names_string(&report->rec->names, (uint32_t)(object >> WEFT_WAIT_ABOUT_AT)) : NULL;

	if (what == WEFT_WAIT_CALL && object == UINT64_MAX)
		weft__json_absent(json, "object", "the call has no descriptor");
	else
		weft__json_u64(json, "object", has ? (uint32_t)object : object);
	if (about && about[0])
		weft__json_text(json, "descriptor", about);
}

static void text_of_wait(struct weft__json *json, const struct report *report, uint32_t what, uint32_t name,
			 uint64_t object)
{
	weft__json_text(json, "kind", what ? report_wait_kind(what) : NULL);
	weft__json_text(json, "name", weft__names_string(&report->rec->names, name));
	json_object(json, report, what, object);
	weft__json_text(json, "object_name",
			what == WEFT_WAIT_CALL ? NULL : weft__frames_data(&report->rec->frames, object));
}

static void one_holder(struct weft__json *json, const struct report *report, const struct weft__holder *h)
{
	struct report_text doing = {.n = 0};

	weft__json_u64(json, "tid", h->tid);
	if (h->held_ns)
		weft__json_u64(json, "held_ns", h->held_ns);
	else
		weft__json_absent(json, "held_ns", "not known: who had it as the wait began");
	report_say_doing(&doing, report, h);
	weft__json_text(json, "doing", doing.at);
	if (h->thread_id) {
		weft__json_begin(json, "where", '{');
		report_json_lane(json, report, h->worker, h->thread_id);
		weft__json_end(json, '}');
	} else {
		weft__json_absent(json, "where", "the thread emits nothing");
	}
	weft__json_bool(json, "in_poll", h->in_poll);
	if (h->in_poll) {
		report_json_task(json, report, h->worker, h->task, h->location);
	}
	weft__json_u64(json, "sampled_ns", h->cpu_ns);
	weft__json_u64(json, "off_cpu_ns", h->off_ns);
	report_json_frames(json, report, h->stack, h->kernel);
	if (h->next)
		report_json_holder(json, report, h->next);
}

/* The one that held it for the longest time, and the others below it. */
void report_json_holder(struct weft__json *json, const struct report *report, const struct weft__holder *h)
{
	if (!h->tid) {
		weft__json_absent(json, "holder", "not known");
		return;
	}
	weft__json_begin(json, "holder", '{');
	one_holder(json, report, h);
	if (h->held_ns) {
		weft__json_begin(json, "also", '[');
		for (h = h->also; h; h = h->also) {
			weft__json_begin(json, NULL, '{');
			one_holder(json, report, h);
			weft__json_end(json, '}');
		}
		weft__json_end(json, ']');
	}
	weft__json_end(json, '}');
}

static void call(struct weft__json *json, const struct report *report, uint32_t number)
{
	struct report_text text = {.n = 0};

	report_say_call(&text, report, number);
	weft__json_text(json, "call", number ? text.at : NULL);
}

void report_json_breakdown(struct weft__json *json, const struct report *report, const struct weft__poll *poll)
{
	static const char *const switches[] = {"none", "some", "all"};
	static const char *const by[] = {"switches and samples", "it never left the CPU", "CPU clock"};
	static const char *const part_names[WEFT__N_PARTS] = {
		[WEFT__ON_CPU] = "on_cpu", [WEFT__BLOCKED] = "blocked", [WEFT__WAITING] = "waiting"};
	const struct weft__breakdown *breakdown = &poll->breakdown;
	const char *why = report_no_switches(report, breakdown);
	size_t i;

	if (!breakdown->known) {
		weft__json_absent(json, "breakdown", "more threads than the analysis keeps");
		return;
	}
	weft__json_begin(json, "breakdown", '{');
	parts(json, report, &breakdown->split,
	      breakdown->switches == WEFT__SWITCHES_ALL || breakdown->cpu != WEFT__CPU_UNKNOWN ? NULL : why);
	weft__json_text(json, "cpu_by", by[breakdown->cpu]);
	weft__json_text(json, "switches", switches[breakdown->switches]);
	weft__json_text(json, "not_measured_why", breakdown->split.ns[WEFT__NOT_MEASURED] ? why : NULL);
	weft__json_begin(json, "causes", '[');
	for (i = 0; i < breakdown->n_causes; i++) {
		const struct weft__cause *cause = &breakdown->causes[i];

		weft__json_begin(json, NULL, '{');
		weft__json_text(json, "part", part_names[cause->part]);
		weft__json_u64(json, "times", cause->n);
		weft__json_u64(json, "total_ns", cause->ns);
		weft__json_u64(json, "longest_ns", cause->longest_ns);
		text_of_wait(json, report, cause->what, cause->name, cause->object);
		call(json, report, cause->call);
		report_json_frames(json, report, cause->stack, cause->kernel);
		report_json_holder(json, report, &cause->holder);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
	weft__json_end(json, '}');
}

void report_json_context(struct weft__json *json, const struct report *report, const struct weft__context *context)
{
	char hex[40];

	if (!weft__context_is_set(context)) {
		weft__json_absent(json, "context", "none");
		return;
	}
	weft__json_begin(json, "context", '{');
	snprintf(hex, sizeof(hex), "%016" PRIx64 "%016" PRIx64, context->trace_hi, context->trace_lo);
	weft__json_text(json, "trace", context->trace_hi || context->trace_lo ? hex : NULL);
	snprintf(hex, sizeof(hex), "%016" PRIx64, context->span);
	weft__json_text(json, "span", context->span ? hex : NULL);
	snprintf(hex, sizeof(hex), "%016" PRIx64, context->root);
	weft__json_text(json, "root", context->root ? hex : NULL);
	weft__json_text(json, "endpoint", weft__names_string(&report->rec->names, context->endpoint));
	weft__json_text(json, "labels", weft__names_string(&report->rec->names, context->labels));
	weft__json_end(json, '}');
}

static void long_waits(struct weft__json *json, const struct report *report)
{
	const struct weft__result *r = report->result;
	size_t i;

	weft__json_begin(json, "longest_waits", '[');
	for (i = 0; i < r->wait.n_longest; i++) {
		const struct weft__wait *wait = &r->wait.longest[i];
		uint64_t begin_ns = wait->end_ns > wait->rank_ns ? wait->end_ns - wait->rank_ns : 0;

		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "duration_ns", wait->rank_ns);
		weft__json_u64(json, "begin_ns", report_since_start(report, begin_ns));
		weft__json_u64(json, "begin_mono_ns", begin_ns);
		text_of_wait(json, report, wait->what, wait->name, wait->object);
		report_json_lane(json, report, wait->worker, wait->thread_id);
		weft__json_bool(json, "in_poll", wait->in_poll);
		if (wait->in_poll) {
			report_json_task(json, report, wait->worker, wait->task, wait->location);
		}
		report_json_context(json, report, &wait->context);
		report_json_frames(json, report, wait->stack, 0);
		report_json_holder(json, report, &wait->holder);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void waits(struct weft__json *json, const struct report *report)
{
	report_json_table(json, report, "waits", WEFT__TABLE_WAIT_SUMMARY);
	report_json_table(json, report, "wait_objects", WEFT__TABLE_LOCK_SUMMARY);
	long_waits(json, report);
	report_json_table(json, report, "waits_by_thread", WEFT__TABLE_THREAD_WAIT_SUMMARY);
}

static void off_cpu(struct weft__json *json, const struct report *report)
{
	const struct weft__result *r = report->result;
	const char *why = weft__switch_why(&report->rec->names);

	if (r->off.n_threads == 0) {
		weft__json_absent(json, "off_cpu", why ? why : "no switches here");
		return;
	}
	weft__json_begin(json, "off_cpu", '{');
	weft__json_text(json, "mode", weft__names_fact(&report->rec->names, "switch.mode"));
	weft__json_f64(json, "recorded_share", report_switch_share(report));
	report_json_table(json, report, "threads", WEFT__TABLE_THREAD_OFFCPU_SUMMARY);
	report_json_table(json, report, "stacks", WEFT__TABLE_OFFCPU_SUMMARY);
	weft__json_u64(json, "beyond_limit_ns", r->off.beyond_ns);
	weft__json_end(json, '}');
}

static void costs(struct weft__json *json, const struct report *report)
{
	const char *budget = weft__names_fact(&report->rec->names, "budget.ppm");
	uint64_t ppm;

	if (report->result->n_kind[WEFT_KIND_COST] == 0) {
		weft__json_absent(json, "cost_of_weft", "no cost events here");
		return;
	}
	weft__json_begin(json, "cost_of_weft", '{');
	if (budget && cli_parse_number(budget, UINT32_MAX, &ppm))
		weft__json_u64(json, "budget_ppm", ppm);
	else
		weft__json_absent(json, "budget_ppm", "the recording does not say");
	report_json_keyed(json, report, NULL, WEFT__TABLE_COST_SUMMARY);
	weft__json_end(json, '}');
}

static void throttling(struct weft__json *json, const struct report *report)
{
	const struct weft__throttling *t = &report->result->throttling;
	struct report_text text = {.n = 0};
	double cpus = report_quota(report);

	if (cpus <= 0) {
		weft__json_absent(json, "cpu_quota", "the recording knows of none");
		return;
	}
	weft__json_begin(json, "cpu_quota", '{');
	weft__json_f64(json, "cpus", cpus);
	weft__json_u64(json, "throttled_ns", t->ns);
	weft__json_u64(json, "throttled_times", t->times);
	if (t->pressure_ns)
		weft__json_u64(json, "pressure_ns", t->pressure_ns);
	else
		weft__json_absent(json, "pressure_ns", "not measured");
	report_say_throttling(&text, report);
	weft__json_text(json, "meaning", text.n ? text.at : NULL);
	weft__json_end(json, '}');
}

void report_json_offcpu(struct weft__json *json, const struct report *report)
{
	waits(json, report);
	off_cpu(json, report);
	report_json_keyed(json, report, "time_samples", WEFT__TABLE_TIME_SUMMARY);
	if (report->result->off.n_walls)
		report_json_table(json, report, "wall", WEFT__TABLE_WALL_SUMMARY);
	else
		weft__json_absent(json, "wall", "no wall samples here");
	report_json_table(json, report, "stuck_polls", WEFT__TABLE_STUCK_SUMMARY);
	if (report->result->task.waiting_known)
		report_json_table(json, report, "waiting_tasks", WEFT__TABLE_WAITING_SUMMARY);
	else
		weft__json_absent(json, "waiting_tasks", "not every poll is recorded");
	report_json_pending(json, report);
	throttling(json, report);
	costs(json, report);
}
