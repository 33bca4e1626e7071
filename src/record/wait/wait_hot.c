/* SPDX-License-Identifier: Apache-2.0 */
/* The slow side of wait.h. HOT.
 *
 * A sum is only ever added to, by its thread; what has been reported of it is kept beside it, and whoever reports moves
 * that forward with one compare-and-swap. So the collector can report for a thread that sleeps, and nothing is reported
 * twice or lost when the thread wakes up in the middle of it. */
#include "record/wait/wait.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/late.h"
#include "base/ours.h"
#include "base/place.h"
#include "record/event/account.h"
#include "record/event/poll.h"
#include "record/event/wide.h"
#include "record/ring/hooks.h"
#include "record/ring/ring.h"
#include "weft/runtime.h"

#define WAIT_COST_MOST_NS 100000
#define DESCRIBE_LEAST_NS 100000
#define RECORDED_ALWAYS 10 /* of the long waits of a worker between two reports of its sums */
#define WEIGHT_MOST 16     /* times that a wait which is so much longer is likelier to be reported */
#define REPORT_SCHEDS                                                                                                  \
	10 /* sums are reported after this many times the time between two readings of the CPU time: 100 ms */

uint32_t (*weft__late_describe)(uint32_t name, int fd);
struct weft__wait_thread weft__wait_threads[WAIT_THREADS] LARGE_TABLE;
uint32_t weft__wait_tids[WAIT_THREADS];
uint32_t weft__waits_used;
struct weft_waits weft__waits_none;
uint64_t weft_locks[WEFT_LOCKS];
__thread struct weft_waits *weft_waits_self __attribute__((tls_model("initial-exec"))) = &weft__waits_none;

static uint32_t wait_place(uint32_t tid, uint32_t i)
{
	return (tid * 2654435761u / (UINT32_MAX / WAIT_THREADS + 1) + i) % WAIT_THREADS;
}

struct weft__wait_thread *weft__wait_find(uint32_t tid)
{
	for (uint32_t i = 0; i < WAIT_PROBES; i++)
		if (load_acquire(&weft__wait_tids[wait_place(tid, i)]) == tid)
			return &weft__wait_threads[wait_place(tid, i)];
	return NULL;
}

static struct weft__wait_thread *wait_place_take(uint32_t tid)
{
	struct weft__wait_thread *taken = weft__wait_find(tid);
	uint32_t i, nobody;

	for (i = 0; !taken && i < WAIT_PROBES; i++) {
		nobody = 0;
		if (cas_acq_rel(&weft__wait_tids[wait_place(tid, i)], &nobody, tid))
			taken = &weft__wait_threads[wait_place(tid, i)];
	}
	return taken;
}

/* A wait that nobody will end. */
static void slot_forget(struct weft_wait_slot *slot)
{
	if (load_relaxed(&slot->since) && load_relaxed(&slot->holder) >= WEFT_HOLDER_MARKED)
		weft_slow_lock_unmark(load_relaxed(&slot->object));
	store_release(&slot->since, 0);
}

static void waits_forget(struct weft_waits *waits)
{
	for (uint32_t i = 0; i < WEFT_WAITS_MAX; i++)
		slot_forget(&waits->own[i]);
	store_relaxed(&waits->depth, 0u);
}

static struct weft_waits *attach_waits(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	int ours = weft__ours_is_self(); /* what weft's own threads wait for is of no interest */
	struct weft__wait_thread *thread = ours ? NULL : wait_place_take(tid);
	struct weft_waits *nobody = &weft__waits_none;
	uint32_t on = ours ? 0 : weft_gate_on();

	if (!thread) {
		if (on)
			weft__ring_missed(weft_tick(on));
		return NULL;
	}
	store_relaxed(&weft__waits_used, 1u);
	/* A handler that came meanwhile may have done all of this, in the same place. */
	if (load_relaxed(&thread->mine.tid) != tid) {
		waits_forget(&thread->mine);
		store_relaxed(&thread->mine.due,
			      on ? weft_tick(on) + REPORT_SCHEDS * load_relaxed(&weft_gate.sched_ticks) : 0);
		thread->mine.stack_low = thread->mine.stack_high = 0;
		thread->mine.most = WEFT_WAITS_MAX;
		add_relaxed(&thread->mine.generation, 1u);
		store_release(&thread->mine.tid, tid);
	}
	cas_relaxed(&weft_waits_self, &nobody, &thread->mine);
	if (weft__hot.key_made)
		pthread_setspecific(weft__hot.key, &weft__hot);
	return &thread->mine;
}

struct weft_waits *weft_slow_waits(void)
{
	struct weft_waits *waits = weft_waits_self;

	if (waits == &weft__waits_none)
		return attach_waits();
	if (waits->depth >= waits->most)
		waits_forget(waits); /* left by longjmp */
	return waits;
}

static uint64_t wait_cost_ns;

uint64_t weft__waits_cost(void)
{
	return load_relaxed(&wait_cost_ns);
}

/* A thread that was preempted meanwhile took long, but of the CPU no more than others do. */
static void wait_count_cost(uint64_t tick)
{
	uint32_t on = weft_gate_on();
	uint64_t ns = on ? weft_tick_ns(weft_tick(on) - tick) : 0;

	add_relaxed(&wait_cost_ns, ns < WAIT_COST_MOST_NS ? ns : WAIT_COST_MOST_NS);
}

/* The thread's CPU time so far, as with a park. Only of threads that park: for each there is a file to be kept open. */
static void wait_sched(uint64_t tick)
{
	const struct ring_page *ring = weft__ring_mine();

	if (ring && load_relaxed(&ring->sched_fd) > 0 && tick >= ring->hot.sched_due)
		weft_slow_sched(tick);
}

/* The object of a call with what its descriptor is. Of a short one that is not worth it: asking takes up to 3 us. */
static uint64_t wait_object(const struct weft__waited *waited)
{
	uint64_t about = 0;

	if (weft__late_describe && waited->key >> 32 == WEFT_WAIT_CALL && waited->object <= INT32_MAX &&
	    weft_tick_ns(waited->tick - waited->since) >= DESCRIBE_LEAST_NS)
		about = weft__late_describe((uint32_t)waited->key, (int)waited->object);
	return waited->object | about << WEFT_WAIT_ABOUT_AT;
}

void weft__wait_emit(struct weft_waits *waits, struct weft_ring *ring, const struct weft__waited *waited)
{
	struct weft__wide_stack stack = {.field = WEFT_FIELD_WAIT_STACK};
	uint64_t fields[WEFT_FIELDS_OF_WAIT] = {waited->key >> 32,
						(uint32_t)waited->key,
						ring ? waited->object : wait_object(waited),
						weft_tick_ns(waited->tick - waited->since),
						0,
						0,
						waited->cpu_ns,
						waited->ready_ns};
	int buffer = -1;

	if (waited->from)
		stack.n = weft__wait_stack(waits, waited->from, &stack.frames, &stack.flags, &buffer);
	if (!ring)
		wait_sched(waited->tick);
	fields[WEFT_FIELD_WAIT_HOLDER] = weft__lock_report(ring, waited);
	if (ring) {
		weft__wide_emit_in(ring, WEFT_KIND_WAIT, waited->tick, fields, NULL, 0);
	} else {
		weft__wide_emit_stacks(WEFT_KIND_WAIT, waited->tick, fields, &stack, stack.n ? 1 : 0);
	}
	if (buffer >= 0)
		weft__wait_stack_give(buffer);
	if (!ring)
		wait_count_cost(waited->tick);
}

static struct weft_wait_sum *wait_sum_of(struct weft_wait_sum *sums, uint32_t n, uint64_t key)
{
	uint32_t i, at = (uint32_t)(weft_wait_hash(key) >> 59);

	for (i = 0; i < n; i++) {
		struct weft_wait_sum *sum = &sums[(at + i) % n];
		uint64_t other = 0;

		if (load_relaxed(&sum->key) == key || cas_acq_rel(&sum->key, &other, key) || other == key)
			return sum;
	}
	return &sums[n];
}

void weft__wait_sum_add(struct weft_wait_sum *sums, uint32_t n, uint64_t key, uint64_t ticks, int own)
{
	struct weft_wait_sum *sum = wait_sum_of(sums, n, key);

	if (own) {
		weft_wait_add(&sum->ticks, ticks);
		weft_wait_add(&sum->count, 1);
	} else {
		add_relaxed(&sum->ticks, ticks);
		add_relaxed(&sum->count, 1);
	}
	if (ticks > load_relaxed(&sum->longest))
		store_relaxed(&sum->longest, ticks);
}

static int wait_sum_take(struct weft_wait_sum *sum, uint64_t *fields)
{
	uint64_t count = load_relaxed(&sum->count), ticks = load_relaxed(&sum->ticks);
	uint64_t reported = load_relaxed(&sum->reported_count), key = load_relaxed(&sum->key), before;

	if (count == reported || !cas_acq_rel(&sum->reported_count, &reported, count))
		return 0;
	before = swap_seq_cst(&sum->reported_ticks, ticks);
	fields[WEFT_FIELD_WAIT_SUM_WHAT] = key >> 32;
	fields[WEFT_FIELD_WAIT_SUM_NAME] = (uint32_t)key;
	fields[WEFT_FIELD_WAIT_SUM_COUNT] = count - reported;
	fields[WEFT_FIELD_WAIT_SUM_TOTAL] = weft_tick_ns(ticks - before);
	fields[WEFT_FIELD_WAIT_SUM_LONGEST] = weft_tick_ns(load_relaxed(&sum->longest));
	store_relaxed(&sum->longest, 0);
	return 1;
}

int weft__wait_sum_next(struct weft__wait_thread *thread, uint32_t *at, uint64_t *fields)
{
	for (; *at < WEFT_WAIT_SUMS + 1 + WAIT_REMOTE_SUMS + 1; ++*at) {
		struct weft_wait_sum *sum = *at <= WEFT_WAIT_SUMS ? &thread->mine.sums[*at]
								  : &thread->remote_sums[*at - WEFT_WAIT_SUMS - 1];

		if (wait_sum_take(sum, fields)) {
			++*at;
			return 1;
		}
	}
	return 0;
}

/* Names that were not waited for since the last time give up their place. A handler that comes in between and adds to
 * one is found out, and its sum reported under whatever name has the place by then. */
static void sums_retire(struct weft_wait_sum *sums, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t key = load_relaxed(&sums[i].key), none = 0;

		if (!key || load_relaxed(&sums[i].count) != load_relaxed(&sums[i].reported_count))
			continue;
		store_relaxed(&sums[i].key, 0);
		fence_signal();
		if (load_relaxed(&sums[i].count) != load_relaxed(&sums[i].reported_count))
			cas_relaxed(&sums[i].key, &none, key);
	}
}

static int sum_fits(void)
{
	struct ring_page *ring = weft__ring_mine();

	return !ring || weft__ring_has_room(ring, weft__kind_slots(WEFT_KIND_WAIT_SUM));
}

void weft__wait_report(struct weft__wait_thread *thread, uint64_t tick)
{
	struct weft__waited waited;
	uint64_t fields[WEFT_FIELDS_OF_WAIT_SUM];
	uint32_t at = 0;

	/* First, so that what others leave from now on is not overlooked. */
	thread->mine.recorded = 0;
	store_relaxed(&thread->mine.due, tick + REPORT_SCHEDS * load_relaxed(&weft_gate.sched_ticks));
	while (weft__wait_ended(thread, UINT64_MAX, &waited)) {
		weft__wait_emit(&thread->mine, NULL, &waited);
		weft__wait_unmark(waited.holder, waited.object);
	}
	sums_retire(thread->mine.sums, WEFT_WAIT_SUMS);
	/* What has no room now is reported later. */
	while (sum_fits() && weft__wait_sum_next(thread, &at, fields))
		weft__wide_emit(WEFT_KIND_WAIT_SUM, tick, fields);
}

static uint32_t wait_level = WAIT_LEVEL_FULL;

void weft__waits_limit(uint32_t level)
{
	store_relaxed(&wait_level, level);
}

static int is_worker(void)
{
	const struct ring_page *ring = weft__ring_mine();

	return ring && ring->worker != WEFT_WORKER_NONE;
}

/* Whether the budget allows a long wait to be reported by itself. Workers are few, and their waits are what polls are
 * slow for; of others there may be hundreds that wait for work. */
static int may_report(struct weft_waits *waits, uint64_t ticks, uint64_t threshold)
{
	uint32_t level = load_relaxed(&wait_level);
	uint64_t weight = threshold ? ticks / threshold : 1;

	if (level >= WAIT_LEVEL_FULL)
		return 1;
	if (waits->recorded < RECORDED_ALWAYS && is_worker()) {
		waits->recorded++;
		return 1;
	}
	waits->credit += level * (uint32_t)(weight < WEIGHT_MOST ? weight : WEIGHT_MOST);
	if (waits->credit < WAIT_LEVEL_FULL)
		return 0;
	waits->credit %= WAIT_LEVEL_FULL;
	return 1;
}

/* How much of it the thread was on the CPU; it gets a ring if it has none. */
static void wait_split(struct weft__waited *waited, int stayed)
{
	struct ring_page *ring = weft__ring_mine();
	struct weft__cpu_split split;

	if (!ring && weft_slow_ring(1, waited->tick))
		ring = weft__ring_mine();
	if (!ring)
		return;
	weft__account_wait(ring, waited->since, waited->tick, stayed, &split);
	waited->cpu_ns = split.cpu_ns;
	waited->ready_ns = split.ready_ns;
}

/* Of a wait's ticks, those that a part of its time is. */
static uint64_t wait_part(uint64_t ticks, uint64_t part_ns)
{
	uint64_t ns = weft_tick_ns(ticks);

	return part_ns < ns ? (uint64_t)((double)ticks * (double)part_ns / (double)ns) : ticks;
}

void weft__wait_over(struct weft_waits *waits, struct weft__waited *waited)
{
	uint64_t ticks = waited->tick - waited->since, threshold = load_relaxed(&weft_gate.wait_ticks);
	int detects = (load_relaxed(&weft_gate.on) & WEFT_GATE_RSEQ) != 0;
	int stayed = detects && weft_stayed_since() && !weft__account_is_past(waited->tick);

	if (weft__wait_is_inside(waits, waited))
		return;
	waited->cpu_ns = waited->ready_ns = WEFT_NOT_MEASURED;
	if ((int64_t)ticks < 0) /* another CPU's counter is a little behind */
		ticks = 0;
	if (ticks >= threshold && may_report(waits, ticks, threshold)) {
		if (detects)
			wait_split(waited, stayed);
		weft__wait_emit(waits, NULL, waited);
	} else {
		uint64_t off = stayed ? 0 : ticks;

		if (detects && !stayed)
			off = wait_part(ticks, weft__account_short(waited->since, waited->tick,
								   waited->key >> 32 == WEFT_WAIT_CALL));
		weft__wait_sum_add(waits->sums, WEFT_WAIT_SUMS, waited->key,
				   detects && waited->key >> 32 == WEFT_WAIT_CALL ? off : ticks, 1);
	}
	if (ticks >= threshold)
		weft__poll_sampled(weft_ring_self, waited->tick); /* also of one that the budget does not allow */
	if (waited->tick >= load_relaxed(&waits->due))
		weft__wait_report((struct weft__wait_thread *)(void *)waits, waited->tick);
}

uint64_t weft_slow_waited(uint64_t since, uint64_t tick, uint64_t key)
{
	int saved = errno;
	uint64_t off_ns = weft__account_short(since, tick, key >> 32 == WEFT_WAIT_CALL);

	errno = saved;
	return wait_part(tick - since, off_ns);
}

__attribute__((noinline)) void weft_slow_wait_done(uint64_t key, uint64_t object, uint64_t holder, uint64_t since,
						   uint64_t tick)
{
	struct weft__waited waited = {.key = key,
				      .object = object,
				      .holder = holder,
				      .since = since,
				      .tick = tick,
				      .from = (uint64_t)(uintptr_t)__builtin_return_address(0)};
	struct weft_waits *waits = weft_waits_self;
	int saved = errno;

	if (waits == &weft__waits_none)
		waits = attach_waits();
	if (waits)
		weft__wait_over(waits, &waited);
	if (holder >= WEFT_HOLDER_MARKED)
		weft_slow_lock_unmark(object);
	errno = saved;
}

__attribute__((noinline)) void weft_slow_wait_end(uint32_t what, uint64_t object, uint64_t tick)
{
	struct weft_waits *waits = weft_waits_self;
	struct weft__waited waited = {.tick = tick, .from = (uint64_t)(uintptr_t)__builtin_return_address(0)};
	uint32_t i, depth = waits->depth;
	int saved;

	what = (uint32_t)(weft_wait_key(what, 0) >> 32);
	for (i = depth; i > 0 && (waits->own[i - 1].key >> 32 != what || waits->own[i - 1].object != object);)
		i--;
	if (!i)
		return;
	waited.key = waits->own[i - 1].key;
	waited.object = object;
	waited.holder = waits->own[i - 1].holder;
	waited.since = waits->own[i - 1].since;
	while (depth > i)
		slot_forget(&waits->own[--depth]);
	store_release(&waits->own[i - 1].since, 0);
	fence_signal();
	store_relaxed(&waits->depth, i - 1);
	saved = errno;
	if (tick && waited.since)
		weft__wait_over(waits, &waited);
	if (waited.since && waited.holder >= WEFT_HOLDER_MARKED)
		weft_slow_lock_unmark(object);
	errno = saved;
}

static void sums_clear(struct weft_wait_sum *sums, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		store_relaxed(&sums[i].count, 0);
		store_relaxed(&sums[i].ticks, 0);
		store_relaxed(&sums[i].longest, 0);
		store_relaxed(&sums[i].reported_count, 0);
		store_relaxed(&sums[i].reported_ticks, 0);
		store_relaxed(&sums[i].key, 0);
	}
}

void weft__wait_leave(void)
{
	struct weft_waits *waits = weft_waits_self;
	struct weft__wait_thread *thread = (struct weft__wait_thread *)(void *)waits;
	uint32_t on = weft_gate_on();
	uint32_t i;

	if (waits == &weft__waits_none)
		return;
	if (on)
		weft__wait_report(thread, weft_tick(on));
	waits_forget(waits);
	weft_waits_self = &weft__waits_none;
	sums_clear(waits->sums, WEFT_WAIT_SUMS + 1);
	sums_clear(thread->remote_sums, WAIT_REMOTE_SUMS + 1);
	for (i = 0; i < WEFT_WAITS_MAX; i++)
		weft__wait_drop(&thread->remote[i]);
	store_release(&waits->tid, 0u);
	store_release(&weft__wait_tids[thread - weft__wait_threads], 0u);
}

static int wait_look(const struct weft_wait_slot *slot, struct weft__wait_now *out)
{
	uint64_t key;

	out->since = load_acquire(&slot->since);
	key = load_acquire(&slot->key); /* acquired, all of them, so that `since` is looked at again behind them */
	out->what = (uint32_t)(key >> 32);
	out->name = (uint32_t)key;
	out->object = load_acquire(&slot->object);
	out->holder = (uint32_t)load_acquire(&slot->holder);
	return out->since > REMOTE_BUSY && load_relaxed(&slot->since) == out->since;
}

uint32_t weft__wait_pending(uint32_t tid, struct weft__wait_now *out, uint32_t max)
{
	const struct weft__wait_thread *thread = weft__wait_find(tid);
	uint32_t i, n = 0;

	for (i = 0; thread && i < WEFT_WAITS_MAX && n < max; i++)
		n += wait_look(&thread->mine.own[i], &out[n]) != 0;
	for (i = 0; thread && i < WEFT_WAITS_MAX && n < max; i++)
		n += !load_relaxed(&thread->remote[i].until) && wait_look(&thread->remote[i].slot, &out[n]);
	return n;
}
