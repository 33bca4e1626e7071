/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FACTS_MAX 4096

static const char *text_copy(struct weft__names *names, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = bytes == 1 ? "" : weft__arena_take(&names->arena, bytes);

	return copy && bytes > 1 ? memcpy(copy, text, bytes) : copy;
}

/* Definitions are repeated in every segment: text that is there already is not copied again. */
static int text_set(struct weft__names *names, const char **slot, const char *text)
{
	const char *copy;

	if (!text)
		text = "";
	if (*slot && strcmp(*slot, text) == 0)
		return 0;
	copy = text_copy(names, text);
	if (!copy)
		return -ENOMEM;
	*slot = copy;
	return 0;
}

static void *table_get(const struct weft__name_table *table, uint32_t id)
{
	uint32_t at = weft__map_get(&table->by_id, id);

	return at == WEFT__MAP_NONE ? NULL : (char *)table->rows + at * table->row_bytes;
}

/* The row of `id`, all zero when it is new. */
static void *table_row(struct weft__names *names, struct weft__name_table *table, uint32_t id, size_t row_bytes)
{
	void *row = table_get(table, id), *rows;

	if (row)
		return row;
	table->row_bytes = row_bytes;
	rows = weft__arena_grow(&names->arena, table->rows, &table->cap, table->n, row_bytes);
	if (!rows)
		return NULL;
	table->rows = rows;
	if (weft__map_put(&table->by_id, id, (uint32_t)table->n) < 0)
		return NULL;
	row = (char *)rows + table->n++ * row_bytes;
	return memset(row, 0, row_bytes);
}

int weft__names_add_thread(struct weft__names *names, const struct weft_thread *thread)
{
	bool fresh = !table_get(&names->threads, thread->id);
	struct weft_thread *row = table_row(names, &names->threads, thread->id, sizeof(*row));

	if (!row)
		return -ENOMEM;
	row->id = thread->id;
	row->tid = thread->tid;
	if (thread->id != WEFT__MAP_NONE && weft__map_put(&names->thread_by_tid, thread->tid, thread->id) < 0)
		return -ENOMEM;
	if (fresh || row->worker == WEFT_WORKER_NONE)
		row->worker = thread->worker;
	if (thread->first_ns)
		row->first_ns = thread->first_ns;
	if (row->name && row->name[0] && !thread->name[0])
		return 0;
	return text_set(names, &row->name, thread->name);
}

int weft__names_add_worker(struct weft__names *names, const struct weft_worker *worker)
{
	struct weft_worker *row = table_row(names, &names->workers, worker->id, sizeof(*row));

	if (!row)
		return -ENOMEM;
	*row = *worker;
	return 0;
}

int weft__names_add_runtime(struct weft__names *names, const struct weft_runtime_def *runtime)
{
	struct weft_runtime_def *row = table_row(names, &names->runtimes, runtime->id, sizeof(*row));

	if (!row)
		return -ENOMEM;
	row->id = runtime->id;
	return text_set(names, &row->name, runtime->name);
}

int weft__names_add_location(struct weft__names *names, const struct weft_location_def *location)
{
	struct weft_location_def *row = table_row(names, &names->locations, location->id, sizeof(*row));

	if (!row)
		return -ENOMEM;
	row->id = location->id;
	row->line = location->line;
	if (text_set(names, &row->name, location->name) < 0)
		return -ENOMEM;
	return text_set(names, &row->file, location->file);
}

int weft__names_add_kind(struct weft__names *names, const struct weft_kind_def *kind)
{
	struct weft_kind_def *row = table_row(names, &names->kinds, kind->id, sizeof(*row));
	uint32_t i;

	if (!row)
		return -ENOMEM;
	row->id = kind->id;
	for (i = 0; i < kind->n_fields && i < WEFT_FIELDS_MAX; i++) {
		row->fields[i].type = kind->fields[i].type;
		if (text_set(names, &row->fields[i].name, kind->fields[i].name) < 0 ||
		    text_set(names, &row->fields[i].unit, kind->fields[i].unit) < 0)
			return -ENOMEM;
		row->n_fields = i + 1 > row->n_fields ? i + 1 : row->n_fields;
	}
	return text_set(names, &row->name, kind->name);
}

int weft__names_add_string(struct weft__names *names, const struct weft_string_def *string)
{
	struct weft_string_def *row = table_row(names, &names->strings, string->id, sizeof(*row));

	if (!row)
		return -ENOMEM;
	row->id = string->id;
	return text_set(names, &row->text, string->text);
}

int weft__names_add_clock(struct weft__names *names, const struct weft_clock *clock)
{
	void *grown =
		weft__arena_grow(&names->arena, names->clocks, &names->cap_clocks, names->n_clocks, sizeof(*clock));

	if (!grown)
		return -ENOMEM;
	names->clocks = grown;
	names->clocks[names->n_clocks++] = *clock;
	return 0;
}

int weft__names_add_loss(struct weft__names *names, const struct weft_loss *loss)
{
	void *grown =
		weft__arena_grow(&names->arena, names->losses, &names->cap_losses, names->n_losses, sizeof(*loss));

	if (!grown)
		return -ENOMEM;
	names->losses = grown;
	names->losses[names->n_losses++] = *loss;
	return 0;
}

static int clock_order(const void *left, const void *right)
{
	const struct weft_clock *a = left, *b = right;

	return a->mono_ns < b->mono_ns ? -1 : a->mono_ns > b->mono_ns;
}

static int loss_order(const void *left, const void *right)
{
	const struct weft_loss *a = left, *b = right;

	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	if (a->to_ns != b->to_ns)
		return a->to_ns < b->to_ns ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->reason != b->reason)
		return a->reason < b->reason ? -1 : 1;
	return a->count < b->count ? -1 : a->count > b->count;
}

void weft__names_settle(struct weft__names *names)
{
	size_t i, kept = 0;

	if (names->n_clocks)
		qsort(names->clocks, names->n_clocks, sizeof(*names->clocks), clock_order);
	if (names->n_losses)
		qsort(names->losses, names->n_losses, sizeof(*names->losses), loss_order);
	for (i = 0; i < names->n_losses; i++)
		if (kept == 0 || loss_order(&names->losses[kept - 1], &names->losses[i]) != 0)
			names->losses[kept++] = names->losses[i];
	names->n_losses = kept;
}

int weft__names_add_fact(struct weft__names *names, const struct weft_fact *fact)
{
	size_t i;
	void *grown;

	for (i = 0; i < names->n_facts; i++)
		if (strcmp(names->facts[i].key, fact->key) == 0)
			return text_set(names, &names->facts[i].value, fact->value);
	if (names->n_facts == FACTS_MAX)
		return 0;
	grown = weft__arena_grow(&names->arena, names->facts, &names->cap_facts, names->n_facts, sizeof(*fact));
	if (!grown)
		return -ENOMEM;
	names->facts = grown;
	memset(&names->facts[i], 0, sizeof(names->facts[i]));
	if (text_set(names, &names->facts[i].key, fact->key) < 0 ||
	    text_set(names, &names->facts[i].value, fact->value) < 0)
		return -ENOMEM;
	names->n_facts++;
	return 0;
}

#define ADD_ALL(noun, type)                                                                                            \
	do {                                                                                                           \
		size_t n_all, i_all;                                                                                   \
		const struct type *all = weft_segment_##noun##s(seg, &n_all);                                          \
		for (i_all = 0; i_all < n_all; i_all++)                                                                \
			if (weft__names_add_##noun(names, &all[i_all]) < 0)                                            \
				return -ENOMEM;                                                                        \
	} while (0)

int weft__names_add_segment(struct weft__names *names, const struct weft_segment *seg)
{
	const struct weft_segment_info *info = weft_segment_info(seg);
	struct weft_clock start = {.mono_ns = info->start_mono_ns, .real_ns = info->start_real_ns};

	ADD_ALL(thread, weft_thread);
	ADD_ALL(worker, weft_worker);
	ADD_ALL(runtime, weft_runtime_def);
	ADD_ALL(location, weft_location_def);
	ADD_ALL(kind, weft_kind_def);
	ADD_ALL(string, weft_string_def);
	ADD_ALL(clock, weft_clock);
	ADD_ALL(fact, weft_fact);
	{
		size_t n, i;
		const struct weft_loss *all = weft_segment_losses(seg, &n);

		for (i = 0; i < n; i++)
			if (weft__names_add_loss(names, &all[i]) < 0)
				return -ENOMEM;
	}
	return weft__names_add_clock(names, &start);
}

void weft__names_fini(struct weft__names *names)
{
	weft__map_fini(&names->threads.by_id);
	weft__map_fini(&names->workers.by_id);
	weft__map_fini(&names->runtimes.by_id);
	weft__map_fini(&names->locations.by_id);
	weft__map_fini(&names->kinds.by_id);
	weft__map_fini(&names->strings.by_id);
	weft__map_fini(&names->thread_by_tid);
	weft__arena_fini(&names->arena);
	memset(names, 0, sizeof(*names));
}

const struct weft_thread *weft__names_thread(const struct weft__names *names, uint32_t id)
{
	return table_get(&names->threads, id);
}

const struct weft_worker *weft__names_worker(const struct weft__names *names, uint32_t id)
{
	return table_get(&names->workers, id);
}

const struct weft_runtime_def *weft__names_runtime(const struct weft__names *names, uint32_t id)
{
	return table_get(&names->runtimes, id);
}

const struct weft_location_def *weft__names_location(const struct weft__names *names, uint32_t id)
{
	return table_get(&names->locations, id);
}

const struct weft_kind_def *weft__names_kind(const struct weft__names *names, uint32_t id)
{
	return table_get(&names->kinds, id);
}

uint32_t weft__names_thread_of(const struct weft__names *names, uint32_t tid)
{
	uint32_t thread_id = tid ? weft__map_get(&names->thread_by_tid, tid) : WEFT__MAP_NONE;

	return thread_id == WEFT__MAP_NONE ? 0 : thread_id;
}

const char *weft__names_string(const struct weft__names *names, uint32_t id)
{
	const struct weft_string_def *row = id ? table_get(&names->strings, id) : NULL;

	return row ? row->text : NULL;
}

const char *weft__names_fact(const struct weft__names *names, const char *key)
{
	size_t i;

	for (i = 0; i < names->n_facts; i++)
		if (strcmp(names->facts[i].key, key) == 0)
			return names->facts[i].value;
	return NULL;
}

uint64_t weft__names_real_ns(const struct weft__names *names, uint64_t mono_ns)
{
	size_t low = 0, high = names->n_clocks;
	const struct weft_clock *clock;

	if (names->n_clocks == 0)
		return 0;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (names->clocks[mid].mono_ns <= mono_ns)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == names->n_clocks ||
	    (low > 0 && mono_ns - names->clocks[low - 1].mono_ns <= names->clocks[low].mono_ns - mono_ns))
		low--;
	clock = &names->clocks[low];
	return clock->real_ns + (mono_ns - clock->mono_ns);
}
