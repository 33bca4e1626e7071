/* SPDX-License-Identifier: Apache-2.0 */
/* Every thread is sampled, however and whenever it was made, though none of them emits an event. */
/* serial: samples are few, and on a busy machine fewer */
/* presets: asan tsan release: it takes long */
#include "samples.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/utsname.h>

static struct samples result;
static int go, done;

struct one {
	pthread_t thread;
	uint32_t tid;
	uint64_t ns;
};

static void *wait_and_burn(void *data)
{
	struct one *one = data;

	__atomic_store_n(&one->tid, samples_tid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		session_sleep_ns(MS);
	samples_burn(one->ns);
	return NULL;
}

static void start_all(struct one *all, int n, uint64_t ns)
{
	for (int i = 0; i < n; i++) {
		all[i].ns = ns;
		CHECK_EQ(pthread_create(&all[i].thread, NULL, wait_and_burn, &all[i]), 0);
	}
}

static void join_all(struct one *all, int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(all[i].thread, NULL);
}

static int no_perf(uint32_t engine)
{
	if (engine == WEFT_ENGINE_PERF && strcmp(result.engine, "perf")) {
		printf("\tno perf events here: %s\n", result.degraded);
		return 1;
	}
	return 0;
}

static void check_threads_that_were_there(uint32_t engine, uint32_t hz)
{
	enum { N = 6 };
	struct one all[N] = {0};
	struct weft_recorder *rec;

	__atomic_store_n(&go, 0, __ATOMIC_RELEASE);
	start_all(all, N, 100 * MS);
	rec = samples_start(engine, hz);
	REQUIRE(rec);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	join_all(all, N);
	samples_end(&result, rec, NULL, 0);
	if (no_perf(engine))
		return;
	for (int i = 0; i < N; i++)
		CHECK(samples_of(&result, all[i].tid) >= 5);
	CHECK_EQ(result.uncovered, 0);
}

TEST(threads_that_were_there_before_are_sampled)
{
	SKIP_UNDER_TSAN();
	check_threads_that_were_there(WEFT_ENGINE_TIMER, 240);
	check_threads_that_were_there(WEFT_ENGINE_PERF, 999);
}

static void check_threads_that_come_later(const struct weft_recorder_opts *opts)
{
	enum { N = 6 };
	struct one all[N] = {0};
	struct weft_recorder *rec = session_start(opts);

	REQUIRE(rec);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	start_all(all, N, 150 * MS);
	join_all(all, N);
	samples_end(&result, rec, NULL, 0);
	if (no_perf(opts->sample_engine))
		return;
	for (int i = 0; i < N; i++)
		CHECK(samples_of(&result, all[i].tid) >= 4);
	CHECK_EQ(result.uncovered, 0);
}

TEST(threads_that_come_later_are_sampled)
{
	SKIP_UNDER_TSAN();
	check_threads_that_come_later(
		&(struct weft_recorder_opts){.sample_engine = WEFT_ENGINE_TIMER, .sample_hz = 240});
	check_threads_that_come_later(
		&(struct weft_recorder_opts){.sample_engine = WEFT_ENGINE_PERF, .sample_hz = 999});
	check_threads_that_come_later(
		&(struct weft_recorder_opts){.sample_engine = WEFT_ENGINE_PERF, .sample_hz = 999, .sample_kernel = 1});
}

static int kernel_gives_signals_to_the_running_thread(void)
{
	struct utsname uts;
	int a = 0, b = 0;

	uname(&uts);
	return sscanf(uts.release, "%d.%d", &a, &b) == 2 && (a > 6 || (a == 6 && b >= 4));
}

static void *burn_briefly(void *data)
{
	samples_burn(*(uint64_t *)data);
	return NULL;
}

TEST(threads_that_live_for_milliseconds_are_sampled_in_proportion)
{
	uint64_t each = 5 * MS, from, used;
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	if (!kernel_gives_signals_to_the_running_thread())
		SKIP("needs Linux 6.4");
	rec = samples_start(WEFT_ENGINE_TIMER, 240);
	REQUIRE(rec);
	from = samples_rusage_ns();
	for (int i = 0; i < 200; i++) {
		pthread_t thread;

		CHECK_EQ(pthread_create(&thread, NULL, burn_briefly, &each), 0);
		pthread_join(thread, NULL);
	}
	used = samples_rusage_ns() - from;
	samples_end(&result, rec, NULL, 0);
	printf("\t%llu samples on %u threads, %llu ms of %llu\n", (unsigned long long)result.n, result.n_threads,
	       (unsigned long long)(result.ns / MS), (unsigned long long)(used / MS));
	CHECK(result.n_threads > 20);
	CHECK(samples_near(result.ns, used, SCALED(20, 40)));
}

static volatile uint32_t raw_tid;
static volatile uint64_t raw_turns;

/* No thread library call, no errno: it shares the thread-local memory of its maker. */
static int raw_main(void *data)
{
	uint32_t tid;

	(void)data;
	__asm__ volatile("syscall" : "=a"(tid) : "a"(SYS_gettid) : "rcx", "r11", "memory");
	raw_tid = tid;
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		samples_spin(1000);
		raw_turns++;
	}
	return 0;
}

static void check_raw_clone(uint32_t engine, uint32_t hz)
{
	size_t bytes = 1 << 18;
	char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	struct weft_recorder *rec;
	int kind, child_gone = 1;
	uint64_t n = 0, before;
	struct tally t;

	REQUIRE(stack != MAP_FAILED);
	__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
	rec = samples_start(engine, hz);
	REQUIRE(rec);
	kind = tally_kind();
	raw_tid = 0;
	/* The maker has been sampled by then, and what was found out about it is in the memory that they share. */
	samples_burn(30 * MS);
	before = weft__engine_counts().samples;
	CHECK(clone(raw_main, stack + bytes,
		    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			    CLONE_CHILD_CLEARTID,
		    NULL, NULL, NULL, &child_gone) > 0);
	/* Its maker emits all the while, into a ring that the other one must not touch. */
	while (weft__engine_counts().samples < before + 60) {
		for (int i = 0; i < 100; i++)
			tally_emit(kind, 0, ++n);
		session_sleep_ns(MS);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&child_gone, __ATOMIC_ACQUIRE))
		session_sleep_ns(MS);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	samples_read(&result, session_dir, NULL, 0);
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.sources[0].count + t.lost, n);
	CHECK_EQ(t.disorder, 0);
	CHECK_EQ(t.damaged, 0);
	CHECK_EQ(t.undefined, 0);
	tally_fini(&t);
	session_remove_dir();
	munmap(stack, bytes);
	if (!no_perf(engine))
		CHECK(samples_of(&result, raw_tid) >= 30);
}

TEST(threads_made_by_a_bare_clone_are_sampled_and_leave_their_maker_s_ring_alone)
{
#if !defined(__x86_64__)
	SKIP("written for x86-64");
#else
	SKIP_UNDER_TSAN();
	check_raw_clone(WEFT_ENGINE_TIMER, 240);
	check_raw_clone(WEFT_ENGINE_PERF, 999);
	check_raw_clone(WEFT_ENGINE_AUTO, 999);
#endif
}

TEST(the_collector_is_not_sampled)
{
	uint32_t collector = 0;
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 240, .drain_ns = MS});
	REQUIRE(rec);
	samples_burn(100 * MS);
	samples_end(&result, rec, NULL, 0);
	for (uint32_t i = 0; i < result.n_threads; i++)
		collector += result.threads[i].tid != samples_tid();
	CHECK(result.n > 0);
	CHECK_EQ(collector, 0);
}

static void *blocked_burner(void *data)
{
	sigset_t all;

	(void)data;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		samples_burn(MS);
	return NULL;
}

TEST(a_thread_that_blocks_the_signal_is_counted)
{
	struct weft_recorder *rec;
	pthread_t thread;

	SKIP_UNDER_TSAN();
	__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
	rec = samples_start(WEFT_ENGINE_TIMER, 240);
	REQUIRE(rec);
	CHECK_EQ(pthread_create(&thread, NULL, blocked_burner, NULL), 0);
	CHECK(WAIT_FOR(weft__engine_counts().uncovered == 1));
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	samples_end(&result, rec, NULL, 0);
	CHECK_EQ(result.uncovered, 1);
}
