/* SPDX-License-Identifier: Apache-2.0 */
/* A new segment stops no sampler: a profile of each of them together is a profile of the whole time. */
/* serial: samples are few, and on a busy machine fewer */
#include <pthread.h>

#include "base/atomic.h"
#include "samples.h"

static struct samples result;
static uint32_t done, rotations;

BURNER(burn_cpu)(void)
{
	samples_spin(10000);
}

static void *rotate_all_the_time(void *data)
{
	while (!load_relaxed(&done)) {
		rotations += weft_recorder_rotate(data, NULL, 0, NULL) == 0;
		session_sleep_ns(5 * MS);
	}
	return NULL;
}

static uint64_t burn(uint64_t ns)
{
	uint64_t from = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID), used;

	while ((used = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from) < ns)
		burn_cpu();
	return used;
}

TEST(a_rotation_every_few_ms_loses_no_cpu_time)
{
	struct samples_function functions[] = {RANGE(burn_cpu)};
	struct weft_recorder *rec;
	pthread_t thread;
	uint64_t used;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 240);
	REQUIRE(rec);
	REQUIRE(pthread_create(&thread, NULL, rotate_all_the_time, rec) == 0);
	used = burn(2000 * MS);
	store_relaxed(&done, 1u);
	pthread_join(thread, NULL);
	samples_end(&result, rec, functions, 1);
	printf("\t%u segments, %llu samples, %.1f ms of %.1f ms\n", rotations + 1, (unsigned long long)result.n,
	       (double)samples_thread(&result, samples_tid())->ns / 1e6, (double)used / 1e6);
	CHECK(rotations > 30);
	CHECK(samples_near(samples_thread(&result, samples_tid())->ns, used, 5));
	CHECK(functions[0].self * 100 >= result.n * 85);
	CHECK(result.complete * 100 >= result.n * 99);
}
