/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of threads that have a perf event and a timer. HOT. */
#include <string.h>

#include "base/atomic.h"
#include "record/sample/perf_state.h"
#include "record/sample/precise.h"
#include "weft/ring.h"

#define SIG_DATA_AT 24 /* in siginfo_t, behind the address */
#define MUTE_PERIODS 4 /* without a signal of the event, though the thread runs code of its own */

/* Whether the signal found the thread in a system call: it comes when the thread leaves the kernel, right behind the
 * instruction, or at it when the call is to be made again. */
static int in_call(const ucontext_t *uc)
{
#if defined(__x86_64__)
	uint64_t pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP], next = (uint64_t)uc->uc_mcontext.gregs[REG_RCX];

	return next == pc || next == pc + 2;
#elif defined(__aarch64__)
	const uint32_t *pc = (const uint32_t *)(uintptr_t)uc->uc_mcontext.pc;

	return pc[-1] == 0xd4000001u || pc[0] == 0xd4000001u; /* svc #0 */
#else
	(void)uc;
	return 0;
#endif
}

/* What passed since the sample before; but not what passed while nothing was recorded. */
static uint64_t take(struct weft__slot *slot, uint64_t now)
{
	uint64_t before = load_relaxed(&slot->sampled_ns);
	uint32_t epoch = load_relaxed(&weft_gate.generation);

	store_relaxed(&slot->sampled_ns, now);
	if (slot->epoch != epoch) {
		slot->epoch = epoch;
		return load_relaxed(&weft__engine.period_ns);
	}
	return now > before ? now - before : 1;
}

void weft__precise_match(const siginfo_t *info, struct weft__hit *hit)
{
	uint32_t number;
	uint64_t data;

	memcpy(&data, (const char *)info + SIG_DATA_AT, sizeof(data));
	number = (uint32_t)data & 0xffffff;
	if ((data >> 24 & 0xff) != (weft__engine.generation & 0xff) || number >= weft__engine.n_slots)
		return;
	weft__net_hold();
	hit->slot = &weft__engine.slots[number];
	hit->tid = load_relaxed(&weft__engine.keys[number]);
	if (load_acquire(&hit->slot->fd) <= 0)
		return; /* it was closed meanwhile */
	store_relaxed(&hit->slot->events, hit->slot->events + 1);
	hit->weight_ns = take(hit->slot, weft__thread_cpu_ns());
}

/* The event samples the thread's own code. If it does not, because the thread blocks its signal, the timer does, and
 * the next look takes the event away. */
void weft__precise_ridden(struct weft__hit *hit)
{
	struct weft__slot *slot = hit->slot;
	uint64_t now = weft__thread_cpu_ns();

	hit->weight_ns = 0;
	if (!in_call(hit->context)) {
		if (now <
		    load_relaxed(&slot->sampled_ns) + MUTE_PERIODS * (uint64_t)load_relaxed(&weft__engine.period_ns))
			return;
		store_relaxed(&slot->unfit, 1u);
	}
	hit->weight_ns = take(slot, now);
}

uint64_t weft__precise_owed(struct weft__slot *slot)
{
	uint64_t owed = load_relaxed(&slot->owed_ns);

	if (owed)
		store_relaxed(&slot->owed_ns, 0);
	return owed;
}
