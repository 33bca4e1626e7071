/* SPDX-License-Identifier: Apache-2.0 */
/* How long polls and waits were on the CPU, for next to nothing. HOT.
 *
 * The CPU clock of a thread is a system call, 0.75 us. But as long as the thread stays on the CPU, which the
 * detector of weft/ring.h says, its CPU time goes as fast as the clock. So one reading is enough until it leaves the
 * CPU. What happens then:
 *
 *     a park or a wait that is known    its length is not CPU time, but for what sleeping and waking up takes, which is
 *                                       found out by the way (off_cpu_ns)
 *     anything else, and long waits     the clock is read again, unless that was just done; else the time is unsure
 *     a park that ends                  the clock is read when the last reading is 4 ms old, or 1 ms and the park was
 *                                       no short one or something is unsure; after a long park, and where threads wait
 *                                       for CPUs, the scheduler's counts, too
 *
 * A poll that never left the CPU has no event. One that did has poll_cpu, just before its end: its CPU time, that at
 * its end less that at its begin. The latter is worked out when the poll first leaves the CPU, from what was known
 * before.
 *
 * account_park_hot.c, account_poll_hot.c and account_wait_hot.c have what is done at these moments.
 *
 * Of the time off the CPU, the thread was ready to run for as long as the scheduler says (schedstat), where that
 * file is open; without a voluntary switch it was ready all the time. */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/event/account_inside.h"

#define OFF_CPU_MOST_NS 50000
#define ACCOUNT_READ_TRIES 3
#define ACCOUNT_CROWD_PACE_NS 10000000 /* between two readings of the scheduler's counts */
#define CROWDED 64 /* part of the time in which threads wait for a CPU, from which on that is followed more closely */

struct weft__account_credit weft__account_credit = {WEFT__ACCOUNT_FREE};

static void account_learn(uint32_t *average, uint64_t total, uint32_t n)
{
	uint64_t one = total / n;

	if (one < OFF_CPU_MOST_NS)
		*average = (uint32_t)((7 * (uint64_t)*average + one) / 8);
}

int weft__account_clock(struct account *account)
{
	uint64_t began = weft_tick(load_relaxed(&weft_gate.on)), now = 0, cpu_ns = 0, known;
	struct timespec cpu;
	int i;

	for (i = 0; i < ACCOUNT_READ_TRIES; i++) {
		account->watched = i ? now : began;
		detector_set(account);
		if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) < 0)
			return 0;
		now = weft_tick(load_relaxed(&weft_gate.on));
		cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
		if (weft_stayed_since())
			break;
	}
	if (i == ACCOUNT_READ_TRIES)
		account->watched = now;
	if (account->tick && account->offs && !account->unsure_ticks) {
		known = account_cpu(account, now) - (uint64_t)account->offs * account->off_cpu_ns;
		account_learn(&account->off_cpu_ns, cpu_ns > known ? cpu_ns - known : 0, account->offs);
	}
	account_spend(account, now - began);
	account->tick = now;
	account->cpu_ns = cpu_ns;
	account->off_ticks = account->unsure_ticks = 0;
	account->offs = 0;
	return 1;
}

static uint64_t voluntary_switches(void)
{
	struct rusage usage;

	return syscall(SYS_getrusage, RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nvcsw : WEFT_NOT_MEASURED;
}

void weft__account_counts(struct account *account, struct ring_page *ring, enum weft__sched_use use)
{
	uint64_t began = weft_tick(load_relaxed(&weft_gate.on));
	uint64_t ready_ns = WEFT_NOT_MEASURED, voluntary = voluntary_switches(), switches;
	/* Before the reading: a thread is preempted where a call returns, and what comes then is not in what was
	 * read. */
	uint64_t now = weft_tick(load_relaxed(&weft_gate.on));

	account->counted_from = !weft_stayed_since()                ? now
				: account->watched > account->armed ? account->watched
								    : account->armed;
	if (!weft__sched_ready(ring, use, &ready_ns))
		ready_ns = WEFT_NOT_MEASURED;
	account_spend(account, weft_tick(load_relaxed(&weft_gate.on)) - began);
	switches = voluntary - account->voluntary;
	if (ready_ns != WEFT_NOT_MEASURED && account->ready_ns != WEFT_NOT_MEASURED &&
	    account->voluntary != WEFT_NOT_MEASURED && switches > 0 && switches == account->offs_counted)
		account_learn(&account->off_ready_ns, ready_ns - account->ready_ns, (uint32_t)switches);
	account->crowded = ready_ns != WEFT_NOT_MEASURED && account->ready_ns != WEFT_NOT_MEASURED &&
			   ready_ns - account->ready_ns > weft_tick_ns(account->tick - account->counted) / CROWDED;
	account->counted = now;
	account->ready_before_ns = account->ready_ns;
	account->ready_ns = ready_ns;
	account->voluntary = voluntary;
	account->offs_counted = 0;
	account->counted_off_ticks = 0;
	account->spared = 0;
	account->spared_ticks = 0;
}

void weft__account_count(struct account *account, struct ring_page *ring, enum weft__sched_use use)
{
	weft__account_counts(account, ring, poll_began(ring) ? WEFT__SCHED_POLLS : use);
}

uint64_t weft__account_ready(const struct account *account, uint64_t tick, uint64_t off_ns,
			     const struct account_begin *begin, uint64_t *unsure_ns)
{
	uint64_t now_ns = account_ready_at(account, tick), since_ns, most_ns, least_ns, parks_ns, spared_ns;

	if (off_ns == 0)
		return 0;
	if (begin->voluntary != WEFT_NOT_MEASURED && account->voluntary <= begin->voluntary &&
	    account->offs_counted <= begin->offs)
		return off_ns; /* it never went by itself */
	if (begin->ready_ns == WEFT_NOT_MEASURED || now_ns == WEFT_NOT_MEASURED)
		return WEFT_NOT_MEASURED;
	if (account->counted == begin->counted) /* nothing was read since */
		return at_most((uint64_t)(account->offs_counted - begin->offs) * account->off_ready_ns, off_ns);
	since_ns = now_ns > begin->ready_ns ? now_ns - begin->ready_ns : 0;
	most_ns = at_most(since_ns, off_ns);
	spared_ns = at_most(weft_tick_ns(begin->spared_ticks), since_ns);
	least_ns = at_most(since_ns - spared_ns, off_ns);
	if (most_ns - least_ns <= ACCOUNT_SURE_NS + off_ns / 50) {
		if (begin->offs == 0)
			return most_ns;
		if (!begin->spared &&
		    account->voluntary - begin->voluntary == begin->offs) /* interrupts may have taken the rest */
			return off_ns - most_ns <= ACCOUNT_SURE_NS + off_ns / 50 ? off_ns : most_ns;
	}
	parks_ns = at_most(weft_tick_ns(begin->counted_off_ticks) + spared_ns, since_ns);
	least_ns = at_most(since_ns - parks_ns, off_ns);
	if (most_ns - least_ns > ACCOUNT_SURE_NS + off_ns / 50) {
		*unsure_ns += most_ns - least_ns;
		return least_ns;
	}
	parks_ns = at_most((uint64_t)begin->offs * account->off_ready_ns, most_ns - least_ns);
	return most_ns - parks_ns;
}

uint64_t weft__account_unsure(const struct account_begin *begin, uint64_t cpu1_ns, uint64_t span_ns, uint64_t cpu_ns)
{
	uint64_t unsure_ns = weft_tick_ns(begin->unsure_ticks), least_ns, most_ns;

	if (begin->cpu_ns == WEFT_NOT_MEASURED)
		return unsure_ns;
	least_ns = begin->cpu_ns > unsure_ns ? begin->cpu_ns - unsure_ns : 0;
	most_ns = at_most(cpu1_ns > least_ns ? cpu1_ns - least_ns : 0, span_ns);
	return at_most(unsure_ns, most_ns > cpu_ns ? most_ns - cpu_ns : 0);
}

void weft__account_split(uint64_t span_ns, uint64_t cpu0_ns, uint64_t cpu1_ns, struct weft__cpu_split *ret)
{
	if (cpu0_ns == WEFT_NOT_MEASURED) {
		ret->cpu_ns = 0;
		ret->unsure_ns = at_most(cpu1_ns, span_ns);
		return;
	}
	ret->cpu_ns = cpu1_ns > cpu0_ns ? at_most(cpu1_ns - cpu0_ns, span_ns) : 0;
}

/* With the thread's first event, of that tick. To get its ring takes a while, in which it may be preempted: a poll that
 * begins with that event has been off the CPU before anything watched. */
void weft__account_begin(struct ring_page *ring, uint64_t since)
{
	struct account *account = &ring->account;
	uint64_t tick = weft_tick(load_relaxed(&weft_gate.on));

	if (!(load_relaxed(&weft_gate.on) & WEFT_GATE_RSEQ) || !account_enter(account))
		return;
	if ((int64_t)(tick - since) > 0)
		account_spend(account, tick - since); /* to get the ring */
	if (account_affords() && weft__account_clock(account)) {
		weft__account_counts(account, ring, WEFT__SCHED_ONCE);
		account_charge(tick);
		tick = account->tick;
	}
	if (weft_tick_ns(tick - since) > ACCOUNT_LATE_NS && (int64_t)(tick - since) > 0) {
		account->polls[0] = account_at(account, since);
		account->polls[0].cpu_ns = account->polls[0].ready_ns = WEFT_NOT_MEASURED;
		account->polls[0].voluntary = WEFT_NOT_MEASURED;
	}
	account_leave(account, tick);
}

/* Before a poll, off the CPU for some of the time, and no reading is to be had. */
static void account_spare(struct account *account, uint64_t tick)
{
	uint64_t from = account->checked > account->tick ? account->checked : account->tick;

	if (!account->tick)
		return;
	account->unsure_ticks += tick - from;
	account->counted_off_ticks += tick - from;
	account->offs_counted++;
	account->spared = 1;
}

void weft__account_unforeseen(struct account *account, struct ring_page *ring, uint64_t tick, uint64_t since)
{
	uint64_t pace_ns = account->crowded ? ACCOUNT_CROWDED_PARK_PACE_NS : ACCOUNT_CROWD_PACE_NS, from, known_ns,
		 began;

	if (account->tick && weft_tick_ns(tick - account->tick) < ACCOUNT_PACE_NS) {
		from = since > account->checked ? since : account->checked;
		account->unsure_ticks += tick - (from > account->tick ? from : account->tick);
		return;
	}
	if (!since && !account_affords()) {
		account_spare(account, tick);
		return;
	}
	began = weft_tick(load_relaxed(&weft_gate.on));
	known_ns = account->tick ? account_cpu(account, began) : 0;
	weft__account_clock(account);
	if (since && weft_tick_ns(tick - since) >= ACCOUNT_PACE_NS)
		pace_ns = ACCOUNT_UNSURE_PACE_NS;
	else if (!since && known_ns > account->cpu_ns + ACCOUNT_SURE_NS)
		pace_ns = 0;
	if (weft_tick_ns(account->tick - account->counted) >=
	    pace_ns) /* before a poll, what is read is what it begins with */
		weft__account_count(account, ring, since ? WEFT__SCHED_OPEN : WEFT__SCHED_ONCE);
	account_charge(began);
}

int weft__account_read(struct ring_page *ring, uint64_t tick, uint64_t *cpu_ns, uint64_t *ready_ns)
{
	struct account *account = &ring->account;
	int known = 0;

	if (!account_enter(account))
		return 0;
	account_keep_begin(account, ring, tick);
	if (weft__account_clock(account)) {
		weft__account_count(account, ring, WEFT__SCHED_OPEN);
		*cpu_ns = account_cpu(account, tick);
		*ready_ns = account->ready_ns;
		known = account->ready_ns != WEFT_NOT_MEASURED;
	}
	account_leave(account, tick);
	return known;
}
