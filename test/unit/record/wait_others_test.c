/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits, as other threads see it, and what they report for it. */
#include "waits.h"

#include <semaphore.h>

#include "record/wait/wait.h"

static struct waits w;
static uint32_t lock_name;

static struct weft_recorder *start(uint64_t wait_ns)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.wait_ns = wait_ns});

	lock_name = weft_string("the_lock");
	return rec;
}

/* A thread that waits until it is reported to go on, twice. */
struct sleeper {
	uint64_t number;
	uint32_t tid;
	sem_t ready, go;
};

static void *be_sleepy(void *data)
{
	struct sleeper *s = data;
	int i;

	s->tid = waits_tid();
	s->number = weft_wait_self();
	CHECK_EQ(s->number, weft_wait_self());
	for (i = 0; i < 2; i++) {
		weft_wait_begin_held(WEFT_WAIT_SEMAPHORE, lock_name, 77, 4711);
		sem_post(&s->ready);
		while (sem_wait(&s->go) < 0)
			;
		weft_wait_end(WEFT_WAIT_SEMAPHORE, 77);
	}
	return NULL;
}

static void sleeper_start(struct sleeper *s, pthread_t *thread)
{
	sem_init(&s->ready, 0, 0);
	sem_init(&s->go, 0, 0);
	CHECK_EQ(pthread_create(thread, NULL, be_sleepy, s), 0);
	while (sem_wait(&s->ready) < 0)
		;
}

TEST(others_see_what_a_thread_waits_for)
{
	struct weft_recorder *rec = start(0);
	struct weft__wait_now now[WAIT_NOW_MAX];
	struct sleeper s;
	pthread_t thread;

	REQUIRE(rec);
	CHECK_EQ(weft__wait_pending(waits_tid(), now, WAIT_NOW_MAX), 0);
	sleeper_start(&s, &thread);
	if (CHECK_EQ(weft__wait_pending(s.tid, now, WAIT_NOW_MAX), 1)) {
		CHECK_EQ(now[0].what, WEFT_WAIT_SEMAPHORE);
		CHECK_EQ(now[0].name, lock_name);
		CHECK_EQ(now[0].object, 77);
		CHECK_EQ(now[0].holder, 4711);
		CHECK(now[0].since && now[0].since <= weft_now_ticks());
	}
	weft_wait_begin_of(s.number, WEFT_WAIT_RUNTIME, lock_name, 88);
	if (CHECK_EQ(weft__wait_pending(s.tid, now, WAIT_NOW_MAX), 2))
		CHECK_EQ(now[1].object, 88);
	weft_wait_end_of(s.number, WEFT_WAIT_RUNTIME, 88);
	CHECK_EQ(weft__wait_pending(s.tid, now, WAIT_NOW_MAX), 1);
	sem_post(&s.go);
	sem_post(&s.go);
	pthread_join(thread, NULL);
	CHECK_EQ(weft__wait_pending(s.tid, now, WAIT_NOW_MAX), 0);
	weft_wait_begin_of(s.number, WEFT_WAIT_RUNTIME, lock_name, 99); /* it has ended: nothing */
	CHECK_EQ(weft__wait_pending(s.tid, now, WAIT_NOW_MAX), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

/* Begun and ended by this thread for one that sleeps: reported by that one when it wakes up. */
TEST(a_wait_that_another_thread_reports)
{
	struct weft_recorder *rec = start(5 * MS);
	struct sleeper s;
	pthread_t thread;
	int i;

	REQUIRE(rec);
	sleeper_start(&s, &thread);
	weft_wait_begin_of(s.number, WEFT_WAIT_RUNTIME, weft_string("gvl"), 1);
	session_sleep_ns(6 * MS);
	weft_wait_end_of(s.number, WEFT_WAIT_RUNTIME, 1);
	for (i = 0; i < 1000; i++) {
		weft_wait_begin_of(s.number, WEFT_WAIT_RUNTIME, weft_string("gvl"), 2);
		weft_wait_end_of(s.number, WEFT_WAIT_RUNTIME, 2);
	}
	sem_post(&s.go);
	sem_post(&s.go);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, "gvl", s.tid);
	CHECK_EQ(w.sum.n_long + w.sum.n_short, 1001);
	if (CHECK(w.sum.n_long >= 1)) {
		CHECK_EQ(w.reported[0].what, WEFT_WAIT_RUNTIME);
		CHECK(w.reported[0].duration_ns >= 6 * MS);
	}
	session_remove_dir();
}

/* This thread gives the lock back and takes it again while the other waits, which others said of it. */
TEST(a_wait_that_another_thread_begins_knows_who_held_the_lock_meanwhile)
{
	struct weft_recorder *rec = start(5 * MS);
	struct sleeper s;
	pthread_t thread;

	REQUIRE(rec);
	sleeper_start(&s, &thread);
	weft_wait_begin_of(s.number, WEFT_WAIT_RUNTIME, weft_string("gvl"), 1); /* nobody has it yet */
	CHECK(weft_lock_waited(1));
	weft_lock_held(1);
	session_sleep_ns(6 * MS);
	weft_lock_released(1);
	weft_wait_end_of(s.number, WEFT_WAIT_RUNTIME, 1);
	weft_wait_begin_of(s.number, WEFT_WAIT_RUNTIME, weft_string("gvl"), 2);
	weft_wait_end_of(s.number, WEFT_WAIT_RUNTIME, 2);
	CHECK(!weft_lock_waited(2));
	weft_wait_begin_of(s.number, WEFT_WAIT_RUNTIME, weft_string("gvl"), 3);
	CHECK(weft_lock_waited(3));
	sem_post(&s.go);
	sem_post(&s.go);
	pthread_join(thread, NULL); /* it reports the first, and the last is never ended */
	CHECK(!weft_lock_waited(1));
	CHECK(!weft_lock_waited(3));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, "gvl", s.tid);
	if (CHECK_EQ(w.n_defined, 1))
		CHECK_EQ(w.reported[0].holder, waits_tid());
	session_remove_dir();
}

static void *wait_for_runtime(void *data)
{
	uint64_t self = weft_wait_self();

	weft_wait_begin_of(self, WEFT_WAIT_RUNTIME, weft_string("gvl"), 1);
	weft_wait_begin(WEFT_WAIT_CONDITION, weft_string("condition"), 2);
	session_sleep_ns(6 * MS);
	weft_wait_end(WEFT_WAIT_CONDITION, 2);
	weft_wait_end_of(self, WEFT_WAIT_RUNTIME, 1);
	weft_wait_begin(WEFT_WAIT_CONDITION, weft_string("condition"), 3);
	session_sleep_ns(6 * MS);
	weft_wait_end(WEFT_WAIT_CONDITION, 3);
	return data;
}

TEST(how_a_runtime_waits_for_its_lock_is_not_recorded_beside_that_wait)
{
	struct weft_recorder *rec = start(5 * MS);
	pthread_t thread;

	REQUIRE(rec);
	REQUIRE(pthread_create(&thread, NULL, wait_for_runtime, NULL) == 0);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, NULL, 0);
	if (CHECK_EQ(w.n_defined, 2)) {
		CHECK_EQ(w.reported[0].what, WEFT_WAIT_RUNTIME);
		CHECK_EQ(w.reported[1].object, 3);
	}
	session_remove_dir();
}

/* The same for one that sleeps on: its waits are reported for it when recording stops. */
TEST(a_wait_that_another_thread_ended_is_recorded_by_the_collector)
{
	struct weft_recorder *rec = start(5 * MS);
	struct sleeper s;
	pthread_t thread;
	int i;

	REQUIRE(rec);
	sleeper_start(&s, &thread);
	weft_wait_begin_of(s.number, WEFT_WAIT_GC, weft_string("gc"), 1);
	session_sleep_ns(6 * MS);
	weft_wait_end_of(s.number, WEFT_WAIT_GC, 1);
	for (i = 0; i < 100; i++) {
		weft_wait_begin_of(s.number, WEFT_WAIT_GC, weft_string("gc"), 2);
		weft_wait_end_of(s.number, WEFT_WAIT_GC, 2);
	}
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	waits_read(&w, "gc", s.tid);
	CHECK_EQ(w.sum.n_long + w.sum.n_short, 101);
	CHECK(w.sum.n_long >= 1 && w.sum.n_short >= 1);
	CHECK(w.sum.long_ns >= 6 * MS);
	sem_post(&s.go);
	sem_post(&s.go);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	waits_read(&w, "gc", s.tid);
	CHECK_EQ(w.sum.n_long + w.sum.n_short, 101);
	session_remove_dir();
}

TEST(a_wait_that_lasts_is_recorded_when_recording_stops)
{
	struct weft_recorder *rec = start(5 * MS);
	struct sleeper s;
	pthread_t thread;

	REQUIRE(rec);
	sleeper_start(&s, &thread);
	session_sleep_ns(8 * MS);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	waits_read(&w, "the_lock", s.tid);
	if (CHECK_EQ(w.n_defined, 1)) {
		CHECK(w.reported[0].duration_ns >= 8 * MS);
		CHECK_EQ(w.reported[0].object, 77);
		CHECK_EQ(w.reported[0].holder, 4711);
	}
	sem_post(&s.go);
	sem_post(&s.go);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

static void *wait_in_vain(void *data)
{
	for (int i = 0; i < 3; i++) {
		weft_wait_begin(WEFT_WAIT_LOCK, lock_name, 1);
		weft_wait_end(WEFT_WAIT_LOCK, 1);
	}
	return data;
}

TEST(waits_of_threads_for_which_there_is_no_place_are_counted)
{
	static uint32_t taken[WAIT_THREADS];
	struct weft_recorder *rec = start(0);
	pthread_t thread;
	uint32_t i;

	REQUIRE(rec);
	for (i = 0; i < WAIT_THREADS; i++)
		if ((taken[i] = !__atomic_load_n(&weft__wait_tids[i], __ATOMIC_RELAXED)))
			__atomic_store_n(&weft__wait_tids[i], UINT32_MAX, __ATOMIC_RELAXED);
	REQUIRE(pthread_create(&thread, NULL, wait_in_vain, NULL) == 0);
	pthread_join(thread, NULL);
	for (i = 0; i < WAIT_THREADS; i++)
		if (taken[i])
			__atomic_store_n(&weft__wait_tids[i], 0, __ATOMIC_RELAXED);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&w.tally, 0);
	tally_dir(&w.tally, session_dir);
	CHECK_EQ(w.tally.by_kind[WEFT_KIND_WAIT] + w.tally.by_kind[WEFT_KIND_WAIT_SUM], 0);
	CHECK_EQ(w.tally.lost, 3);
	CHECK(w.tally.n_losses == 1 && w.tally.losses[0].reason == WEFT_LOSS_NO_RING);
	tally_fini(&w.tally);
	session_remove_dir();
}
