/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the program's own, and the depth of global queues. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyze/state.h"

static void add_number(struct weft__field_stat *stat, uint32_t type, uint64_t word)
{
	union weft__number number = {.u = word};
	bool first = stat->n == 0;

	switch (type) {
	case WEFT_TYPE_U64:
	case WEFT_TYPE_BOOL:
		if (first || number.u < stat->min.u)
			stat->min = number;
		if (first || number.u > stat->max.u)
			stat->max = number;
		stat->sum += (double)number.u;
		break;
	case WEFT_TYPE_I64:
		if (first || number.i < stat->min.i)
			stat->min = number;
		if (first || number.i > stat->max.i)
			stat->max = number;
		stat->sum += (double)number.i;
		break;
	case WEFT_TYPE_F64:
		memcpy(&number.f, &word, sizeof(word));
		if (isnan(number.f))
			return;
		if (first || number.f < stat->min.f)
			stat->min = number;
		if (first || number.f > stat->max.f)
			stat->max = number;
		stat->sum += number.f;
		break;
	default:
		return;
	}
	stat->n++;
}

int weft__custom_add(struct weft__customs *all_customs, const struct weft__event *ev)
{
	struct weft__custom_result *r = all_customs->result;
	uint32_t at = weft__map_get(&all_customs->by_kind, ev->kind), i;
	const struct weft_kind_def *def;
	struct weft__custom *customs;

	if (ev->time_ns < all_customs->opts->from_ns)
		return 0;
	if (at == WEFT__MAP_NONE) {
		customs = weft__arena_grow(&all_customs->arena, r->kinds, &all_customs->cap, r->n_kinds,
					   sizeof(*customs));
		if (!customs)
			return -ENOMEM;
		r->kinds = customs;
		at = (uint32_t)r->n_kinds;
		if (weft__map_put(&all_customs->by_kind, ev->kind, at) < 0)
			return -ENOMEM;
		r->n_kinds++;
		memset(&customs[at], 0, sizeof(customs[at]));
		customs[at].kind = ev->kind;
	}
	r->kinds[at].n++;
	def = weft__names_kind(all_customs->opts->names, ev->kind);
	for (i = 0; def && i < def->n_fields && i < ev->n_fields && i < WEFT_FIELDS_MAX; i++)
		add_number(&r->kinds[at].fields[i], def->fields[i].type, ev->fields[i]);
	return 0;
}

int weft__queue_add(struct weft__customs *customs, const struct weft__event *ev)
{
	struct weft__custom_result *r = customs->result;
	uint32_t runtime = (uint32_t)WEFT_FIELD(ev, QUEUE, RUNTIME),
		 at = weft__map_get(&customs->queue_by_runtime, runtime);
	struct weft__queue *queues;

	if (ev->time_ns < customs->opts->from_ns)
		return 0;
	if (at == WEFT__MAP_NONE && r->n_queues >= customs->opts->max_rows)
		return 0;
	if (at == WEFT__MAP_NONE) {
		queues = weft__arena_grow(&customs->arena, r->queues, &customs->cap_queues, r->n_queues,
					  sizeof(*queues));
		if (!queues)
			return -ENOMEM;
		r->queues = queues;
		at = (uint32_t)r->n_queues;
		if (weft__map_put(&customs->queue_by_runtime, runtime, at) < 0)
			return -ENOMEM;
		r->n_queues++;
		memset(&queues[at], 0, sizeof(queues[at]));
		queues[at].runtime = runtime;
	}
	return weft__hist_add(&r->queues[at].depths, &customs->arena, WEFT_FIELD(ev, QUEUE, DEPTH));
}

void weft__customs_fini(struct weft__customs *customs)
{
	weft__map_fini(&customs->by_kind);
	weft__map_fini(&customs->queue_by_runtime);
	weft__arena_fini(&customs->arena);
}
