/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/early.h"

#include "base/atomic.h"
#include "base/place.h"

#define EARLIES 16
/* Bytes of programs of one entry: the longest of large programs are a few thousand. */
#define EARLY_BUDGET 16384

static struct weft__early earlies[EARLIES] LARGE_TABLE;
static uint32_t early_taken; /* bit by bit */

static struct weft__early *room_take(void)
{
	for (uint32_t i = 0; i < EARLIES; i++) {
		uint32_t bit = UINT32_C(1) << i;

		if (!(load_relaxed(&early_taken) & bit) &&
		    !(__atomic_fetch_or(&early_taken, bit, __ATOMIC_ACQUIRE) & bit))
			return &earlies[i];
	}
	return NULL;
}

void weft__early_give(struct weft__early *early)
{
	__atomic_fetch_and(&early_taken, ~(UINT32_C(1) << (early - earlies)), __ATOMIC_RELEASE);
}

void weft__early_forked(void)
{
	store_relaxed(&early_taken, 0u);
}

static int rule_find(struct weft__early *early, const struct weft__module *module, uint64_t vaddr)
{
	struct weft__cfi *cfi = &early->cfi;
	struct cfi_fde fde;
	uint64_t at;

	if (cfi->in.bytes != module->mapped.bytes)
		cfi->cie.known = 0; /* else the one that was read last may be the one that is needed */
	cfi->in = module->mapped;
	cfi->budget = EARLY_BUDGET;
	if (weft__cfi_search(cfi, vaddr, &at) < 0 || weft__cfi_fde(cfi, at, &fde) < 0 || fde.begin < cfi->in.text_low ||
	    fde.end > cfi->in.text_high || weft__cfi_row_at(cfi, &fde, vaddr) < 0)
		return -1;
	weft__row_rule(&cfi->row, &early->rule);
	early->table.specials = early->room.bytes;
	return early->rule.kind == RULE_SPECIAL ? weft__row_special(&cfi->row, cfi->in.bytes, &early->room) : 0;
}

struct weft__early *weft__early_take(const struct weft__module *module, uint64_t addr)
{
	struct weft__early *early = module->mapped.hdr ? room_take() : NULL;

	if (early && rule_find(early, module, addr - module->bias) < 0) {
		weft__early_give(early);
		return NULL;
	}
	return early;
}
