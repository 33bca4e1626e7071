/* SPDX-License-Identifier: Apache-2.0 */
/* The definitions of a segment: parsing, and looking up by id. Those about code are in code_tables.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "segment/format.h"
#include "segment/reader.h"

const char *weft__segment_text(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	uint64_t n = in_varint(in);
	const uint8_t *bytes = in_bytes(in, n);
	char *text;

	if (!bytes)
		return "";
	seg->text_bytes += n + 1;
	if (seg->text_bytes > TEXT_BYTES_MAX) {
		in_fail(in);
		return "";
	}
	text = weft__arena_take(&seg->texts, n + 1);
	if (!text) {
		*oom = 1;
		return "";
	}
	memcpy(text, bytes, n);
	text[n] = 0;
	return text;
}

/* Every table but clocks, losses and facts has elements that begin with their id. */
#define ADD(seg, table, type, value, most, in, oom)                                                                    \
	do {                                                                                                           \
		struct type *add_ = weft__table_add(&(seg)->table, sizeof(struct type), (most), (in), (oom));          \
		if (add_)                                                                                              \
			*add_ = (value);                                                                               \
	} while (0)

static void read_kind(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_kind_def kind = {0};
	uint64_t n;
	uint32_t i;

	kind.id = in_u32(in);
	kind.name = weft__segment_text(seg, in, oom);
	n = in_varint(in);
	if (n > WEFT_FIELDS_MAX) {
		in_fail(in);
		return;
	}
	kind.n_fields = (uint32_t)n;
	for (i = 0; i < n; i++) {
		kind.fields[i].name = weft__segment_text(seg, in, oom);
		kind.fields[i].type = in_u32(in);
		kind.fields[i].unit = weft__segment_text(seg, in, oom);
	}
	ADD(seg, kinds, weft_kind_def, kind, KIND_RECORDS_MAX, in, oom);
}

static void read_thread(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_thread thread = {0};
	uint32_t worker;

	thread.id = in_u32(in);
	thread.tid = in_u32(in);
	worker = in_u32(in);
	thread.worker = worker ? worker - 1 : 0xffff;
	thread.first_ns = in_varint(in);
	thread.name = weft__segment_text(seg, in, oom);
	ADD(seg, threads, weft_thread, thread, RECORDS_MAX, in, oom);
}

static void read_loss(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_loss loss = {0};

	loss.reason = in_u32(in);
	loss.thread = in_u32(in);
	loss.count = in_varint(in);
	loss.from_ns = in_varint(in);
	loss.to_ns = in_varint(in);
	ADD(seg, losses, weft_loss, loss, RECORDS_MAX, in, oom);
}

static void read_fact(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_fact fact;

	fact.key = weft__segment_text(seg, in, oom);
	fact.value = weft__segment_text(seg, in, oom);
	ADD(seg, facts, weft_fact, fact, FACT_RECORDS_MAX, in, oom);
}

static void read_location(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_location_def location = {0};

	location.id = in_u32(in);
	location.line = in_u32(in);
	location.name = weft__segment_text(seg, in, oom);
	location.file = weft__segment_text(seg, in, oom);
	ADD(seg, locations, weft_location_def, location, RECORDS_MAX, in, oom);
}

static void read_small(struct weft_segment *seg, uint64_t tag, struct weft__in *in, int *oom)
{
	struct weft_string_def string = {0};
	struct weft_runtime_def runtime = {0};
	struct weft_worker worker = {0};
	struct weft_clock clock = {0};

	switch (tag) {
	case DEF_STRING:
		string.id = in_u32(in);
		string.text = weft__segment_text(seg, in, oom);
		ADD(seg, strings, weft_string_def, string, RECORDS_MAX, in, oom);
		break;
	case DEF_RUNTIME:
		runtime.id = in_u32(in);
		runtime.name = weft__segment_text(seg, in, oom);
		ADD(seg, runtimes, weft_runtime_def, runtime, RECORDS_MAX, in, oom);
		break;
	case DEF_WORKER:
		worker.id = in_u32(in);
		worker.runtime = in_u32(in);
		worker.index = in_u32(in);
		ADD(seg, workers, weft_worker, worker, RECORDS_MAX, in, oom);
		break;
	case DEF_CLOCK:
		clock.tick = in_varint(in);
		clock.mono_ns = in_varint(in);
		clock.real_ns = in_varint(in);
		ADD(seg, clocks, weft_clock, clock, RECORDS_MAX, in, oom);
		break;
	}
}

static int read_records(struct weft_segment *seg, struct weft__in in)
{
	int oom = 0;

	while (in_left(&in)) {
		uint64_t tag = in_varint(&in);
		uint64_t length = in_varint(&in);
		const uint8_t *record = in_bytes(&in, length);
		struct weft__in one;

		if (!record || in.bad) /* a tag without a length has one of 0 */
			return -WEFT_E_DAMAGED;
		one = weft__in(record, length);
		switch (tag) {
		case DEF_LOCATION:
			read_location(seg, &one, &oom);
			break;
		case DEF_THREAD:
			read_thread(seg, &one, &oom);
			break;
		case DEF_KIND:
			read_kind(seg, &one, &oom);
			break;
		case DEF_LOSS:
			read_loss(seg, &one, &oom);
			break;
		case DEF_FACT:
			read_fact(seg, &one, &oom);
			break;
		case DEF_MODULE:
		case DEF_STACK:
		case DEF_NAME:
		case DEF_SYMBOL:
			weft__segment_read_code(seg, tag, &one, &oom);
			break;
		default:
			read_small(seg, tag, &one, &oom);
		}
		if (oom)
			return -ENOMEM;
		if (one.bad)
			return -WEFT_E_DAMAGED;
	}
	return 0;
}

#define N_TABLES 13

static void all_tables(struct weft_segment *seg, struct weft__table *tables[N_TABLES])
{
	struct weft__table *all[N_TABLES] = {&seg->threads, &seg->workers, &seg->runtimes, &seg->locations,
					     &seg->kinds,   &seg->strings, &seg->clocks,   &seg->losses,
					     &seg->facts,   &seg->modules, &seg->stacks,   &seg->names,
					     &seg->symbols};

	memcpy(tables, all, sizeof(all));
}

/* All records of a block or none. */
int weft__segment_read_defs(struct weft_segment *seg, const uint8_t *bytes, size_t n)
{
	struct weft__table *tables[N_TABLES];
	size_t marks[N_TABLES], i;
	int err;

	all_tables(seg, tables);
	for (i = 0; i < N_TABLES; i++)
		marks[i] = tables[i]->n;
	err = read_records(seg, weft__in(bytes, n));
	for (i = 0; err && i < N_TABLES; i++)
		tables[i]->n = marks[i];
	return err;
}

/* Of facts with the same key the last one stays, in the place of the first. */
static void merge_facts(struct weft_segment *seg)
{
	struct weft_fact *facts = seg->facts.items;
	size_t i, j, n = 0;

	for (i = 0; i < seg->facts.n; i++) {
		for (j = 0; j < n && strcmp(facts[j].key, facts[i].key); j++)
			;
		facts[j] = facts[i];
		n += j == n;
	}
	seg->facts.n = n;
}

int weft__segment_sort_defs(struct weft_segment *seg)
{
	merge_facts(seg);
	if (weft__table_sort_ids(&seg->threads, sizeof(struct weft_thread)) ||
	    weft__table_sort_ids(&seg->workers, sizeof(struct weft_worker)) ||
	    weft__table_sort_ids(&seg->runtimes, sizeof(struct weft_runtime_def)) ||
	    weft__table_sort_ids(&seg->locations, sizeof(struct weft_location_def)) ||
	    weft__table_sort_ids(&seg->kinds, sizeof(struct weft_kind_def)) ||
	    weft__table_sort_ids(&seg->strings, sizeof(struct weft_string_def)))
		return -ENOMEM;
	return weft__segment_sort_code(seg);
}

void weft__segment_free_defs(struct weft_segment *seg)
{
	struct weft__table *tables[N_TABLES];
	size_t i;

	all_tables(seg, tables);
	for (i = 0; i < N_TABLES; i++)
		weft__free(tables[i]->items);
	weft__arena_fini(&seg->texts);
	weft__arena_fini(&seg->frames);
}

#define TABLE(type, plural, singular)                                                                                  \
	const struct type *weft_segment_##plural(const struct weft_segment *seg, size_t *n)                            \
	{                                                                                                              \
		*n = seg->plural.n;                                                                                    \
		return seg->plural.items;                                                                              \
	}                                                                                                              \
	const struct type *weft_segment_##singular(const struct weft_segment *seg, uint32_t id)                        \
	{                                                                                                              \
		return weft__table_find(&seg->plural, sizeof(struct type), id);                                        \
	}

TABLE(weft_thread, threads, thread)
TABLE(weft_worker, workers, worker)
TABLE(weft_runtime_def, runtimes, runtime)
TABLE(weft_location_def, locations, location)
TABLE(weft_kind_def, kinds, kind)
TABLE(weft_module, modules, module)
TABLE(weft_stack, stacks, stack)

const struct weft_string_def *weft_segment_strings(const struct weft_segment *seg, size_t *n)
{
	*n = seg->strings.n;
	return seg->strings.items;
}

const char *weft_segment_string(const struct weft_segment *seg, uint32_t id)
{
	const struct weft_string_def *string = weft__table_find(&seg->strings, sizeof(*string), id);

	return string ? string->text : NULL;
}

const struct weft_clock *weft_segment_clocks(const struct weft_segment *seg, size_t *n)
{
	*n = seg->clocks.n;
	return seg->clocks.items;
}

const struct weft_loss *weft_segment_losses(const struct weft_segment *seg, size_t *n)
{
	*n = seg->losses.n;
	return seg->losses.items;
}

const struct weft_fact *weft_segment_facts(const struct weft_segment *seg, size_t *n)
{
	*n = seg->facts.n;
	return seg->facts.items;
}

const char *weft_segment_fact(const struct weft_segment *seg, const char *key)
{
	const struct weft_fact *facts = seg->facts.items;
	size_t i;

	for (i = 0; i < seg->facts.n; i++)
		if (!strcmp(facts[i].key, key))
			return facts[i].value;
	return NULL;
}
