/* SPDX-License-Identifier: Apache-2.0 */
/* Setting a thread's context. HOT.
 *
 * What a thread's context is stands in its ring, in order among its other events. Where that cannot be done, because
 * nothing records or the ring is full, the context is "unsaid", and the ring's limit is put to 0: then the next event,
 * whichever it is, takes the slow path and says the context first. So does the first event in a new ring.
 *
 * While wakes are only counted (WEFT_GATE_COUNTED), most polls leave no event, and their contexts need none. So a
 * context is unsaid there, too: the next event says it. One that is over before anything was recorded is kept, for the
 * poll that it was part of: if that one is recorded after all, the context is said first (weft__context_passed). That a
 * context which was said is over is always said at once: it is not what later polls have. */
#include "record/wait/context.h"

#include <string.h>

#include "base/atomic.h"
#include "record/event/wide.h"
#include "record/ring/hooks.h"
#include "record/ring/ring.h"

__thread struct weft_context weft_context_self __attribute__((tls_model("initial-exec")));
__thread struct weft__otel_record *otel_thread_ctx_v1 __attribute__((tls_model("initial-exec"), weak));

static __thread struct weft__otel_record context_record __attribute__((aligned(8)));
static __thread struct {
	uint32_t busy;              /* the context is being changed, and is neither the one nor the other */
	uint32_t unsaid;            /* the ring has another one */
	struct weft_context said;   /* that one */
	struct weft_context passed; /* the last one that was over before it was said, */
	uint64_t passed_tick;       /* and when; 0: there is none */
} context_state;

uint32_t weft__otel_keys_ours, weft__otel_root_key, weft__otel_root_wanted;
struct weft__otel_attrs **weft__otel_pages[256];
int64_t weft__otel_others[OTEL_OTHERS_MAX];
uint32_t weft__otel_n_others;

const struct weft__otel_attrs *weft__otel_attrs(uint32_t string)
{
	struct weft__otel_attrs **page = string ? load_acquire(&weft__otel_pages[string >> 8 & 255]) : NULL;

	return page ? load_acquire(&page[string & 255]) : NULL;
}

static void put_be64(uint8_t *to, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(to, &v, 8);
}

static uint64_t get_be64(const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, 8);
	return __builtin_bswap64(v);
}

static uint32_t put_attrs(struct weft__otel_record *record, uint32_t at, const struct weft__otel_attrs *attrs)
{
	uint32_t i, n;

	for (i = 0; attrs && i + 2 <= attrs->bytes; i += n) {
		n = 2u + attrs->at[i + 1];
		if (at + n > sizeof(record->attrs))
			continue;
		memcpy(record->attrs + at, attrs->at + i, n);
		at += n;
	}
	return at;
}

/* Eight digits, the first in the highest byte. */
static uint64_t hex_digits(uint32_t v)
{
	uint64_t x = v, letters;

	x = (x << 16 | x) & UINT64_C(0x0000ffff0000ffff);
	x = (x << 8 | x) & UINT64_C(0x00ff00ff00ff00ff);
	x = (x << 4 | x) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	letters = (x + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
	return x + UINT64_C(0x3030303030303030) + letters * ('a' - '0' - 10);
}

static uint32_t put_root(struct weft__otel_record *record, uint64_t root)
{
	record->attrs[0] = OTEL_KEY_ROOT;
	record->attrs[1] = OTEL_ROOT_DIGITS;
	put_be64(record->attrs + 2, hex_digits((uint32_t)(root >> 32)));
	put_be64(record->attrs + 10, hex_digits((uint32_t)root));
	return 2 + OTEL_ROOT_DIGITS;
}

/* The record is fixed, and `valid` says when it may be read. */
static void publish(const struct weft_context *next)
{
	struct weft__otel_record *record = &context_record;
	volatile uint8_t *valid = &record->valid;
	int any = next->span || next->endpoint || next->labels || next->root;
	uint32_t n = 0;

	if (!any) {
		*valid = 0;
		return;
	}
	*valid = 0;
	fence_signal();
	put_be64(record->trace, next->trace_hi);
	put_be64(record->trace + 8, next->trace_lo);
	put_be64(record->span, next->span);
	record->flags = (uint8_t)next->flags;
	if (load_relaxed(&weft__otel_keys_ours)) {
		if (next->root)
			n = put_root(record, next->root);
		n = put_attrs(record, n, weft__otel_attrs(next->endpoint));
		n = put_attrs(record, n, weft__otel_attrs(next->labels));
	}
	record->attrs_bytes = (uint16_t)n;
	fence_signal();
	*valid = 1;
	if (!load_relaxed(&otel_thread_ctx_v1))
		store_relaxed(&otel_thread_ctx_v1, record);
}

static void fill_fields(const struct weft_context *context, uint64_t *fields)
{
	fields[WEFT_FIELD_CONTEXT_TRACE_HI] = context->trace_hi;
	fields[WEFT_FIELD_CONTEXT_TRACE_LO] = context->trace_lo;
	fields[WEFT_FIELD_CONTEXT_SPAN] = context->span;
	fields[WEFT_FIELD_CONTEXT_ROOT] = context->root;
	fields[WEFT_FIELD_CONTEXT_ENDPOINT] = context->endpoint;
	fields[WEFT_FIELD_CONTEXT_LABELS] = context->labels;
}

static int context_any(const struct weft_context *context)
{
	return (context->trace_hi | context->trace_lo | context->span | context->root | context->endpoint |
		context->labels) != 0;
}

/* The next event goes the slow way, which reports the context. The ring of no thread is everybody's, and goes that way
 * as it is. */
static void say_next(void)
{
	if (weft_ring_self != &weft__ring_none.hot)
		store_relaxed(&weft_ring_self->limit, 0);
}

void weft_slow_context(const struct weft_context *next)
{
	uint32_t on = weft_gate_on();
	int later = (on & WEFT_GATE_COUNTED) != 0 && !context_any(&context_state.said);
	struct weft_ring *ring;
	uint64_t tick;

	store_relaxed(&context_state.busy, 1u);
	fence_signal();
	publish(next);
	if (later && load_relaxed(&context_state.unsaid) && context_any(&weft_context_self)) {
		context_state.passed = weft_context_self;
		context_state.passed_tick = weft_tick(on);
	}
	weft_context_self = *next;
	fence_signal();
	store_relaxed(&context_state.unsaid, (uint32_t)(!later || !weft_context_equal(next, &context_state.said)));
	store_relaxed(&context_state.busy, 0u);
	fence_signal();
	if (later) {
		if (load_relaxed(&context_state.unsaid))
			say_next();
		return;
	}
	tick = on ? weft_tick(on) : 0;
	ring = on ? weft_ring_room(weft__kind_slots(WEFT_KIND_CONTEXT), tick) : NULL;
	if (!ring)
		say_next();
	else if (load_relaxed(&context_state.unsaid)) /* else the slow path has reported it */
		weft__context_report(ring, tick);
}

int weft__context_unsaid(void)
{
	return load_relaxed(&context_state.unsaid) && !load_relaxed(&context_state.busy);
}

void weft__context_report(struct weft_ring *ring, uint64_t tick)
{
	uint64_t fields[WEFT_FIELDS_OF_CONTEXT];

	store_relaxed(&context_state.unsaid, 0u);
	fence_signal();
	context_state.said = weft_context_self;
	fill_fields(&weft_context_self, fields);
	weft__wide_emit_in(ring, WEFT_KIND_CONTEXT, tick, fields, NULL, 0);
}

void weft__context_passed(uint64_t since, uint64_t tick)
{
	uint64_t passed = context_state.passed_tick, fields[WEFT_FIELDS_OF_CONTEXT];

	if (WEFT_LIKELY(!passed) || load_relaxed(&context_state.busy))
		return;
	context_state.passed_tick = 0;
	if ((int64_t)(passed - since) < 0)
		return;                           /* it was another poll's */
	store_relaxed(&context_state.unsaid, 0u); /* what the thread has now comes behind it */
	fence_signal();
	fill_fields(&context_state.passed, fields);
	context_state.said = context_state.passed;
	weft__wide_emit(WEFT_KIND_CONTEXT, tick, fields);
	fence_signal();
	store_relaxed(&context_state.unsaid, 1u);
	say_next();
}

void weft__context_attached(void)
{
	memset(&context_state.said, 0, sizeof(context_state.said));
	context_state.passed_tick = 0;
	store_relaxed(&context_state.unsaid, (uint32_t)context_any(&weft_context_self));
}

/* Of a record of somebody else. */
static uint64_t root_of(const struct weft__otel_record *record)
{
	uint32_t key = load_relaxed(&weft__otel_root_key), n = record->attrs_bytes, i, k;
	uint64_t root = 0;

	for (i = 0; key && i + 2 <= n && i + 2 + record->attrs[i + 1] <= n; i += 2u + record->attrs[i + 1]) {
		if (record->attrs[i] != key - 1 || record->attrs[i + 1] != OTEL_ROOT_DIGITS)
			continue;
		for (k = 0, root = 0; k < OTEL_ROOT_DIGITS; k++) {
			uint8_t digit = record->attrs[i + 2 + k];

			root = root << 4 | (digit <= '9' ? digit - 48u : (digit | 32u) - 87u) % 16;
		}
	}
	return root;
}

/* Of a tracer, for the calling thread; NULL: there is none. */
static const struct weft__otel_record *record_of_others(void)
{
	const struct weft__otel_record *record = load_relaxed(&otel_thread_ctx_v1);
	uint32_t i, n = load_acquire(&weft__otel_n_others);

	for (i = 0; (!record || record == &context_record || record->valid != 1) && i < n; i++)
		record = load_relaxed((const struct weft__otel_record **)(void *)((char *)__builtin_thread_pointer() +
										  weft__otel_others[i]));
	return record && record != &context_record && record->valid == 1 ? record : NULL;
}

int weft__context_borrow(uint64_t tick)
{
	const struct weft__otel_record *record;
	uint64_t fields[WEFT_FIELDS_OF_CONTEXT] = {0};

	if (load_relaxed(&context_state.busy) || context_any(&weft_context_self))
		return 0;
	record = record_of_others();
	if (!record)
		return 0;
	fields[WEFT_FIELD_CONTEXT_TRACE_HI] = get_be64(record->trace);
	fields[WEFT_FIELD_CONTEXT_TRACE_LO] = get_be64(record->trace + 8);
	fields[WEFT_FIELD_CONTEXT_SPAN] = get_be64(record->span);
	fields[WEFT_FIELD_CONTEXT_ROOT] = root_of(record);
	if (record->attrs_bytes && !load_relaxed(&weft__otel_root_key))
		store_relaxed(&weft__otel_root_wanted, 1u);
	return (fields[WEFT_FIELD_CONTEXT_SPAN] || fields[WEFT_FIELD_CONTEXT_ROOT]) &&
	       weft__wide_emit(WEFT_KIND_CONTEXT, tick, fields);
}

void weft__context_return(uint64_t tick)
{
	static const uint64_t none[6];

	if (!weft__wide_emit(WEFT_KIND_CONTEXT, tick, none)) {
		/* No room: said before the next event instead. */
		store_relaxed(&context_state.unsaid, 1u);
		say_next();
	}
}
