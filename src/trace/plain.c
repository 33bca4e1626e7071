/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that events say by themselves: parks, queues, stuck polls, the program's events, counts, costs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/json.h"
#include "analyze/label.h"
#include "base/alloc.h"
#include "trace/inside.h"

static const uint16_t fields_of[WEFT_KIND_BUILTIN_END] = {
#define X(NAME, number, ...) [number] = WEFT_FIELDS_OF_##NAME,
	WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
};

bool weft__is_plain(enum weft__table_id table)
{
	return table == WEFT__TABLE_PARK || table == WEFT__TABLE_PARK_COUNT || table == WEFT__TABLE_QUEUE ||
	       table == WEFT__TABLE_STUCK || table == WEFT__TABLE_EVENT || table == WEFT__TABLE_POLL_COUNT ||
	       table == WEFT__TABLE_COST || table == WEFT__TABLE_TASK || table == WEFT__TABLE_CONTEXT ||
	       table == WEFT__TABLE_WALL || table == WEFT__TABLE_ALLOC;
}

bool weft__plain_wants(enum weft__table_id table, uint32_t kind)
{
	if (kind == WEFT_KIND_WORKER)
		return true;
	switch (table) {
	case WEFT__TABLE_PARK:
		return kind == WEFT_KIND_PARK || kind == WEFT_KIND_UNPARK || kind == WEFT_KIND_PARKED;
	case WEFT__TABLE_TASK:
		return kind == WEFT_KIND_POLL_BEGIN || kind == WEFT_KIND_POLL_NEXT || kind == WEFT_KIND_POLL ||
		       kind == WEFT_KIND_SPAWN || kind == WEFT_KIND_TASK_END || kind == WEFT_KIND_WAKE ||
		       kind == WEFT_KIND_MODE;
	case WEFT__TABLE_QUEUE:
		return kind == WEFT_KIND_QUEUE;
	case WEFT__TABLE_CONTEXT:
		return kind == WEFT_KIND_CONTEXT;
	case WEFT__TABLE_WALL:
		return kind == WEFT_KIND_WALL;
	case WEFT__TABLE_ALLOC:
		return kind == WEFT_KIND_ALLOC;
	case WEFT__TABLE_STUCK:
		return kind == WEFT_KIND_STUCK;
	case WEFT__TABLE_POLL_COUNT:
		return kind == WEFT_KIND_POLL_COUNT;
	case WEFT__TABLE_PARK_COUNT:
		return kind == WEFT_KIND_PARK_COUNT;
	case WEFT__TABLE_COST:
		return kind == WEFT_KIND_COST;
	default:
		return kind == WEFT_KIND_BUILTIN_END;
	}
}

int weft__plain_thread_get(struct weft__scan *t, uint32_t thread_id, struct weft__plain_thread **ret)
{
	struct weft__plain *p = &t->plain;
	uint32_t at = weft__map_get(&p->thread_by_id, thread_id);
	const struct weft_thread *def;
	struct weft__plain_thread *grown;

	if (at != WEFT__MAP_NONE) {
		*ret = &p->threads[at];
		return 0;
	}
	grown = weft__grow(p->threads, &p->cap_threads, p->n_threads, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->threads = grown;
	if (weft__map_put(&p->thread_by_id, thread_id, (uint32_t)p->n_threads) < 0)
		return -ENOMEM;
	def = weft__names_thread(&t->rec->names, thread_id);
	grown[p->n_threads] = (struct weft__plain_thread){.worker = def ? def->worker : WEFT_WORKER_NONE};
	*ret = &grown[p->n_threads++];
	return 0;
}

/* A row with the columns of a thread. */
static int row_of(struct weft__scan *t, size_t column, uint32_t thread_id, uint32_t tid, struct weft__row **ret)
{
	struct weft__plain_thread none = {.worker = WEFT_WORKER_NONE}, *thread = &none;

	*ret = weft__row_new(t);
	if (!*ret || (thread_id && weft__plain_thread_get(t, thread_id, &thread) < 0))
		return -ENOMEM;
	return weft__fill_who(t, *ret, column, thread_id, tid, thread->worker);
}

static int give_park(struct weft__scan *t, uint32_t thread_id, uint64_t begin_ns, uint64_t end_ns, uint64_t depth)
{
	struct weft__row *row;

	if (row_of(t, WEFT__COL_PARK_RECORDING, thread_id, 0, &row) < 0)
		return -ENOMEM;
	if (begin_ns && begin_ns <= end_ns && !weft__gaps_between(&t->plain.gaps, begin_ns, end_ns)) {
		weft__set_int(row, WEFT__COL_PARK_BEGIN_NS, weft__time(t, begin_ns));
		weft__set_int(row, WEFT__COL_PARK_DURATION_NS, (int64_t)(end_ns - begin_ns));
	}
	weft__set_int(row, WEFT__COL_PARK_END_NS, weft__time(t, end_ns));
	if (depth < WEFT_DEPTH_UNKNOWN)
		weft__set_int(row, WEFT__COL_PARK_QUEUE_DEPTH, (int64_t)depth);
	weft__row_give(t, row);
	return 0;
}

static int park_event(struct weft__scan *t, const struct weft__event *ev)
{
	struct weft__plain_thread *thread;
	uint64_t begin_ns;

	if (ev->kind == WEFT_KIND_PARKED)
		return give_park(t, ev->thread,
				 ev->time_ns > WEFT_FIELD(ev, PARKED, DURATION)
					 ? ev->time_ns - WEFT_FIELD(ev, PARKED, DURATION)
					 : 0,
				 ev->time_ns, WEFT_DEPTH_UNKNOWN);
	if (ev->kind != WEFT_KIND_PARK && ev->kind != WEFT_KIND_UNPARK)
		return 0;
	if (weft__plain_thread_get(t, ev->thread, &thread) < 0)
		return -ENOMEM;
	begin_ns = thread->park_ns;
	thread->park_ns = ev->kind == WEFT_KIND_PARK ? ev->time_ns : 0;
	return ev->kind == WEFT_KIND_PARK
		       ? 0
		       : give_park(t, ev->thread, begin_ns, ev->time_ns, WEFT_FIELD(ev, UNPARK, DEPTH));
}

static int queue_event(struct weft__scan *t, const struct weft__event *ev)
{
	const struct weft_runtime_def *runtime =
		weft__names_runtime(&t->rec->names, (uint32_t)WEFT_FIELD(ev, QUEUE, RUNTIME));
	struct weft__row *row = weft__row_new(t);

	if (!row)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_QUEUE_RECORDING, (int64_t)t->number);
	weft__set_int(row, WEFT__COL_QUEUE_TIME_NS, weft__time(t, ev->time_ns));
	weft__set_text(row, WEFT__COL_QUEUE_RUNTIME, runtime ? runtime->name : NULL);
	if (WEFT_FIELD(ev, QUEUE, DEPTH) < WEFT_DEPTH_UNKNOWN)
		weft__set_int(row, WEFT__COL_QUEUE_DEPTH, (int64_t)WEFT_FIELD(ev, QUEUE, DEPTH));
	weft__row_give(t, row);
	return 0;
}

static int stuck_event(struct weft__scan *t, const struct weft__event *ev)
{
	uint32_t tid = (uint32_t)WEFT_FIELD(ev, STUCK, TID), stack = (uint32_t)WEFT_FIELD(ev, STUCK, STACK);
	uint32_t id = weft__names_thread_of(&t->rec->names, tid);
	const struct weft_thread *thread = weft__names_thread(&t->rec->names, id);
	struct weft__row *row;

	if (row_of(t, WEFT__COL_STUCK_RECORDING, id, tid, &row) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_STUCK_TIME_NS, weft__time(t, ev->time_ns));
	if (!thread || !weft__label_loops(&t->rec->names, thread->worker))
		weft__set_int(row, WEFT__COL_STUCK_TASK, (int64_t)WEFT_FIELD(ev, STUCK, TASK));
	weft__set_int(row, WEFT__COL_STUCK_AGE_NS, (int64_t)WEFT_FIELD(ev, STUCK, AGE));
	weft__fill_stack(t, row, WEFT__COL_STUCK_STACK_ID, stack);
	if (weft__fill_function(t, row, WEFT__COL_STUCK_FUNCTION, stack, 0, false) < 0)
		return -ENOMEM;
	weft__row_give(t, row);
	return 0;
}

static int context_event(struct weft__scan *t, const struct weft__event *ev)
{
	struct weft__context context = {WEFT_FIELD(ev, CONTEXT, TRACE_HI),
					WEFT_FIELD(ev, CONTEXT, TRACE_LO),
					WEFT_FIELD(ev, CONTEXT, SPAN),
					WEFT_FIELD(ev, CONTEXT, ROOT),
					(uint32_t)WEFT_FIELD(ev, CONTEXT, ENDPOINT),
					(uint32_t)WEFT_FIELD(ev, CONTEXT, LABELS)};
	struct weft__row *row;

	if (row_of(t, WEFT__COL_CONTEXT_RECORDING, ev->thread, 0, &row) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_CONTEXT_TIME_NS, weft__time(t, ev->time_ns));
	weft__fill_context(t, row, WEFT__COL_CONTEXT_SPAN, &context);
	weft__row_give(t, row);
	return 0;
}

static int wall_event(struct weft__scan *t, const struct weft__event *ev)
{
	uint32_t tid = (uint32_t)WEFT_FIELD(ev, WALL, TID), stack = (uint32_t)WEFT_FIELD(ev, WALL, STACK);
	struct weft__row *row;

	if (row_of(t, WEFT__COL_WALL_RECORDING, weft__names_thread_of(&t->rec->names, tid), tid, &row) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_WALL_TIME_NS, weft__time(t, ev->time_ns));
	weft__set_int(row, WEFT__COL_WALL_WEIGHT_NS, (int64_t)WEFT_FIELD(ev, WALL, WEIGHT));
	weft__set_int(row, WEFT__COL_WALL_COUNT,
		      (int64_t)(WEFT_FIELD(ev, WALL, COUNT) ? WEFT_FIELD(ev, WALL, COUNT) : 1));
	if (WEFT_FIELD(ev, WALL, CALL))
		weft__set_int(row, WEFT__COL_WALL_SYSCALL, (int64_t)WEFT_FIELD(ev, WALL, CALL) - 1);
	weft__fill_stack(t, row, WEFT__COL_WALL_STACK_ID, stack);
	if (weft__fill_function(t, row, WEFT__COL_WALL_FUNCTION, stack, 0, false) < 0)
		return -ENOMEM;
	weft__row_give(t, row);
	return 0;
}

static int alloc_event(struct weft__scan *t, const struct weft__event *ev)
{
	uint32_t stack = (uint32_t)WEFT_FIELD(ev, ALLOC, STACK), name = (uint32_t)WEFT_FIELD(ev, ALLOC, NAME);
	struct weft__row *row;

	if (row_of(t, WEFT__COL_ALLOC_RECORDING, ev->thread, 0, &row) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_ALLOC_TIME_NS, weft__time(t, ev->time_ns));
	weft__set_text(row, WEFT__COL_ALLOC_NAME, name ? weft__names_string(&t->rec->names, name) : NULL);
	weft__set_int(row, WEFT__COL_ALLOC_COUNT, (int64_t)WEFT_FIELD(ev, ALLOC, COUNT));
	if (WEFT_FIELD(ev, ALLOC, BYTES))
		weft__set_int(row, WEFT__COL_ALLOC_BYTES, (int64_t)WEFT_FIELD(ev, ALLOC, BYTES));
	weft__fill_stack(t, row, WEFT__COL_ALLOC_STACK_ID, stack);
	if (weft__fill_function(t, row, WEFT__COL_ALLOC_FUNCTION, stack, 0, false) < 0)
		return -ENOMEM;
	weft__row_give(t, row);
	return 0;
}

static void print_field(struct weft__json *json, const struct weft__names *names, const struct weft_field *field,
			uint64_t value)
{
	union weft__number number = {.u = value};

	if (field->type == WEFT_TYPE_F64)
		weft__json_f64(json, field->name, number.f);
	else if (field->type == WEFT_TYPE_I64)
		weft__json_i64(json, field->name, number.i);
	else if (field->type == WEFT_TYPE_STRING)
		weft__json_text(json, field->name, weft__names_string(names, (uint32_t)value));
	else
		weft__json_u64(json, field->name, value);
}

/* As one line. */
static int print_fields(struct weft__scan *t, struct weft__row *row, const struct weft__event *ev,
			const struct weft_kind_def *def)
{
	struct weft_field unnamed = {.type = WEFT_TYPE_U64};
	struct weft__json json = {0};
	size_t bytes = 0, i, kept;
	bool in_line = false;
	char name[32];

	json.out = open_memstream(&row->own, &bytes);
	if (!json.out)
		return -ENOMEM;
	weft__json_begin(&json, NULL, '{');
	for (i = 0; i < ev->n_fields && i < WEFT_FIELDS_MAX; i++) {
		snprintf(name, sizeof(name), "field%zu", i);
		unnamed.name = name;
		print_field(&json, &t->rec->names, def && i < def->n_fields ? &def->fields[i] : &unnamed,
			    ev->fields[i]);
	}
	weft__json_end(&json, '}');
	if (fclose(json.out) != 0)
		return -ENOMEM;
	for (i = kept = 0; i < bytes; i++) { /* text inside has its line ends escaped */
		in_line = row->own[i] == '\n' ? false : in_line || (row->own[i] != ' ' && row->own[i] != '\t');
		if (in_line)
			row->own[kept++] = row->own[i];
	}
	row->own[kept] = 0;
	weft__set_text(row, WEFT__COL_EVENT_FIELDS, row->own);
	return 0;
}

static int program_event(struct weft__scan *t, const struct weft__event *ev)
{
	const struct weft_kind_def *def = weft__names_kind(&t->rec->names, ev->kind);
	struct weft__row *row;
	int rc;

	if (row_of(t, WEFT__COL_EVENT_RECORDING, ev->thread, 0, &row) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_EVENT_TIME_NS, weft__time(t, ev->time_ns));
	weft__set_text(row, WEFT__COL_EVENT_KIND, def ? def->name : NULL);
	weft__set_int(row, WEFT__COL_EVENT_KIND_ID, ev->kind);
	rc = weft__wanted(t, WEFT__COL_EVENT_FIELDS) ? print_fields(t, row, ev, def) : 0;
	if (rc == 0)
		weft__row_give(t, row);
	else
		free(row->own);
	return rc;
}

static int count_event(struct weft__scan *t, const struct weft__event *ev)
{
	struct weft__row *row;

	if (row_of(t, WEFT__COL_POLL_COUNT_RECORDING, (uint32_t)WEFT_FIELD(ev, POLL_COUNT, THREAD), 0, &row) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_POLL_COUNT_TIME_NS, weft__time(t, ev->time_ns));
	weft__set_int(row, WEFT__COL_POLL_COUNT_FROM_NS, (int64_t)WEFT_FIELD(ev, POLL_COUNT, FROM));
	if (WEFT_FIELD(ev, POLL_COUNT, BELOW) != UINT64_MAX)
		weft__set_int(row, WEFT__COL_POLL_COUNT_BELOW_NS, (int64_t)WEFT_FIELD(ev, POLL_COUNT, BELOW));
	weft__set_int(row, WEFT__COL_POLL_COUNT_COUNT, (int64_t)WEFT_FIELD(ev, POLL_COUNT, COUNT));
	weft__row_give(t, row);
	return 0;
}

static int park_count_event(struct weft__scan *t, const struct weft__event *ev)
{
	struct weft__row *row;

	if (row_of(t, WEFT__COL_PARK_COUNT_RECORDING, (uint32_t)WEFT_FIELD(ev, PARK_COUNT, THREAD), 0, &row) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_PARK_COUNT_TIME_NS, weft__time(t, ev->time_ns));
	weft__set_int(row, WEFT__COL_PARK_COUNT_SPAN_NS, (int64_t)WEFT_FIELD(ev, PARK_COUNT, SPAN));
	weft__set_int(row, WEFT__COL_PARK_COUNT_COUNT, (int64_t)WEFT_FIELD(ev, PARK_COUNT, COUNT));
	weft__set_int(row, WEFT__COL_PARK_COUNT_PARKED_NS, (int64_t)WEFT_FIELD(ev, PARK_COUNT, TIME));
	weft__row_give(t, row);
	return 0;
}

static int cost_event(struct weft__scan *t, const struct weft__event *ev)
{
	struct weft__row *row = weft__row_new(t);

	if (!row)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_COST_RECORDING, (int64_t)t->number);
	weft__set_int(row, WEFT__COL_COST_TIME_NS, weft__time(t, ev->time_ns));
	weft__set_text(row, WEFT__COL_COST_WHAT, weft__label_cost(WEFT_FIELD(ev, COST, WHAT)));
	weft__set_int(row, WEFT__COL_COST_CPU_NS, (int64_t)WEFT_FIELD(ev, COST, TIME));
	weft__set_int(row, WEFT__COL_COST_SPAN_NS, (int64_t)WEFT_FIELD(ev, COST, SPAN));
	weft__set_int(row, WEFT__COL_COST_RATE, (int64_t)WEFT_FIELD(ev, COST, RATE));
	weft__row_give(t, row);
	return 0;
}

static int builtin_event(struct weft__scan *t, const struct weft__event *ev)
{
	if (t->opts.table == WEFT__TABLE_PARK)
		return park_event(t, ev);
	if (t->opts.table == WEFT__TABLE_TASK)
		return weft__plain_task_event(t, ev);
	if (t->opts.table == WEFT__TABLE_QUEUE && ev->kind == WEFT_KIND_QUEUE)
		return queue_event(t, ev);
	if (t->opts.table == WEFT__TABLE_CONTEXT && ev->kind == WEFT_KIND_CONTEXT)
		return context_event(t, ev);
	if (t->opts.table == WEFT__TABLE_WALL && ev->kind == WEFT_KIND_WALL)
		return wall_event(t, ev);
	if (t->opts.table == WEFT__TABLE_ALLOC && ev->kind == WEFT_KIND_ALLOC)
		return alloc_event(t, ev);
	if (t->opts.table == WEFT__TABLE_STUCK && ev->kind == WEFT_KIND_STUCK)
		return stuck_event(t, ev);
	if (t->opts.table == WEFT__TABLE_POLL_COUNT && ev->kind == WEFT_KIND_POLL_COUNT)
		return count_event(t, ev);
	if (t->opts.table == WEFT__TABLE_PARK_COUNT && ev->kind == WEFT_KIND_PARK_COUNT)
		return park_count_event(t, ev);
	return t->opts.table == WEFT__TABLE_COST && ev->kind == WEFT_KIND_COST ? cost_event(t, ev) : 0;
}

int weft__plain_begin(struct weft__scan *t)
{
	weft__plain_fini(t);
	t->plain.tasks.free = WEFT__MAP_NONE;
	return weft__gaps_init(&t->plain.gaps, t->rec->names.losses, t->rec->names.n_losses);
}

int weft__plain_event(struct weft__scan *t, const struct weft__event *ev)
{
	struct weft__plain_thread *thread;

	if (ev->kind >= WEFT_KIND_BUILTIN_END)
		return t->opts.table == WEFT__TABLE_EVENT ? program_event(t, ev) : 0;
	if (ev->n_fields < fields_of[ev->kind])
		return 0;
	if (ev->kind == WEFT_KIND_WORKER) {
		if (weft__plain_thread_get(t, ev->thread, &thread) < 0)
			return -ENOMEM;
		thread->worker = (uint32_t)WEFT_FIELD(ev, WORKER, WORKER);
		return 0;
	}
	return builtin_event(t, ev);
}

int weft__plain_end(struct weft__scan *t)
{
	return weft__plain_tasks_end(t);
}

void weft__plain_fini(struct weft__scan *t)
{
	weft__map_fini(&t->plain.thread_by_id);
	weft__free(t->plain.threads);
	weft__plain_tasks_fini(&t->plain.tasks);
	weft__gaps_fini(&t->plain.gaps);
	memset(&t->plain, 0, sizeof(t->plain));
}
