/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: how long, for what, who had it, in which stack; short ones summed to the last; seen by others while they
 * last. */
#include "waits.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>

#include "record/sample/state.h"
#include "record/wait/wait.h"
#include "unwind/modules.h"

static struct waits w;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t lock_name;
#define LOCK ((uint64_t)(uintptr_t)&lock)

extern const char __start_code_wait_for_the_lock[], __stop_code_wait_for_the_lock[];
struct truth {
	uint64_t least, most; /* what is inside the two calls, and what they are inside of, by a clock of its own */
};

__attribute__((noinline, noclone, section("code_wait_for_the_lock"))) static struct truth wait_for_the_lock(void)
{
	uint64_t at[4];

	at[0] = session_now_ns();
	weft_wait_begin(WEFT_WAIT_LOCK, lock_name, LOCK);
	at[1] = session_now_ns();
	pthread_mutex_lock(&lock);
	at[2] = session_now_ns();
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	at[3] = session_now_ns();
	pthread_mutex_unlock(&lock);
	return (struct truth){at[2] - at[1], at[3] - at[0]};
}

static sem_t held;
static uint32_t holder_tid, waiter_tid;

static void *hold(void *data)
{
	struct weft__wait_now now[WAIT_NOW_MAX];

	holder_tid = waits_tid();
	pthread_mutex_lock(&lock);
	weft_lock_held(LOCK);
	CHECK_EQ(weft_lock_holder(LOCK), holder_tid);
	sem_post(&held);
	CHECK(WAIT_FOR(weft__wait_pending(waiter_tid, now, WAIT_NOW_MAX) == 1));
	session_sleep_ns(*(uint64_t *)data);
	weft_lock_released(LOCK);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static struct weft_recorder *start(uint64_t wait_ns, uint64_t hz)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.wait_ns = wait_ns, .sample_hz = hz});

	lock_name = weft_string("the_lock");
	return rec;
}

TEST(a_long_wait_is_an_event_with_length_holder_and_stack)
{
	static const uint64_t lengths[] = {12 * MS, 25 * MS, 60 * MS};
	struct weft_recorder *rec = start(10 * MS, 99);
	struct truth truth[3];
	pthread_t thread;
	int i;

	REQUIRE(rec);
	waiter_tid = waits_tid();
	sem_init(&held, 0, 0);
	weft_park(0);
	weft_unpark(0);
	WAIT_FOR(weft__modules_refresh() == 0 && !weft__modules_stale()); /* stacks need tables */
	for (i = 0; i < 3; i++) {
		uint64_t length = lengths[i];

		REQUIRE(pthread_create(&thread, NULL, hold, &length) == 0);
		while (sem_wait(&held) < 0)
			;
		truth[i] = wait_for_the_lock();
		pthread_join(thread, NULL);
		CHECK_EQ(weft_lock_holder(LOCK), 0);
	}
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	w.start = __start_code_wait_for_the_lock;
	w.stop = __stop_code_wait_for_the_lock;
	waits_read(&w, "the_lock", waits_tid());
	if (CHECK_EQ(w.n_defined, 3))
		for (i = 0; i < 3; i++) {
			CHECK(truth[i].least >= lengths[i]);
			CHECK(w.reported[i].duration_ns > truth[i].least - truth[i].least / 50);
			CHECK(w.reported[i].duration_ns < truth[i].most + truth[i].most / 50);
			CHECK_EQ(w.reported[i].what, WEFT_WAIT_LOCK);
			CHECK_EQ(w.reported[i].object, LOCK);
			CHECK(w.reported[i].holder != 0 && w.reported[i].holder != waits_tid());
			CHECK(w.reported[i].n_frames >= 3); /* this one, main and what calls it, at least */
			CHECK(w.reported[i].through);
		}
	CHECK_EQ(w.reported[2].holder, holder_tid);
	CHECK_EQ(w.sum.n_short, 0);
	CHECK(w.n_sched >= 2); /* that of the park, and the CPU time of what was before the waits */
	session_remove_dir();
}

static int tables_are_made(void)
{
	return !weft__modules_stale() && !load_relaxed(&weft__own_threads.tables);
}

/* Tables are made when the first wait wants them, which itself has a frame without them. */
TEST(waits_have_stacks_without_cpu_samples)
{
	struct weft_recorder *rec = start(10 * MS, 0);
	uint64_t length = 12 * MS;
	pthread_t thread;
	int i;

	REQUIRE(rec);
	waiter_tid = waits_tid();
	sem_init(&held, 0, 0);
	CHECK_EQ(load_relaxed(&weft__own_threads.tables), 0);
	for (i = 0; i < 2; i++) {
		REQUIRE(pthread_create(&thread, NULL, hold, &length) == 0);
		while (sem_wait(&held) < 0)
			;
		wait_for_the_lock();
		pthread_join(thread, NULL);
		CHECK(WAIT_FOR(tables_are_made()));
	}
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	w.start = __start_code_wait_for_the_lock;
	w.stop = __stop_code_wait_for_the_lock;
	waits_read(&w, "the_lock", waits_tid());
	if (CHECK_EQ(w.n_defined, 2)) {
		CHECK(w.reported[0].n_frames >= 1);
		CHECK(w.reported[1].n_frames >= 3);
		CHECK(w.reported[1].through);
	}
	session_remove_dir();
}

TEST(short_waits_are_summed_and_none_is_missing)
{
	enum { TIMES = 100000, NAMES = 3 };
	struct weft_recorder *rec = start(WEFT_OFF, 0);
	static const char *const names[NAMES] = {"one", "two", "three"};
	uint32_t ids[NAMES];
	uint64_t begin, wall;
	int i;

	REQUIRE(rec);
	for (i = 0; i < NAMES; i++)
		ids[i] = weft_string(names[i]);
	begin = session_now_ns();
	for (i = 0; i < TIMES; i++) {
		weft_wait_begin(WEFT_WAIT_LOCK, ids[i % NAMES], LOCK);
		weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	}
	session_sleep_ns(2 * MS);
	weft_wait_begin(WEFT_WAIT_LOCK, ids[0], LOCK);
	session_sleep_ns(3 * MS);
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	wall = session_now_ns() - begin;
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	for (i = 0; i < NAMES; i++) {
		waits_read(&w, names[i], 0);
		CHECK_EQ(w.sum.n_long, 0);
		CHECK_EQ(w.sum.n_short, TIMES / NAMES + (i < TIMES % NAMES) + (i == 0));
		CHECK(w.sum.short_ns < wall);
		CHECK(i != 0 || w.sum.longest_ns >= 3 * MS);
	}
	session_remove_dir();
}

/* Twice as many names as there are places; again, by which time the places are free. */
static void *wait_by_many_names(void *unused)
{
	uint32_t ids[2 * WEFT_WAIT_SUMS];
	char name[24];
	int i, k;

	for (i = 0; i < 2 * WEFT_WAIT_SUMS; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		ids[i] = weft_string(name);
	}
	for (i = 0; i < 2 * WEFT_WAIT_SUMS; i++)
		for (k = 0; k < 10; k++)
			weft_waited(WEFT_WAIT_OTHER, ids[i], 0, 0, weft_now_ticks());
	for (i = 0; i < 2; i++) {
		session_sleep_ns(110 * MS);
		weft_waited(WEFT_WAIT_OTHER, ids[0], 0, 0, weft_now_ticks());
	}
	weft_waited(WEFT_WAIT_OTHER, weft_string("late"), 0, 0, weft_now_ticks());
	return unused;
}

TEST(names_that_have_no_place_are_counted_together)
{
	struct weft_recorder *rec = start(WEFT_OFF, 0);
	pthread_t thread;

	REQUIRE(rec);
	REQUIRE(pthread_create(&thread, NULL, wait_by_many_names, NULL) == 0);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, NULL, 0);
	CHECK_EQ(w.sum.n_short, 20 * WEFT_WAIT_SUMS + 3);
	CHECK(w.others >= 9 * WEFT_WAIT_SUMS && w.others <= 10 * WEFT_WAIT_SUMS);
	waits_read(&w, "late", 0);
	CHECK_EQ(w.sum.n_short, 1);
	session_remove_dir();
}

TEST(a_wait_inside_a_wait_is_recorded_with_its_own_length)
{
	struct weft_recorder *rec = start(MS, 0);
	uint32_t outer, inner;
	uint64_t n;
	int i;

	REQUIRE(rec);
	outer = weft_string("outer");
	inner = weft_string("inner");
	weft_wait_begin(WEFT_WAIT_RUNTIME, outer, 1);
	weft_wait_begin(WEFT_WAIT_LOCK, inner, 2);
	session_sleep_ns(2 * MS);
	weft_wait_end(WEFT_WAIT_LOCK, 2);
	weft_wait_begin(WEFT_WAIT_LOCK, inner, 3); /* left by longjmp, as it were */
	session_sleep_ns(2 * MS);
	weft_wait_end(WEFT_WAIT_RUNTIME, 1);
	CHECK_EQ(weft_waits_self->depth, 0);
	weft_wait_end(WEFT_WAIT_LOCK, 3); /* nobody knows of it any more */
	for (i = 0; i < 10 * WEFT_WAITS_MAX; i++)
		weft_wait_begin(WEFT_WAIT_LOCK, inner, 4);
	CHECK(weft_waits_self->depth <= WEFT_WAITS_MAX);
	for (i = 0; i < 10 * WEFT_WAITS_MAX; i++)
		weft_wait_end(WEFT_WAIT_LOCK, 4);
	CHECK_EQ(weft_waits_self->depth, 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, NULL, 0);
	if (CHECK(w.n_defined >= 2)) {
		CHECK_STR(w.reported[0].name, "inner");
		CHECK_STR(w.reported[1].name, "outer");
		CHECK(w.reported[1].duration_ns >= w.reported[0].duration_ns + 2 * MS);
	}
	for (i = 2; i < (int)w.n_defined; i++)
		CHECK_EQ(w.reported[i].object, 4); /* the machine stopped for a moment */
	n = w.sum.n_short + w.sum.n_long - 2;
	CHECK(n >= 1 && n <= WEFT_WAITS_MAX);
	session_remove_dir();
}

/* More long waits than the budget has room for: the first of a worker are reported, and of the others some, and the
 * sums have the rest. Answers how many were reported. */
static uint64_t reported_of(int worker, uint64_t length, int times)
{
	struct weft_recorder *rec =
		session_start(&(struct weft_recorder_opts){.wait_ns = 1000, .budget_ppm = WEFT_OFF});
	struct weft_runtime_opts of = {.size = sizeof(of), .name = "waiters"};
	uint32_t name;
	int i;

	if (!rec)
		return 0;
	if (worker)
		CHECK(weft_worker_enter(weft_runtime_add(&of, NULL), 0, NULL) > 0);
	name = weft_string("often");
	weft__wait_report((struct weft__wait_thread *)(void *)weft_slow_waits(), weft_now_ticks());
	for (i = 0; i < times; i++) {
		weft__waits_limit(WAIT_LEVEL_FULL / 20); /* again and again: the collector sets it, too */
		weft_waited(WEFT_WAIT_OTHER, name, 0, 0, weft_now_ticks() - weft_gate.wait_ticks * length - 1);
	}
	weft__waits_limit(WAIT_LEVEL_FULL);
	if (worker)
		weft_worker_leave();
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, "often", 0);
	CHECK_EQ(w.sum.n_long + w.sum.n_short, times);
	session_remove_dir();
	return w.sum.n_long;
}

TEST(a_budget_that_is_used_up_leaves_the_sums_whole)
{
	uint64_t reported = reported_of(0, 1, 200);

	CHECK(reported >= 9 && reported < 100); /* one in twenty, and more when the machine stood still in between */
	CHECK(reported_of(1, 1, 200) >= 10 + 9);
	CHECK(reported_of(0, 10, 200) >= 90); /* ten times as long, ten times as likely */
}

static volatile sig_atomic_t in_handler;
static uint32_t handler_name;

static void on_signal(int number)
{
	(void)number;
	weft_wait_begin(WEFT_WAIT_LOCK, handler_name, 5);
	weft_wait_end(WEFT_WAIT_LOCK, 5);
	in_handler++;
}

TEST(handlers_that_wait_disturb_nobody)
{
	struct weft_recorder *rec = start(WEFT_OFF, 0);
	struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
	uint64_t until = session_now_ns() + 150 * MS, n = 0;

	REQUIRE(rec);
	handler_name = weft_string("in the handler");
	sigaction(SIGALRM, &act, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	while (session_now_ns() < until) {
		weft_wait_begin(WEFT_WAIT_LOCK, lock_name, LOCK);
		weft_wait_end(WEFT_WAIT_LOCK, LOCK);
		n++;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, "the_lock", 0);
	CHECK_EQ(w.sum.n_short + w.sum.n_long, n);
	waits_read(&w, "in the handler", 0);
	CHECK_EQ(w.sum.n_short + w.sum.n_long, in_handler);
	session_remove_dir();
}

static void *wait_once(void *data)
{
	weft_waited(WEFT_WAIT_CALL, lock_name, 1, 0, weft_now_ticks());
	return data;
}

TEST(threads_that_end_leave_their_sums_and_no_place)
{
	enum { ROUNDS = SCALED(500, 100), AT_ONCE = 10 };
	struct weft_recorder *rec = start(WEFT_OFF, 0);
	pthread_t threads[AT_ONCE];
	uint32_t i, taken = 0;
	int round;

	REQUIRE(rec);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < AT_ONCE; i++)
			CHECK_EQ(pthread_create(&threads[i], NULL, wait_once, NULL), 0);
		for (i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
	}
	for (i = 0; i < WAIT_THREADS; i++)
		taken += weft__wait_tids[i] != 0;
	CHECK(taken <= 1); /* this one's */
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, "the_lock", 0);
	CHECK_EQ(w.sum.n_short, ROUNDS * AT_ONCE);
	session_remove_dir();
}

TEST(what_began_while_nothing_recorded_is_not_recorded)
{
	struct weft_recorder *rec;

	lock_name = weft_string("the_lock");
	weft_wait_begin(WEFT_WAIT_LOCK, lock_name, LOCK);
	rec = start(0, 0);
	REQUIRE(rec);
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	weft_waited(WEFT_WAIT_LOCK, lock_name, LOCK, 0, 0);
	weft_wait_begin(WEFT_WAIT_LOCK, lock_name, LOCK);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	CHECK_EQ(weft_waits_self->depth, 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&w.tally, 0);
	tally_dir(&w.tally, session_dir);
	CHECK_EQ(w.tally.by_kind[WEFT_KIND_WAIT] + w.tally.by_kind[WEFT_KIND_WAIT_SUM], 0);
	tally_fini(&w.tally);
	session_remove_dir();
}

TEST(a_child_of_fork_waits_for_itself)
{
	struct weft__wait_now now[WAIT_NOW_MAX];
	pid_t pid, parent = getpid();
	struct weft_recorder *rec;

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer does not allow threads in a forked child");
	rec = session_start(&(struct weft_recorder_opts){.on_fork = WEFT_FORK_RESTART});
	REQUIRE(rec);
	lock_name = weft_string("the_lock");
	weft_wait_begin(WEFT_WAIT_LOCK, lock_name, 5);
	weft_lock_held(6);
	pid = fork();
	if (pid == 0) {
		int ok = weft__wait_pending((uint32_t)parent, now, WAIT_NOW_MAX) == 0 && weft_lock_holder(6) == 0;

		weft_wait_end(WEFT_WAIT_LOCK, 5);
		weft_wait_begin(WEFT_WAIT_LOCK, lock_name, 7);
		ok &= weft__wait_pending(waits_tid(), now, WAIT_NOW_MAX) == 1 && now[0].object == 7;
		weft_wait_end(WEFT_WAIT_LOCK, 7);
		weft_recorder_close(rec, NULL);
		_exit(ok ? 0 : 1);
	}
	CHECK_EQ(session_wait(pid), 0);
	CHECK_EQ(weft__wait_pending(waits_tid(), now, WAIT_NOW_MAX), 1);
	weft_wait_end(WEFT_WAIT_LOCK, 5);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, NULL, (uint32_t)parent);
	CHECK_EQ(w.sum.n_short + w.sum.n_long, 1);
	waits_read(&w, NULL, (uint32_t)pid);
	CHECK_EQ(w.sum.n_short + w.sum.n_long, 1);
	session_remove_dir();
}
