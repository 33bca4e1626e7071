/* SPDX-License-Identifier: Apache-2.0 */
/* serial: CPU time is measured by samples, which on a busy machine are few */
/* What samples by perf events take from the program: how it is counted, and that lower rates lower it. */
#include "samples.h"

#include <fcntl.h>

#include "record/sample/perf_state.h"

#define HZ_HIGH 999

static struct samples result;

TEST(an_interrupt_is_the_middle_of_the_longest_gaps)
{
	uint64_t gaps[40];

	/* 20 were to come; what is shorter or far longer is somebody else's. */
	for (uint64_t i = 0; i < 40; i++)
		gaps[i] = i % 2 ? 12000 + i : 1500;
	gaps[7] = 4000000;
	CHECK(samples_near(weft__meter_middle(gaps, 40, 20), 12020, 1));
	/* More of them than there were to come. */
	for (uint64_t i = 0; i < 40; i++)
		gaps[i] = 9000;
	CHECK_EQ(weft__meter_middle(gaps, 40, 20), 9000);
	CHECK_EQ(weft__meter_middle(gaps, 40, 60), 9000);
	/* Too few say nothing; and what cannot be is not believed. */
	CHECK_EQ(weft__meter_middle(gaps, 7, 20), 0);
	CHECK_EQ(weft__meter_middle(gaps, 40, 0), 0);
	for (uint64_t i = 0; i < 20; i++)
		gaps[i] = i < 10 ? 1 : 2;
	CHECK_EQ(weft__meter_middle(gaps, 20, 20), 300);
	for (uint64_t i = 0; i < 20; i++)
		gaps[i] = 900000000;
	CHECK_EQ(weft__meter_middle(gaps, 20, 20), 100000);
}

TEST(a_switch_costs_more_when_the_event_is_next)
{
	struct weft__meter_prices prices = {.near_ns = 4000, .far_ns = 1000};

	CHECK_EQ((uint64_t)weft__meter_switch_ns(&prices, 2000000, 4000000), 1000 + 3000 * 3 / 4);
	CHECK_EQ((uint64_t)weft__meter_switch_ns(&prices, 4000000, 4000000), 2500);
	CHECK_EQ((uint64_t)weft__meter_switch_ns(&prices, 40000000, 4000000), 1150);
	prices.near_ns = 500; /* tried out at a bad moment */
	CHECK_EQ((uint64_t)weft__meter_switch_ns(&prices, 2000000, 4000000), 1000);
}

TEST(interrupts_come_with_cpu_time_and_not_with_samples)
{
	struct weft__meter_prices prices = {.interrupt_ns = 12000, .near_ns = 4000, .far_ns = 1000, .off_ns = 400};
	struct weft__meter_seen now = {.step_ns = 1000000, .tick_ns = 1000000, .duty = METER_FULL};
	struct weft__meter m = {.prices = prices, .seen = now};
	double before;

	/* A second, all of it in the kernel: no sample, and a thousand interrupts. */
	now.weight_ns += 1000 * MS;
	weft__meter_add(&m, &now);
	CHECK_EQ((uint64_t)m.all_ns, 1000 * 12000);
	/* Signals come on top. */
	before = m.all_ns;
	now.signals += 10;
	weft__meter_add(&m, &now);
	CHECK(m.all_ns - before > 10 * 1000 && m.all_ns - before < 10 * 20000);
	CHECK_EQ((uint64_t)m.fixed_ns, 0);
	/* A quarter of the time, and switches: what an event that is off adds, nothing lowers. */
	before = m.all_ns;
	now.duty = METER_FULL / 4;
	now.weight_ns += 1000 * MS;
	now.switches += 1000;
	weft__meter_add(&m, &now);
	CHECK_EQ((uint64_t)(m.all_ns - before + 0.5), 250 * 12000 + 250 * 2500 + 750 * 400);
	CHECK_EQ((uint64_t)m.fixed_ns, 750 * 400);
	/* Events that nobody can slow down. */
	now = m.seen;
	now.duty = METER_FULL;
	now.stubborn = 1;
	now.weight_ns += 500 * MS;
	weft__meter_add(&m, &now);
	CHECK_EQ((uint64_t)m.fixed_ns, 750 * 400 + 500 * 12000);
	/* None are on: whatever else happens costs nothing. */
	before = m.all_ns;
	now.step_ns = 0;
	now.weight_ns += 500 * MS;
	now.switches += 1000;
	weft__meter_add(&m, &now);
	CHECK_EQ((uint64_t)m.all_ns, (uint64_t)before);
	/* And what was switched before they were on is not theirs. */
	now.step_ns = 1000000;
	now.switches += 1000;
	weft__meter_add(&m, &now);
	CHECK_EQ((uint64_t)m.all_ns, (uint64_t)before);
}

struct burner {
	pthread_t thread;
	uint32_t tid, over;
	uint64_t used_ns;
};

static void *burn_main(void *data)
{
	struct burner *burner = data;

	burner->tid = samples_tid();
	while (!__atomic_load_n(&burner->over, __ATOMIC_RELAXED))
		samples_burn(1 * MS);
	burner->used_ns = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

/* Signals for a second of CPU time of a thread that has inherited its event. */
static double signals_at(uint32_t level, pthread_t thread)
{
	uint64_t signals, used, from;
	clockid_t clock;

	CHECK_EQ(pthread_getcpuclockid(thread, &clock), 0);
	weft__engine_slow(level, 1024);
	weft__engine_turn(session_now_ns());
	signals = __atomic_load_n(&weft__engine.signals, __ATOMIC_RELAXED);
	from = samples_cpu_ns(clock);
	while ((used = samples_cpu_ns(clock) - from) < 120 * MS) {
		session_sleep_ns(2 * MS);
		weft__engine_turn(session_now_ns());
	}
	signals = __atomic_load_n(&weft__engine.signals, __ATOMIC_RELAXED) - signals;
	return (double)signals * 1e9 / (double)used;
}

#define TURNS 5 /* in a pause of the virtual machine CPU time passes and no interrupt comes: that is one of them */

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double middle(double *numbers)
{
	qsort(numbers, TURNS, sizeof(*numbers), by_number);
	return numbers[TURNS / 2];
}

TEST(at_a_lower_rate_inherited_events_interrupt_less_often)
{
	double fulls[TURNS], lowers[TURNS], full, lower;
	struct burner burner = {0};
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_AUTO, HZ_HIGH);
	REQUIRE(rec);
	CHECK_EQ(pthread_create(&burner.thread, NULL, burn_main, &burner), 0);
	for (int i = 0; i < TURNS; i++) {
		fulls[i] = signals_at(1024, burner.thread);
		lowers[i] = signals_at(400, burner.thread);
	}
	full = middle(fulls);
	lower = middle(lowers);
	__atomic_store_n(&burner.over, 1, __ATOMIC_RELAXED);
	pthread_join(burner.thread, NULL);
	samples_end(&result, rec, NULL, 0);
	if (strcmp(result.engine, "perf"))
		SKIP("no perf events here");
	printf("\t%.0f and %.0f a second\n", full, lower);
	/* 999 and 390 with a tick of 250 Hz. */
	CHECK(full > 600);
	CHECK(lower < full / 3 * 2);
	CHECK(samples_near(samples_thread(&result, burner.tid)->ns, burner.used_ns, 5));
}

/* Until the collector has looked, and events are on for less or more than half of the time. */
static int comes_to(int less, void (*work)(void))
{
	uint64_t until = session_now_ns() + 50000 * MS; /* 200 interrupts are some seconds of CPU time */
	uint32_t duty;

	do {
		work();
		duty = __atomic_load_n(&weft__perf.duty, __ATOMIC_RELAXED);
	} while (less != (duty < METER_FULL / 2) && session_now_ns() < until);
	printf("\ton in %u of 1024\n", duty);
	return less == (duty < METER_FULL / 2);
}

static void be_in_the_kernel(void)
{
	static char room[1 << 20];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 100; i++)
		CHECK_EQ(read(fd, room, sizeof(room)), (ssize_t)sizeof(room));
	close(fd);
}

static void be_in_the_program(void)
{
	samples_burn(10 * MS);
}

TEST(events_that_mostly_interrupt_the_kernel_are_on_for_less_of_the_time)
{
	struct weft_recorder *rec;
	uint64_t used;
	int perf;

	SKIP_UNDER_TSAN();
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = HZ_HIGH, .budget_ppm = WEFT_OFF});
	REQUIRE(rec);
	used = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	perf = weft__engine.ops == &weft__perf_ops && weft__perf_holds();
	if (perf) {
		CHECK(comes_to(1, be_in_the_kernel));
		CHECK(comes_to(0, be_in_the_program));
	}
	used = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - used;
	samples_end(&result, rec, NULL, 0);
	if (!perf)
		SKIP("no perf events beside timers here");
	CHECK(samples_near(samples_thread(&result, samples_tid())->ns, used, 5));
}

TEST(timers_take_over_where_events_cost_too_much)
{
	struct burner burner = {0};
	struct weft_recorder *rec;
	int perf, gave_up;

	SKIP_UNDER_TSAN();
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = HZ_HIGH, .switches = WEFT_SWITCH_OFF});
	REQUIRE(rec);
	CHECK(WAIT_FOR(samples_tables()));
	CHECK_EQ(pthread_create(&burner.thread, NULL, burn_main, &burner), 0);
	samples_burn(50 * MS);
	/* The collector has an event of its own while it finds out what they cost. */
	CHECK(WAIT_FOR(weft__engine.ops != &weft__perf_ops || weft__meter_interrupt_ns()));
	perf = weft__engine.ops == &weft__perf_ops;
	gave_up = weft__sample_source.give_up();
	CHECK(!weft__sample_source.give_up());
	CHECK(!gave_up || !session_fds_of("perf_event"));
	samples_burn(700 * MS);
	__atomic_store_n(&burner.over, 1, __ATOMIC_RELAXED);
	pthread_join(burner.thread, NULL);
	samples_end(&result, rec, NULL, 0);
	if (!perf)
		SKIP("no perf events here");
	CHECK(gave_up);
	CHECK_STR(result.engine, "timer");
	CHECK(strstr(result.degraded, "context switches") != NULL);
	CHECK(result.engines[WEFT_ENGINE_PERF] > 10);
	CHECK(result.engines[WEFT_ENGINE_TIMER] > 40);
	/* Between the two nobody samples, for as long as the collector waits for a CPU. */
	CHECK(samples_near(samples_thread(&result, burner.tid)->ns, burner.used_ns, 15));
}

TEST(with_the_budget_in_force_samples_stand_for_all_of_the_cpu_time)
{
	struct weft_recorder_opts opts = {.sample_hz = HZ_HIGH, .budget_ppm = 4000};
	struct burner burners[2] = {{0}};
	struct weft_recorder_stats stats;
	uint64_t from, used, collector, interval, both = 0, until = session_now_ns() + 60000 * MS;
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	rec = session_start(&opts);
	REQUIRE(rec);
	CHECK(WAIT_FOR(samples_tables()));
	collector = session_stats(rec).collector_ns;
	from = samples_rusage_ns();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&burners[i].thread, NULL, burn_main, &burners[i]), 0);
	/* CPU time, of which others may leave little. */
	do {
		session_sleep_ns(5 * MS);
		stats = session_stats(rec);
	} while ((!stats.limited || samples_rusage_ns() - from < 1000 * MS) && session_now_ns() < until);
	CHECK(stats.limited);
	for (int i = 0; i < 2; i++)
		__atomic_store_n(&burners[i].over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(burners[i].thread, NULL);
	stats = session_stats(rec);
	used = samples_rusage_ns() - from - (stats.collector_ns - collector);
	CHECK(stats.sample_hz < HZ_HIGH);
	samples_end(&result, rec, NULL, 0);
	/* The last of it is in no sample: an interval, when ticks find others on the CPU. */
	interval = 1000 * MS / stats.sample_hz;
	for (int i = 0; i < 2; i++) {
		CHECK(samples_near(samples_thread(&result, burners[i].tid)->ns + interval, burners[i].used_ns, 5));
		both += samples_thread(&result, burners[i].tid)->ns;
	}
	printf("\t%s at %u Hz: %llu samples, %.0f ms of %.0f\n", result.engine, stats.sample_hz,
	       (unsigned long long)result.n, (double)both / 1e6, (double)used / 1e6);
	CHECK(samples_near(result.ns + 2 * interval, used, 5));
}

TEST(what_an_interrupt_takes_is_found_out_and_recorded)
{
	struct weft_recorder *rec;
	struct dirent **entries;
	unsigned long reported = 0;
	struct weft_segment *seg;
	char path[4096];
	int files;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_AUTO, HZ_HIGH);
	REQUIRE(rec);
	CHECK(WAIT_FOR((samples_burn(5 * MS), weft__engine.ops != &weft__perf_ops || weft__meter_interrupt_ns())));
	samples_burn(20 * MS);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	files = scandir(session_dir, &entries, tally_is_segment, alphasort);
	for (int i = 0; i < files; i++) {
		snprintf(path, sizeof(path), "%s/%s", session_dir, entries[i]->d_name);
		if (weft_segment_open(&seg, path, NULL) == 0) {
			const char *fact = weft_segment_fact(seg, "sample.interrupt_ns");

			reported = fact ? strtoul(fact, NULL, 10) : reported;
			weft_segment_close(seg);
		}
		free(entries[i]);
	}
	if (files >= 0)
		free(entries);
	samples_read(&result, session_dir, NULL, 0);
	session_remove_dir();
	if (strcmp(result.engine, "perf"))
		SKIP("no perf events here");
	printf("\t%lu ns\n", reported);
	CHECK_EQ(reported, weft__meter_interrupt_ns());
	CHECK(reported >= 300 && reported <= 100000);
}
