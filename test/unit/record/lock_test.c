/* SPDX-License-Identifier: Apache-2.0 */
/* Who held a lock while others waited for it, over the length of the wait. */
#include <semaphore.h>

#include "record/wait/wait.h"
#include "waits.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK ((uint64_t)(uintptr_t)&lock)
#define HELDS 64

/* What the events `held` of this thread say. */
static struct helds {
	uint32_t n, n_wait;
	struct {
		uint32_t holder;
		uint64_t object, begin_ns, end_ns, ns;
	} at[HELDS];
	uint32_t last_holder; /* that the last wait says */
	uint64_t end_ns, duration_ns;
	struct tally tally;
} helds;

static void helds_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct helds *to = data;

	if (weft_segment_thread(seg, ev->thread)->tid != waits_tid())
		return; /* others waited, too, and not for the same time */
	if (ev->kind == WEFT_KIND_HELD && to->n < HELDS) {
		to->at[to->n].holder = (uint32_t)ev->fields[0];
		to->at[to->n].object = ev->fields[1];
		to->at[to->n].end_ns = ev->time_ns - ev->fields[2];
		to->at[to->n].begin_ns = ev->time_ns - ev->fields[2] - ev->fields[3];
		to->at[to->n++].ns = ev->fields[4];
	}
	if (ev->kind == WEFT_KIND_WAIT && ev->fields[2] == LOCK) {
		to->n_wait++;
		to->last_holder = (uint32_t)ev->fields[4];
		to->end_ns = ev->time_ns;
		to->duration_ns = ev->fields[3];
	}
}

static void helds_read(void)
{
	memset(&helds, 0, sizeof(helds));
	tally_init(&helds.tally, 0);
	helds.tally.each = helds_event;
	helds.tally.data = &helds;
	tally_dir(&helds.tally, session_dir);
	CHECK_EQ(helds.tally.damaged, 0);
	tally_fini(&helds.tally);
}

static uint64_t held_ns(uint32_t holder)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < helds.n; i++)
		ns += helds.at[i].holder == holder ? helds.at[i].ns : 0;
	return ns;
}

static void take(void)
{
	pthread_mutex_lock(&lock);
	weft_lock_held(LOCK);
}

static void give(void)
{
	weft_lock_released(LOCK);
	pthread_mutex_unlock(&lock);
}

static int marked(void)
{
	return weft_lock_waited(LOCK);
}

/* A holder: for how long it is to hold the lock, and when it did. */
struct hand {
	uint64_t hold_ns;
	uint32_t tid, times;
	uint64_t begin_ns, end_ns;
};

static sem_t first_has, second_waits;

static void *first(void *data)
{
	struct hand *hand = data;

	hand->tid = waits_tid();
	take();
	sem_post(&first_has);
	while (sem_wait(&second_waits) < 0)
		;
	CHECK(WAIT_FOR((weft_lock_marks[weft_wait_hash(LOCK) >> 52] & 4095) == 2)); /* both wait */
	session_sleep_ns(hand->hold_ns);
	give();
	hand->end_ns = session_now_ns();
	return NULL;
}

static void *second(void *data)
{
	struct hand *hand = data;

	hand->tid = waits_tid();
	for (uint32_t i = 0; i < hand->times; i++) {
		weft_wait_begin(WEFT_WAIT_LOCK, weft_string("lock"), LOCK);
		take();
		weft_wait_end(WEFT_WAIT_LOCK, LOCK);
		__atomic_store_n(&hand->begin_ns, session_now_ns(), __ATOMIC_RELAXED);
		session_sleep_ns(hand->hold_ns);
		hand->end_ns = session_now_ns();
		give();
	}
	return NULL;
}

TEST(after_a_hand_off_each_holder_has_its_own_time)
{
	struct weft_recorder *rec =
		session_start(&(struct weft_recorder_opts){.wait_ns = 10 * MS, .sample_hz = WEFT_OFF});
	struct hand a = {.hold_ns = 5 * MS}, b = {.hold_ns = 30 * MS, .times = 1};
	pthread_t threads[2];
	uint64_t since, until;

	REQUIRE(rec);
	sem_init(&first_has, 0, 0);
	sem_init(&second_waits, 0, 0);
	REQUIRE(pthread_create(&threads[0], NULL, first, &a) == 0);
	while (sem_wait(&first_has) < 0)
		;
	REQUIRE(pthread_create(&threads[1], NULL, second, &b) == 0);
	CHECK(WAIT_FOR(marked()));
	since = session_now_ns();
	weft_wait_begin(WEFT_WAIT_LOCK, weft_string("lock"), LOCK);
	sem_post(&second_waits);
	/* Behind the second, whichever way the lock goes: it is only tried for once the second has had it. */
	pthread_join(threads[0], NULL);
	CHECK(WAIT_FOR(__atomic_load_n(&b.begin_ns, __ATOMIC_RELAXED) != 0));
	take();
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	until = session_now_ns();
	give();
	pthread_join(threads[1], NULL);
	CHECK(!marked());
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	helds_read();
	CHECK_EQ(helds.last_holder, b.tid);
	for (uint32_t i = 0; i < helds.n; i++) {
		CHECK_EQ(helds.at[i].object, LOCK);
		CHECK(helds.at[i].begin_ns + MS >= since);
		CHECK(helds.at[i].end_ns <= until + MS);
	}
	CHECK(held_ns(a.tid) >= 4 * MS);
	CHECK(waits_near(held_ns(b.tid), b.end_ns - b.begin_ns, 5));
	CHECK(held_ns(a.tid) <= a.end_ns - since + MS);
	session_remove_dir();
}

TEST(a_wait_that_is_said_afterwards_knows_the_holders_of_a_lock_that_was_watched)
{
	struct weft_recorder *rec =
		session_start(&(struct weft_recorder_opts){.wait_ns = 10 * MS, .sample_hz = WEFT_OFF});
	struct hand b = {.hold_ns = 30 * MS, .times = 1};
	pthread_t thread;
	uint64_t since;

	REQUIRE(rec);
	since = weft_wait_since();
	weft_lock_watch(LOCK);
	REQUIRE(pthread_create(&thread, NULL, second, &b) == 0);
	pthread_join(thread, NULL);
	weft_waited(WEFT_WAIT_LOCK, weft_string("lock"), LOCK, 0, since);
	CHECK(marked());
	weft_lock_unwatch(LOCK);
	CHECK(!marked());
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	helds_read();
	CHECK_EQ(helds.last_holder, b.tid);
	CHECK(waits_near(held_ns(b.tid), b.end_ns - b.begin_ns, 5));
	session_remove_dir();
}

TEST(one_that_takes_it_again_and_again_is_one_holder)
{
	struct weft_recorder *rec =
		session_start(&(struct weft_recorder_opts){.wait_ns = 10 * MS, .sample_hz = WEFT_OFF});
	uint64_t all_ns = 0, from;

	REQUIRE(rec);
	take();
	weft_wait_begin(WEFT_WAIT_LOCK, weft_string("lock"), LOCK); /* of nobody who will ever have it */
	give();
	for (int i = 0; i < 100; i++) {
		from = session_now_ns();
		take();
		session_sleep_ns(MS / 5);
		give();
		all_ns += session_now_ns() - from;
	}
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	CHECK(!marked());
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	helds_read();
	CHECK_EQ(helds.n_wait, 1);
	CHECK(helds.n >= 1 && helds.n <= WAIT_HOLDS_MAX);
	CHECK_EQ(helds.last_holder, waits_tid());
	CHECK(held_ns(waits_tid()) <= all_ns + MS);
	/* A machine that stands still between two holds makes two of one; the log then has the last of them only. */
	CHECK(held_ns(waits_tid()) > all_ns / 20);
	session_remove_dir();
}

TEST(without_a_word_of_the_holders_it_is_who_had_it_at_first)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.wait_ns = MS, .sample_hz = WEFT_OFF});

	REQUIRE(rec);
	weft_wait_begin_held(WEFT_WAIT_LOCK, weft_string("lock"), LOCK, 4711);
	session_sleep_ns(2 * MS);
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	CHECK(!marked());
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	helds_read();
	CHECK_EQ(helds.n, 0);
	CHECK_EQ(helds.last_holder, 4711);
	session_remove_dir();
}

TEST(a_lock_that_is_given_up_names_its_holder)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.wait_ns = MS, .sample_hz = WEFT_OFF});

	REQUIRE(rec);
	weft_wait_begin_held(WEFT_WAIT_LOCK, weft_string("lock"), LOCK, WEFT_HOLDER_ASK);
	session_sleep_ns(2 * MS);
	weft_slow_lock_seen(LOCK, 4712);
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	helds_read();
	CHECK_EQ(helds.last_holder, 4712);
	CHECK(held_ns(4712) >= 19 * MS / 10);
	session_remove_dir();
}

TEST(marks_go_with_waits_that_are_left_and_with_recording)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.wait_ns = MS, .sample_hz = WEFT_OFF});

	REQUIRE(rec);
	weft_wait_begin(WEFT_WAIT_RUNTIME, 0, 1);
	weft_wait_begin_held(WEFT_WAIT_LOCK, 0, LOCK, 4711); /* left by longjmp, as it were */
	CHECK(marked());
	weft_wait_end(WEFT_WAIT_RUNTIME, 1);
	CHECK(!marked());
	weft_wait_begin_held(WEFT_WAIT_LOCK, 0, LOCK, 4711);
	CHECK(marked());
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	CHECK(!marked());
	session_remove_dir();
}

/* Two locks in one place: the first has it. */
TEST(a_lock_whose_place_is_taken_leaves_the_other_alone)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.wait_ns = MS, .sample_hz = WEFT_OFF});
	uint64_t other = 1;

	REQUIRE(rec);
	while (weft_wait_hash(other) >> 52 != weft_wait_hash(LOCK) >> 52)
		other++;
	weft_wait_begin_held(WEFT_WAIT_LOCK, 0, LOCK, 4711);
	weft_wait_begin_held(WEFT_WAIT_LOCK, 0, other, 4712);
	CHECK(marked());
	CHECK(!weft_lock_waited(other));
	weft_wait_end(WEFT_WAIT_LOCK, other);
	CHECK(marked());
	weft_wait_end(WEFT_WAIT_LOCK, LOCK);
	CHECK(!marked());
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}
