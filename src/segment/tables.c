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
#define ITEMS_MAX (1u << 20)
#define KINDS_MAX 8192
#define FACTS_MAX 4096
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

static void *table_add(struct weft__table *table, size_t bytes, int *oom)
{
	void *items = NULL;

	if (table->n < ITEMS_MAX)
		items = weft__grow(table->items, &table->cap, table->n, bytes);
	if (!items) {
		*oom = 1;
		return NULL;
	}
	table->items = items;
	return (char *)items + bytes * table->n++;
}

/* Every table but clocks, losses and facts has elements that begin with their id. */
#define ADD(seg, table, type, value, oom)                                                                              \
	do {                                                                                                           \
		struct type *add_ = table_add(&(seg)->table, sizeof(struct type), (oom));                              \
		if (add_)                                                                                              \
			*add_ = (value);                                                                               \
	} while (0)

static void read_kind(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_kind_def kind = {0};
	uint64_t n;
	uint32_t i;

	kind.id = (uint32_t)in_varint(in);
	kind.name = take_text(seg, in, oom);
	n = in_varint(in);
	if (n > WEFT_FIELDS_MAX) {
		in_fail(in);
		return;
	}
	kind.n_fields = (uint32_t)n;
	for (i = 0; i < n; i++) {
		kind.fields[i].name = take_text(seg, in, oom);
		kind.fields[i].type = (uint32_t)in_varint(in);
		kind.fields[i].unit = take_text(seg, in, oom);
	}
	if (seg->kinds.n >= KINDS_MAX)
		in_fail(in);
	if (!in->bad)
		ADD(seg, kinds, weft_kind_def, kind, oom);
}

static void read_thread(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_thread thread = {0};
	uint64_t worker;

	thread.id = (uint32_t)in_varint(in);
	thread.tid = (uint32_t)in_varint(in);
	worker = in_varint(in);
	thread.worker = worker ? (uint32_t)worker - 1 : 0xffff;
	thread.first_ns = in_varint(in);
	thread.name = take_text(seg, in, oom);
	if (!in->bad)
		ADD(seg, threads, weft_thread, thread, oom);
}

static void read_loss(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_loss loss = {0};

	loss.reason = (uint32_t)in_varint(in);
	loss.thread = (uint32_t)in_varint(in);
	loss.count = in_varint(in);
	loss.from_ns = in_varint(in);
	loss.to_ns = in_varint(in);
	if (!in->bad)
		ADD(seg, losses, weft_loss, loss, oom);
}

static void read_fact(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_fact fact = {take_text(seg, in, oom), NULL};
	struct weft_fact *facts = seg->facts.items;
	size_t i;

	fact.value = take_text(seg, in, oom);
	if (in->bad)
		return;
	for (i = 0; i < seg->facts.n; i++) {
		if (!strcmp(facts[i].key, fact.key)) {
			facts[i] = fact;
			return;
		}
	}
	if (seg->facts.n >= FACTS_MAX)
		in_fail(in);
	else
		ADD(seg, facts, weft_fact, fact, oom);
}

static void read_location(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_location_def location = {0};

	location.id = (uint32_t)in_varint(in);
	location.line = (uint32_t)in_varint(in);
	location.name = take_text(seg, in, oom);
	location.file = take_text(seg, in, oom);
	if (!in->bad)
		ADD(seg, locations, weft_location_def, location, oom);
}

static void read_small(struct weft_segment *seg, uint64_t tag, struct weft__in *in, int *oom)
{
	struct weft_string_def string = {0};
	struct weft_runtime_def runtime = {0};
	struct weft_worker worker = {0};
	struct weft_clock clock = {0};

	switch (tag) {
	case DEF_STRING:
		string.id = (uint32_t)in_varint(in);
		string.text = take_text(seg, in, oom);
		if (!in->bad)
			ADD(seg, strings, weft_string_def, string, oom);
		break;
	case DEF_RUNTIME:
		runtime.id = (uint32_t)in_varint(in);
		runtime.name = take_text(seg, in, oom);
		if (!in->bad)
			ADD(seg, runtimes, weft_runtime_def, runtime, oom);
		break;
	case DEF_WORKER:
		worker.id = (uint32_t)in_varint(in);
		worker.runtime = (uint32_t)in_varint(in);
		worker.index = (uint32_t)in_varint(in);
		if (!in->bad)
			ADD(seg, workers, weft_worker, worker, oom);
		break;
	case DEF_CLOCK:
		clock.tick = in_varint(in);
		clock.mono_ns = in_varint(in);
		clock.real_ns = in_varint(in);
		if (!in->bad)
			ADD(seg, clocks, weft_clock, clock, oom);
		break;
	}
}

int weft__segment_read_defs(struct weft_segment *seg, const uint8_t *bytes, size_t n)
{
	struct weft__in in = weft__in(bytes, n);
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
				int take_a = b >= b_end || (a < a_end && *(uint32_t *)(void *)(from + a * bytes) <=
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

int weft__segment_sort_defs(struct weft_segment *seg)
{
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
	struct weft__table *tables[] = {&seg->threads, &seg->workers, &seg->runtimes, &seg->locations, &seg->kinds,
	                                &seg->strings, &seg->clocks,  &seg->losses,   &seg->facts};
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
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
