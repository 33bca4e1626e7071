/* SPDX-License-Identifier: Apache-2.0 */
/* fork, however it is done: the child is off or begins anew, and the parent goes on unharmed. */
#include "record/sample/state.h"
#include "session.h"

#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;

static void emit_range(int kind, uint64_t source, uint64_t from, uint64_t upto)
{
	for (; from <= upto; from++)
		tally_emit(kind, source, from);
}

/* What a child does that has nothing of the recorder: everything is harmless, nothing hangs. */
static void be_a_child(struct weft_recorder *rec, int kind)
{
	struct weft_recorder_stats stats = {.size = sizeof(stats)};

	alarm(20);
	if (weft_recording())
		_exit(10);
	emit_range(kind, 1, 1, 100);
	weft_park(0);
	if (weft_recorder_start(rec, NULL) != -WEFT_E_STATE)
		_exit(11);
	if (weft_recorder_stats(rec, &stats) < 0 || stats.state != WEFT_STATE_CLOSED)
		_exit(12);
	weft_string("a string of the child");
	if (weft_recorder_pause(rec) < 0 || weft_recorder_stop(rec, NULL) < 0 || weft_recorder_close(rec, NULL) < 0)
		_exit(13);
	emit_range(kind, 1, 1, 100);
	_exit(0);
}

static void check_parent(struct weft_recorder *rec, uint64_t n)
{
	struct tally t;

	session_end(rec, &t, 2);
	CHECK_EQ(t.sources[0].count, n);
	CHECK_EQ(t.sources[1].count, 0);
	CHECK_EQ(t.lost, 0);
	tally_fini(&t);
}

TEST(a_child_of_fork_is_off)
{
	struct weft_recorder *rec = session_start(NULL);
	int kind = tally_kind();
	pid_t pid;

	REQUIRE(rec);
	emit_range(kind, 0, 1, 100);
	pid = fork();
	if (!pid)
		be_a_child(rec, kind);
	emit_range(kind, 0, 101, 200);
	CHECK_EQ(session_wait(pid), 0);
	emit_range(kind, 0, 201, 300);
	check_parent(rec, 300);
}

TEST(a_child_that_fork_handlers_do_not_reach_is_off)
{
	struct weft_recorder *rec;
	int kind = tally_kind();
	pid_t pid;

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer must see a fork");
	rec = session_start(NULL);
	REQUIRE(rec);
	emit_range(kind, 0, 1, 100);
	pid = (pid_t)syscall(SYS_fork);
	if (!pid)
		be_a_child(rec, kind);
	emit_range(kind, 0, 101, 200);
	CHECK_EQ(session_wait(pid), 0);
	pid = _Fork();
	if (!pid)
		be_a_child(rec, kind);
	CHECK_EQ(session_wait(pid), 0);
	CHECK(weft_string("a string of the parent") > 0);
	emit_range(kind, 0, 201, 300);
	check_parent(rec, 300);
}

TEST(a_child_that_exits_leaves_the_parent_s_files)
{
	struct weft_recorder *rec;
	int kind = tally_kind(), raw;

	if (SCALED(0, 1))
		SKIP("the sanitizer calls what the child leaves alone a leak");
	rec = session_start(NULL);
	REQUIRE(rec);
	for (raw = 0; raw < 2; raw++) {
		pid_t pid;

		emit_range(kind, 0, (uint64_t)raw * 100 + 1, (uint64_t)raw * 100 + 100);
		pid = raw ? (pid_t)syscall(SYS_fork) : fork();
		if (!pid) {
			alarm(20);
			exit(0);
		}
		CHECK_EQ(session_wait(pid), 0);
		CHECK_EQ(tally_files(session_dir, ".rings"), 1);
	}
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	check_parent(rec, 200);
}

TEST(a_child_begins_anew_by_option)
{
	struct weft_recorder_opts opts = {.on_fork = WEFT_FORK_RESTART};
	struct weft_recorder *rec;
	int kind = tally_kind();
	struct tally t;
	pid_t pid;

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer does not allow threads in a forked child");
	rec = session_start(&opts);
	REQUIRE(rec);
	emit_range(kind, 0, 1, 100);
	pid = fork();
	if (!pid) {
		pid_t grandchild;

		alarm(20);
		emit_range(kind, 1, 1, 100);
		grandchild = fork();
		if (!grandchild) {
			emit_range(kind, 2, 1, 100);
			_exit(weft_recorder_close(rec, NULL) != 0);
		}
		emit_range(kind, 1, 101, 200);
		_exit(session_wait(grandchild) != 0 || weft_recorder_close(rec, NULL) != 0);
	}
	emit_range(kind, 0, 101, 200);
	CHECK_EQ(session_wait(pid), 0);
	session_end(rec, &t, 3);
	CHECK_EQ(t.segments, 3);
	CHECK_EQ(t.sources[0].count, 200);
	CHECK_EQ(t.sources[1].count, 200);
	CHECK_EQ(t.sources[2].count, 100);
	CHECK_EQ(t.lost, 0);
	tally_fini(&t);
}

/* Daemons block all signals while they fork. The child lets them through when it is ready, and is sampled then. */
TEST(a_child_of_a_fork_with_all_signals_blocked_is_sampled)
{
	struct weft_recorder_opts opts = {.on_fork = WEFT_FORK_RESTART, .sample_hz = 499};
	struct weft_recorder *rec = session_start(&opts);
	sigset_t all, before;
	pid_t pid;

	REQUIRE(rec);
	if (UNDER_TSAN) {
		weft_recorder_close(rec, NULL);
		session_remove_dir();
		SKIP("ThreadSanitizer allows no threads in a child");
	}
	/* It allocates, and the other sanitizer's lock on memory would stay locked in the child. */
	CHECK(WAIT_FOR(!__atomic_load_n(&weft__own_threads.tables, __ATOMIC_RELAXED)));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!pid) {
		uint64_t until = session_now_ns() + 20000 * MS;
		int sampled;

		alarm(60);
		while (!(sampled = session_stats(rec).samples > 0) && session_now_ns() < until)
			;
		_exit(weft_recorder_close(rec, NULL) || !sampled);
	}
	CHECK_EQ(session_wait(pid), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

TEST(a_child_of_a_paused_recorder_begins_anew_and_paused)
{
	struct weft_recorder_opts opts = {.on_fork = WEFT_FORK_RESTART};
	struct weft_recorder *rec;
	int kind = tally_kind();
	struct tally t;
	pid_t pid;

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer does not allow threads in a forked child");
	rec = session_start(&opts);
	REQUIRE(rec);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	pid = fork();
	if (!pid) {
		alarm(20);
		emit_range(kind, 1, 1, 100);
		if (weft_recorder_start(rec, NULL) < 0)
			_exit(1);
		emit_range(kind, 1, 101, 200);
		_exit(weft_recorder_close(rec, NULL) != 0);
	}
	CHECK_EQ(session_wait(pid), 0);
	session_end(rec, &t, 2);
	CHECK_EQ(t.sources[1].count, 100);
	tally_fini(&t);
}

struct lane {
	int kind;
	uint64_t source;
	uint64_t n;
	int *stop;
};

static void *emit_until_stop(void *data)
{
	struct lane *lane = data;

	while (!__atomic_load_n(lane->stop, __ATOMIC_RELAXED)) {
		tally_emit(lane->kind, lane->source, ++lane->n);
		if (lane->n % 50 == 0)
			session_sleep_ns(MS / 10);
	}
	return NULL;
}

/* `make` makes children while threads emit and the collector drains, flushes and rotates. */
static void fork_under_load(int (*make)(struct weft_recorder *rec, int kind), int times)
{
	struct weft_recorder_opts opts = {.drain_ns = MS, .flush_ns = 2 * MS, .segment_bytes = 4096};
	enum { N = 4 };
	struct weft_recorder *rec = session_start(&opts);
	int kind = tally_kind(), stop = 0, fds, i;
	uint64_t missing = 0;
	struct lane lanes[N];
	pthread_t threads[N];
	struct tally t;

	REQUIRE(rec);
	for (i = 0; i < N; i++) {
		lanes[i] = (struct lane){kind, (uint64_t)i, 0, &stop};
		CHECK_EQ(pthread_create(&threads[i], NULL, emit_until_stop, &lanes[i]), 0);
	}
	fds = session_fds();
	for (i = 0; i < times; i++)
		CHECK_EQ(make(rec, kind), 0);
	CHECK(WAIT_FOR(session_fds() <= fds + 4)); /* the collector has others open for a moment */
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
	session_end(rec, &t, N + 1);
	for (i = 0; i < N; i++)
		missing += lanes[i].n - t.sources[i].count;
	CHECK_EQ(missing, t.lost);
	CHECK_EQ(t.sources[N].count, 0);
	tally_fini(&t);
}

static int fork_and_emit(struct weft_recorder *rec, int kind)
{
	pid_t pid = fork();

	if (!pid) {
		emit_range(kind, 4, 1, 10);
		_exit(weft_recorder_close(rec, NULL));
	}
	return session_wait(pid);
}

static int fork_raw_and_emit(struct weft_recorder *rec, int kind)
{
	pid_t pid = (pid_t)syscall(SYS_fork);

	(void)rec;
	if (!pid) {
		emit_range(kind, 4, 1, 10);
		_exit(0);
	}
	return session_wait(pid);
}

static int spawn_true(struct weft_recorder *rec, int kind)
{
	char *argv[] = {"true", NULL};
	pid_t pid;

	(void)rec;
	(void)kind;
	return posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) ? -1 : session_wait(pid);
}

TEST(forks_under_load_cost_the_parent_nothing)
{
	fork_under_load(fork_and_emit, SCALED(200, 30));
}

TEST(raw_forks_under_load_cost_the_parent_nothing)
{
	if (UNDER_TSAN)
		SKIP("ThreadSanitizer must see a fork");
	fork_under_load(fork_raw_and_emit, SCALED(200, 30));
}

TEST(spawns_under_load_cost_the_parent_nothing)
{
	fork_under_load(spawn_true, SCALED(100, 20));
}

TEST(a_program_that_is_executed_has_no_file_of_ours)
{
	struct weft_recorder *rec = session_start(NULL);
	char *argv[] = {"sh", "-c",
			"! ls -l /proc/self/fd | grep -qE 'schedstat|[.]weft|[.]rings|memfd:weft|/weft-test'", NULL};
	struct tally t;
	pid_t pid = 0;

	REQUIRE(rec);
	weft_park(0); /* opens the thread's schedstat too */
	CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	CHECK_EQ(session_wait(pid), 0);
	session_end(rec, &t, 0);
	tally_fini(&t);
}

TEST(a_living_child_does_not_keep_its_dead_parent_s_files_busy)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts)};
	int kind = tally_kind(), fds[2];
	struct tally t;
	pid_t pid, child = 0;

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer does not start threads in a child of one that had some");
	session_fresh_dir();
	CHECK_EQ(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		struct weft_recorder *rec;

		opts.dir = session_dir;
		if (weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0)
			_exit(1);
		emit_range(kind, 0, 1, 100);
		if (!fork()) {
			child = getpid();
			alarm(20);
			(void)!write(fds[1], &child, sizeof(child)); /* it has run its fork handlers */
			for (;;)
				pause();
		}
		for (;;)
			pause();
	}
	CHECK_EQ(read(fds[0], &child, sizeof(child)), sizeof(child));
	kill(pid, SIGKILL);
	CHECK_EQ(session_wait(pid), -1);
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	kill(child, SIGKILL);
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.sources[0].count, 100);
	CHECK_EQ(t.damaged + t.undefined + t.disorder, 0);
	tally_fini(&t);
	close(fds[0]);
	close(fds[1]);
	session_remove_dir();
}
