/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as JSON. Names are whole here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "report.h"

static void weight_members(struct weft__json *json, struct weft__weight weight)
{
	weft__json_u64(json, "samples", weight.n);
	weft__json_u64(json, "cpu_ns", weight.ns);
}

static void weight(struct weft__json *json, const char *key, struct weft__weight w)
{
	weft__json_begin(json, key, '{');
	weight_members(json, w);
	weft__json_end(json, '}');
}

static void share(struct weft__json *json, const char *key, uint64_t part, uint64_t whole)
{
	weft__json_f64(json, key, whole ? (double)part / (double)whole : 0);
}

static void function_members(struct weft__json *json, const struct weft__function *function)
{
	weft__json_text(json, "function", function->name);
	weft__json_text(json, "module", function->module[0] ? function->module : NULL);
	weft__json_bool(json, "kernel", function->kernel);
	weft__json_bool(json, "known", function->known);
}

static void frames(struct weft__json *json, const struct report *report, const struct weft__poll_stack *stack,
		   struct weft__line_list *lines)
{
	const struct weft__frames *all = &report->rec->frames;
	size_t i;

	if (weft__frames_lines(all, stack->stack, stack->kernel, lines) < 0) {
		weft__json_absent(json, "frames", "out of memory");
		return;
	}
	weft__json_begin(json, "frames", '[');
	for (i = 0; i < lines->n; i++) {
		const struct weft__line *line = &lines->at[i];

		weft__json_begin(json, NULL, '{');
		function_members(json, &all->functions[line->function]);
		weft__json_text(json, "file", line->file[0] ? line->file : NULL);
		if (line->line)
			weft__json_u64(json, "line", line->line);
		else
			weft__json_null(json, "line");
		weft__json_bool(json, "inlined", line->inlined);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

void report_json_frames(struct weft__json *json, const struct report *report, uint32_t stack, uint32_t kernel)
{
	struct weft__poll_stack one = {.stack = stack, .kernel = kernel};
	struct weft__line_list lines = {0};

	if (stack || kernel)
		frames(json, report, &one, &lines);
	else
		weft__json_absent(json, "frames", "no stack");
	weft__free(lines.at);
}

static void stack_state(struct weft__json *json, const struct report *report, uint32_t id)
{
	const struct weft__code_stack *stack = weft__frames_stack(&report->rec->frames, id);
	uint32_t flags = stack ? stack->flags : 0;

	weft__json_text(json, "stack",
			id == 0                       ? "none"
			: !stack                      ? "undefined"
			: flags & WEFT_STACK_CUT      ? "cut"
			: flags & WEFT_STACK_COMPLETE ? "complete"
						      : "lost");
}

static void stacks(struct weft__json *json, const struct report *report, const struct weft__poll *poll)
{
	struct weft__line_list lines = {0};
	size_t i;

	weft__json_begin(json, "stacks", '[');
	for (i = 0; i < poll->n_stacks; i++) {
		const struct weft__poll_stack *stack = &poll->stacks[i];

		weft__json_begin(json, NULL, '{');
		weight_members(json, stack->weight);
		share(json, "share", stack->weight.ns, report_poll_whole(poll));
		stack_state(json, report, stack->stack);
		frames(json, report, stack, &lines);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
	weft__free(lines.at);
}

static void heart(struct weft__json *json, const struct report *report, const struct weft__poll *poll)
{
	struct weft__tree tree = {0};
	uint32_t at = 0;

	if (weft__tree_add_poll(&tree, &report->rec->frames, poll) == 0) {
		weft__tree_sort(&tree);
		at = weft__tree_heart(&tree);
	}
	weft__json_text(json, "mostly_in", at ? report->rec->frames.functions[tree.nodes[at].function].name : NULL);
	weft__tree_fini(&tree);
}

void report_json_poll(struct weft__json *json, const struct report *report, const struct weft__poll *poll)
{
	const char *why = report_no_poll_samples(report, poll);

	if (why) {
		weft__json_absent(json, "cpu", why);
		return;
	}
	weft__json_begin(json, "cpu", '{');
	weight_members(json, poll->sampled);
	share(json, "share", poll->sampled.ns, report_poll_whole(poll));
	weft__json_u64(json, "not_sampled_ns", report_unsampled(poll));
	heart(json, report, poll);
	stacks(json, report, poll);
	weight(json, "stacks_not_kept", poll->stacks_beyond);
	weft__json_end(json, '}');
}

static void modules(struct weft__json *json, const struct report *report)
{
	const struct weft__frames *all = &report->rec->frames;
	size_t i;

	weft__json_begin(json, "modules_without_names", '[');
	for (i = 0; i < all->n_modules; i++) {
		const struct weft__code_module *module = &all->modules[i];

		if (module->unnamed == 0)
			continue;
		weft__json_begin(json, NULL, '{');
		weft__json_text(json, "module", module->def.path[0] ? module->def.path : NULL);
		weft__json_u64(json, "addresses", module->unnamed);
		weft__json_text(json, "why", module->why);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void engines(struct weft__json *json, const struct weft__samples *samples)
{
	static const char *const names[] = {"unknown", "timer", "perf"};
	char other[24];
	size_t i;

	weft__json_begin(json, "engines", '{');
	for (i = 0; i < WEFT__ENGINES; i++) {
		snprintf(other, sizeof(other), "engine-%zu", i);
		if (samples->engines[i].n)
			weight(json, i < sizeof(names) / sizeof(names[0]) ? names[i] : other, samples->engines[i]);
	}
	weft__json_end(json, '}');
}

void report_json_samples(struct weft__json *json, const struct report *report)
{
	const struct weft__samples *samples = &report->result->samples;
	const struct weft__names *names = &report->rec->names;
	const char *why = report_no_samples(report), *hz = weft__names_fact(names, "sample.hz");

	if (why) {
		weft__json_absent(json, "cpu", why);
		return;
	}
	weft__json_begin(json, "cpu", '{');
	weft__json_text(json, "engine", weft__names_fact(names, "sample.engine"));
	weft__json_text(json, "engine_why", weft__names_fact(names, "sample.why"));
	if (hz && hz[0])
		weft__json_f64(json, "hz", strtod(hz, NULL));
	else
		weft__json_absent(json, "hz", "the recording does not say");
	weft__json_text(json, "event", weft__names_fact(names, "sample.event"));
	if (samples->period_ns)
		weft__json_u64(json, "period_ns", samples->period_ns);
	else
		weft__json_absent(json, "period_ns", "the recording does not say");
	weight_members(json, samples->all);
	weight(json, "not_asked_for", samples->left_out);
	engines(json, samples);
	report_json_keyed(json, report, "stacks", WEFT__TABLE_STACK_SUMMARY);
	report_json_keyed(json, report, "where", WEFT__TABLE_CPU_SUMMARY);
	report_json_table(json, report, "threads", WEFT__TABLE_THREAD_CPU_SUMMARY);
	report_json_table(json, report, "functions", WEFT__TABLE_FUNCTION_SUMMARY);
	weight(json, "in_no_function", report->profile.nameless);
	modules(json, report);
	weight(json, "stacks_beyond_limit", samples->beyond_rows);
	weft__json_u64(json, "samples_in_polls_beyond_limit", samples->beyond_polls);
	weft__json_u64(json, "stacks_not_kept", report->rec->frames.stacks_beyond);
	weft__json_end(json, '}');
}
