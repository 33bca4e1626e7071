/* SPDX-License-Identifier: Apache-2.0 */
/* A program that works at a fixed pace, for what weft costs it with default options: bench_default WHAT SECONDS
 * [DIR]
 *
 * With DIR it records there, without it nothing is ever recorded and each call of an event is one load and one
 * branch. WHAT: `events`, 2 M of them a second on 4 threads; `switches`, 200,000 a second between two threads on one
 * CPU; `threads`, 1,500 of them that wake 20 times a second. bench/default.py runs it both ways and compares the CPU
 * time of the processes from outside. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define EVENT_THREADS 4
#define EVENTS_A_MS 500
#define HANDS_A_MS 100 /* to and fro: two switches each */
#define THREADS 1500
#define THREAD_MS 50
#define WORK 2000 /* steps of a thread that woke, about 5 us */

struct job {
	pthread_t thread;
	uint32_t number;
	uint64_t begin_ns, end_ns;
};

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != 0)
		;
}

static void *events(void *data)
{
	struct job *job = data;
	uint64_t random = job->number;

	for (uint64_t at = job->begin_ns; at < job->end_ns; at += 1000000) {
		sleep_until(at);
		for (uint32_t i = 0; i < EVENTS_A_MS / 5; i++) {
			uint64_t task;

			random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			task = job->number << 16 | (random >> 40 & 511);
			weft_wake(task, job->number);
			weft_poll_begin(task, random >> 50 & 7);
			weft_wake(job->number << 16 | (random >> 55), job->number);
			weft_poll_end();
			weft_queue_depth(0, random >> 60);
		}
	}
	return NULL;
}

static uint32_t turn; /* of the two threads, whose it is; 2: it is over */

static void hand_over(uint32_t to)
{
	__atomic_store_n(&turn, to, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int wait_turn(uint32_t own)
{
	uint32_t now;

	while ((now = __atomic_load_n(&turn, __ATOMIC_SEQ_CST)) != own && now != 2)
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
	return now == own;
}

static void *switches(void *data)
{
	struct job *job = data;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (job->number) {
		while (wait_turn(1))
			hand_over(0);
		return NULL;
	}
	for (uint64_t at = job->begin_ns; at < job->end_ns; at += 1000000) {
		sleep_until(at);
		for (int i = 0; i < HANDS_A_MS; i++) {
			hand_over(1);
			wait_turn(0);
		}
	}
	hand_over(2);
	return NULL;
}

static void *threads(void *data)
{
	struct job *job = data;

	for (uint64_t at = job->begin_ns; at < job->end_ns; at += THREAD_MS * UINT64_C(1000000)) {
		sleep_until(at);
		weft_poll_begin(job->number, 0);
		for (volatile int i = 0; i < WORK; i++)
			;
		weft_poll_end();
	}
	return NULL;
}

static const struct {
	const char *name;
	void *(*run)(void *);
	uint32_t n;
} kinds[] = {{"events", events, EVENT_THREADS}, {"switches", switches, 2}, {"threads", threads, THREADS}};

int main(int argc, char **argv)
{
	static struct job jobs[THREADS];
	struct weft_recorder *rec = NULL;
	struct weft_error err;
	pthread_attr_t attr;
	uint32_t kind = 0;
	uint64_t begin;

	while (kind < 3 && (argc < 3 || strcmp(kinds[kind].name, argv[1]) != 0))
		kind++;
	if (kind == 3) {
		fprintf(stderr, "usage: bench_default events|switches|threads SECONDS [DIR]\n");
		return 2;
	}
	if (argc > 3) { /* as a program that uses weft does: with what is in its environment */
		struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = argv[3]};

		if (weft_recorder_open_env(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0)
			bench_check(-1, &err);
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	begin = bench_now_ns() + 50000000;
	for (uint32_t i = 0; i < kinds[kind].n; i++) {
		jobs[i] = (struct job){.number = i,
				       .begin_ns = begin + i * UINT64_C(1000000) / 4 % (THREAD_MS * UINT64_C(1000000)),
				       .end_ns = begin + strtoull(argv[2], NULL, 10) * 1000000000u};
		if (pthread_create(&jobs[i].thread, &attr, kinds[kind].run, &jobs[i]) != 0)
			abort();
	}
	for (uint32_t i = 0; i < kinds[kind].n; i++)
		pthread_join(jobs[i].thread, NULL);
	if (rec) {
		struct weft_recorder_stats stats;

		weft_recorder_stop(rec, NULL);
		stats = bench_stats(rec);
		printf("{\"cost_ns\": %llu, \"lost\": %llu, \"events\": %llu}\n", (unsigned long long)stats.cost_ns,
		       (unsigned long long)stats.lost, (unsigned long long)stats.events);
	}
	weft_recorder_close(rec, NULL);
	return 0;
}
