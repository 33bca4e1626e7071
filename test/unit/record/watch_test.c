/* SPDX-License-Identifier: Apache-2.0 */
/* Polls that do not end are reported while they last. */
/* serial: waits for polls to grow old */
#include "base/atomic.h"
#include "walls.h"

#define STUCK_NS (40 * MS)

static int pipe_fds[2];
static uint32_t go_on, tid;
static struct walls result;

BURNER(stuck_waits)(void)
{
	char byte;

	(void)!read(pipe_fds[0], &byte, 1);
	__asm__ volatile("" ::: "memory");
}

BURNER(stuck_outer)(void)
{
	stuck_waits();
	__asm__ volatile("" ::: "memory");
}

static struct samples_function functions[] = {RANGE(stuck_outer), RANGE(stuck_waits)};

static struct weft_recorder *watch_start_at(uint64_t stuck_ns, uint32_t mode, uint64_t sample_hz)
{
	CHECK_EQ(pipe(pipe_fds), 0);
	store_release(&go_on, 0u);
	store_release(&tid, 0u);
	return session_start(&(struct weft_recorder_opts){.stuck_ns = stuck_ns,
							  .poll_mode = mode,
							  .sample_hz = sample_hz,
							  .wall_hz = WEFT_OFF,
							  .flush_ns = 60000 * MS});
}

static struct weft_recorder *watch_start(uint32_t mode, uint64_t sample_hz)
{
	return watch_start_at(STUCK_NS, mode, sample_hz);
}

static struct walls_thread *watch_end(struct weft_recorder *rec)
{
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	walls_end(&result, rec, functions, 2);
	return walls_thread(&result, tid);
}

/* What can be read in the active segment, while it is written. */
static struct walls_thread *so_far(void)
{
	walls_read_active(&result, session_dir, functions, 2);
	return walls_thread(&result, load_acquire(&tid));
}

static void *blocked_main(void *data)
{
	(void)data;
	weft_poll_begin(7, 0);
	weft_poll_end();
	weft_poll_next(42, 0);
	store_release(&tid, samples_tid());
	stuck_outer();
	weft_poll_end();
	return NULL;
}

static void blocked(uint32_t mode, uint64_t sample_hz)
{
	struct weft_recorder *rec = watch_start(mode, sample_hz);
	struct walls_thread *t;
	pthread_t thread;
	uint64_t from = session_now_ns(), took;

	if (!CHECK(rec))
		return;
	CHECK_EQ(pthread_create(&thread, NULL, blocked_main, NULL), 0);
	CHECK(WAIT_FOR(so_far()->stuck >= 3 && so_far()->stuck_in_order));
	t = so_far();
	printf("\ttold %llu times by now, the last at %.1f ms; %llu with the stack\n", (unsigned long long)t->stuck,
	       (double)t->stuck_age / 1e6, (unsigned long long)t->stuck_in_order);
	CHECK_EQ(t->stuck_task, 42);
	CHECK(t->stuck_age >= 4 * STUCK_NS * 8 / 10);
	CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
	pthread_join(thread, NULL);
	took = session_now_ns() - from;
	t = watch_end(rec);
	CHECK(t->stuck_age <= took);
	/* Not more than at each doubling, and once more for a stack. */
	CHECK(t->stuck <= 3 + (uint64_t)(63 - __builtin_clzll(took / STUCK_NS + 1)));
}

TEST(a_poll_that_is_blocked_is_recorded_with_its_stack_while_it_is)
{
	blocked(WEFT_POLLS_ALL, 99);
}

TEST(a_poll_that_is_blocked_has_its_stack_without_samples_too)
{
	blocked(WEFT_POLLS_ALL, WEFT_OFF);
}

TEST(when_only_slow_polls_are_recorded)
{
	blocked(WEFT_POLLS_SLOW, 99);
}

TEST(when_only_caught_polls_are_recorded)
{
	blocked(WEFT_POLLS_CAUGHT, 99);
}

static void *burning_main(void *data)
{
	(void)data;
	weft_poll_begin(43, 0);
	store_release(&tid, samples_tid());
	while (!load_acquire(&go_on))
		samples_spin(1000);
	weft_poll_end();
	return NULL;
}

/* Its stack is in the CPU samples. */
TEST(a_poll_that_burns_is_recorded_without_a_stack)
{
	struct weft_recorder *rec = watch_start(WEFT_POLLS_ALL, UNDER_TSAN ? WEFT_OFF : 99);
	struct walls_thread *t;
	pthread_t thread;

	REQUIRE(rec);
	CHECK_EQ(pthread_create(&thread, NULL, burning_main, NULL), 0);
	CHECK(WAIT_FOR(so_far()->stuck >= 2));
	t = so_far(); /* once: the next reading may have one more */
	CHECK_EQ(t->stuck_task, 43);
	CHECK_EQ(t->stuck_no_stack, t->stuck);
	store_release(&go_on, 1u);
	pthread_join(thread, NULL);
	watch_end(rec);
}

static void *nested_main(void *data)
{
	(void)data;
	weft_poll_begin(44, 0);
	store_release(&tid, samples_tid());
	while (!load_acquire(&go_on)) {
		weft_poll_begin(45, 0);
		session_sleep_ns(MS);
		weft_poll_next(46, 0);
		weft_poll_end();
	}
	weft_poll_end();
	return NULL;
}

TEST(of_polls_within_polls_the_outermost_is_recorded)
{
	static const uint32_t modes[] = {WEFT_POLLS_ALL, WEFT_POLLS_CAUGHT};

	for (int i = 0; i < 2; i++) {
		struct weft_recorder *rec = watch_start(modes[i], WEFT_OFF);
		pthread_t thread;

		REQUIRE(rec);
		CHECK_EQ(pthread_create(&thread, NULL, nested_main, NULL), 0);
		CHECK(WAIT_FOR(so_far()->stuck >= 2));
		CHECK_EQ(so_far()->stuck_task, 44);
		store_release(&go_on, 1u);
		pthread_join(thread, NULL);
		watch_end(rec);
	}
}

static void *short_polls_main(void *data)
{
	uint64_t *longest = data, from, took;

	store_release(&tid, samples_tid());
	for (uint64_t i = 0; !load_acquire(&go_on); i++) {
		from = session_now_ns();
		weft_poll_begin(100 + i, 0);
		session_sleep_ns(2 * MS);
		weft_poll_end();
		took = session_now_ns() - from;
		*longest = took > *longest ? took : *longest;
		if (i % 3 == 0)
			session_sleep_ns(2 * MS);
	}
	return NULL;
}

/* Begins and ends that fall into a pause are not seen. */
TEST(short_polls_are_not_recorded_and_a_pause_makes_none_long)
{
	static const uint32_t modes[] = {WEFT_POLLS_ALL, WEFT_POLLS_SLOW};

	for (int m = 0; m < 2; m++) {
		struct weft_recorder *rec = watch_start_at(300 * MS, modes[m], WEFT_OFF);
		uint64_t longest = 0;
		pthread_t thread;

		REQUIRE(rec);
		CHECK_EQ(pthread_create(&thread, NULL, short_polls_main, &longest), 0);
		for (int i = 0; i < 8; i++) {
			session_sleep_ns(5 * MS + (uint64_t)i * MS / 3);
			CHECK_EQ(weft_recorder_pause(rec), 0);
			session_sleep_ns(10 * MS);
			CHECK_EQ(weft_recorder_start(rec, NULL), 0);
		}
		session_sleep_ns(700 * MS);
		store_release(&go_on, 1u);
		pthread_join(thread, NULL);
		CHECK(watch_end(rec)->stuck == 0 || longest >= 300 * MS); /* a machine may make one long */
	}
}
