/* SPDX-License-Identifier: Apache-2.0 */
/* Open, start, pause, stop, close: in every order, again and again, with threads emitting throughout. */
/* presets: asan tsan release: it takes long */
#include "session.h"

static int kind;

static void emit_n(uint64_t source, uint64_t n)
{
	uint64_t i;

	for (i = 1; i <= n; i++)
		tally_emit(kind, source, i);
}

static int stop;

static void *emit_until_stop(void *data)
{
	uint64_t n = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		tally_emit(kind, (uint64_t)(uintptr_t)data, ++n);
		if (n % 64 == 0)
			weft_park(0);
	}
	return NULL;
}

/* Threads that are born, emit and die all the time. */
static void *emit_briefly(void *data)
{
	uint64_t i;

	for (i = 0; i < 50; i++)
		weft_park((uint32_t)i);
	return data;
}

static void *churn(void *data)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, emit_briefly, NULL) == 0)
			pthread_join(thread, NULL);
	}
	return data;
}

TEST(hundreds_of_sessions_with_threads_emitting_throughout)
{
	enum { N = 4, CYCLES = SCALED(500, 60) };
	struct weft_recorder_opts opts = {.size = sizeof(opts), .max_threads = 64};
	pthread_t threads[N];
	int i, fds = 0, maps = 0;

	kind = tally_kind();
	session_fresh_dir();
	opts.dir = session_dir;
	opts.keep_bytes = 1 << 20;
	stop = 0;
	for (i = 0; i < N; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, i ? emit_until_stop : churn, (void *)(uintptr_t)i), 0);
	for (i = 0; i < CYCLES; i++) {
		struct weft_recorder *rec = NULL;

		if (!CHECK_EQ(weft_recorder_open(&rec, &opts, NULL), 0))
			break;
		CHECK_EQ(weft_recorder_start(rec, NULL), 0);
		if (i % 3 == 0)
			CHECK_EQ(weft_recorder_pause(rec), 0);
		if (i % 5 == 0)
			CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
		CHECK_EQ(weft_recorder_close(rec, NULL), 0);
		if (i == 20) {
			fds = session_fds();
			maps = session_mappings();
		}
	}
	CHECK(session_fds() <= fds + 4);
	CHECK(SCALED(0, 1) || session_mappings() <= maps + 60);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(tally_files(session_dir, ".rings") + tally_files(session_dir, ".active") +
			 tally_files(session_dir, ".new"),
		 0);
	session_remove_dir();
}

TEST(events_before_open_and_after_close_are_inert)
{
	struct weft_recorder *rec;
	struct tally t;

	kind = tally_kind();
	emit_n(0, 10);
	CHECK(!weft_recording());
	CHECK_EQ(weft_now_ticks(), 0);
	rec = session_start(NULL);
	REQUIRE(rec);
	CHECK(weft_recording() && weft_now_ticks());
	emit_n(1, 10);
	session_end(rec, &t, 3);
	CHECK(!weft_recording());
	emit_n(2, 10);
	CHECK_EQ(t.sources[0].count, 0);
	CHECK_EQ(t.sources[1].count, 10);
	tally_fini(&t);
}

TEST(a_pause_is_noted_with_its_time_and_start_goes_on_in_the_same_segment)
{
	struct weft_recorder *rec = session_start(NULL);
	uint64_t from, to;
	struct tally t;

	REQUIRE(rec);
	kind = tally_kind();
	emit_n(0, 10);
	from = session_now_ns();
	CHECK_EQ(weft_recorder_pause(rec), 0);
	CHECK_EQ(session_stats(rec).state, WEFT_STATE_PAUSED);
	emit_n(1, 10);
	session_sleep_ns(20 * MS);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	to = session_now_ns();
	emit_n(2, 10);
	session_end(rec, &t, 3);
	CHECK_EQ(t.segments, 1);
	CHECK_EQ(t.sources[0].count, 10);
	CHECK_EQ(t.sources[1].count, 0);
	CHECK_EQ(t.sources[2].count, 10);
	if (CHECK_EQ(t.n_losses, 1)) {
		CHECK_EQ(t.losses[0].reason, WEFT_LOSS_PAUSED);
		CHECK_EQ(t.losses[0].count, 0);
		CHECK(t.losses[0].from_ns >= from && t.losses[0].to_ns <= to);
		CHECK(t.losses[0].to_ns - t.losses[0].from_ns >= 20 * MS);
	}
	tally_fini(&t);
}

TEST(start_may_follow_stop)
{
	struct weft_recorder *rec = session_start(NULL);
	struct tally t;

	REQUIRE(rec);
	kind = tally_kind();
	emit_n(0, 10);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	CHECK_EQ(session_stats(rec).state, WEFT_STATE_IDLE);
	CHECK_EQ(session_stats(rec).segments, 1);
	emit_n(1, 10);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	emit_n(2, 10);
	session_end(rec, &t, 3);
	CHECK_EQ(t.segments, 2);
	CHECK_EQ(t.sources[0].count, 10);
	CHECK_EQ(t.sources[1].count, 0);
	CHECK_EQ(t.sources[2].count, 10);
	tally_fini(&t);
}

TEST(a_second_recorder_is_refused)
{
	struct weft_recorder *rec = session_start(NULL), *second = NULL;
	struct weft_error err = {0};
	struct tally t;

	REQUIRE(rec);
	CHECK_EQ(weft_recorder_open(&second, NULL, &err), -WEFT_E_STATE);
	CHECK(!second);
	CHECK_EQ(err.code, -WEFT_E_STATE);
	CHECK(strstr(err.msg, "already"));
	session_end(rec, &t, 0);
	tally_fini(&t);
}

TEST(every_call_takes_a_null_recorder)
{
	struct weft_recorder_stats stats = {.size = sizeof(stats), .events = 7};
	char path[8] = "x";

	CHECK_EQ(weft_recorder_start(NULL, NULL), 0);
	CHECK_EQ(weft_recorder_pause(NULL), 0);
	CHECK_EQ(weft_recorder_stop(NULL, NULL), 0);
	CHECK_EQ(weft_recorder_close(NULL, NULL), 0);
	CHECK_EQ(weft_recorder_rotate(NULL, path, sizeof(path), NULL), 0);
	CHECK_STR(path, "");
	CHECK_EQ(weft_recorder_save(NULL, "/", NULL), 0);
	CHECK_EQ(weft_recorder_stats(NULL, &stats), 0);
	CHECK_EQ(stats.state, WEFT_STATE_CLOSED);
	CHECK_EQ(stats.events, 0);
	CHECK_EQ(weft_recorder_stats(NULL, NULL), -EINVAL);
}

static int closing_answer;

/* A resolver that answers only when the recorder it was asked for is gone. */
static int slow_worker(void *data)
{
	int *gone = data;

	__atomic_store_n(&closing_answer, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(gone, __ATOMIC_ACQUIRE))
		session_sleep_ns(MS);
	return 3;
}

static void *emit_once(void *data)
{
	weft_park(0);
	weft_park(0);
	return data;
}

TEST(a_recorder_closes_under_a_thread_that_is_still_attaching)
{
	int gone = 0, i, runtime;
	pthread_t thread;

	for (i = 0; i < 2; i++) {
		struct weft_runtime_opts opts = {sizeof(opts), "slow", slow_worker, NULL, &gone};
		struct weft_recorder *rec = session_start(NULL), *next = NULL;
		struct tally t;

		REQUIRE(rec);
		gone = closing_answer = 0;
		runtime = weft_runtime_add(&opts, NULL);
		CHECK(runtime > 0);
		CHECK_EQ(pthread_create(&thread, NULL, emit_once, NULL), 0);
		CHECK(WAIT_FOR(__atomic_load_n(&closing_answer, __ATOMIC_ACQUIRE)));
		session_end(rec, &t, 0);
		tally_fini(&t);
		if (i == 1) /* the thread comes back into the session after its own */
			next = session_start(NULL);
		__atomic_store_n(&gone, 1, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		if (next) {
			session_end(next, &t, 0);
			tally_fini(&t);
		}
		CHECK_EQ(weft_runtime_del(runtime), 0);
	}
}

TEST(a_program_that_just_exits_has_its_segment_sealed)
{
	struct tally t;
	pid_t pid;

	session_fresh_dir();
	pid = fork();
	if (!pid) {
		struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = session_dir};
		struct weft_recorder *rec;

		kind = tally_kind();
		if (weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0)
			_exit(1);
		emit_n(0, 100);
		exit(0);
	}
	CHECK_EQ(session_wait(pid), 0);
	CHECK_EQ(tally_files(session_dir, ".rings") + tally_files(session_dir, ".active"), 0);
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.sources[0].count, 100);
	CHECK_EQ(t.damaged + t.undefined + t.recovered, 0);
	tally_fini(&t);
	session_remove_dir();
}

TEST(a_relative_directory_survives_chdir)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = "here"};
	char before[4096], path[128];
	struct weft_recorder *rec = NULL;
	struct tally t;

	REQUIRE(getcwd(before, sizeof(before)));
	session_fresh_dir();
	CHECK_EQ(chdir(session_dir), 0);
	kind = tally_kind();
	CHECK_EQ(weft_recorder_open(&rec, &opts, NULL), 0);
	CHECK_EQ(chdir("/tmp"), 0);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	emit_n(0, 10);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(chdir(before), 0);
	snprintf(path, sizeof(path), "%s/here", session_dir);
	tally_init(&t, 1);
	CHECK_EQ(tally_dir(&t, path), 1);
	CHECK_EQ(t.sources[0].count, 10);
	CHECK_EQ(tally_files(path, ".rings"), 0);
	tally_fini(&t);
	session_remove_dir();
}
