/* SPDX-License-Identifier: Apache-2.0 */
/* Work in step with the clock, so that samples which are in step, too, would see only a part of it. */
/* run: in_step two */
/* run: bursts bursts */
/* run: short_threads threads */
/* run: threads_1ms threads 1 */
/* run: threads_2ms threads 2 */
/* run: threads_5ms threads 5 */
/* run: threads_10ms threads 10 */
/* run: threads_30ms threads 30 */
/* run: threads_1ms_499hz threads 1 */
/* run: threads_2ms_499hz threads 2 */
/* run: threads_5ms_499hz threads 5 */
/* run: threads_10ms_499hz threads 10 */
/* run: threads_30ms_499hz threads 30 */
/* run: threads_1ms_999hz threads 1 */
/* run: threads_2ms_999hz threads 2 */
/* run: threads_5ms_999hz threads 5 */
/* run: threads_10ms_999hz threads 10 */
/* run: threads_30ms_999hz threads 30 */
#include "truth.h"
#include <pthread.h>

static int64_t used[5], thread_cpu;

#define WORK(name, i)                                                                                                  \
	static __attribute__((noinline)) void name(int64_t ns)                                                         \
	{                                                                                                              \
		int64_t begin = truth_clock(CLOCK_THREAD_CPUTIME_ID), now = begin;                                     \
		while (now < begin + ns) {                                                                             \
			for (volatile int n = 0; n < 5000; n = n + 1)                                                  \
				;                                                                                      \
			now = truth_clock(CLOCK_THREAD_CPUTIME_ID);                                                    \
		}                                                                                                      \
		used[i] += now - begin;                                                                                \
	}
WORK(first, 0)
WORK(second, 1)
WORK(burst, 2)
WORK(short_work, 3)
WORK(long_work, 4)

static void *short_thread(void *arg)
{
	if (*(int *)arg < 8)
		short_work(*(int *)arg * MS);
	else
		long_work(*(int *)arg * MS);
	__atomic_fetch_add(&thread_cpu, truth_clock(CLOCK_THREAD_CPUTIME_ID), __ATOMIC_RELAXED);
	return NULL;
}

/* Of all lengths, or of one. */
static void threads(int length)
{
	static const int lengths[] = {1, 2, 3, 5, 8, 13, 30};
	pthread_t thread;
	int64_t sum = 0;
	int i;

	for (i = 0; sum < 1240; i++) {
		const int *ms = length ? &length : &lengths[i % 7];

		pthread_create(&thread, NULL, short_thread, (void *)ms);
		pthread_join(thread, NULL);
		sum += *ms;
	}
	truth_note("\"by_chance\": 1");
	truth_note("\"functions\": {\"short_work\": %lld, \"long_work\": %lld}", (long long)used[3],
		   (long long)used[4]);
	truth_note("\"sampled_cpu\": %lld", (long long)(thread_cpu + truth_clock(CLOCK_THREAD_CPUTIME_ID)));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "two";
	struct timespec at;
	int i;

	if (!strcmp(how, "threads")) {
		threads(argc > 2 ? atoi(argv[2]) : 0);
		truth_print();
		return 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &at);
	for (i = 0; i < 220; i++) {
		at.tv_nsec += 20 * MS;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		if (!strcmp(how, "two")) {
			first(3 * MS / 2);
			second(3 * MS / 2);
		} else {
			burst(1200 * US);
		}
	}
	if (!strcmp(how, "two"))
		truth_note("\"functions\": {\"first\": %lld, \"second\": %lld}", (long long)used[0],
			   (long long)used[1]);
	truth_note("\"sampled_cpu\": %lld", (long long)truth_clock(CLOCK_PROCESS_CPUTIME_ID));
	truth_print();
	return 0;
}
