/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling while the ground moves: start and stop, fork, exec, libraries that come and go, threads that end. */
/* serial: samples are few, and on a busy machine fewer */
/* presets: asan tsan release: it takes long */
#include "samples.h"

#include <dlfcn.h>
#include <sys/mman.h>

static struct samples result;
static int done;

static void *burn_main(void *data)
{
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		samples_burn(MS);
	return data;
}

static const struct {
	uint32_t engine, hz, kernel;
} engines[] = {{WEFT_ENGINE_TIMER, 240, 0},
	       {WEFT_ENGINE_PERF, 999, 0},
	       {WEFT_ENGINE_PERF, 999, 1},
	       {WEFT_ENGINE_AUTO, 999, 0}}; /* the last one: both */
#define N_ENGINES (UNDER_TSAN ? 1 : 4)

static void check_cycles(int e, int n, int reopen)
{
	struct weft_recorder_opts opts = {
		.sample_engine = engines[e].engine, .sample_hz = engines[e].hz, .sample_kernel = engines[e].kernel};
	struct weft_recorder *rec = session_start(&opts);
	int fds = 0, mappings = 0;

	REQUIRE(rec);
	for (int i = 0; i < n; i++) {
		if (i == 5) { /* stopped, since a collector that runs has files open for a moment now and then */
			CHECK(WAIT_FOR(samples_tables()));
			CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
			fds = session_fds();
			mappings = session_mappings();
		}
		if (reopen) {
			CHECK_EQ(weft_recorder_close(rec, NULL), 0);
			session_remove_dir();
			rec = session_start(&opts);
			REQUIRE(rec);
		} else {
			CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
			CHECK_EQ(weft_recorder_start(rec, NULL), 0);
		}
	}
	CHECK(WAIT_FOR(samples_tables()));
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	CHECK(session_fds() <= fds);
	CHECK(UNDER_TSAN || session_mappings() <= mappings + 8);
	CHECK(samples_timers() <= 0);
	samples_end(&result, rec, NULL, 0);
}

TEST(a_thousand_starts_and_stops_leave_nothing_behind)
{
	pthread_t threads[2];

	__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, burn_main, NULL), 0);
	for (int e = 0; e < N_ENGINES; e++)
		check_cycles(e, SCALED(e ? 100 : 1000, 50), 0);
	check_cycles(0, SCALED(60, 20), 1);
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void *brief_main(void *data)
{
	samples_burn((uint64_t)(uintptr_t)data);
	return NULL;
}

TEST(threads_may_end_during_samples)
{
	for (int e = 0; e < N_ENGINES; e++) {
		struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){
			.sample_engine = engines[e].engine, .sample_hz = 2000, .sample_kernel = engines[e].kernel});

		REQUIRE(rec);
		for (int i = 0; i < SCALED(150, 40); i++) {
			pthread_t threads[4];

			for (uintptr_t k = 0; k < 4; k++)
				CHECK_EQ(pthread_create(&threads[k], NULL, brief_main, (void *)(k * MS)), 0);
			for (int k = 0; k < 4; k++)
				pthread_join(threads[k], NULL);
		}
		samples_end(&result, rec, NULL, 0);
		CHECK(samples_timers() <= 0);
		CHECK_EQ(result.uncovered, 0);
	}
}

TEST(children_of_fork_have_no_timers_files_or_handlers_of_sampling)
{
	for (int e = 0; e < N_ENGINES; e++) {
		struct weft_recorder *rec;
		pthread_t thread;

		__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
		rec = samples_start(engines[e].engine, engines[e].hz);
		REQUIRE(rec);
		CHECK_EQ(pthread_create(&thread, NULL, burn_main, NULL), 0);
		for (int i = 0; i < SCALED(60, 15); i++) {
			pid_t pid = fork();

			if (pid == 0) {
				struct sigaction prof, trap;

				sigaction(SIGPROF, NULL, &prof);
				sigaction(SIGTRAP, NULL, &trap);
				if (prof.sa_handler != SIG_DFL || trap.sa_handler != SIG_DFL)
					_exit(1);
				/* Others may have been open for a moment when it was forked. */
				if (samples_timers() > 0 || session_fds_of("perf_event") || session_fds_of(".rings") ||
				    session_fds_of(".weft"))
					_exit(2);
				samples_burn(5 * MS);
				_exit(weft__engine_counts().samples > 1000000);
			}
			CHECK_EQ(session_wait(pid), 0);
			samples_burn(MS);
		}
		__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		samples_end(&result, rec, NULL, 0);
	}
}

TEST(a_child_that_starts_anew_is_sampled)
{
	struct weft_recorder *rec;
	pid_t pid;

	SKIP_UNDER_TSAN();
	for (int e = 0; e < 2; e++) {
		rec = session_start(&(struct weft_recorder_opts){.sample_engine = engines[e].engine,
								 .sample_hz = engines[e].hz,
								 .ring_place = WEFT_RING_DIR,
								 .on_fork = WEFT_FORK_RESTART});
		REQUIRE(rec);
		samples_burn(20 * MS);
		pid = fork();
		if (pid == 0) {
			uint64_t before = weft__engine_counts().samples;

			samples_burn(100 * MS);
			_exit(weft__engine_counts().samples > before + 3 ? 0 : 1);
		}
		CHECK_EQ(session_wait(pid), 0);
		samples_end(&result, rec, NULL, 0);
	}
}

TEST(programs_that_are_executed_live)
{
	for (int e = 0; e < N_ENGINES; e++) {
		struct weft_recorder *rec = samples_start(engines[e].engine, engines[e].hz);

		REQUIRE(rec);
		for (int i = 0; i < 10; i++) {
			pid_t pid = fork();

			if (pid == 0) {
				execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done", NULL);
				_exit(127);
			}
			CHECK_EQ(session_wait(pid), 0);
			CHECK_EQ(system("true"), 0);
		}
		samples_end(&result, rec, NULL, 0);
	}
}

/* exec in the process itself, with timers and events running. Not with kernel frames: a SIGTRAP that waits for the
 * end of the system call outlives it. */
TEST(a_process_may_execute_another_program)
{
	for (int i = 0; i < 20; i++) {
		int e = i % (UNDER_TSAN ? 1 : 2);
		pid_t pid;

		session_fresh_dir();
		pid = fork();
		if (pid == 0) {
			struct weft_recorder *rec =
				session_start(&(struct weft_recorder_opts){.dir = session_dir,
									   .ring_place = WEFT_RING_DIR,
									   .sample_engine = engines[e].engine,
									   .sample_hz = engines[e].hz});
			pthread_t thread;

			__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
			if (!rec || pthread_create(&thread, NULL, burn_main, NULL))
				_exit(1);
			samples_burn(20 * MS);
			execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", NULL);
			_exit(127);
		}
		CHECK_EQ(session_wait(pid), 0);
		session_remove_dir();
	}
}

TEST(libraries_come_and_go)
{
	static const char *const names[] = {"libm.so.6", "libresolv.so.2", "libutil.so.1", "libanl.so.1"};
	struct weft_recorder *rec;
	pthread_t thread;

	__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
	rec = samples_start(WEFT_ENGINE_TIMER, 240);
	REQUIRE(rec);
	CHECK_EQ(pthread_create(&thread, NULL, burn_main, NULL), 0);
	for (int i = 0; i < SCALED(300, 40); i++) {
		void *lib = dlopen(names[i % 4], RTLD_NOW | RTLD_LOCAL);

		samples_burn(MS);
		if (lib)
			dlclose(lib);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	samples_end(&result, rec, NULL, 0);
	if (!UNDER_TSAN)
		CHECK(result.complete * 100 >= result.n * 95);
}
