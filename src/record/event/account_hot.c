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
 *     a park that ends                  the clock is read when the last reading is 4 ms old, or 1 ms and the park was no short one
 *                                       or something is unsure; after a long park, and where threads wait for CPUs, the
 *                                       scheduler's counts, too
 *
 * A poll that never left the CPU has no event. One that did has poll_cpu, just before its end: its CPU time, that at
 * its end less that at its begin. The latter is worked out when the poll first leaves the CPU, from what was known
 * before.
 *
 * Of the time off the CPU, the thread was ready to run for as long as the scheduler says (schedstat), where that
 * file is open; without a voluntary switch it was ready all the time. */
#include "record/event/account.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "record/event/detector.h"
#include "record/event/wide.h"
#include "record/ring/hooks.h"
#include "record/ring/ring.h"
#include "weft/event.h"

#define ACCOUNT_PACE_NS 250000               /* between two readings that something unforeseen asks for */
#define ACCOUNT_PARK_PACE_NS 4000000         /* ... that the end of a park does */
#define ACCOUNT_UNSURE_PACE_NS 1000000       /* ... when something is unsure */
#define ACCOUNT_CROWDED_PARK_PACE_NS 2000000 /* ... when threads wait for CPUs */
#define ACCOUNT_SHORT_NS 50000               /* a poll or wait below this is not worth a reading */
#define ACCOUNT_COUNT_NS 1000000             /* from here on it is worth the scheduler's counts, too */
#define ACCOUNT_SURE_NS 50000                /* an error that does not matter */
#define OFF_CPU_MOST_NS 50000
#define OFF_CPU_FIRST_NS 3000
#define ACCOUNT_LATE_NS 20000 /* nothing here takes as long: the thread was preempted */
#define ACCOUNT_READ_NS 1000  /* from a tick to the clock's reading, else */
#define ACCOUNT_READ_TRIES 3
#define ACCOUNT_CROWD_PACE_NS 10000000 /* between two readings of the scheduler's counts */
#define ACCOUNT_KEEP_NS 50             /* what keeping the account takes, besides readings */
#define CROWDED 64 /* part of the time in which threads wait for a CPU, from which on that is followed more closely */

struct weft__account_credit weft__account_credit = {WEFT__ACCOUNT_FREE};

/* Whether there is CPU time for a reading that what follows could do without: then it is less sure. */
static int account_affords(void)
{
	return load_relaxed(&weft__account_credit.ns) > 0;
}

static uint64_t at_most(uint64_t ns, uint64_t most)
{
	return ns < most ? ns : most;
}

/* A reading was begun at that tick. */
static void account_charge(uint64_t began)
{
	uint64_t ns;

	if (load_relaxed(&weft__account_credit.ns) == WEFT__ACCOUNT_FREE)
		return;
	ns = weft_tick_ns(weft_tick(load_relaxed(&weft_gate.on)) - began);
	__atomic_fetch_sub(&weft__account_credit.ns, (int64_t)at_most(ns, ACCOUNT_LATE_NS), __ATOMIC_RELAXED);
}

/* What weft itself took here. Ticks of operations come from the program, which may have worked since. */
static void account_spend(struct account *account, uint64_t ticks)
{
	uint64_t most = load_relaxed(&weft_gate.ms_ticks) / (1000000 / ACCOUNT_LATE_NS);

	store_relaxed(&account->spent, account->spent + at_most(ticks, most));
}

/* As it has to be, with the poll that is open. */
static void detector_set(const struct account *account)
{
	weft__detector_arm(load_relaxed(&weft_gate.rseq_armed) +
			   (account && account->polls[0].tick ? WEFT_RSEQ_OFF : 0));
}

static int account_enter(struct account *account)
{
	if (load_relaxed(&account->busy))
		return 0;
	store_relaxed(&account->busy, 1u);
	fence_signal();
	if (account->generation != load_relaxed(&weft_gate.generation)) {
		account->generation = load_relaxed(&weft_gate.generation);
		account->tick = account->polls[0].tick = account->off_ticks = account->unsure_ticks = 0;
		account->offs = account->offs_counted = 0;
		account->counted_off_ticks = 0;
		account->spared = 0;
		account->spared_ticks = 0;
		account->off_cpu_ns = OFF_CPU_FIRST_NS;
		account->off_ready_ns = 0;
		account->ready_ns = account->ready_before_ns = WEFT_NOT_MEASURED;
		account->voluntary = WEFT_NOT_MEASURED;
	}
	return 1;
}

/* The begin of the outermost poll that is open; 0: none is. */
static uint64_t poll_began(const struct ring_page *ring)
{
	uint64_t mark = load_relaxed(&ring->hot.poll);

	if (load_relaxed(&weft_gate.poll_mixed) && mark & 0xff)
		return mark >> 8; /* the mode changed since */
	if (load_relaxed(&weft_gate.on) & WEFT_GATE_MODES)
		return load_relaxed(&ring->polls.level) ? load_relaxed(&ring->polls.open[0].tick) : 0;
	return mark & 0xff ? mark >> 8 : 0;
}

/* The thread's CPU time at a tick, as far as is known. */
static uint64_t account_cpu(const struct account *account, uint64_t tick)
{
	uint64_t span, off;

	if ((int64_t)(tick - account->tick) < 0) {
		span = weft_tick_ns(account->tick - tick);
		if (span > ACCOUNT_LATE_NS) /* it was preempted before the clock was read */
			span = ACCOUNT_READ_NS;
		return account->cpu_ns > span ? account->cpu_ns - span : 0;
	}
	span = weft_tick_ns(tick - account->tick);
	off = weft_tick_ns(account->off_ticks);
	return account->cpu_ns + (span > off ? span - off : 0) + (uint64_t)account->offs * account->off_cpu_ns;
}

/* Whether it knows of that begin of a wait. A reading just behind is that of the begin (weft_wait_tick); one further
 * on came with the ring, or from a handler. */
static int account_knows(const struct account *account, uint64_t since)
{
	return account->tick && (account->tick <= since || weft_tick_ns(account->tick - since) <= ACCOUNT_LATE_NS);
}

/* What the scheduler had counted at the tick of what is under way. When it was read long after that, the thread was
 * preempted in between: it was ready then. */
static uint64_t account_ready_at(const struct account *account, uint64_t tick)
{
	uint64_t ready_ns = account->ready_ns, before_ns = account->ready_before_ns, late_ns;

	if (ready_ns == WEFT_NOT_MEASURED || before_ns == WEFT_NOT_MEASURED || (int64_t)(account->counted - tick) <= 0)
		return ready_ns;
	late_ns = weft_tick_ns(account->counted - tick);
	if (late_ns <= ACCOUNT_LATE_NS || before_ns >= ready_ns)
		return ready_ns;
	return ready_ns - at_most(late_ns, ready_ns - before_ns);
}

static struct account_begin account_at(const struct account *account, uint64_t tick)
{
	return (struct account_begin){
		.tick = tick,
		.cpu_ns = account->tick ? account_cpu(account, tick) : WEFT_NOT_MEASURED,
		.ready_ns = account_ready_at(account, tick),
		.voluntary = account->voluntary,
		.offs = account->offs_counted,
		.counted = account->counted,
		.counted_off_ticks = account->counted_off_ticks,
		.spared_ticks = account->spared_ticks,
		.unsure_ticks = account->unsure_ticks,
		.spared = account->spared,
	};
}

/* Before anything that changes the account: what it says of the begin of the poll that is open, or is about to begin
 * at `tick`. */
static void account_keep_begin(struct account *account, const struct ring_page *ring, uint64_t tick)
{
	uint64_t began = poll_began(ring);

	if (account->polls[0].tick == began || (!began && account->polls[0].tick == tick))
		return;
	if (began)
		account->polls[0] = account_at(account, began);
	else
		account->polls[0].tick = 0;
}

static void account_learn(uint32_t *average, uint64_t total, uint32_t n)
{
	uint64_t one = total / n;

	if (one < OFF_CPU_MOST_NS)
		*average = (uint32_t)((7 * (uint64_t)*average + one) / 8);
}

/* The CPU clock. */
static int account_clock(struct account *account)
{
	uint64_t began = weft_tick(load_relaxed(&weft_gate.on)), now = 0, cpu_ns = 0, known;
	struct timespec cpu;
	int i;

	for (i = 0; i < ACCOUNT_READ_TRIES; i++) {
		detector_set(account);
		if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) < 0)
			return 0;
		now = weft_tick(load_relaxed(&weft_gate.on));
		cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
		if (weft_stayed_since())
			break;
	}
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

/* What the scheduler counts. */
static void account_counts(struct account *account, struct ring_page *ring, enum weft__sched_use use)
{
	uint64_t began = weft_tick(load_relaxed(&weft_gate.on));
	uint64_t ready_ns = WEFT_NOT_MEASURED, voluntary = voluntary_switches(), switches;
	/* Before the reading: a thread is preempted where a call returns, and what comes then is not in what was
	 * read. */
	uint64_t now = weft_tick(load_relaxed(&weft_gate.on));

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

static void account_count(struct account *account, struct ring_page *ring, enum weft__sched_use use)
{
	account_counts(account, ring, poll_began(ring) ? WEFT__SCHED_POLLS : use);
}

/* A thread that was preempted since the tick was read has been off the CPU in the poll that begins with it, if one
 * does. */
static void account_leave_as(struct account *account, struct ring_page *ring, uint64_t tick, enum weft__sched_use use)
{
	uint64_t now = weft_tick(load_relaxed(&weft_gate.on));

	account_spend(account, load_relaxed(&weft_gate.ms_ticks) / (1000000 / ACCOUNT_KEEP_NS));
	if (WEFT_UNLIKELY(now - tick > load_relaxed(&weft_gate.ms_ticks) / (1000000 / ACCOUNT_LATE_NS)) &&
	    account->tick) {
		if (!account->polls[0].tick)
			account->polls[0] = account_at(account, tick);
		account_clock(account);
		account_count(account, ring, use);
		now = account->tick;
	}
	account->checked = tick;
	account->armed = now;
	detector_set(account);
	fence_signal();
	store_relaxed(&account->busy, 0u);
}

static void account_leave(struct account *account, struct ring_page *ring, uint64_t tick)
{
	account_leave_as(account, ring, tick, WEFT__SCHED_OPEN);
}

/* Of `off_ns` off the CPU since then, how long it was ready. Between the reading of the counts and that begin were
 * parks and short waits, of which it is not known how long they were ready, nor whether each was voluntary: one that
 * finds something to do at once and is preempted is not. When there were as many voluntary switches as these, all
 * were. Else what may have been theirs is added to `unsure_ns`. */
static uint64_t ready_of(const struct account *account, uint64_t tick, uint64_t off_ns,
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

/* The CPU time at the begin is at most what `begin` says, and less by what was unsure then at most. The thread has
 * used no more than `cpu1_ns` since: so, of what was unsure, only as much can be part of the poll or wait that ends. */
static uint64_t unsure_at_begin(const struct account_begin *begin, uint64_t cpu1_ns, uint64_t span_ns, uint64_t cpu_ns)
{
	uint64_t unsure_ns = weft_tick_ns(begin->unsure_ticks), least_ns, most_ns;

	if (begin->cpu_ns == WEFT_NOT_MEASURED)
		return unsure_ns;
	least_ns = begin->cpu_ns > unsure_ns ? begin->cpu_ns - unsure_ns : 0;
	most_ns = at_most(cpu1_ns > least_ns ? cpu1_ns - least_ns : 0, span_ns);
	return at_most(unsure_ns, most_ns > cpu_ns ? most_ns - cpu_ns : 0);
}

/* From the CPU time at begin and end. When the first is not known, no more than all that the thread has used. */
static void split_of(uint64_t span_ns, uint64_t cpu0_ns, uint64_t cpu1_ns, struct weft__cpu_split *ret)
{
	if (cpu0_ns == WEFT_NOT_MEASURED) {
		ret->cpu_ns = 0;
		ret->unsure_ns = at_most(cpu1_ns, span_ns);
		return;
	}
	ret->cpu_ns = cpu1_ns > cpu0_ns ? at_most(cpu1_ns - cpu0_ns, span_ns) : 0;
}

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
	if (account_clock(account)) {
		account_count(account, ring, WEFT__SCHED_OPEN);
		split_of(span_ns, begin.cpu_ns, account_cpu(account, tick), ret);
		if (begin.cpu_ns != WEFT_NOT_MEASURED)
			ret->unsure_ns = unsure_at_begin(&begin, account_cpu(account, tick), span_ns, ret->cpu_ns);
		ret->ready_ns = ready_of(account, tick, span_ns - ret->cpu_ns, &begin, &unsure_ns);
		/* What is not known is not reported as a part. */
		if (unsure_ns)
			ret->ready_ns = WEFT_NOT_MEASURED;
		if (ret->unsure_ns > ACCOUNT_SURE_NS + span_ns / 50)
			ret->cpu_ns = ret->ready_ns = WEFT_NOT_MEASURED;
	}
	account_leave(account, ring, tick);
}

/* With the thread's first event, of that tick. To get its ring takes a while, in which it may be preempted: a poll that
 * begins with that event has been off the CPU before anything watched. */
void weft__account_begin(struct ring_page *ring, uint64_t since)
{
	struct account *account = &ring->account;
	uint64_t tick = weft_tick(load_relaxed(&weft_gate.on));

	if (!(load_relaxed(&weft_gate.on) & WEFT_GATE_RSEQ) || !account_enter(account))
		return;
	if (account_affords() && account_clock(account)) {
		account_counts(account, ring, WEFT__SCHED_ONCE);
		account_charge(tick);
		tick = account->tick;
	}
	if (weft_tick_ns(tick - since) > ACCOUNT_LATE_NS && (int64_t)(tick - since) > 0) {
		account->polls[0] = account_at(account, since);
		account->polls[0].cpu_ns = account->polls[0].ready_ns = WEFT_NOT_MEASURED;
		account->polls[0].voluntary = WEFT_NOT_MEASURED;
	}
	account_leave_as(account, ring, tick, WEFT__SCHED_ONCE);
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

/* The thread was off the CPU for some of the time since the last operation, it is not known how long. Outside of a
 * wait (`since` 0) it was ready for that time, as a rule: when it was long, the scheduler's counts are read, so that
 * it is not part of what comes. */
static void account_unforeseen(struct account *account, struct ring_page *ring, uint64_t tick, uint64_t since)
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
	account_clock(account);
	if (since && weft_tick_ns(tick - since) >= ACCOUNT_PACE_NS)
		pace_ns = ACCOUNT_UNSURE_PACE_NS;
	else if (!since && known_ns > account->cpu_ns + ACCOUNT_SURE_NS)
		pace_ns = 0;
	if (weft_tick_ns(account->tick - account->counted) >=
	    pace_ns) /* before a poll, what is read is what it begins with */
		account_count(account, ring, since ? WEFT__SCHED_OPEN : WEFT__SCHED_ONCE);
	account_charge(began);
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
	account_unforeseen(account, ring, tick, since);
	if (!known || account->tick == read)
		return *off_ns;
	if (account_cpu(account, tick) > begin.cpu_ns)
		*off_ns -= at_most(account_cpu(account, tick) - begin.cpu_ns, *off_ns);
	if (account->counted != begin.counted)
		ready_ns = ready_of(account, tick, *off_ns, &begin, &unsure_ns);
	return *off_ns - (ready_ns == WEFT_NOT_MEASURED ? 0 : ready_ns);
}

uint64_t weft__account_short(uint64_t since, uint64_t tick, int is_call)
{
	struct ring_page *ring = weft__ring_mine();
	struct account *account = ring ? &ring->account : NULL;
	uint64_t span_ns = weft_tick_ns(tick - since), off_ns = span_ns, waited_ns = span_ns;
	uint32_t i;

	if (!account) {
		detector_set(NULL);
		return off_ns;
	}
	if (!account_enter(account))
		return off_ns;
	account_keep_begin(account, ring, tick);
	if (span_ns < ACCOUNT_SHORT_NS) {
		account->off_ticks += tick - since;
		account->offs++;
		account->offs_counted++;
		account->counted_off_ticks += tick - since;
	} else {
		waited_ns = account_waited(account, ring, since, tick, &off_ns);
	}
	for (i = 0; i < ACCOUNT_NEST && !is_call; i++)
		account->polls[i].waited_ns += waited_ns;
	account_leave(account, ring, tick);
	return off_ns;
}

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
			account_unforeseen(account, ring, tick, 0);
		account_leave_as(account, ring, tick, WEFT__SCHED_ONCE);
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
	account_leave(account, ring, tick);
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
			account_clock(account);
			if (account->crowded || weft_tick_ns(tick - load_relaxed(&ring->hot.park)) >= ACCOUNT_COUNT_NS)
				account_count(account, ring, WEFT__SCHED_OPEN);
			account_charge(began);
		}
		account_leave(account, ring, tick);
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
		account_unforeseen(account, ring, tick, begin);
	account->polls[level].tick = 0;
	account_leave(account, ring, tick);
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
		account_clock(account);
	else if (left_cpu)
		account_unforeseen(account, ring, tick, begin);
	if (begin && poll->tick == begin)
		split_of(span_ns, poll->cpu_ns, account_cpu(account, tick), ret);
	if (span_ns >= ACCOUNT_COUNT_NS ||
	    (span_ns >= ACCOUNT_SHORT_NS && span_ns - at_most(ret->cpu_ns, span_ns) >= ACCOUNT_SURE_NS))
		account_count(account, ring, WEFT__SCHED_OPEN);
	if (account->tick && begin && poll->tick == begin) {
		ret->waiting_ns = poll->waited_ns;
		ret->unsure_ns =
			at_most(weft_tick_ns(account->unsure_ticks) +
					unsure_at_begin(poll, account_cpu(account, tick), span_ns, ret->cpu_ns),
				span_ns);
		split_of(span_ns, poll->cpu_ns, account_cpu(account, tick), ret);
		ret->ready_ns = ready_of(account, tick, span_ns - ret->cpu_ns, poll, &ret->unsure_ns);
		ret->unsure_ns = at_most(ret->unsure_ns, span_ns);
	}
	poll->tick = 0;
	account_leave(account, ring, tick);
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

int weft__account_read(struct ring_page *ring, uint64_t tick, uint64_t *cpu_ns, uint64_t *ready_ns)
{
	struct account *account = &ring->account;
	int known = 0;

	if (!account_enter(account))
		return 0;
	account_keep_begin(account, ring, tick);
	if (account_clock(account)) {
		account_count(account, ring, WEFT__SCHED_OPEN);
		*cpu_ns = account_cpu(account, tick);
		*ready_ns = account->ready_ns;
		known = account->ready_ns != WEFT_NOT_MEASURED;
	}
	account_leave(account, ring, tick);
	return known;
}
