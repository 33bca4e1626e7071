/* SPDX-License-Identifier: Apache-2.0 */
/* Rates above the tick: samples by timers that ride it and by perf events, and what they stand for together. */
/* serial: samples are few, and on a busy machine fewer */
#include "child.h"
#include "samples.h"

#include <grp.h>
#include <sys/resource.h>

#include "record/sample/perf_state.h"

#define HZ_HIGH 999

static struct samples result;
static unsigned long tick_hz;

BURNER(ride_weight_1)(void)
{
	samples_spin(10000);
}

BURNER(ride_weight_2)(void)
{
	samples_spin(20000);
}

/* Closes and reads, the fact about ticks too. 0: there are no perf events here. */
static int end(struct weft_recorder *rec, struct samples_function *functions, uint32_t n)
{
	struct weft_segment *seg;
	struct dirent **entries;
	char path[4096];
	int files;

	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	files = scandir(session_dir, &entries, tally_is_segment, alphasort);
	for (int i = 0; i < files; i++) {
		snprintf(path, sizeof(path), "%s/%s", session_dir, entries[i]->d_name);
		if (weft_segment_open(&seg, path, NULL) == 0) {
			const char *fact = weft_segment_fact(seg, "sample.tick_hz");

			tick_hz = fact ? strtoul(fact, NULL, 10) : 0;
			weft_segment_close(seg);
		}
		free(entries[i]);
	}
	if (files >= 0)
		free(entries);
	samples_read(&result, session_dir, functions, n);
	CHECK_EQ(result.tally.damaged, 0);
	printf("\t%s: %llu samples, %llu by timers, %llu by events; %s\n", result.engine, (unsigned long long)result.n,
	       (unsigned long long)result.engines[WEFT_ENGINE_TIMER],
	       (unsigned long long)result.engines[WEFT_ENGINE_PERF], result.degraded);
	return !strcmp(result.engine, "perf");
}

TEST(what_the_ticks_do_not_give_the_events_do)
{
	static const uint32_t rates[] = {251, 260, 300, 400, 500, 750, 999, 2000, 10000};
	uint32_t tick_before = weft__engine.tick_ns, period_before = weft__engine.period_ns;

	weft__engine.tick_ns = 0;
	CHECK_EQ(weft__perf_step_ns(1001001), 1001001);
	weft__engine.tick_ns = 4000000;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		double by_events, by_timer;

		weft__engine.period_ns = 1000000000 / rates[i];
		by_events = 1e9 / weft__perf_step_ns(weft__engine.period_ns);
		by_timer = 1e9 / weft__perf_rider_ns();
		by_timer = by_timer > 250 ? 250 : by_timer; /* not more than there are ticks */
		printf("\t%u: %.1f and %.1f\n", rates[i], by_events, by_timer);
		CHECK(samples_near((uint64_t)(by_events + by_timer), rates[i], 1));
		CHECK(by_events * 8.1 > rates[i]);
	}
	/* Held back to less than the tick, and to next to nothing. */
	weft__engine.period_ns = 10000000;
	CHECK_EQ(weft__perf_step_ns(10000000), 80000000);
	CHECK(samples_near(weft__perf_rider_ns(), 11428571, 1));
	weft__engine.period_ns = UINT32_MAX;
	CHECK_EQ(weft__perf_step_ns(UINT32_MAX), UINT32_MAX);
	CHECK_EQ(weft__perf_rider_ns(), UINT32_MAX);
	weft__engine.tick_ns = tick_before;
	weft__engine.period_ns = period_before;
}

TEST(both_have_a_share_and_together_all_of_the_cpu_time)
{
	struct samples_function functions[] = {RANGE(ride_weight_1), RANGE(ride_weight_2)};
	struct weft_recorder *rec;
	uint64_t from, used, both;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_AUTO, HZ_HIGH);
	REQUIRE(rec);
	from = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	while ((used = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from) < 600 * MS) {
		for (int i = 0; i < 20; i++) {
			ride_weight_1();
			ride_weight_2();
		}
	}
	if (!end(rec, functions, 2))
		SKIP("no perf events here");
	session_remove_dir();
	CHECK_EQ(tick_hz, weft__machine_tick_hz());
	CHECK_STR(result.degraded, "");
	CHECK_EQ(result.engines[WEFT_ENGINE_TIMER] + result.engines[WEFT_ENGINE_PERF], result.n);
	CHECK(result.engines[WEFT_ENGINE_TIMER] > 30);
	CHECK(result.engines[WEFT_ENGINE_PERF] > result.engines[WEFT_ENGINE_TIMER]);
	CHECK(result.n > 300 && result.n < 750);
	CHECK(samples_near(samples_thread(&result, samples_tid())->ns, used, 5));
	both = functions[0].self_ns + functions[1].self_ns;
	CHECK(both * 100 >= result.ns * 90);
	CHECK(statistics_share(functions[1].self, functions[0].self + functions[1].self, 2, 3));
	CHECK(result.complete * 100 >= result.n * 99);
	CHECK_EQ(result.uncovered, 0);
	CHECK(samples_timers() <= 0);
}

/* Events leave the kernel's time out; timers report it when the call returns. So there are many samples, and then
 * few. */
TEST(time_in_the_kernel_is_not_missing)
{
	struct weft_recorder *rec;
	char buf[65536];
	uint64_t from, used;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_AUTO, HZ_HIGH);
	REQUIRE(rec);
	from = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	while ((used = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from) < 500 * MS) {
		for (int i = 0; used / (25 * MS) % 4 && i < 20; i++)
			CHECK_EQ(read(fd, buf, sizeof(buf)), sizeof(buf));
		samples_spin(5000);
	}
	close(fd);
	if (!end(rec, NULL, 0))
		SKIP("no perf events here");
	session_remove_dir();
	CHECK(samples_near(samples_thread(&result, samples_tid())->ns, used, 5));
}

struct burner {
	pthread_t thread;
	uint32_t tid;
	uint64_t want_ns, used_ns;
};

static void *burn_main(void *data)
{
	struct burner *burner = data;

	burner->tid = samples_tid();
	samples_burn(burner->want_ns);
	burner->used_ns = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static int covers(const struct burner *burner)
{
	const struct samples_thread *one = samples_thread(&result, burner->tid);

	return statistics_cover(one->ns, one->n, burner->used_ns, HZ_HIGH);
}

/* Some that are there before, some that come later, and many that are soon gone. */
TEST(every_thread_has_what_it_used_and_together_what_the_process_used)
{
	enum { N = 6, BRIEF = 60 };
	struct burner burners[N] = {0}, brief = {.want_ns = 4 * MS};
	uint64_t from, used, collector, timers = 0;
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_AUTO, HZ_HIGH);
	REQUIRE(rec);
	from = samples_rusage_ns();
	collector = session_stats(rec).collector_ns;
	for (int i = 0; i < N; i++) {
		burners[i].want_ns = (uint64_t)(1 + i % 2) * 100 * MS;
		CHECK_EQ(pthread_create(&burners[i].thread, NULL, burn_main, &burners[i]), 0);
	}
	for (int i = 0; i < BRIEF; i++) {
		CHECK_EQ(pthread_create(&brief.thread, NULL, burn_main, &brief), 0);
		pthread_join(brief.thread, NULL);
	}
	for (int i = 0; i < N; i++)
		pthread_join(burners[i].thread, NULL);
	used = samples_rusage_ns() - from;
	collector = session_stats(rec).collector_ns - collector;
	/* Those of threads that went go, too. */
	CHECK(WAIT_FOR(samples_timers() <= 2));
	if (!end(rec, NULL, 0))
		SKIP("no perf events here");
	session_remove_dir();
	for (int i = 0; i < N; i++)
		CHECK(covers(&burners[i]));
	timers = result.engines[WEFT_ENGINE_TIMER];
	CHECK(timers > 50 && timers < result.n / 2);
	/* The last of each thread's time is in no sample: half an interval of N + BRIEF. */
	CHECK(samples_near(result.ns + (N + BRIEF) * MS / 2, used - collector, SCALED(5, 15)));
	CHECK_EQ(result.uncovered, 0);
}

static int rides(struct weft_recorder_opts opts)
{
	struct weft_recorder *rec = session_start(&opts);

	CHECK(rec != NULL);
	if (!rec)
		return -1;
	samples_burn(100 * MS);
	end(rec, NULL, 0);
	session_remove_dir();
	/* At low rates threads that rarely switch have both. */
	CHECK(!result.engines[WEFT_ENGINE_TIMER] || !result.engines[WEFT_ENGINE_PERF] || tick_hz ||
	      opts.sample_hz == 99);
	return tick_hz != 0;
}

TEST(who_asks_for_events_gets_nothing_else)
{
	SKIP_UNDER_TSAN();
	CHECK(!rides((struct weft_recorder_opts){.sample_hz = HZ_HIGH, .sample_engine = WEFT_ENGINE_PERF}));
	CHECK(!rides((struct weft_recorder_opts){.sample_hz = HZ_HIGH, .sample_engine = WEFT_ENGINE_TIMER}));
	CHECK(!rides((struct weft_recorder_opts){.sample_hz = HZ_HIGH, .sample_kernel = 1}));
	CHECK(!rides((struct weft_recorder_opts){.sample_hz = HZ_HIGH, .sample_event = "task-clock"}));
	CHECK(!rides((struct weft_recorder_opts){.sample_hz = 99}));
}

/* The main thread's timer can be had and those of other threads cannot, or none can. */
static void few_main(const void *data)
{
	struct rlimit few = {*(const rlim_t *)data, *(const rlim_t *)data};
	struct weft_recorder_opts opts = {.dir = session_dir, .size = sizeof(opts), .sample_hz = HZ_HIGH};
	uid_t uid = 100000 + (uid_t)getpid(); /* whose limits nobody else uses up */
	struct burner burners[3] = {0};
	struct weft_recorder *rec;

	CHECK_EQ(child_become(uid), 0);
	CHECK_EQ(weft_recorder_open(&rec, &opts, NULL), 0);
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &few), 0);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	for (int i = 0; i < 3; i++) {
		burners[i].want_ns = 100 * MS;
		CHECK_EQ(pthread_create(&burners[i].thread, NULL, burn_main, &burners[i]), 0);
	}
	samples_burn(100 * MS);
	for (int i = 0; i < 3; i++)
		pthread_join(burners[i].thread, NULL);
	CHECK(WAIT_FOR(!__atomic_load_n(&weft__perf.timer_why, __ATOMIC_RELAXED))); /* it is reported */
	if (!end(rec, NULL, 0))
		return;
	CHECK(strstr(result.degraded, "CPU-time timer") != NULL);
	CHECK_EQ(tick_hz != 0, few.rlim_cur > 0);
	CHECK_EQ(result.engines[WEFT_ENGINE_TIMER] > 0, few.rlim_cur > 0);
	for (int i = 0; i < 3; i++)
		CHECK(covers(&burners[i]));
	CHECK_EQ(result.uncovered, 0);
}

TEST(without_timers_there_are_events)
{
	static const rlim_t limits[] = {0, 2};

	SKIP_UNDER_TSAN();
	if (geteuid() != 0)
		SKIP("becoming another user needs root");
	for (int i = 0; i < 2; i++)
		CHECK_EQ(child_run(few_main, &limits[i]), 0);
}

static void no_timers_main(const void *data)
{
	(void)data;
	CHECK_EQ(child_refuse(SYS_timer_create, EPERM), 0);
	CHECK(!rides((struct weft_recorder_opts){.sample_hz = HZ_HIGH}));
	CHECK(strcmp(result.engine, "perf") || result.engines[WEFT_ENGINE_PERF] == result.n);
	CHECK(strcmp(result.engine, "perf") || result.n > 10);
}

static void no_events_main(const void *data)
{
	(void)data;
	CHECK_EQ(child_refuse(SYS_perf_event_open, EPERM), 0);
	CHECK(!rides((struct weft_recorder_opts){.sample_hz = HZ_HIGH}));
	CHECK_STR(result.engine, "timer");
	CHECK(result.n > 2);
}

TEST(either_is_used_alone_where_the_other_is_not_allowed)
{
	SKIP_UNDER_TSAN();
	CHECK_EQ(child_run(no_timers_main, NULL), 0);
	CHECK_EQ(child_run(no_events_main, NULL), 0);
}
