/* SPDX-License-Identifier: Apache-2.0 */
/* What a segment says about code: modules, stacks, symbols, and the samples that use them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "inspect.h"
#include "print.h"
#include "weft/recorder.h"

#define N_STACK_FLAGS 8

static const char *const stack_flags[N_STACK_FLAGS] = {"complete", "cut",     "lost",   "frame pointers",
						       "signal",   "no code", "kernel", "early"};

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = {"?", "file", "vdso", "kernel", "code"};

	return names[kind < sizeof(names) / sizeof(names[0]) ? kind : 0];
}

const char *inspect_engine(uint64_t engine)
{
	return engine == WEFT_ENGINE_TIMER ? "timer" : engine == WEFT_ENGINE_PERF ? "perf" : "?";
}

static char *hex_build_id(const struct weft_module *module, char *buf)
{
	uint32_t i;

	buf[0] = 0;
	for (i = 0; i < module->build_id_n; i++)
		snprintf(buf + 2 * i, 3, "%02x", module->build_id[i]);
	return buf;
}

void inspect_print_place(const struct weft_segment *seg, const struct weft_frame *frame)
{
	const struct weft_symbol_def *symbol = weft_segment_symbol(seg, frame->module, frame->offset);
	const struct weft_module *module = weft_segment_module(seg, frame->module);

	if (symbol && symbol->n_frames && symbol->frames[0].function[0])
		fputs(cli_safe(symbol->frames[0].function), stdout);
	else if (module)
		printf("%s+0x%" PRIx64, cli_safe(cli_base(module->path)), frame->offset);
	else if (frame->module)
		printf("module-%u+0x%" PRIx64, frame->module, frame->offset);
	else
		printf("[unknown] 0x%" PRIx64, frame->offset);
}

static enum inspect_use use_of(uint32_t kind)
{
	switch (kind) {
	case WEFT_KIND_OFFCPU:
		return INSPECT_OFFCPU;
	case WEFT_KIND_WAIT:
		return INSPECT_WAIT;
	case WEFT_KIND_WALL:
		return INSPECT_WALL;
	case WEFT_KIND_STUCK:
		return INSPECT_STUCK;
	default:
		return INSPECT_OTHER;
	}
}

static void count_stack(struct inspect *inspect, const struct weft_event_view *ev, uint64_t id)
{
	size_t n;
	const struct weft_stack *all = weft_segment_stacks(inspect->seg, &n);
	const struct weft_stack *stack = id <= UINT32_MAX ? weft_segment_stack(inspect->seg, (uint32_t)id) : NULL;
	struct inspect_per_stack *per;

	inspect->samples.n_undefined += !stack && id != 0;
	if (!stack || !inspect->per_stack)
		return;
	per = &inspect->per_stack[stack - all];
	if (ev->kind != WEFT_KIND_SAMPLE) {
		per->others[use_of(ev->kind)]++;
		return;
	}
	per->n++;
	per->weight_ns += ev->n_fields > 2 ? ev->fields[2] : 0;
}

void inspect_count_stacks(struct inspect *inspect, const struct weft_event_view *ev)
{
	const struct weft_kind_def *def;
	struct inspect_samples *samples = &inspect->samples;
	uint32_t i;

	if (ev->kind < WEFT_KIND_SAMPLE || ev->kind == WEFT_KIND_POLL_NEXT)
		return; /* most events are of these, and they have none */
	def = weft_segment_kind(inspect->seg, ev->kind);
	if (ev->kind == WEFT_KIND_SAMPLE && ev->n_fields >= 5) {
		samples->n++;
		samples->weight_ns += ev->fields[2];
		samples->n_kernel += ev->fields[1] != 0;
		samples->n_engine[ev->fields[4] < INSPECT_ENGINES ? ev->fields[4] : 0]++;
	}
	for (i = 0; def && i < def->n_fields && i < ev->n_fields; i++)
		if (def->fields[i].type == WEFT_TYPE_STACK)
			count_stack(inspect, ev, ev->fields[i]);
}

static void print_modules(const struct inspect *inspect)
{
	static const char *const titles[] = {"module", "<kind", "start", "size", "<build id", "<path"};
	struct cli_table table = {.titles = titles, .n_columns = sizeof(titles) / sizeof(titles[0])};
	size_t n, i;
	const struct weft_module *modules = weft_segment_modules(inspect->seg, &n);
	char figure[CLI_FIGURE], build_id[2 * WEFT_BUILD_ID_MAX + 1];

	if (n == 0)
		return;
	cli_heading("Modules");
	for (i = 0; i < n; i++) {
		cli_cell(&table, "%u", modules[i].id);
		cli_cell(&table, "%s", kind_name(modules[i].kind));
		cli_cell(&table, "0x%" PRIx64, modules[i].start);
		cli_cell(&table, "%s",
			 modules[i].kind == WEFT_MODULE_KERNEL ? "-"
							       : cli_bytes(modules[i].end - modules[i].start, figure));
		cli_cell(&table, "%s", modules[i].build_id_n ? hex_build_id(&modules[i], build_id) : "none");
		cli_cell(&table, "%s", modules[i].path);
	}
	cli_table_print(&table);
}

static void print_samples(const struct inspect *inspect)
{
	const struct inspect_samples *samples = &inspect->samples;
	char figure[CLI_FIGURE];
	uint32_t i;

	printf("  samples  %s", cli_count(samples->n, figure));
	for (i = 0; i < INSPECT_ENGINES; i++)
		if (samples->n_engine[i])
			printf(", %s by %s", cli_count(samples->n_engine[i], figure), inspect_engine(i));
	printf(", together %s of CPU time", cli_ns(samples->weight_ns, figure));
	if (samples->n_kernel)
		printf(", %s with a stack of the kernel", cli_count(samples->n_kernel, figure));
	if (samples->n_undefined)
		printf(", %s%s with a stack that is not defined%s", cli_style(CLI_RED),
		       cli_count(samples->n_undefined, figure), cli_style(CLI_PLAIN));
	putchar('\n');
}

static void print_stacks(const struct weft_segment *seg)
{
	uint64_t n_flag[N_STACK_FLAGS] = {0}, n_frames = 0;
	size_t n, i, k;
	const struct weft_stack *stacks = weft_segment_stacks(seg, &n);
	uint32_t deepest = 0;
	char figure[CLI_FIGURE];

	for (i = 0; i < n; i++) {
		n_frames += stacks[i].n_frames;
		deepest = stacks[i].n_frames > deepest ? stacks[i].n_frames : deepest;
		for (k = 0; k < N_STACK_FLAGS; k++)
			n_flag[k] += stacks[i].flags >> k & 1;
	}
	printf("  stacks   %s", cli_count(n, figure));
	if (n)
		printf(", %.1f frames on average, at most %u (--stacks lists them)", (double)n_frames / (double)n,
		       deepest);
	putchar('\n');
	for (k = 0, i = 0; k < N_STACK_FLAGS; k++)
		if (n_flag[k])
			printf("%s%s %s", i++ ? ", " : "           ", cli_count(n_flag[k], figure), stack_flags[k]);
	if (i)
		putchar('\n');
}

void inspect_text_code(const struct inspect *inspect)
{
	size_t n_stacks, n_symbols, i;
	const struct weft_symbol_def *symbols;
	uint64_t n_names = 0;
	char figure[CLI_FIGURE];

	print_modules(inspect);
	weft_segment_stacks(inspect->seg, &n_stacks);
	symbols = weft_segment_symbols(inspect->seg, &n_symbols);
	if (!inspect->samples.n && !n_stacks && !n_symbols)
		return;
	cli_heading("Samples");
	print_samples(inspect);
	print_stacks(inspect->seg);
	for (i = 0; i < n_symbols; i++)
		n_names += symbols[i].n_frames;
	printf("  symbols  %s", cli_count(n_symbols, figure));
	if (n_symbols)
		printf(", with inlined frames %s\n", cli_count(n_names, figure));
	else
		printf(": weft symbolize puts them in\n");
}

static void print_frame(const struct weft_segment *seg, const struct weft_frame *frame)
{
	const struct weft_symbol_def *symbol = weft_segment_symbol(seg, frame->module, frame->offset);
	const struct weft_module *module = weft_segment_module(seg, frame->module);
	uint32_t i;

	if (!symbol || !symbol->n_frames || !symbol->frames[0].function[0]) {
		fputs("    ", stdout);
		inspect_print_place(seg, frame);
		putchar('\n');
		return;
	}
	for (i = 0; i < symbol->n_frames; i++) {
		const struct weft_symbol_frame *name = &symbol->frames[i];

		printf("    %s", name->function[0] ? cli_safe(name->function) : "?");
		if (name->file[0] && name->line)
			printf(" (%s:%u)", cli_safe(name->file), name->line);
		else if (module)
			printf(" (%s+0x%" PRIx64 ")", cli_safe(cli_base(module->path)), frame->offset);
		fputs(name->inlined ? " [inlined]\n" : "\n", stdout);
	}
}

void inspect_stacks(const struct inspect *inspect)
{
	static const char *const uses[INSPECT_USES] = {"offcpu", "wait", "wall", "stuck", "other"};
	size_t n, i, k;
	const struct weft_stack *stacks = weft_segment_stacks(inspect->seg, &n);
	char figure[CLI_FIGURE];

	printf("%s%s%s, %s stack%s\n", cli_style(CLI_BOLD), cli_safe(inspect->path), cli_style(CLI_PLAIN),
	       cli_count(n, figure), n == 1 ? "" : "s");
	for (i = 0; i < n && !ferror(stdout); i++) {
		const struct inspect_per_stack *per = &inspect->per_stack[i];

		printf("\nstack %u, %s sample%s", stacks[i].id, cli_count(per->n, figure), per->n == 1 ? "" : "s");
		if (per->n)
			printf(", %s", cli_ns(per->weight_ns, figure));
		for (k = 0; k < INSPECT_USES; k++)
			if (per->others[k])
				printf(", %s %s", cli_count(per->others[k], figure), uses[k]);
		for (k = 0; k < N_STACK_FLAGS; k++)
			if (stacks[i].flags >> k & 1)
				printf(", %s", stack_flags[k]);
		putchar('\n');
		for (k = 0; k < stacks[i].n_frames; k++)
			print_frame(inspect->seg, &stacks[i].frames[k]);
	}
}

static void json_address(struct weft__json *json, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	weft__json_text(json, key, text);
}

static void json_modules(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_module *all = weft_segment_modules(seg, &n);
	char build_id[2 * WEFT_BUILD_ID_MAX + 1];

	weft__json_begin(json, "modules", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "id", all[i].id);
		weft__json_text(json, "kind", kind_name(all[i].kind));
		weft__json_text(json, "path", all[i].path);
		json_address(json, "start", all[i].start);
		json_address(json, "end", all[i].end);
		json_address(json, "offset", all[i].offset);
		weft__json_text(json, "build_id", all[i].build_id_n ? hex_build_id(&all[i], build_id) : NULL);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void json_stacks(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i, k;
	const struct weft_stack *all = weft_segment_stacks(seg, &n);
	char text[40];

	weft__json_begin(json, "stacks", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "id", all[i].id);
		weft__json_begin(json, "flags", '[');
		for (k = 0; k < N_STACK_FLAGS; k++)
			if (all[i].flags >> k & 1)
				weft__json_text(json, NULL, stack_flags[k]);
		weft__json_end(json, ']');
		weft__json_begin(json, "frames", '[');
		for (k = 0; k < all[i].n_frames; k++) {
			snprintf(text, sizeof(text), "%u+0x%" PRIx64, all[i].frames[k].module, all[i].frames[k].offset);
			weft__json_text(json, NULL, text);
		}
		weft__json_end(json, ']');
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void json_symbols(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i, k;
	const struct weft_symbol_def *all = weft_segment_symbols(seg, &n);

	weft__json_begin(json, "symbols", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "module", all[i].module);
		json_address(json, "offset", all[i].offset);
		weft__json_begin(json, "frames", '[');
		for (k = 0; k < all[i].n_frames; k++) {
			weft__json_begin(json, NULL, '{');
			weft__json_text(json, "function", all[i].frames[k].function);
			weft__json_text(json, "file", all[i].frames[k].file);
			weft__json_u64(json, "line", all[i].frames[k].line);
			weft__json_bool(json, "inlined", all[i].frames[k].inlined);
			weft__json_end(json, '}');
		}
		weft__json_end(json, ']');
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

void inspect_json_code(struct weft__json *json, const struct inspect *inspect)
{
	const struct inspect_samples *samples = &inspect->samples;
	uint32_t i;

	weft__json_begin(json, "samples", '{');
	weft__json_u64(json, "count", samples->n);
	weft__json_u64(json, "weight_ns", samples->weight_ns);
	weft__json_u64(json, "with_kernel_stack", samples->n_kernel);
	weft__json_u64(json, "undefined_stacks", samples->n_undefined);
	weft__json_begin(json, "engines", '{');
	for (i = 0; i < INSPECT_ENGINES; i++)
		if (samples->n_engine[i])
			weft__json_u64(json, inspect_engine(i), samples->n_engine[i]);
	weft__json_end(json, '}');
	weft__json_end(json, '}');
	json_modules(json, inspect->seg);
	json_stacks(json, inspect->seg);
	json_symbols(json, inspect->seg);
}
