/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage collection, as waits of the thread that does it: Ruby says when it begins and ends a step (GC_ENTER,
 * GC_EXIT). All other threads stand still meanwhile, and wait for the GVL that this one holds. What made Ruby collect
 * is in the name. Steps may be very many and very short: they are summed as all waits are, and long ones have a stack
 * and their CPU time. In the callbacks nothing may be allocated. */
#include "binding.h"

#include <stdio.h>

#define NAMES 64

static uint64_t since; /* the step that lasts */
static uint32_t inside;
static ID id_gc_by, id_major_by;

/* Names of waits by what made Ruby collect: made the first time, by the symbols that Ruby says it with. */
struct reason {
	VALUE by, major;
	uint32_t name;
};
static struct reason reasons[NAMES];

int weft__rb_in_gc(void)
{
	return __atomic_load_n(&inside, __ATOMIC_RELAXED) != 0;
}

static const char *symbol_text(VALUE symbol)
{
	return RB_SYMBOL_P(symbol) ? rb_id2name(RB_SYM2ID(symbol)) : NULL;
}

/* weft_string takes a mutex of weft's own and no memory of Ruby's. */
static uint32_t reason_name(void)
{
	VALUE by = rb_gc_latest_gc_info(RB_ID2SYM(id_gc_by)), major = rb_gc_latest_gc_info(RB_ID2SYM(id_major_by));
	const char *by_text = symbol_text(by), *major_text = symbol_text(major);
	char text[128];
	uint32_t i;

	for (i = 0; i < NAMES - 1 && reasons[i].name; i++)
		if (reasons[i].by == by && reasons[i].major == major)
			return reasons[i].name;
	if (major_text)
		snprintf(text, sizeof(text), "GC by %s, major (%s)", by_text ? by_text : "?", major_text);
	else
		snprintf(text, sizeof(text), "GC by %s, minor", by_text ? by_text : "?");
	reasons[i] = (struct reason){by, major, weft__rb->string(text)};
	return reasons[i].name;
}

static void on_step(VALUE point, void *unused)
{
	rb_event_flag_t event = rb_tracearg_event_flag(rb_tracearg_from_tracepoint(point));

	if (event == RUBY_INTERNAL_EVENT_GC_ENTER) {
		__atomic_store_n(&inside, 1, __ATOMIC_RELAXED);
		since = weft__rb->wait_since();
		return;
	}
	__atomic_store_n(&inside, 0, __ATOMIC_RELAXED);
	if (since)
		weft__rb->waited(WEFT_WAIT_GC, reason_name(), 0, 0, since);
	since = 0;
}

void weft__rb_gc_init(void)
{
	VALUE point;

	id_gc_by = rb_intern("gc_by");
	id_major_by = rb_intern("major_by");
	/* The first time Ruby makes its symbols, for which it allocates. */
	rb_gc_latest_gc_info(RB_ID2SYM(id_gc_by));
	rb_gc_latest_gc_info(RB_ID2SYM(id_major_by));
	point = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT, on_step, NULL);
	rb_gc_register_mark_object(point);
	rb_tracepoint_enable(point);
}

void weft__rb_gc_forked(void)
{
	since = 0;
}
