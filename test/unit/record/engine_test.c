/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling from end to end: what the samples of a program say about it, by functions whose names carry what is expected. */
#include "samples.h"

static volatile uint64_t sink;

static inline __attribute__((always_inline)) void spin(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sink = sink + i;
}

BURNER(burn_cpu_weight_1)(void)
{
	spin(100000);
}

BURNER(burn_cpu_weight_2)(void)
{
	spin(200000);
}

static struct samples result;

TEST(two_loops_have_the_shares_that_their_names_say)
{
	struct samples_function functions[] = {RANGE(burn_cpu_weight_1), RANGE(burn_cpu_weight_2)};
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.sample_hz = 99});
	uint64_t from = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID), used;

	REQUIRE(rec);
	while ((used = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from) < 2000 * MS) {
		burn_cpu_weight_1();
		burn_cpu_weight_2();
	}
	samples_end(&result, rec, functions, 2);
	printf("%llu samples, %llu ms of %llu, 1: %llu 2: %llu complete %llu deepest %llu engine %s why %s degraded %s threads %u nostack %llu\n",
	       (unsigned long long)result.n, (unsigned long long)(result.ns / MS), (unsigned long long)(used / MS),
	       (unsigned long long)functions[0].self, (unsigned long long)functions[1].self,
	       (unsigned long long)result.complete, (unsigned long long)result.deepest, result.engine, result.why, result.degraded, result.n_threads, (unsigned long long)result.no_stack);
	CHECK(samples_near(samples_thread(&result, samples_tid())->ns, used, 5));
}
