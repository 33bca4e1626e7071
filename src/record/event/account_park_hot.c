/* SPDX-License-Identifier: Apache-2.0 */
/* The account when a park ends, or a poll or park begins and the thread was off the CPU before. HOT. */
#include "record/event/account_inside.h"

#define ACCOUNT_PARK_PACE_NS 4000000 /* ... that the end of a park does */

/* A poll or a park begins. */
void weft_slow_off(uint64_t tick)
{
	struct ring_page *ring = weft__ring_mine();
	struct account *account = ring ? &ring->account : NULL;
	int saved = errno;

	if (!account) {
		detector_set(NULL);
	} else if (account_enter(account)) {
		account_keep_begin(account, ring, tick);
		if (!weft_stayed_since())
			weft__account_unforeseen(account, ring, tick, 0);
		account_leave(account, tick);
	}
	errno = saved;
}

/* Whether the end of a park should read the clock. What sleeping and waking up takes is known of short ones, of
 * which there are many. */
static int reading_due(const struct account *account, const struct ring_page *ring, uint64_t tick)
{
	uint64_t span = tick - account->tick, ms = load_relaxed(&weft_gate.ms_ticks);

	if ((account->tick && span < ACCOUNT_UNSURE_PACE_NS / 1000000 * ms) || !account_affords())
		return 0;
	return !account->tick || account->unsure_ticks ||
	       span >= (account->crowded ? ACCOUNT_CROWDED_PARK_PACE_NS : ACCOUNT_PARK_PACE_NS) / 1000000 * ms ||
	       tick - load_relaxed(&ring->hot.park) >= ms / (1000000 / ACCOUNT_PACE_NS);
}

static void account_parked(struct account *account, const struct ring_page *ring, uint64_t tick)
{
	/* The clock may have been read as the park began. */
	uint64_t parked = load_relaxed(&ring->hot.park), ticks;

	ticks = tick - (parked > account->tick && parked < tick ? parked : account->tick);
	account->off_ticks += ticks;
	account->counted_off_ticks += ticks;
	account->offs++;
	account->offs_counted++;
}

/* The usual case: the thread's account is there, no poll is open, nothing is due. Answers 0 when it is not that. */
static int unpark_quickly(struct ring_page *ring, uint64_t tick)
{
	struct account *account = &ring->account;

	if (account->generation != load_relaxed(&weft_gate.generation) || load_relaxed(&account->busy) ||
	    account->polls[0].tick || poll_began(ring) || tick >= ring->hot.sched_due ||
	    reading_due(account, ring, tick) || !(load_relaxed(&weft_gate.on) & WEFT_GATE_RSEQ) || weft_stayed())
		return 0;
	store_relaxed(&account->busy, 1u);
	fence_signal();
	account_parked(account, ring, tick);
	account_leave(account, tick);
	return 1;
}

static void unpark_slowly(struct ring_page *ring, uint64_t tick)
{
	struct account *account = ring ? &ring->account : NULL;
	uint64_t began;

	if (account && load_relaxed(&weft_gate.on) & WEFT_GATE_RSEQ && !weft_stayed() && account_enter(account)) {
		account_keep_begin(account, ring, tick);
		account_parked(account, ring, tick);
		if (tick < ring->hot.sched_due && reading_due(account, ring, tick)) {
			began = weft_tick(load_relaxed(&weft_gate.on));
			weft__account_clock(account);
			if (account->crowded || weft_tick_ns(tick - load_relaxed(&ring->hot.park)) >= ACCOUNT_COUNT_NS)
				weft__account_count(account, ring, WEFT__SCHED_OPEN);
			account_charge(began);
		}
		account_leave(account, tick);
	} else if (!account) {
		detector_set(NULL);
	}
}

void weft_slow_unpark(uint64_t tick)
{
	struct ring_page *ring = (struct ring_page *)(void *)weft_ring_self; /* which may be the ring of no thread */
	int saved = errno;

	if (WEFT_UNLIKELY(!unpark_quickly(ring, tick))) {
		ring = weft__ring_mine();
		unpark_slowly(ring, tick);
		if (ring && tick >= ring->hot.sched_due)
			weft_slow_sched(tick);
	}
	errno = saved;
}
