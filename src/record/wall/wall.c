/* SPDX-License-Identifier: Apache-2.0 */
/* The time for which a sample stands is the time since the look before it, less what the thread ran and what it stood
 * in line for a CPU. So the sum over a thread is the time that it waited, however often it was sampled, and wall
 * samples may come late or be left out.
 *
 * A round is one look at every thread. It is made in turns of a millisecond at most, since the collector drains no ring
 * meanwhile, and rounds are as far apart as to use a small share of a CPU. */
#include "record/wall/wall.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "record/event/poll.h"
#include "record/event/wide.h"
#include "record/found.h"
#include "record/ring/ring.h"
#include "record/thread/thread.h"
#include "record/wall/remote.h"
#include "record/wall/state.h"
#include "record/wall/watch.h"
#include "weft/event.h"

#define TURN_NS UINT64_C(1000000)  /* longest turn */
#define TURN_SAMPLES 512           /* in a turn at most */
#define PAUSE_NS UINT64_C(4000000) /* between two turns of a round */
#define SHARE 50                   /* of a CPU, at most one part in so many */
#define REPORT_NS UINT64_C(1000000000)
#define LIST_NS UINT64_C(200000) /* for each thread that is listed, until the next time that it may be in vain */

/* LEFT: has begun to run, and may stand in line for a CPU still, of which nothing is known before it has one. */
enum { WALL_NEW, WALL_RUNS, WALL_WAITS, WALL_LEFT, WALL_OURS };

struct wall_thread {
	uint32_t tid;
	uint8_t state;
	uint8_t first;     /* was there when wall samples began */
	uint8_t pending;   /* look again, even if it has not run */
	uint8_t fresh;     /* its times begin before it did */
	uint32_t call;     /* WAITS: as in struct weft__remote */
	uint32_t n, flags; /* its stack */
	uint32_t ring;     /* its own, plus 1, when last looked for; 0: it had none */
	uint64_t *frames;
	uint64_t looked_ns; /* up to here its time is accounted for */
	uint64_t reported_ns;
	uint64_t cpu_ns, queue_ns;
	uint64_t waited_ns; /* not reported yet */
	uint64_t left_ns;   /* LEFT: from the last look at which it waited to the first at which it ran */
	uint64_t owed_ns;   /* of what was reported, to be taken off what comes */
	uint64_t count;     /* wall samples that this stands for */
};

static struct {
	struct wall_thread *threads; /* by id */
	size_t n, at;                /* `at`: next in this round */
	size_t reporting;            /* next to be reported at a rotation */
	uint32_t *ids;               /* of a listing */
	size_t ids_cap;
	struct weft__threads_mark mark;
	uint32_t source;      /* weft_gate.on, when it was on last */
	uint32_t opened;      /* how often, by then */
	uint64_t interval_ns; /* between two rounds, on average */
	uint64_t listed_ns;   /* when the threads were listed last */
	uint64_t due_ns, round_ns, round_cpu_ns, last_round_ns;
	uint64_t cost_ns; /* anybody reads it */
	uint32_t limit_hz;
	int began;
	struct weft__collector *collector; /* whose turn it is */
} wall;

static uint64_t wall_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void wall_report(struct wall_thread *t)
{
	uint64_t fields[WEFT_FIELDS_OF_WALL] = {t->tid, t->waited_ns, t->count, t->call, 0};
	struct weft__wide_stack stack = {t->frames, t->n, t->flags, WEFT_FIELD_WALL_STACK};
	struct weft__found found = {weft__clock_mono(), WEFT_KIND_WALL, fields, &stack, 1};

	if (t->waited_ns)
		weft__found_add(wall.collector, FOUND_NOW, &found);
	t->waited_ns = t->count = 0;
	t->reported_ns = t->looked_ns;
}

/* It waited at `tick`: a poll that is open is one with a sample in it. */
static void catch_poll(struct wall_thread *t, uint64_t tick, int search)
{
	struct ring_page *ring = wall.source & WEFT_GATE_CAUGHT ? weft__wall_ring(t->tid, &t->ring, search) : NULL;

	if (ring)
		weft__poll_seen(ring, tick, 0);
}

static void forget(struct wall_thread *t)
{
	weft__free(t->frames);
	t->frames = NULL;
	t->n = t->flags = t->call = 0;
}

/* A thread of ours has a name that says so. */
static int wall_ours(uint32_t tid)
{
	return tid == (uint32_t)syscall(SYS_gettid) || weft__thread_ours(tid) || weft__remote_named(tid, "weft-");
}

/* Where it waits now. Out of memory: the wall sample has no stack. */
static void keep(struct wall_thread *t, const struct weft__remote *seen)
{
	uint64_t *frames = seen->n ? weft__realloc(t->frames, seen->n * sizeof(*frames)) : NULL;

	if (!frames) {
		forget(t);
	} else {
		memcpy(frames, seen->frames, seen->n * sizeof(*frames));
		t->frames = frames;
		t->n = seen->n;
		t->flags = seen->flags;
	}
	t->call = seen->call;
	t->pending = seen->pending != 0;
}

/* The time since `looked_ns` that it neither ran nor could have run. Readings that do not quite belong together are
 * made good later. */
static uint64_t waited(struct wall_thread *t, uint64_t now_ns, uint64_t cpu_ns, uint64_t queue_ns)
{
	uint64_t past = now_ns > t->looked_ns ? now_ns - t->looked_ns : 0, busy = cpu_ns - t->cpu_ns + t->owed_ns;

	if (queue_ns > t->queue_ns)
		busy += queue_ns - t->queue_ns;
	t->owed_ns = busy > past ? busy - past : 0;
	return past > busy ? past - busy : 0;
}

/* From where on the time of a thread that was never looked at counts. One that came since the last round is taken as if
 * it had been there since then: those that went since then are not counted either. */
static void take_up(struct wall_thread *t, uint64_t now_ns, uint64_t cpu_ns, uint64_t queue_ns)
{
	uint64_t since = now_ns - wall.last_round_ns;

	t->state = WALL_RUNS;
	t->reported_ns = now_ns;
	if (t->looked_ns)
		return;
	t->looked_ns = now_ns;
	if (t->first) {
		t->cpu_ns = cpu_ns;
		t->queue_ns = queue_ns;
	} else {
		t->looked_ns -= since < 2 * wall.interval_ns ? since : 2 * wall.interval_ns;
		t->fresh = 1;
	}
}

/* What has become of the time since `looked_ns`, now that it waits, or runs for the second time in a row: until it was
 * seen to run it may have waited where it did before. */
static uint64_t settle(struct wall_thread *t, uint64_t now_ns, uint64_t cpu_ns, uint64_t queue_ns)
{
	uint64_t more = waited(t, now_ns, cpu_ns, queue_ns), before = more < t->left_ns ? more : t->left_ns;

	if (t->fresh)
		t->owed_ns = t->fresh = 0;
	if (t->state == WALL_LEFT) {
		t->waited_ns += before;
		more -= before;
	}
	if (t->state == WALL_LEFT || (t->state == WALL_WAITS && cpu_ns != t->cpu_ns))
		wall_report(t);
	t->looked_ns = now_ns;
	t->cpu_ns = cpu_ns;
	t->queue_ns = queue_ns;
	return more;
}

/* A thread that runs, at the end: where it waited before that was not seen, but that it did. */
static void settle_running(struct wall_thread *t, uint64_t now_ns)
{
	uint64_t cpu_ns = 0, queue_ns = weft__remote_queue(t->tid), more;

	if (weft__thread_cpu(t->tid, &cpu_ns) < 0)
		return;
	more = settle(t, now_ns, cpu_ns, queue_ns);
	forget(t);
	t->waited_ns += more;
	t->count += more != 0;
	t->state = WALL_RUNS;
}

/* A thread that has run since the last look, or was never looked at. 0: it is gone. */
static int look_closely(struct wall_thread *t, uint64_t now_ns)
{
	struct weft__remote seen;
	uint64_t queue_ns;

	if (t->state == WALL_NEW && wall_ours(t->tid)) {
		t->state = WALL_OURS;
		return 1;
	}
	queue_ns = weft__remote_queue(t->tid);
	weft__remote_look(t->tid, load_relaxed(&weft__wall_choice.brief), &seen);
	if (seen.state == REMOTE_GONE)
		return 0;
	if (t->state == WALL_NEW)
		take_up(t, now_ns, seen.cpu_ns, queue_ns);
	if (seen.state == REMOTE_WAITS) {
		t->waited_ns += settle(t, now_ns, seen.cpu_ns, queue_ns);
		t->count++;
		keep(t, &seen);
		catch_poll(t, weft_tick(wall.source), 1);
		t->state = WALL_WAITS;
		if (now_ns - t->reported_ns >= REPORT_NS)
			wall_report(t);
	} else if (t->state == WALL_WAITS) {
		t->left_ns = now_ns - t->looked_ns;
		t->state = WALL_LEFT;
	} else if (t->state == WALL_LEFT) {
		t->waited_ns = settle(t, now_ns, seen.cpu_ns, queue_ns);
		forget(t);
		t->state = WALL_RUNS;
	}
	return 1;
}

/* It has ended, or another thread has its number by now. */
static void drop(struct wall_thread *t)
{
	wall_report(t);
	forget(t);
	*t = (struct wall_thread){.tid = t->tid};
	wall.mark = (struct weft__threads_mark){0};
}

static void wall_sample_take(struct wall_thread *t, uint64_t now_ns)
{
	uint64_t tick = weft_tick(wall.source), cpu_ns = 0;

	if (t->state == WALL_OURS)
		return;
	if (weft__thread_cpu(t->tid, &cpu_ns) < 0) {
		drop(t);
		return;
	}
	if (cpu_ns < t->cpu_ns)
		drop(t);
	if (t->state != WALL_WAITS || cpu_ns != t->cpu_ns || t->pending) {
		if (!look_closely(t, now_ns))
			drop(t);
		return;
	}
	t->waited_ns += waited(t, now_ns, t->cpu_ns, t->queue_ns);
	t->count++;
	catch_poll(t, tick, 0);
	t->looked_ns = now_ns;
	if (now_ns - t->reported_ns >= REPORT_NS)
		wall_report(t);
}

/* What a thread that was there from the beginning had used by then; until it is looked at some time may pass. */
static void mark_first(struct wall_thread *t)
{
	t->looked_ns = weft__clock_mono();
	t->queue_ns = weft__remote_queue(t->tid);
	if (weft__thread_cpu(t->tid, &t->cpu_ns) < 0)
		t->cpu_ns = 0;
}

/* Threads that came and went. */
static void list_again(void)
{
	long n = weft__wall_ids(&wall.ids, &wall.ids_cap);
	struct wall_thread *next = n > 0 ? weft__calloc((size_t)n, sizeof(*next)) : NULL;
	size_t old = 0;

	if (!next)
		return; /* goes on with those that are known */
	for (long i = 0; i < n; i++) {
		while (old < wall.n && wall.threads[old].tid < wall.ids[i]) {
			wall_report(&wall.threads[old]);
			forget(&wall.threads[old++]);
		}
		if (old < wall.n && wall.threads[old].tid == wall.ids[i])
			next[i] = wall.threads[old++];
		else
			next[i] = (struct wall_thread){.tid = wall.ids[i], .first = !wall.began};
		if (next[i].first && !next[i].looked_ns && n <= TURN_SAMPLES)
			mark_first(&next[i]);
	}
	for (; old < wall.n; old++) {
		wall_report(&wall.threads[old]);
		forget(&wall.threads[old]);
	}
	weft__free(wall.threads);
	wall.threads = next;
	wall.n = (size_t)n;
	wall.began = 1;
}

static void forget_all(void)
{
	for (size_t i = 0; i < wall.n; i++)
		forget(&wall.threads[i]);
	weft__free(wall.threads);
	wall.threads = NULL;
	wall.n = wall.at = wall.reporting = 0;
	wall.began = 0;
	wall.mark = (struct weft__threads_mark){0};
}

/* Half of the interval up to one and a half of it, so that nothing runs in step with it. */
static uint64_t interval(void)
{
	uint32_t hz = weft__wall_choice.hz;
	uint32_t ns;

	if (wall.limit_hz && wall.limit_hz < hz)
		hz = wall.limit_hz;
	ns = 1000000000u / hz;
	wall.interval_ns = ns;
	return ns / 2 + weft__random(ns);
}

static void round_begin(uint64_t now_ns)
{
	int news = weft__threads_maybe(&wall.mark);

	/* Where other programs make threads all the time, as many of ours as before may be others. */
	if (news & THREADS_CHANGED || !wall.began || (news && now_ns - wall.listed_ns >= wall.n * LIST_NS)) {
		list_again();
		wall.listed_ns = now_ns;
	}
	wall.last_round_ns = wall.round_ns ? wall.round_ns : now_ns;
	wall.round_ns = now_ns;
	wall.round_cpu_ns = 0;
	wall.at = 0;
}

static void round_end(uint64_t now_ns)
{
	uint64_t next = interval(), least = wall.round_cpu_ns * SHARE;

	wall.due_ns = wall.round_ns + (next > least ? next : least);
	if (wall.due_ns < now_ns)
		wall.due_ns = now_ns;
	wall.at = 0;
}

/* Reports what has been seen and not reported yet, also when nothing records any more. 1: there is more to
 * report. */
static int wall_report_all(void)
{
	uint64_t now_ns = weft_gate_on() ? weft__clock_mono() : weft__watch_shut_ns();
	uint32_t n = 0;

	for (; wall.reporting < wall.n && n < TURN_SAMPLES; wall.reporting++, n++) {
		struct wall_thread *t = &wall.threads[wall.reporting];

		/* Up to now; where there are many, only if that is soon said. */
		if (wall.n <= TURN_SAMPLES || t->state == WALL_WAITS)
			wall_sample_take(t, now_ns);
		if (t->state == WALL_LEFT || t->state == WALL_RUNS)
			settle_running(t, now_ns);
		wall_report(t);
	}
	if (wall.reporting < wall.n)
		return 1;
	wall.reporting = 0;
	return 0;
}

/* Looks at some threads. */
static void wall_round(uint64_t now_ns, uint32_t on)
{
	uint64_t cpu_ns, turn_ns = now_ns;
	uint32_t n = 0;

	/* What comes now does not go on from what was. */
	if (wall.opened != weft__watch_opened())
		forget_all();
	wall.opened = weft__watch_opened();
	wall.source = on;
	cpu_ns = wall_cpu();
	if (!wall.at)
		round_begin(now_ns);
	while (wall.at < wall.n && now_ns - turn_ns < TURN_NS && n++ < TURN_SAMPLES) {
		struct wall_thread *t = &wall.threads[wall.at++];

		wall_sample_take(t, now_ns);
		now_ns = weft__clock_mono();
	}
	cpu_ns = wall_cpu() - cpu_ns;
	wall.round_cpu_ns += cpu_ns;
	store_relaxed(&wall.cost_ns, wall.cost_ns + cpu_ns);
	if (wall.at == wall.n)
		round_end(now_ns);
	else
		wall.due_ns = now_ns + (cpu_ns * SHARE > PAUSE_NS ? cpu_ns * SHARE : PAUSE_NS);
}

static uint64_t wall_due(const struct weft__turn *turn)
{
	if (!weft_gate_on())
		return turn->awake ? 0 : UINT64_MAX;
	return weft__wall_choice.hz ? wall.due_ns : UINT64_MAX;
}

static int wall_turn(const struct weft__turn *turn)
{
	uint32_t on = weft_gate_on();

	wall.collector = turn->collector;
	if (!on && !wall_report_all())
		forget_all();
	if (weft__wall_choice.hz && on && turn->now_ns >= wall.due_ns)
		wall_round(turn->now_ns, on);
	return SOURCE_NOTHING;
}

static int wall_finish(const struct weft__turn *turn)
{
	wall.collector = turn->collector;
	return wall_report_all() ? SOURCE_MORE : SOURCE_NOTHING;
}

uint64_t weft__wall_cost(void)
{
	return load_relaxed(&wall.cost_ns);
}

static void wall_spent(struct weft__source_cost *ret)
{
	ret->spent_ns = ret->own_ns = weft__wall_cost();
}

static uint32_t wall_limit(uint32_t level)
{
	uint32_t hz = weft__wall_choice.hz, rate = level == SOURCE_FULL ? hz : hz * level / SOURCE_FULL + 1;

	wall.limit_hz = level == SOURCE_FULL ? 0 : rate;
	return rate;
}

static int wall_works(void)
{
	return weft__wall_choice.hz != 0;
}

static void wall_close(struct weft__collector *c)
{
	(void)c;
	forget_all();
	weft__free(wall.ids);
	memset(&wall, 0, sizeof(wall));
	memset(&weft__wall_choice, 0, sizeof(weft__wall_choice));
}

static void wall_fork(enum weft__source_fork when, struct weft__collector *c)
{
	if (when == SOURCE_CHILD && c)
		memset(&wall, 0, sizeof(wall)); /* the collector may have been in the middle of it */
}

const struct weft__source weft__wall_source = {
	.name = "wall",
	.what = "wall samples",
	.facts_change = 1,
	.open = weft__wall_open,
	.close = wall_close,
	.fork = wall_fork,
	.facts = weft__wall_facts,
	.due = wall_due,
	.turn = wall_turn,
	.finish = wall_finish,
	.works = wall_works,
	.costs = WEFT_COST_WALL,
	.least = SOURCE_FULL / 10,
	.cost = wall_spent,
	.limit = wall_limit,
};
