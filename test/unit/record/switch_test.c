/* SPDX-License-Identifier: Apache-2.0 */
/* Off-CPU intervals against what the threads measure themselves: the time that passed, less their CPU time. */
/* serial: it measures real time, to 2 % */
#include "offcpu.h"

#include <linux/futex.h>
#include <sched.h>

#include "record/switch/switch.h"

static struct offcpu result;

static struct weft_recorder *switch_start(uint32_t switches)
{
	return session_start(
		&(struct weft_recorder_opts){.switches = switches, .sample_hz = 99, .budget_ppm = WEFT_OFF});
}

struct napper {
	uint32_t tid;
	uint64_t from_ns, to_ns, off_ns;
	int n;
	uint64_t ns;
};

static void *nap_main(void *data)
{
	struct napper *napper = data;
	struct offcpu_truth begin;

	napper->tid = samples_tid();
	begin = offcpu_truth();
	for (int i = 0; i < napper->n; i++) {
		session_sleep_ns(napper->ns);
		samples_spin(1000);
	}
	napper->off_ns = offcpu_until(&begin, &napper->to_ns);
	napper->from_ns = begin.wall_ns;
	return NULL;
}

TEST(sleeps_are_intervals_of_the_right_length)
{
	struct napper nappers[3] = {{.n = 40, .ns = 5 * MS}, {.n = 100, .ns = 2 * MS}, {.n = 1, .ns = 200 * MS}};
	struct weft_recorder *rec = switch_start(WEFT_SWITCH_AUTO);
	uint64_t stolen = session_stolen_ns();
	pthread_t threads[3];

	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, nap_main, &nappers[i]), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		offcpu_window(nappers[i].tid, nappers[i].from_ns, nappers[i].to_ns);
	}
	stolen = session_stolen_ns() - stolen;
	offcpu_end(&result, rec, NULL, 0);
	CHECK_STR(result.mode, "intervals");
	CHECK_STR(result.degraded, "");
	CHECK_EQ(result.lost, 0);
	CHECK_EQ(result.late, 0);
	for (int i = 0; i < 3; i++) {
		struct offcpu_thread *thread = offcpu_thread(&result, nappers[i].tid);

		printf("\t%d sleeps of %llu us: %llu intervals, %.3f ms of %.3f\n", nappers[i].n,
		       (unsigned long long)nappers[i].ns / 1000, (unsigned long long)thread->n,
		       (double)thread->ns / 1e6, (double)nappers[i].off_ns / 1e6);
		CHECK(thread->n_by_reason[WEFT_OFFCPU_BLOCKED] >= (uint64_t)nappers[i].n);
		CHECK_EQ(thread->overlaps, 0);
		CHECK(offcpu_near(thread->ns, nappers[i].off_ns, stolen));
		/* That it slept is sure; that nobody took its CPU in between is not. */
		CHECK(thread->by_reason[WEFT_OFFCPU_BLOCKED] >= (uint64_t)nappers[i].n * nappers[i].ns * 98 / 100);
	}
}

struct burner {
	uint32_t tid;
	uint64_t from_ns, to_ns, off_ns;
	pthread_barrier_t *both;
};

static void *share_main(void *data)
{
	struct burner *burner = data;
	struct offcpu_truth begin;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	burner->tid = samples_tid();
	pthread_barrier_wait(burner->both);
	begin = offcpu_truth();
	while (samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin.cpu_ns < SCALED(250, 150) * MS)
		samples_spin(20000);
	burner->off_ns = offcpu_until(&begin, &burner->to_ns);
	burner->from_ns = begin.wall_ns;
	return NULL;
}

TEST(two_busy_threads_on_one_cpu_are_preempted)
{
	struct weft_recorder *rec = switch_start(WEFT_SWITCH_INTERVALS);
	uint64_t stolen = session_stolen_ns();
	pthread_barrier_t both;
	struct burner burners[2] = {{.both = &both}, {.both = &both}};
	pthread_t threads[2];

	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, share_main, &burners[i]), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		offcpu_window(burners[i].tid, burners[i].from_ns, burners[i].to_ns);
	}
	stolen = session_stolen_ns() - stolen;
	offcpu_end(&result, rec, NULL, 0);
	CHECK_EQ(result.lost, 0);
	for (int i = 0; i < 2; i++) {
		struct offcpu_thread *thread = offcpu_thread(&result, burners[i].tid);
		uint64_t preempted = thread->by_reason[WEFT_OFFCPU_PREEMPTED];

		printf("\t%llu intervals, preempted %.3f ms, blocked %.3f, truth %.3f\n", (unsigned long long)thread->n,
		       (double)preempted / 1e6, (double)thread->by_reason[WEFT_OFFCPU_BLOCKED] / 1e6,
		       (double)burners[i].off_ns / 1e6);
		CHECK(preempted > 20 * MS);
		CHECK_EQ(thread->overlaps, 0);
		CHECK(offcpu_near(preempted, burners[i].off_ns, stolen));
	}
	pthread_barrier_destroy(&both);
}

#define SLEEPS 50

BURNER(block_in_a_known_place)(int *n)
{
	for (int i = 0; i < SLEEPS; i++) {
		session_sleep_ns(MS);
		*n += 1;
	}
}

/* So much stack below the sleep that a copy of its top does not reach the thread's beginning. */
BURNER(block_far_up)(int *n)
{
	volatile char much[40000];

	much[0] = 1;
	session_sleep_ns(MS);
	*n += much[0];
	much[sizeof(much) - 1] = 2;
}

static void *block_main(void *data)
{
	uint32_t *tid = data;
	int n = 0;

	*tid = samples_tid();
	block_in_a_known_place(&n);
	for (int i = 0; i < 10; i++)
		block_far_up(&n);
	return NULL;
}

TEST(with_stacks_each_interval_says_where_it_blocked)
{
	struct samples_function functions[] = {RANGE(block_in_a_known_place), RANGE(block_far_up)};
	struct weft_recorder *rec = switch_start(WEFT_SWITCH_STACKS);
	struct offcpu_thread *thread;
	pthread_t blocker;
	uint32_t tid;

	REQUIRE(rec);
	CHECK(WAIT_FOR(samples_tables())); /* a start does not wait for all of them */
	CHECK_EQ(pthread_create(&blocker, NULL, block_main, &tid), 0);
	pthread_join(blocker, NULL);
	offcpu_end(&result, rec, functions, 2);
	if (strcmp(result.mode, "stacks") != 0) {
		CHECK(strstr(result.degraded, "no stacks of context switches") != NULL);
		SKIP("context switches cannot be sampled here");
	}
	thread = offcpu_thread(&result, tid);
	printf("\t%llu intervals, %llu stacks (%llu complete, %llu cut), %llu of the kernel; %llu and %llu in the "
	       "places\n",
	       (unsigned long long)thread->n, (unsigned long long)thread->stacks, (unsigned long long)thread->complete,
	       (unsigned long long)thread->cut, (unsigned long long)thread->kernel,
	       (unsigned long long)functions[0].total, (unsigned long long)functions[1].total);
	CHECK_EQ(result.lost, 0);
	CHECK(thread->n >= SLEEPS + 10);
	CHECK(thread->stacks >= SLEEPS + 8);
	CHECK(thread->kernel >= SLEEPS + 8);
	SKIP_UNDER_TSAN(); /* which sleeps somewhere else */
	CHECK(functions[0].total >= SLEEPS - 1);
	CHECK(functions[0].total_ns >= SLEEPS * MS * 9 / 10);
	CHECK(thread->complete >= SLEEPS - 1);
	CHECK(functions[1].total >= 9);
	CHECK(thread->cut >= 9);
}

static uint32_t ball; /* whose turn it is */

static void *ball_main(void *data)
{
	struct napper *napper = data;
	uint32_t me = (uint32_t)napper->n;
	struct offcpu_truth begin;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	napper->tid = samples_tid();
	begin = offcpu_truth();
	while (session_now_ns() - begin.wall_ns < napper->ns) {
		while (__atomic_load_n(&ball, __ATOMIC_ACQUIRE) == !me)
			syscall(SYS_futex, &ball, FUTEX_WAIT_PRIVATE, !me, NULL, NULL, 0);
		if (!__atomic_compare_exchange_n(&ball, &me, !me, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			break; /* the other one has gone */
		syscall(SYS_futex, &ball, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	__atomic_store_n(&ball, 2, __ATOMIC_RELEASE);
	syscall(SYS_futex, &ball, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	napper->off_ns = offcpu_until(&begin, &napper->to_ns);
	napper->from_ns = begin.wall_ns;
	return NULL;
}

TEST(with_more_switches_than_stacks_can_be_taken_the_intervals_stay)
{
	struct weft_recorder *rec = switch_start(WEFT_SWITCH_STACKS);
	struct napper players[2] = {{.n = 0, .ns = 400 * MS}, {.n = 1, .ns = 400 * MS}};
	uint64_t n = 0, stacks = 0;
	pthread_t threads[2];

	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	ball = 0;
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, ball_main, &players[i]), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		offcpu_window(players[i].tid, players[i].from_ns, players[i].to_ns);
	}
	offcpu_end(&result, rec, NULL, 0);
	for (int i = 0; i < 2; i++) {
		struct offcpu_thread *thread = offcpu_thread(&result, players[i].tid);

		printf("\t%llu intervals, %llu stacks, %.1f ms of %.1f, %llu lost\n", (unsigned long long)thread->n,
		       (unsigned long long)thread->stacks, (double)thread->ns / 1e6, (double)players[i].off_ns / 1e6,
		       (unsigned long long)result.lost);
		CHECK_EQ(thread->overlaps, 0);
		/* A switch takes some time that is CPU time and between the two records. */
		CHECK(thread->ns <= players[i].off_ns + thread->n * 10000);
		n += thread->n;
		stacks += thread->stacks;
	}
	CHECK(n > 0);
	if (strcmp(result.mode, "stacks") == 0 && n > 40000)
		CHECK(stacks < n / 2);
}
