/* SPDX-License-Identifier: Apache-2.0 */
/* One segment as JSON; keys are stable. Times are CLOCK_MONOTONIC ns unless they say real. */
#include <stdio.h>

#include "analyze/label.h"
#include "analyze/loss.h"
#include "inspect.h"
#include "weft/runtime.h"

static void header(struct weft__json *json, const struct inspect *inspect)
{
	const struct weft_segment_info *info = inspect->info;
	struct weft_damage damage = weft_segment_damage(inspect->seg);
	char id[33];
	int i;

	for (i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", info->recording[i]);
	weft__json_text(json, "path", inspect->path);
	weft__json_u64(json, "format_version", info->version);
	weft__json_bool(json, "sealed", info->sealed);
	weft__json_bool(json, "recovered", info->recovered);
	weft__json_text(json, "recording", id);
	weft__json_u64(json, "sequence", info->sequence);
	weft__json_u64(json, "start_mono_ns", info->start_mono_ns);
	weft__json_u64(json, "start_real_ns", info->start_real_ns);
	weft__json_u64(json, "first_ns", info->first_ns);
	weft__json_u64(json, "last_ns", info->last_ns);
	weft__json_u64(json, "quantum_ns", info->quantum_ns);
	weft__json_u64(json, "events", info->n_events);
	weft__json_u64(json, "events_read", inspect->n_read);
	weft__json_u64(json, "bytes", info->n_bytes);
	weft__json_u64(json, "event_bytes", info->n_event_bytes);
	if (info->n_events)
		weft__json_f64(json, "bytes_per_event", (double)info->n_event_bytes / (double)info->n_events);
	else
		weft__json_absent(json, "bytes_per_event", "no events");
	weft__json_u64(json, "blocks", info->n_blocks);
	weft__json_u64(json, "unknown_blocks", info->n_unknown_blocks);
	weft__json_begin(json, "damage", '{');
	weft__json_u64(json, "places", damage.places);
	weft__json_u64(json, "missing_bytes", damage.missing_bytes);
	if (damage.places)
		weft__json_u64(json, "first_offset", damage.first_offset);
	weft__json_text(json, "text", damage.text);
	weft__json_end(json, '}');
}

static void kinds(struct weft__json *json, const struct inspect *inspect)
{
	uint32_t kind, i;

	weft__json_begin(json, "kinds", '[');
	for (kind = 0; kind < 65536; kind++) {
		const struct weft_kind_def *def = weft_segment_kind(inspect->seg, kind);

		if (!def && inspect->n_kind[kind] == 0)
			continue;
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "kind", kind);
		weft__json_text(json, "name", inspect_kind_name(inspect->seg, kind));
		weft__json_u64(json, "events", inspect->n_kind[kind]);
		weft__json_begin(json, "fields", '[');
		for (i = 0; def && i < def->n_fields && i < WEFT_FIELDS_MAX; i++) {
			weft__json_begin(json, NULL, '{');
			weft__json_text(json, "name", def->fields[i].name);
			weft__json_text(json, "type", inspect_type_name(def->fields[i].type));
			weft__json_text(json, "unit", def->fields[i].unit);
			weft__json_end(json, '}');
		}
		weft__json_end(json, ']');
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void threads(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_thread *all = weft_segment_threads(seg, &n);

	weft__json_begin(json, "threads", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "thread_id", all[i].id);
		weft__json_u64(json, "tid", all[i].tid);
		weft__json_text(json, "name", all[i].name);
		if (all[i].worker == WEFT_WORKER_NONE)
			weft__json_null(json, "worker");
		else
			weft__json_u64(json, "worker", all[i].worker);
		if (all[i].first_ns)
			weft__json_u64(json, "first_ns", all[i].first_ns);
		else
			weft__json_absent(json, "first_ns", "not known");
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void runtimes(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_runtime_def *all = weft_segment_runtimes(seg, &n);
	const struct weft_worker *workers;

	weft__json_begin(json, "runtimes", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "id", all[i].id);
		weft__json_text(json, "name", all[i].name);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
	workers = weft_segment_workers(seg, &n);
	weft__json_begin(json, "workers", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "id", workers[i].id);
		weft__json_u64(json, "runtime", workers[i].runtime);
		weft__json_u64(json, "index", workers[i].index);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void locations(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_location_def *all = weft_segment_locations(seg, &n);

	weft__json_begin(json, "locations", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "id", all[i].id);
		weft__json_text(json, "name", all[i].name);
		weft__json_text(json, "file", all[i].file);
		weft__json_u64(json, "line", all[i].line);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void strings(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_string_def *all = weft_segment_strings(seg, &n);

	weft__json_begin(json, "strings", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "id", all[i].id);
		weft__json_text(json, "text", all[i].text);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void clocks(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_clock *all = weft_segment_clocks(seg, &n);

	weft__json_begin(json, "clocks", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_u64(json, "tick", all[i].tick);
		weft__json_u64(json, "mono_ns", all[i].mono_ns);
		weft__json_u64(json, "real_ns", all[i].real_ns);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void losses(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_loss *all = weft_segment_losses(seg, &n);

	weft__json_begin(json, "losses", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_text(json, "reason", weft__label_reason(all[i].reason));
		weft__json_u64(json, "thread_id", all[i].thread);
		if (all[i].reason == WEFT_LOSS_UNCOVERED)
			weft__json_u64(json, "threads", all[i].count);
		else if (!weft__loss_counted(all[i].reason))
			weft__json_absent(json, "events", "not counted while recording is paused");
		else
			weft__json_u64(json, "events", all[i].count);
		weft__json_u64(json, "from_ns", all[i].from_ns);
		weft__json_u64(json, "to_ns", all[i].to_ns);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void facts(struct weft__json *json, const struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_fact *all = weft_segment_facts(seg, &n);

	weft__json_begin(json, "facts", '{');
	for (i = 0; i < n; i++)
		weft__json_text(json, all[i].key, all[i].value);
	weft__json_end(json, '}');
}

void inspect_json(struct weft__json *json, const struct inspect *inspect)
{
	weft__json_begin(json, NULL, '{');
	header(json, inspect);
	facts(json, inspect->seg);
	kinds(json, inspect);
	threads(json, inspect->seg);
	runtimes(json, inspect->seg);
	locations(json, inspect->seg);
	strings(json, inspect->seg);
	clocks(json, inspect->seg);
	losses(json, inspect->seg);
	inspect_json_code(json, inspect);
	weft__json_end(json, '}');
}
