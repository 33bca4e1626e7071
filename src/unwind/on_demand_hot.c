/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/on_demand.h"

#include "base/atomic.h"
#include "base/place.h"

#define ON_DEMANDS 16
/* Bytes of programs of one entry: the longest of large programs are a few thousand. */
#define EARLY_BUDGET 16384

static struct weft__on_demand on_demands[ON_DEMANDS] LARGE_TABLE;
static uint32_t on_demand_taken; /* bit by bit */

static struct weft__on_demand *room_take(void)
{
	for (uint32_t i = 0; i < ON_DEMANDS; i++) {
		uint32_t bit = UINT32_C(1) << i;

		if (!(load_relaxed(&on_demand_taken) & bit) &&
		    !(__atomic_fetch_or(&on_demand_taken, bit, __ATOMIC_ACQUIRE) & bit))
			return &on_demands[i];
	}
	return NULL;
}

void weft__on_demand_give(struct weft__on_demand *demand)
{
	__atomic_fetch_and(&on_demand_taken, ~(UINT32_C(1) << (demand - on_demands)), __ATOMIC_RELEASE);
}

void weft__on_demand_forked(void)
{
	store_relaxed(&on_demand_taken, 0u);
}

static int rule_find(struct weft__on_demand *demand, const struct weft__module *module, uint64_t vaddr)
{
	struct weft__cfi *cfi = &demand->cfi;
	struct cfi_fde fde;
	uint64_t at;

	if (cfi->in.bytes != module->mapped.bytes)
		cfi->cie.known = 0; /* else the one that was read last may be the one that is needed */
	cfi->in = module->mapped;
	cfi->budget = EARLY_BUDGET;
	if (weft__cfi_search(cfi, vaddr, &at) < 0 || weft__cfi_fde(cfi, at, &fde) < 0 || fde.begin < cfi->in.text_low ||
	    fde.end > cfi->in.text_high || weft__cfi_row_at(cfi, &fde, vaddr) < 0)
		return -1;
	weft__row_rule(&cfi->row, &demand->rule);
	demand->table.specials = demand->room.bytes;
	return demand->rule.kind == RULE_SPECIAL ? weft__row_special(&cfi->row, cfi->in.bytes, &demand->room) : 0;
}

struct weft__on_demand *weft__on_demand_take(const struct weft__module *module, uint64_t addr)
{
	struct weft__on_demand *demand = module->mapped.hdr ? room_take() : NULL;

	if (demand && rule_find(demand, module, addr - module->bias) < 0) {
		weft__on_demand_give(demand);
		return NULL;
	}
	return demand;
}
