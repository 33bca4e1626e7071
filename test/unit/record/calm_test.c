/* SPDX-License-Identifier: Apache-2.0 */
/* A program that does next to nothing is left alone, and is seen as soon as it does more. */
/* serial: samples are few, and on a busy machine fewer */
#include "record/collect/calm.h"

#include "samples.h"

#define SECOND UINT64_C(1000000000)
#define TRIES 10
#define WAKEUPS_MOST 8 /* in a second */

static struct samples result;

/* Looks four times a second, for so many seconds. */
static void pass(struct weft__calm *calm, uint64_t *now_ns, uint32_t seconds, uint64_t program_ns, uint64_t slots)
{
	for (uint32_t i = 0; i < 4 * seconds; i++) {
		*now_ns += SECOND / 4;
		weft__calm_see(calm, *now_ns, SECOND / 4, program_ns, calm->slots + slots);
	}
}

TEST(a_program_is_calm_after_a_second_without_work)
{
	struct weft__calm calm = {0};
	uint64_t now_ns = SECOND;

	pass(&calm, &now_ns, 1, 0, 0);
	CHECK_EQ(calm.on, 0);
	pass(&calm, &now_ns, 1, 100000, 10);
	CHECK_EQ(calm.on, 1);
}

TEST(cpu_time_or_events_end_the_calm_at_once)
{
	struct weft__calm calm = {0};
	uint64_t now_ns = SECOND;

	pass(&calm, &now_ns, 2, 0, 0);
	CHECK_EQ(calm.on, 1);
	weft__calm_see(&calm, now_ns + SECOND / 4, SECOND / 4, 10 * MS, calm.slots);
	CHECK_EQ(calm.on, 0);
	pass(&calm, &now_ns, 3, 0, 0);
	CHECK_EQ(calm.on, 1);
	weft__calm_see(&calm, now_ns + SECOND / 4, SECOND / 4, 0, calm.slots + 1000);
	CHECK_EQ(calm.on, 0);
	pass(&calm, &now_ns, 3, 0, 0);
	weft__calm_check(&calm, calm.slots + 10);
	CHECK_EQ(calm.on, 1);
	weft__calm_check(&calm, calm.slots + 1000);
	CHECK_EQ(calm.on, 0);
}

/* How often a thread was given a CPU so far; 0: not known. */
static uint64_t runs_of(uint32_t tid)
{
	char path[64];
	unsigned long long cpu, waited, runs = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", tid);
	file = fopen(path, "r");
	if (file) {
		if (fscanf(file, "%llu %llu %llu", &cpu, &waited, &runs) != 3)
			runs = 0;
		fclose(file);
	}
	return runs;
}

/* Waits until the collector wakes up rarely. */
static int becomes_calm(void)
{
	uint32_t tid = weft__own_threads.collector;
	uint64_t before = 0, now = 0;

	for (int i = 0; i < TRIES; i++) {
		before = runs_of(tid);
		session_sleep_ns(SECOND);
		now = runs_of(tid);
		if (now && now - before <= WAKEUPS_MOST)
			return 1;
	}
	printf("\t%llu wakeups in a second\n", (unsigned long long)(now - before));
	return 0;
}

static void *burn(void *data)
{
	*(uint32_t *)data = samples_tid();
	samples_burn(60 * MS);
	return NULL;
}

TEST(the_collector_lets_an_idle_program_be_and_finds_the_thread_that_comes_then)
{
	struct weft_recorder *rec;
	pthread_t thread;
	uint32_t tid = 0;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_AUTO, 99);
	REQUIRE(rec);
	CHECK(becomes_calm());
	CHECK_EQ(pthread_create(&thread, NULL, burn, &tid), 0);
	pthread_join(thread, NULL);
	samples_end(&result, rec, NULL, 0);
	if (!weft__machine_kernel(6, 4)) {
		printf("\tno net before Linux 6.4\n");
		return;
	}
	/* By what it uses, long before the next look at all threads. */
	CHECK(samples_of(&result, tid) >= 1);
}
