/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a poll that ends. HOT. */
#include "record/event/account_inside.h"
#include "record/event/wide.h"

void weft__account_nested(struct ring_page *ring, uint32_t level, uint64_t tick)
{
	struct account *account = &ring->account;

	if (level >= ACCOUNT_NEST)
		return;
	account->polls[level].tick = 0;
	if (load_relaxed(&weft_gate.on) & WEFT_GATE_RSEQ && !load_relaxed(&account->busy) &&
	    account->generation == load_relaxed(&weft_gate.generation))
		account->polls[level] = account_at(account, tick);
}

void weft_slow_nested(uint64_t tick)
{
	struct ring_page *ring = weft__ring_mine();
	uint64_t open = ring ? load_relaxed(&ring->hot.poll) & 0xff : 0;

	if (open > 1)
		weft__account_nested(ring, (uint32_t)open - 1, tick);
}

/* A poll that is only counted left the CPU. Nothing is read as long as what is unsure does not matter, or when
 * there is no CPU time for a reading. */
static int poll_spared(struct account *account, uint64_t begin, uint64_t tick)
{
	uint64_t from = begin > account->checked ? begin : account->checked, ticks;

	ticks = tick - (from > account->tick ? from : account->tick);
	if (!account->tick || (weft_tick_ns(account->unsure_ticks + ticks) > ACCOUNT_SURE_NS && account_affords()))
		return 0;
	account->unsure_ticks += ticks;
	account->spared_ticks += ticks;
	return 1;
}

void weft__account_counted(struct ring_page *ring, uint32_t level, uint64_t begin, uint64_t tick)
{
	struct account *account = &ring->account;

	if (level >= ACCOUNT_NEST || !account_enter(account))
		return;
	account_keep_begin(account, ring, tick);
	if (!weft_stayed_since() && !poll_spared(account, begin, tick))
		weft__account_unforeseen(account, ring, tick, begin);
	account->polls[level].tick = 0;
	account_leave(account, tick);
}

int weft__account_poll(struct ring_page *ring, uint32_t level, uint64_t begin, uint64_t tick,
		       struct weft__cpu_split *ret)
{
	struct account *account = &ring->account;
	struct account_begin *poll = &account->polls[level < ACCOUNT_NEST ? level : 0];
	uint64_t span_ns;
	int left_cpu;

	*ret = WEFT__SPLIT_UNKNOWN;
	if (weft_stayed())
		return 0;
	if (level >= ACCOUNT_NEST || !account_enter(account))
		return 1;
	left_cpu = !weft_stayed_since();
	account_keep_begin(account, ring, tick);
	begin = begin ? begin : poll->tick;
	span_ns = weft_tick_ns(begin && (int64_t)(tick - begin) > 0 ? tick - begin : 0);
	if (span_ns >= ACCOUNT_COUNT_NS || (left_cpu && span_ns >= ACCOUNT_SHORT_NS))
		weft__account_clock(account);
	else if (left_cpu)
		weft__account_unforeseen(account, ring, tick, begin);
	if (begin && poll->tick == begin)
		weft__account_split(span_ns, poll->cpu_ns, account_cpu(account, tick), ret);
	if (span_ns >= ACCOUNT_COUNT_NS ||
	    (span_ns >= ACCOUNT_SHORT_NS && span_ns - at_most(ret->cpu_ns, span_ns) >= ACCOUNT_SURE_NS))
		weft__account_count(account, ring, WEFT__SCHED_OPEN);
	if (account->tick && begin && poll->tick == begin) {
		ret->waiting_ns = poll->waited_ns;
		ret->unsure_ns =
			at_most(weft_tick_ns(account->unsure_ticks) +
					weft__account_unsure(poll, account_cpu(account, tick), span_ns, ret->cpu_ns),
				span_ns);
		weft__account_split(span_ns, poll->cpu_ns, account_cpu(account, tick), ret);
		ret->ready_ns = weft__account_ready(account, tick, span_ns - ret->cpu_ns, poll, &ret->unsure_ns);
		ret->unsure_ns = at_most(ret->unsure_ns, span_ns);
	}
	poll->tick = 0;
	account_leave(account, tick);
	return 1;
}

void weft_slow_poll_off(uint64_t tick)
{
	struct ring_page *ring = weft__ring_mine();
	uint64_t mark = ring ? load_relaxed(&ring->hot.poll) : 0, open = mark & 0xff;
	struct weft__cpu_split split = WEFT__SPLIT_UNKNOWN;
	int saved = errno;

	if (!ring)
		detector_set(NULL);
	else if (open && !weft__account_poll(ring, (uint32_t)open - 1, open == 1 ? mark >> 8 : 0, tick, &split))
		open = 0;
	if (open)
		weft__wide_emit(WEFT_KIND_POLL_CPU, tick, WEFT__SPLIT_FIELDS(split));
	errno = saved;
}
