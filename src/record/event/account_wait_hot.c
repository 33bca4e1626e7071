/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a wait that ends. HOT. */
#include "record/event/account_inside.h"

void weft__account_wait(struct ring_page *ring, uint64_t since, uint64_t tick, int stayed, struct weft__cpu_split *ret)
{
	uint64_t span_ns = weft_tick_ns(tick - since), unsure_ns = 0;
	struct account *account = &ring->account;
	struct account_begin begin;

	*ret = (struct weft__cpu_split){WEFT_NOT_MEASURED, WEFT_NOT_MEASURED, 0, 0};
	/* Of a wait that began before the detector was armed, as one of two that end at once does, it says nothing. */
	if (stayed && account->armed <= since)
		*ret = (struct weft__cpu_split){span_ns, 0, 0, 0};
	if (stayed || !account_enter(account))
		return;
	account_keep_begin(account, ring, tick);
	begin = account_at(account, since);
	if (!account_knows(account, since))
		begin.cpu_ns = begin.ready_ns = begin.voluntary = WEFT_NOT_MEASURED;
	ret->unsure_ns = weft_tick_ns(account->unsure_ticks);
	if (weft__account_clock(account)) {
		weft__account_count(account, ring, WEFT__SCHED_OPEN);
		weft__account_split(span_ns, begin.cpu_ns, account_cpu(account, tick), ret);
		if (begin.cpu_ns != WEFT_NOT_MEASURED)
			ret->unsure_ns = weft__account_unsure(&begin, account_cpu(account, tick), span_ns, ret->cpu_ns);
		ret->ready_ns = weft__account_ready(account, tick, span_ns - ret->cpu_ns, &begin, &unsure_ns);
		/* What is not known is not reported as a part. */
		if (unsure_ns)
			ret->ready_ns = WEFT_NOT_MEASURED;
		if (ret->unsure_ns > ACCOUNT_SURE_NS + span_ns / 50)
			ret->cpu_ns = ret->ready_ns = WEFT_NOT_MEASURED;
	}
	account_leave(account, tick);
}

/* A wait that is too short to be reported ends: of its time, what was neither on the CPU nor ready for one, as far
 * as is known. */
static uint64_t account_waited(struct account *account, struct ring_page *ring, uint64_t since, uint64_t tick,
			       uint64_t *off_ns)
{
	const struct account_begin begin = account_at(account, since);
	uint64_t read = account->tick, ready_ns = 0, unsure_ns = 0;
	int known = account_knows(account, since);

	account->offs_counted++;
	account->counted_off_ticks += tick - since;
	weft__account_unforeseen(account, ring, tick, since);
	if (!known || account->tick == read)
		return *off_ns;
	if (account_cpu(account, tick) > begin.cpu_ns)
		*off_ns -= at_most(account_cpu(account, tick) - begin.cpu_ns, *off_ns);
	if (account->counted != begin.counted)
		ready_ns = weft__account_ready(account, tick, *off_ns, &begin, &unsure_ns);
	return *off_ns - (ready_ns == WEFT_NOT_MEASURED ? 0 : ready_ns);
}

static int is_past(const struct account *account, uint64_t tick)
{
	return account->generation == load_relaxed(&weft_gate.generation) && (int64_t)(account->armed - tick) >= 0;
}

int weft__account_is_past(uint64_t tick)
{
	const struct ring_page *ring = weft__ring_mine();

	return ring && is_past(&ring->account, tick);
}

uint64_t weft__account_short(uint64_t since, uint64_t tick, int is_call)
{
	struct ring_page *ring = weft__ring_mine();
	struct account *account = ring ? &ring->account : NULL;
	uint64_t span_ns = weft_tick_ns(tick - since), off_ns = span_ns, waited_ns = span_ns;
	int past = account && is_past(account, tick); /* then its CPU time is known already */
	uint32_t i;

	if (!account) {
		detector_set(NULL);
		return off_ns;
	}
	if (!account_enter(account))
		return off_ns;
	account_keep_begin(account, ring, tick);
	if (!past && span_ns < ACCOUNT_SHORT_NS) {
		account->off_ticks += tick - since;
		account->offs++;
		account->offs_counted++;
		account->counted_off_ticks += tick - since;
	} else if (!past) {
		waited_ns = account_waited(account, ring, since, tick, &off_ns);
	}
	for (i = 0; i < ACCOUNT_NEST && !is_call; i++)
		account->polls[i].waited_ns += waited_ns;
	account_leave(account, tick);
	return off_ns;
}
