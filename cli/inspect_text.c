/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "analyze/loss.h"
#include "inspect.h"
#include "print.h"
#include "segment/format.h"
#include "segment/reader.h"
#include "weft/runtime.h"

#define TABLE(name, ...)                                                                                               \
	static const char *const name##_titles[] = {__VA_ARGS__};                                                      \
	struct cli_table name = {.titles = name##_titles, .n_columns = sizeof(name##_titles) / sizeof(name##_titles[0])}

static const char *moment(const struct inspect *inspect, uint64_t ns, char *buf)
{
	snprintf(buf, CLI_FIGURE, "%+.6f s", (double)(int64_t)(ns - inspect->info->start_mono_ns) / 1e9);
	return buf;
}

static void print_header(const struct inspect *inspect)
{
	const struct weft_segment_info *info = inspect->info;
	struct weft_damage damage = weft_segment_damage(inspect->seg);
	char a[CLI_FIGURE], b[CLI_FIGURE], c[CLI_FIGURE];
	size_t i;

	printf("%s%s%s\n", cli_style(CLI_BOLD), cli_safe(inspect->path), cli_style(CLI_PLAIN));
	printf("  format     version %u, %s%s\n", info->version,
	       info->sealed ? "sealed" : "not sealed: its process is alive or was killed",
	       info->recovered ? ", made by recovery" : "");
	printf("  recording  ");
	for (i = 0; i < 16; i++)
		printf("%02x", info->recording[i]);
	printf(", segment %" PRIu64 "\n", info->sequence);
	printf("  begun      %s (CLOCK_MONOTONIC %" PRIu64 ")\n", cli_wall(info->start_real_ns, a),
	       info->start_mono_ns);
	if (info->n_events)
		printf("  span       %s to %s, %s\n", moment(inspect, info->first_ns, a),
		       moment(inspect, info->last_ns, b), cli_ns(info->last_ns - info->first_ns, c));
	printf("  events     %s", cli_count(info->n_events, a));
	if (inspect->n_read != info->n_events)
		printf(", of which %s can be read", cli_count(inspect->n_read, b));
	if (info->n_events)
		printf(", resolution %u ns", info->quantum_ns);
	printf("\n  size       %s, of which events %s", cli_bytes(info->n_bytes, a), cli_bytes(info->n_event_bytes, b));
	if (info->n_events)
		printf(", %.3f B an event", (double)info->n_event_bytes / (double)info->n_events);
	printf("\n  blocks     %u", info->n_blocks);
	if (info->n_unknown_blocks)
		printf(", %u of unknown type", info->n_unknown_blocks);
	if (damage.places)
		printf("\n  %sdamage%s     %u place%s, %s missing: %s", cli_style(CLI_RED), cli_style(CLI_PLAIN),
		       damage.places, damage.places == 1 ? "" : "s", cli_bytes(damage.missing_bytes, a),
		       cli_safe(damage.text));
	putchar('\n');
}

static void print_facts(const struct inspect *inspect)
{
	TABLE(table, "<fact", "<value");
	size_t n, i;
	const struct weft_fact *facts = weft_segment_facts(inspect->seg, &n);

	if (n == 0)
		return;
	cli_heading("Facts");
	for (i = 0; i < n; i++) {
		cli_cell(&table, "%s", facts[i].key);
		cli_cell(&table, "%s", facts[i].value);
	}
	cli_table_print(&table);
}

static void print_kinds(const struct inspect *inspect)
{
	TABLE(table, "kind", "<name", "events", "share", "<fields");
	char figure[CLI_FIGURE], fields[512];
	uint32_t kind, i;

	cli_heading("Kinds");
	for (kind = 0; kind < 65536; kind++) {
		const struct weft_kind_def *def = weft_segment_kind(inspect->seg, kind);
		const char *name = inspect_kind_name(inspect->seg, kind);
		size_t at = 0;

		if (!def && inspect->n_kind[kind] == 0)
			continue;
		cli_cell(&table, "%u", kind);
		cli_cell(&table, "%s", name ? name : "(not described)");
		cli_cell(&table, "%s", cli_count(inspect->n_kind[kind], figure));
		cli_cell(&table, "%s",
			 inspect->n_read ? cli_percent((double)inspect->n_kind[kind] / (double)inspect->n_read, figure)
					 : "-");
		fields[0] = 0;
		for (i = 0; def && i < def->n_fields && i < WEFT_FIELDS_MAX && at < sizeof(fields) - 1; i++) {
			const char *unit = def->fields[i].unit ? def->fields[i].unit : "";

			at += (size_t)snprintf(fields + at, sizeof(fields) - at, "%s%s:%s%s%s%s", i ? ", " : "",
					       def->fields[i].name, inspect_type_name(def->fields[i].type),
					       unit[0] ? "[" : "", unit, unit[0] ? "]" : "");
		}
		cli_cell(&table, "%s", fields);
	}
	cli_table_print(&table);
}

static const char *worker_label(const struct weft_segment *seg, uint32_t id, char *buf, size_t bytes)
{
	const struct weft_worker *worker = weft_segment_worker(seg, id);
	const struct weft_runtime_def *runtime = worker ? weft_segment_runtime(seg, worker->runtime) : NULL;

	if (id == WEFT_WORKER_NONE)
		snprintf(buf, bytes, "-");
	else if (runtime)
		snprintf(buf, bytes, "%s/%u", runtime->name, worker->index);
	else
		snprintf(buf, bytes, "worker-%u", id);
	return buf;
}

static void print_threads(const struct inspect *inspect)
{
	TABLE(table, "thread", "tid", "<name", "<worker", "first event");
	size_t n, i;
	const struct weft_thread *threads = weft_segment_threads(inspect->seg, &n);
	char figure[CLI_FIGURE], label[WEFT__LABEL_BYTES];

	if (n == 0)
		return;
	cli_heading("Threads");
	for (i = 0; i < n; i++) {
		cli_cell(&table, "%u", threads[i].id);
		cli_cell(&table, "%u", threads[i].tid);
		cli_cell(&table, "%s", threads[i].name);
		cli_cell(&table, "%s", worker_label(inspect->seg, threads[i].worker, label, sizeof(label)));
		cli_cell(&table, "%s",
			 threads[i].first_ns ? moment(inspect, threads[i].first_ns, figure) : "not known");
	}
	cli_table_print(&table);
}

static void print_runtimes(const struct inspect *inspect)
{
	TABLE(table, "runtime", "<name", "workers");
	size_t n, n_workers, i, j;
	const struct weft_runtime_def *runtimes = weft_segment_runtimes(inspect->seg, &n);
	const struct weft_worker *workers = weft_segment_workers(inspect->seg, &n_workers);

	if (n == 0)
		return;
	cli_heading("Runtimes");
	for (i = 0; i < n; i++) {
		size_t count = 0;

		for (j = 0; j < n_workers; j++)
			count += workers[j].runtime == runtimes[i].id;
		cli_cell(&table, "%u", runtimes[i].id);
		cli_cell(&table, "%s", runtimes[i].name);
		cli_cell(&table, "%zu", count);
	}
	cli_table_print(&table);
}

static void print_locations(const struct inspect *inspect)
{
	TABLE(table, "location", "<name", "<file", "line");
	size_t n, i;
	const struct weft_location_def *locations = weft_segment_locations(inspect->seg, &n);

	if (n == 0)
		return;
	cli_heading("Spawn locations");
	for (i = 0; i < n; i++) {
		cli_cell(&table, "%u", locations[i].id);
		cli_cell(&table, "%s", locations[i].name);
		cli_cell(&table, "%s", locations[i].file);
		cli_cell(&table, "%u", locations[i].line);
	}
	cli_table_print(&table);
}

static void print_clocks(const struct inspect *inspect)
{
	size_t n, i, first = 0;
	const struct weft_clock *clocks = weft_segment_clocks(inspect->seg, &n);
	TABLE(table, "tick", "monotonic", "<real");
	char figure[CLI_FIGURE];

	if (n == 0)
		return;
	if (n > 8)
		first = n - 8;
	cli_heading("Clocks: %zu readings%s", n, first ? ", the last 8" : "");
	for (i = first; i < n; i++) {
		cli_cell(&table, "%" PRIu64, clocks[i].tick);
		cli_cell(&table, "%" PRIu64, clocks[i].mono_ns);
		cli_cell(&table, "%s", cli_wall(clocks[i].real_ns, figure));
	}
	cli_table_print(&table);
}

static void print_losses(const struct inspect *inspect)
{
	TABLE(table, "<reason", "thread", "lost", "from", "to");
	size_t n, i;
	const struct weft_loss *losses = weft_segment_losses(inspect->seg, &n);
	char figure[CLI_FIGURE];

	if (n == 0)
		return;
	cli_heading("Losses");
	for (i = 0; i < n; i++) {
		bool counted = weft__loss_counted(losses[i].reason);

		cli_cell(&table, "%s", weft__label_reason(losses[i].reason));
		cli_cell(&table, "%u", losses[i].thread);
		cli_cell(&table, "%s%s", counted ? cli_count(losses[i].count, figure) : "not counted",
			 losses[i].reason == WEFT_LOSS_UNCOVERED ? " threads" : "");
		cli_cell(&table, "%s", moment(inspect, losses[i].from_ns, figure));
		cli_cell(&table, "%s", moment(inspect, losses[i].to_ns, figure));
	}
	cli_table_print(&table);
}

void inspect_text(const struct inspect *inspect)
{
	size_t n;

	print_header(inspect);
	print_facts(inspect);
	print_kinds(inspect);
	print_threads(inspect);
	print_runtimes(inspect);
	print_locations(inspect);
	print_clocks(inspect);
	print_losses(inspect);
	inspect_text_code(inspect);
	weft_segment_strings(inspect->seg, &n);
	if (n)
		printf("\n%zu strings (--json lists them)\n", n);
}

void inspect_blocks(const struct inspect *inspect)
{
	static const char *const types[] = {"?", "definitions", "events", "index"};
	TABLE(table, "offset", "<type", "bytes", "count", "first", "last", "<flags");
	char figure[CLI_FIGURE];
	size_t i;

	printf("%s%s%s\n", cli_style(CLI_BOLD), cli_safe(inspect->path), cli_style(CLI_PLAIN));
	for (i = 0; i < inspect->seg->n_blocks; i++) {
		const struct weft__block *block = &inspect->seg->blocks[i];

		cli_cell(&table, "%" PRIu64, block->offset);
		if (block->type < sizeof(types) / sizeof(types[0]))
			cli_cell(&table, "%s", types[block->type]);
		else
			cli_cell(&table, "type %u", block->type);
		cli_cell(&table, "%" PRIu64, (uint64_t)block->bytes + BLOCK_HEADER_BYTES);
		cli_cell(&table, "%u", block->count);
		cli_cell(&table, "%s", block->first_ns ? moment(inspect, block->first_ns, figure) : "-");
		cli_cell(&table, "%s", block->last_ns ? moment(inspect, block->last_ns, figure) : "-");
		cli_cell(&table, "%s%s%s", block->flags & BLOCK_FLAG_ZSTD ? "zstd " : "",
			 block->flags & BLOCK_FLAG_RECOVERED ? "recovered " : "", block->bad ? "damaged" : "");
	}
	cli_table_print(&table);
}
