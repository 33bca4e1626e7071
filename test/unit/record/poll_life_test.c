/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of polls through all that can happen to a thread and a process: none is lost, none is doubled. */
#include "polls.h"

#include <signal.h>
#include <sys/mman.h>

static struct weft_recorder *start(uint32_t mode)
{
	struct weft_recorder_opts opts = {.poll_mode = mode};

	return session_start(&opts);
}

#define THREADS 40
#define ROUNDS 5

static void *some_polls(void *data)
{
	polls_make(1, MS, 1 + (uint32_t)(uintptr_t)data);
	return NULL;
}

TEST(a_thread_that_ends_leaves_its_counts_under_its_own_name)
{
	struct weft_recorder *rec = start(WEFT_POLLS_SLOW);
	uint64_t of_size[THREADS + 2] = {0};
	struct polls_seen *seen;
	uintptr_t i, k;

	REQUIRE(rec);
	for (k = 0; k < ROUNDS; k++) {
		pthread_t threads[THREADS];

		for (i = 0; i < THREADS; i++) /* one after the other: the same ring for all, if it comes so */
			CHECK_EQ(pthread_create(&threads[i], NULL, some_polls, (void *)i), 0);
		for (i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, ROUNDS * THREADS * (THREADS + 1) / 2);
	for (i = 0; i < POLLS_THREADS; i++)
		if (seen->by_thread[i] && CHECK(seen->by_thread[i] <= THREADS))
			of_size[seen->by_thread[i]]++;
	for (i = 1; i <= THREADS; i++)
		CHECK_EQ(of_size[i], ROUNDS);
	free(seen);
}

TEST(a_child_counts_its_own)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_SLOW, .on_fork = WEFT_FORK_RESTART};
	struct weft_recorder *rec = session_start(&opts);
	struct polls_seen *seen;
	pid_t pid;

	REQUIRE(rec);
	if (UNDER_TSAN) {
		weft_recorder_close(rec, NULL);
		session_remove_dir();
		SKIP("ThreadSanitizer allows no threads in a child");
	}
	polls_make(1, 20 * MS, 3);
	weft_poll_begin(2, 0);
	pid = fork(); /* and this poll of the parent may take long */
	if (!pid) {
		alarm(20);
		weft_poll_end(); /* of the parent's */
		polls_make(3, 20 * MS, 4);
		_exit(weft_recorder_close(rec, NULL) ? 1 : 0);
	}
	CHECK_EQ(session_wait(pid), 0);
	weft_poll_end();
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, 3 + 1 + 4);
	CHECK(seen->n == 7 || seen->n == 8);
	free(seen);
}

TEST(what_was_counted_survives_a_kill)
{
	struct polls_seen *seen;
	pid_t pid;

	session_fresh_dir();
	pid = fork();
	if (!pid) {
		struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_SLOW, .poll_cap = 2, .dir = session_dir};
		struct weft_recorder *rec = session_start(&opts);

		alarm(20);
		polls_make(1, MS, 100);
		if (!rec || weft_recorder_rotate(rec, NULL, 0, NULL))
			_exit(1);
		polls_make(1, MS, 10);
		polls_make(2, 20 * MS, 5);
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(session_wait(pid), -1);
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	seen = polls_read();
	session_remove_dir();
	REQUIRE(seen);
	CHECK_EQ(seen->sums[0], 100);
	CHECK_EQ(seen->sums[1], 15);
	CHECK_EQ(seen->by_bucket[weft__polls_bucket(20 * MS)], 5);
	CHECK_EQ(seen->n, 2);
	CHECK_EQ(seen->tally.lost, 3);
	free(seen);
}

static int stop_polling;

static void *poll_fast(void *data)
{
	uint64_t n = 0;

	(void)data;
	while (!__atomic_load_n(&stop_polling, __ATOMIC_RELAXED)) {
		weft_poll_begin(n, 0);
		weft_poll_next(n, 0);
		weft_poll_begin(n, 0);
		weft_poll_end();
		weft_poll_end();
		n += 3;
	}
	return (void *)(uintptr_t)n;
}

TEST(no_poll_is_lost_or_doubled_while_the_collector_reports_counts)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_SLOW, .flush_ns = MS, .drain_ns = MS};
	struct weft_recorder *rec = session_start(&opts);
	struct polls_seen *seen;
	pthread_t threads[3];
	uint64_t made = 0;
	int i;

	REQUIRE(rec);
	stop_polling = 0;
	for (i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, poll_fast, NULL), 0);
	for (i = 0; i < SCALED(30, 8); i++)
		CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	__atomic_store_n(&stop_polling, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++) {
		void *n = NULL;

		pthread_join(threads[i], &n);
		made += (uintptr_t)n;
	}
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, made);
	free(seen);
}

static volatile uint64_t handled;

static void handler_with_polls(int signal)
{
	(void)signal;
	weft_poll_begin(1, 0);
	weft_poll_begin(1, 0);
	weft_poll_end();
	weft_poll_next(1, 0);
	weft_poll_end();
	handled += 3;
}

static void *pester(void *data)
{
	pthread_t victim = *(pthread_t *)data;

	while (!__atomic_load_n(&stop_polling, __ATOMIC_RELAXED))
		pthread_kill(victim, SIGUSR1);
	return NULL;
}

TEST(handlers_may_have_polls)
{
	struct weft_recorder *rec = start(WEFT_POLLS_SLOW);
	struct sigaction action = {.sa_handler = handler_with_polls}, before;
	pthread_t self = pthread_self(), thread;
	struct polls_seen *seen;
	uint64_t made = 0, until = session_now_ns() + SCALED(300, 500) * MS;

	REQUIRE(rec);
	handled = 0;
	stop_polling = 0;
	sigaction(SIGUSR1, &action, &before);
	CHECK_EQ(pthread_create(&thread, NULL, pester, &self), 0);
	while (session_now_ns() < until || (!handled && session_now_ns() < until + 10000 * MS)) {
		weft_poll_begin(2, 0);
		weft_poll_next(2, 0);
		weft_poll_end();
		made += 2;
	}
	__atomic_store_n(&stop_polling, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	sigaction(SIGUSR1, &before, NULL);
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK(handled > 0);
	CHECK_EQ(seen->counted, made + handled);
	free(seen);
}

struct shared_counts {
	uint64_t made[2]; /* by each thread, once the poll is over */
};

static struct shared_counts *shared_counts;

static void *poll_and_say(void *data)
{
	uint64_t *made = &shared_counts->made[(uintptr_t)data];

	for (;;) {
		weft_poll_begin(1, 0);
		weft_poll_end();
		__atomic_store_n(made, *made + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void poll_until_killed(void)
{
	struct weft_recorder_opts opts = {
		.poll_mode = WEFT_POLLS_SLOW, .dir = session_dir, .flush_ns = MS, .drain_ns = MS};
	struct weft_recorder *rec = session_start(&opts);
	pthread_t thread;

	alarm(20);
	if (!rec || pthread_create(&thread, NULL, poll_and_say, (void *)(uintptr_t)1))
		_exit(1);
	poll_and_say((void *)(uintptr_t)0);
}

TEST(a_kill_at_any_time_costs_no_more_than_the_poll_that_it_hits)
{
	uint64_t sum, made;
	int i;

	shared_counts = mmap(NULL, sizeof(*shared_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared_counts != MAP_FAILED);
	for (i = 0; i < SCALED(8, 3); i++) {
		struct polls_seen *seen;
		pid_t pid;

		session_fresh_dir();
		memset(shared_counts, 0, sizeof(*shared_counts));
		pid = fork();
		if (!pid)
			poll_until_killed();
		CHECK(WAIT_FOR(__atomic_load_n(&shared_counts->made[1], __ATOMIC_ACQUIRE) > 1000));
		session_sleep_ns((uint64_t)i * 1300000);
		kill(pid, SIGKILL);
		CHECK_EQ(session_wait(pid), -1);
		CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
		seen = polls_read();
		session_remove_dir();
		REQUIRE(seen);
		sum = seen->counted;
		made = shared_counts->made[0] + shared_counts->made[1];
		CHECK(sum + 2 >= made && sum <= made + 2);
		free(seen);
	}
	munmap(shared_counts, sizeof(*shared_counts));
}
