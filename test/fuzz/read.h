/* SPDX-License-Identifier: Apache-2.0 */
/* Reads everything of a segment that is only bytes in memory, and checks what must hold whatever the bytes are. */
#ifndef WEFT_FUZZ_READ_H
#define WEFT_FUZZ_READ_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "segment/format.h"
#include "segment/reader.h"
#include "weft/segment.h"

#define UNREAD UINT64_MAX /* more than the reader takes at one time */

/* Aborts, which is what the fuzzer looks for. */
#define HOLDS(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			abort();                                                                                       \
	} while (0)

static inline uint64_t read_events(struct weft_segment *seg, enum weft_order order, uint64_t from, uint64_t to)
{
	struct weft_cursor *cursor;
	struct weft_event_view ev, before = {0};
	uint64_t n = 0;
	int r;

	seg->open_bytes_max = 100u << 20;
	HOLDS(weft_cursor_open(&cursor, seg, order, from, to, NULL) == 0);
	while ((r = weft_cursor_next(cursor, &ev)) > 0) {
		HOLDS(ev.time_ns >= from && (ev.time_ns < to || to == UINT64_MAX));
		HOLDS(ev.kind && ev.n_fields <= WEFT_FIELDS_MAX);
		if (order == WEFT_ORDER_TIME && n)
			HOLDS(ev.time_ns > before.time_ns ||
			      (ev.time_ns == before.time_ns && ev.thread >= before.thread));
		before = ev;
		n++;
	}
	weft_cursor_close(cursor);
	return r < 0 ? UNREAD : n;
}

static inline size_t touch(const char *text)
{
	return strlen(text);
}

/* Sorted and unique, so that each record finds itself. */
static inline size_t read_code(const struct weft_segment *seg)
{
	size_t n, i, f, sum = 0, frames = 0;
	const struct weft_module *modules = weft_segment_modules(seg, &n);
	const struct weft_stack *stacks;
	const struct weft_symbol_def *symbols;

	for (i = 0; i < n; i++) {
		HOLDS(modules[i].id && weft_segment_module(seg, modules[i].id) == &modules[i]);
		HOLDS(modules[i].build_id_n <= WEFT_BUILD_ID_MAX && modules[i].start <= modules[i].end);
		sum += touch(modules[i].path);
	}
	stacks = weft_segment_stacks(seg, &n);
	for (i = 0; i < n; i++) {
		HOLDS(stacks[i].id && weft_segment_stack(seg, stacks[i].id) == &stacks[i]);
		HOLDS(!i || stacks[i - 1].id < stacks[i].id);
		frames += stacks[i].n_frames;
		for (f = 0; f < stacks[i].n_frames; f++)
			sum += stacks[i].frames[f].module + stacks[i].frames[f].offset;
	}
	HOLDS(frames <= STACK_FRAMES_MAX);
	symbols = weft_segment_symbols(seg, &n);
	for (i = 0; i < n; i++) {
		HOLDS(weft_segment_symbol(seg, symbols[i].module, symbols[i].offset) == &symbols[i]);
		for (f = 0; f < symbols[i].n_frames; f++)
			sum += touch(symbols[i].frames[f].function) + touch(symbols[i].frames[f].file);
	}
	return sum;
}

static inline size_t read_tables(const struct weft_segment *seg)
{
	size_t n, i, f, sum = 0;
	const struct weft_thread *threads = weft_segment_threads(seg, &n);
	const struct weft_kind_def *kinds;
	const struct weft_location_def *locations;
	const struct weft_string_def *strings;
	const struct weft_runtime_def *runtimes;
	const struct weft_worker *workers;
	const struct weft_fact *facts;

	for (i = 0; i < n; i++) {
		HOLDS(weft_segment_thread(seg, threads[i].id) == &threads[i]);
		sum += touch(threads[i].name);
	}
	kinds = weft_segment_kinds(seg, &n);
	for (i = 0; i < n; i++) {
		HOLDS(weft_segment_kind(seg, kinds[i].id) == &kinds[i] && kinds[i].n_fields <= WEFT_FIELDS_MAX);
		for (f = 0; f < kinds[i].n_fields; f++)
			sum += touch(kinds[i].fields[f].name) + touch(kinds[i].fields[f].unit);
		sum += touch(kinds[i].name);
	}
	locations = weft_segment_locations(seg, &n);
	for (i = 0; i < n; i++) {
		HOLDS(weft_segment_location(seg, locations[i].id) == &locations[i]);
		sum += touch(locations[i].name) + touch(locations[i].file);
	}
	strings = weft_segment_strings(seg, &n);
	for (i = 0; i < n; i++)
		HOLDS(weft_segment_string(seg, strings[i].id) == strings[i].text);
	runtimes = weft_segment_runtimes(seg, &n);
	for (i = 0; i < n; i++) {
		HOLDS(weft_segment_runtime(seg, runtimes[i].id) == &runtimes[i]);
		sum += touch(runtimes[i].name);
	}
	workers = weft_segment_workers(seg, &n);
	for (i = 0; i < n; i++)
		HOLDS(weft_segment_worker(seg, workers[i].id) == &workers[i]);
	facts = weft_segment_facts(seg, &n);
	for (i = 0; i < n; i++)
		HOLDS(!strcmp(weft_segment_fact(seg, facts[i].key), facts[i].value));
	weft_segment_clocks(seg, &n);
	weft_segment_losses(seg, &n);
	return sum + read_code(seg);
}

/* Opens and reads it all, both ways; both have to find the same number of events. */
static inline void read_segment(const uint8_t *bytes, size_t n_bytes)
{
	const struct weft_segment_info *info;
	struct weft_segment *seg;
	struct weft_damage damage;
	uint64_t n, merged, middle;

	if (weft_segment_open_memory(&seg, bytes, n_bytes, NULL) < 0)
		return;
	info = weft_segment_info(seg);
	HOLDS(info->n_bytes == n_bytes);
	read_tables(seg);
	n = read_events(seg, WEFT_ORDER_STORED, 0, UINT64_MAX);
	HOLDS(n <= info->n_events);
	damage = weft_segment_damage(seg);
	HOLDS(damage.missing_bytes <= n_bytes && (damage.places > 0) == (damage.text[0] != 0));
	merged = read_events(seg, WEFT_ORDER_TIME, 0, UINT64_MAX);
	HOLDS(n == merged || merged == UNREAD);
	middle = info->first_ns + (info->last_ns - info->first_ns) / 2;
	if (merged != UNREAD)
		HOLDS(n == read_events(seg, WEFT_ORDER_TIME, 0, middle) +
				   read_events(seg, WEFT_ORDER_TIME, middle, UINT64_MAX));
	HOLDS(weft_segment_damage(seg).places == damage.places);
	weft_segment_close(seg);
}

#endif
