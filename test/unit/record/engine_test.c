/* SPDX-License-Identifier: Apache-2.0 */
/* Accuracy of samples, from end to end, by functions whose names carry what is expected of them. */
/* serial: samples are few, and on a busy machine fewer */
#include "samples.h"

BURNER(burn_cpu_weight_1)(void)
{
	samples_spin(10000);
}

BURNER(burn_cpu_weight_2)(void)
{
	samples_spin(20000);
}

BURNER(gets_nothing)(void)
{
	__asm__ volatile("");
}

BURNER(burn_cpu_calls_nothing)(void)
{
	samples_spin(5000);
	gets_nothing();
	samples_spin(5000);
}

static struct samples result;

/* Rates at which an engine has many samples in little time. */
static const struct {
	uint32_t engine, hz;
	const char *name;
} engines[] = {{WEFT_ENGINE_TIMER, 240, "timer"}, {WEFT_ENGINE_PERF, 999, "perf"}};

static int perf_is_missing(struct samples *s, uint32_t engine)
{
	if (engine != WEFT_ENGINE_PERF || !strcmp(s->engine, "perf"))
		return 0;
	printf("\tno perf events here: %s\n", s->degraded);
	return 1;
}

static uint64_t burn_both(uint64_t ns)
{
	uint64_t from = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID), used;

	while ((used = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from) < ns) {
		for (int i = 0; i < 20; i++) {
			burn_cpu_weight_1();
			burn_cpu_weight_2();
		}
	}
	return used;
}

TEST(two_loops_have_the_shares_that_their_names_say)
{
	SKIP_UNDER_TSAN();
	for (int e = 0; e < 2; e++) {
		struct samples_function functions[] = {RANGE(burn_cpu_weight_1), RANGE(burn_cpu_weight_2)};
		struct weft_recorder *rec = samples_start(engines[e].engine, engines[e].hz);
		uint64_t used, both;

		REQUIRE(rec);
		used = burn_both(engines[e].engine == WEFT_ENGINE_TIMER ? 2000 * MS : 1000 * MS);
		samples_end(&result, rec, functions, 2);
		if (perf_is_missing(&result, engines[e].engine))
			continue;
		both = functions[0].self + functions[1].self;
		printf("\t%s: %llu samples, 1: %llu, 2: %llu\n", result.engine, (unsigned long long)result.n,
		       (unsigned long long)functions[0].self, (unsigned long long)functions[1].self);
		CHECK_STR(result.engine, engines[e].name);
		CHECK_EQ(result.engines[engines[e].engine], result.n);
		CHECK(result.n > engines[e].hz / 5);
		CHECK(both * 100 >= result.n * 90);
		CHECK(statistics_share(functions[1].self, both, 2, 3));
		CHECK(samples_near(samples_thread(&result, samples_tid())->ns, used, 5));
		CHECK(result.complete * 100 >= result.n * 99);
		CHECK_EQ(result.no_stack, 0);
		CHECK_EQ(result.uncovered, 0);
	}
}

TEST(an_empty_callee_gets_nothing)
{
	struct samples_function functions[] = {RANGE(burn_cpu_calls_nothing), RANGE(gets_nothing)};
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 240);
	REQUIRE(rec);
	/* On a busy machine there are fewer samples of so much CPU time. */
	for (uint64_t from = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	     __atomic_load_n(&weft__engine.samples, __ATOMIC_RELAXED) < 120 &&
	     samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < from + 20000 * MS;)
		for (int i = 0; i < 20; i++)
			burn_cpu_calls_nothing();
	samples_end(&result, rec, functions, 2);
	CHECK(functions[0].self > 50);
	CHECK(functions[1].self * 50 <= functions[0].self);
}

struct burner {
	pthread_t thread;
	uint32_t tid;
	uint64_t want_ns, used_ns;
};

/* The threads burn when the collector had time to find them: what one used before it was found is missing, where
 * eight take all CPUs some 55 ms. */
#define FOUND_US 300000

static void *burn_thread(void *data)
{
	struct burner *burner = data;

	burner->tid = samples_tid();
	usleep(FOUND_US);
	samples_burn(burner->want_ns);
	burner->used_ns = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

TEST(eight_threads_have_what_each_used_and_together_what_the_process_used)
{
	SKIP_UNDER_TSAN();
	for (int e = 0; e < 2; e++) {
		struct weft_recorder *rec = samples_start(engines[e].engine, engines[e].hz);
		uint64_t from = samples_rusage_ns(), used, collector, sum = 0, n = 0;
		struct burner burners[8] = {0};

		REQUIRE(rec);
		for (int i = 0; i < 8; i++) {
			burners[i].want_ns = (uint64_t)(1 + i % 2) * 150 * MS;
			CHECK_EQ(pthread_create(&burners[i].thread, NULL, burn_thread, &burners[i]), 0);
		}
		for (int i = 0; i < 8; i++)
			pthread_join(burners[i].thread, NULL);
		used = samples_rusage_ns() - from;
		collector = session_stats(rec).collector_ns;
		samples_end(&result, rec, NULL, 0);
		if (perf_is_missing(&result, engines[e].engine))
			continue;
		for (int i = 0; i < 8; i++) {
			const struct samples_thread *one = samples_thread(&result, burners[i].tid);

			sum += one->ns;
			n += one->n;
			CHECK(statistics_cover(one->ns, one->n, burners[i].used_ns, engines[e].hz));
		}
		printf("\t%s: weights %llu ms, process %llu ms, collector %llu ms\n", result.engine,
		       (unsigned long long)(result.ns / MS), (unsigned long long)(used / MS),
		       (unsigned long long)(collector / MS));
		CHECK(sum <= result.ns);
		CHECK(n >= 8 * 12); /* of 430, or 1,800: ticks may find others on the CPU */
		/* A timer's expiry is seen at a tick that finds the thread running; the last ones of a thread are
		 * not. */
		CHECK(samples_near(result.ns + 8 * 5 * MS, used - collector, SCALED(5, 15)));
	}
}

TEST(a_burst_of_20_ms_is_seen_each_time_in_proportion)
{
	struct weft_recorder *rec;
	uint64_t used = 0;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 99);
	REQUIRE(rec);
	for (int i = 0; i < 20; i++) {
		uint64_t from = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID);

		samples_burn(20 * MS);
		used += samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from;
		session_sleep_ns(30 * MS);
	}
	samples_end(&result, rec, NULL, 0);
	CHECK(samples_near(samples_thread(&result, samples_tid())->ns, used, 10));
}

TEST(a_paused_recorder_samples_nothing)
{
	struct weft_recorder *rec;
	uint64_t before;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 240);
	REQUIRE(rec);
	samples_burn(50 * MS);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	before = weft__engine_counts().samples;
	CHECK(before > 0);
	samples_burn(50 * MS);
	CHECK_EQ(weft__engine_counts().samples, before);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	samples_burn(50 * MS);
	CHECK(weft__engine_counts().samples > before);
	samples_end(&result, rec, NULL, 0);
}

TEST(depth_is_cut_where_it_was_asked_to_be)
{
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 240, .sample_depth = 2});
	REQUIRE(rec);
	samples_burn(100 * MS);
	samples_end(&result, rec, NULL, 0);
	CHECK(result.n > 5);
	CHECK_EQ(result.cut, result.n);
	CHECK_EQ(result.deepest, 2);
}

TEST(kernel_frames_come_with_the_samples_that_fell_into_the_kernel)
{
	struct weft_recorder *rec;
	char buf[65536];
	uint64_t until;

	SKIP_UNDER_TSAN();
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 999, .sample_kernel = 1});
	REQUIRE(rec);
	until = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 300 * MS;
	while (samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
		int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

		for (int i = 0; i < 50; i++)
			CHECK(read(fd, buf, sizeof(buf)) > 0); /* less than all when a sample comes meanwhile */
		close(fd);
	}
	samples_end(&result, rec, NULL, 0);
	if (strstr(result.degraded, "kernel frames"))
		SKIP(result.degraded);
	CHECK_STR(result.engine, "perf");
	printf("\t%llu of %llu samples have kernel frames\n", (unsigned long long)result.kernel,
	       (unsigned long long)result.n);
	CHECK(result.kernel * 2 > result.n);
}

TEST(an_event_that_the_machine_has_not_falls_back_and_says_so)
{
	struct weft_recorder *rec =
		session_start(&(struct weft_recorder_opts){.sample_hz = 99, .sample_event = "r1ffff"});
	struct weft_recorder_opts unknown = {.size = sizeof(unknown), .sample_event = "no-such-thing"};
	struct weft_error err = {0};

	REQUIRE(rec);
	samples_burn(50 * MS);
	samples_end(&result, rec, NULL, 0);
	CHECK(!strcmp(result.engine, "perf") || strstr(result.degraded, "r1ffff"));
	CHECK_EQ(weft_recorder_open(&rec, &unknown, &err), -WEFT_E_OPTION);
	CHECK(strstr(err.msg, "no-such-thing") != NULL);
}
