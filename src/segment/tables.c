/* SPDX-License-Identifier: Apache-2.0 */
/* The definitions of a segment: parsing, and looking up by id. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "segment/format.h"
#include "segment/reader.h"

/* A small file can expand into very many definitions; these keep that in bounds. */
#define RECORDS_MAX (1u << 20)
#define KIND_RECORDS_MAX 8192
#define FACT_RECORDS_MAX 4096
#define TEXT_BYTES_MAX (64u << 20)

static const char *take_text(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	uint64_t n = in_varint(in);
	const uint8_t *bytes = in_bytes(in, n);
	char **texts;
	char *text;

	if (!bytes)
		return "";
	seg->text_bytes += n + 1;
	if (seg->text_bytes > TEXT_BYTES_MAX) {
		in_fail(in);
		return "";
	}
	texts = weft__grow(seg->texts, &seg->texts_cap, seg->n_texts, sizeof(*texts));
	text = texts ? weft__alloc(n + 1) : NULL;
	if (texts)
		seg->texts = texts;
	if (!text) {
		*oom = 1;
		return "";
	}
	memcpy(text, bytes, n);
	text[n] = 0;
	return seg->texts[seg->n_texts++] = text;
}

/* Room for one more record, if the one in `in` is whole and there may be one more. */
static void *table_add(struct weft__table *table, size_t bytes, size_t most, struct weft__in *in, int *oom)
{
	void *items;

	if (table->n >= most)
		in_fail(in);
	if (in->bad)
		return NULL;
	items = weft__grow(table->items, &table->cap, table->n, bytes);
	if (!items) {
		*oom = 1;
		return NULL;
	}
	table->items = items;
	return (char *)items + bytes * table->n++;
}

/* Every table but clocks, losses and facts has elements that begin with their id. */
#define ADD(seg, table, type, value, most, in, oom)                                                                    \
	do {                                                                                                           \
		struct type *add_ = table_add(&(seg)->table, sizeof(struct type), (most), (in), (oom));                \
		if (add_)                                                                                              \
			*add_ = (value);                                                                               \
	} while (0)

static void read_kind(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_kind_def kind = {0};
	uint64_t n;
	uint32_t i;

	kind.id = in_u32(in);
	kind.name = take_text(seg, in, oom);
	n = in_varint(in);
	if (n > WEFT_FIELDS_MAX) {
		in_fail(in);
		return;
	}
	kind.n_fields = (uint32_t)n;
	for (i = 0; i < n; i++) {
		kind.fields[i].name = take_text(seg, in, oom);
		kind.fields[i].type = in_u32(in);
		kind.fields[i].unit = take_text(seg, in, oom);
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
	thread.name = take_text(seg, in, oom);
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

	fact.key = take_text(seg, in, oom);
	fact.value = take_text(seg, in, oom);
	ADD(seg, facts, weft_fact, fact, FACT_RECORDS_MAX, in, oom);
}

static void read_location(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_location_def location = {0};

	location.id = in_u32(in);
	location.line = in_u32(in);
	location.name = take_text(seg, in, oom);
	location.file = take_text(seg, in, oom);
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
		string.text = take_text(seg, in, oom);
		ADD(seg, strings, weft_string_def, string, RECORDS_MAX, in, oom);
		break;
	case DEF_RUNTIME:
		runtime.id = in_u32(in);
		runtime.name = take_text(seg, in, oom);
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

		if (!record)
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

#define N_TABLES 9

static void all_tables(struct weft_segment *seg, struct weft__table *tables[N_TABLES])
{
	struct weft__table *all[N_TABLES] = {&seg->threads, &seg->workers, &seg->runtimes, &seg->locations, &seg->kinds,
					     &seg->strings, &seg->clocks,  &seg->losses,   &seg->facts};

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

/* Order by id keeping only the last of each. Ids are read through the first member, a uint32_t in each of these tables. */
static int sort_table(struct weft__table *table, size_t bytes)
{
	char *items = table->items;
	char *sorted, *from, *to;
	size_t width, i, n = 0;

	if (table->n < 2)
		return 0;
	sorted = weft__alloc(table->n * bytes);
	if (!sorted)
		return -ENOMEM;
	from = items;
	to = sorted;
	for (width = 1; width < table->n; width *= 2) { /* a stable merge sort */
		char *swap;

		for (i = 0; i < table->n; i += 2 * width) {
			size_t a = i, a_end = i + width < table->n ? i + width : table->n;
			size_t b = a_end, b_end = i + 2 * width < table->n ? i + 2 * width : table->n;
			size_t k = i;

			while (a < a_end || b < b_end) {
				int take_a =
					b >= b_end || (a < a_end && *(uint32_t *)(void *)(from + a * bytes) <=
									    *(uint32_t *)(void *)(from + b * bytes));

				memcpy(to + k++ * bytes, from + (take_a ? a++ : b++) * bytes, bytes);
			}
		}
		swap = from;
		from = to;
		to = swap;
	}
	for (i = 0; i < table->n; i++) {
		if (n && *(uint32_t *)(void *)(to + (n - 1) * bytes) == *(uint32_t *)(void *)(from + i * bytes))
			n--;
		memcpy(to + n++ * bytes, from + i * bytes, bytes);
	}
	if (to != items)
		memcpy(items, to, n * bytes);
	table->n = n;
	weft__free(sorted);
	return 0;
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
	if (sort_table(&seg->threads, sizeof(struct weft_thread)) ||
	    sort_table(&seg->workers, sizeof(struct weft_worker)) ||
	    sort_table(&seg->runtimes, sizeof(struct weft_runtime_def)) ||
	    sort_table(&seg->locations, sizeof(struct weft_location_def)) ||
	    sort_table(&seg->kinds, sizeof(struct weft_kind_def)) ||
	    sort_table(&seg->strings, sizeof(struct weft_string_def)))
		return -ENOMEM;
	return 0;
}

void weft__segment_free_defs(struct weft_segment *seg)
{
	struct weft__table *tables[N_TABLES];
	size_t i;

	all_tables(seg, tables);
	for (i = 0; i < N_TABLES; i++)
		weft__free(tables[i]->items);
	for (i = 0; i < seg->n_texts; i++)
		weft__free(seg->texts[i]);
	weft__free(seg->texts);
}

static const void *table_find(const struct weft__table *table, size_t bytes, uint32_t id)
{
	size_t low = 0, high = table->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const char *item = (const char *)table->items + mid * bytes;
		uint32_t at;

		memcpy(&at, item, sizeof(at));
		if (at == id)
			return item;
		if (at < id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

#define TABLE(type, plural, singular)                                                                                  \
	const struct type *weft_segment_##plural(const struct weft_segment *seg, size_t *n)                            \
	{                                                                                                              \
		*n = seg->plural.n;                                                                                    \
		return seg->plural.items;                                                                              \
	}                                                                                                              \
	const struct type *weft_segment_##singular(const struct weft_segment *seg, uint32_t id)                        \
	{                                                                                                              \
		return table_find(&seg->plural, sizeof(struct type), id);                                              \
	}

TABLE(weft_thread, threads, thread)
TABLE(weft_worker, workers, worker)
TABLE(weft_runtime_def, runtimes, runtime)
TABLE(weft_location_def, locations, location)
TABLE(weft_kind_def, kinds, kind)

const struct weft_string_def *weft_segment_strings(const struct weft_segment *seg, size_t *n)
{
	*n = seg->strings.n;
	return seg->strings.items;
}

const char *weft_segment_string(const struct weft_segment *seg, uint32_t id)
{
	const struct weft_string_def *string = table_find(&seg->strings, sizeof(*string), id);

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
