/* SPDX-License-Identifier: Apache-2.0 */
#include "binding.h"

#define SLOTS 4096

static struct weft__rb_slot slots[SLOTS];
static uint32_t next; /* where to look first */
static uint64_t missed;

__thread struct weft__rb_slot *weft__rb_self __attribute__((tls_model("initial-exec")));

struct weft__rb_slot *weft__rb_slot_take(void)
{
	uint32_t from = __atomic_load_n(&next, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < SLOTS; i++) {
		struct weft__rb_slot *slot = &slots[(from + i) % SLOTS];
		uint32_t is_free = 0;

		if (__atomic_load_n(&slot->used, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&slot->used, &is_free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&next, (from + i + 1) % SLOTS, __ATOMIC_RELAXED);
		slot->number = slot->ready = 0;
		slot->pending = slot->running = slot->begun = 0;
		return slot;
	}
	__atomic_fetch_add(&missed, 1, __ATOMIC_RELAXED);
	return NULL;
}

void weft__rb_slot_give(struct weft__rb_slot *slot)
{
	if (weft__rb_self == slot)
		weft__rb_self = NULL;
	__atomic_store_n(&slot->used, 0, __ATOMIC_RELEASE);
}

void weft__rb_slots_forked(void)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		if (&slots[i] != weft__rb_self)
			slots[i].used = 0;
	if (weft__rb_self) {
		weft__rb_self->number = weft__rb_self->ready = 0;
		weft__rb_self->pending = 0;
	}
}

uint64_t weft__rb_slots_missed(void)
{
	return __atomic_load_n(&missed, __ATOMIC_RELAXED);
}
