/* SPDX-License-Identifier: Apache-2.0 */
/* What asks the flight recorder for a dump by itself: a long poll, a signal. */
#include "flight.h"

static void check_poll_trigger(uint32_t mode, uint64_t slow_ns)
{
	struct weft_recorder_opts opts = {.poll_mode = mode, .poll_slow_ns = slow_ns, .trigger_poll_ns = 20 * MS};
	struct weft_recorder *rec = fly(&opts);
	char path[512];
	struct window w;

	REQUIRE(rec);
	polls_make(4, 19 * MS, 50);
	wakes(1, 0, 7);
	CHECK_EQ(session_stats(rec).dumps, 0);
	polls_make(5, 21 * MS, 1);
	CHECK(WAIT_FOR(session_stats(rec).dumps == 1));
	w = look_at_last();
	CHECK_EQ(w.tasks[1], 7);
	CHECK(strstr(w.why, "poll of task 5 in thread ") != NULL);
	CHECK(strstr(w.why, " took 21.0") != NULL);
	CHECK_EQ(w.tally.by_kind[WEFT_KIND_POLL_END], mode == WEFT_POLLS_ALL ? 51 : 0);
	polls_make(6, 30 * MS, 3); /* too soon */
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, path, sizeof(path), NULL), 0);
	w = look_at(path);
	CHECK_EQ(w.unheard, 3);
	CHECK_EQ(session_stats(rec).dumps, 2);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(tally_files(session_dir, ".weft"), 2);
	session_remove_dir();
}

TEST(a_long_poll_asks_for_a_dump)
{
	check_poll_trigger(WEFT_POLLS_SLOW, 50 * MS);
	check_poll_trigger(WEFT_POLLS_SLOW, MS);
	check_poll_trigger(WEFT_POLLS_CAUGHT, 0);
	check_poll_trigger(WEFT_POLLS_ALL, 0);
}

TEST(after_the_quiet_time_triggers_are_heard_again)
{
	struct weft_recorder_opts opts = {
		.poll_mode = WEFT_POLLS_SLOW, .trigger_poll_ns = 20 * MS, .trigger_quiet_ns = 1};
	struct weft_recorder *rec = fly(&opts);
	uint64_t i;

	REQUIRE(rec);
	for (i = 1; i <= 3; i++) {
		polls_make(i, 30 * MS, 1);
		CHECK(WAIT_FOR(session_stats(rec).dumps == i));
	}
	CHECK(strstr(look_at_last().why, "task 3 ") != NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

/* What comes after the trigger is in its dump, and triggers that come meanwhile make no dumps of their own. */
TEST(a_trigger_may_ask_for_what_comes_after_it)
{
	struct weft_recorder_opts opts = {
		.poll_mode = WEFT_POLLS_SLOW, .trigger_poll_ns = 20 * MS, .trigger_forward_ns = 300 * MS};
	struct weft_recorder *rec = fly(&opts);
	uint64_t begin, at[4096];
	uint32_t n = 0, sure = 0;
	struct window w;

	REQUIRE(rec);
	wakes(1, 0, 7);
	begin = session_now_ns();
	polls_make(5, 30 * MS, 1);
	polls_make(6, 30 * MS, 2);
	while (!session_stats(rec).dumps && session_now_ns() - begin < 20 * SECOND) {
		wakes(2, 0, 1);
		at[n++ % 4096] = session_now_ns();
		session_sleep_ns(5 * MS);
	}
	CHECK(session_now_ns() - begin >= 300 * MS);
	w = look_at_last();
	CHECK(strstr(w.why, "poll of task 5 in thread ") != NULL);
	CHECK_EQ(w.tasks[1], 7);
	while (sure < n && at[sure] + MS / 10 < w.to_ns)
		sure++;
	CHECK(w.tasks[2] >= 2 && w.tasks[2] >= sure);
	CHECK_EQ(w.to_ns - w.from_ns, 10 * SECOND + 300 * MS);
	CHECK_EQ(w.unheard, 2);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(tally_files(session_dir, ".weft"), 1);
	session_remove_dir();
}

TEST(closing_does_not_wait_for_what_comes_after_a_trigger)
{
	struct weft_recorder_opts opts = {.trigger_signal = SIGUSR2, .trigger_forward_ns = 1000 * SECOND};
	struct weft_recorder *rec = fly(&opts);
	uint64_t begin = session_now_ns();

	REQUIRE(rec);
	wakes(1, 0, 7);
	raise(SIGUSR2);
	wakes(2, 0, 3);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK(session_now_ns() - begin < 500 * SECOND);
	CHECK_EQ(tally_files(session_dir, ".weft"), 1);
	CHECK_EQ(look_at_last().tasks[1], 7);
	CHECK_EQ(look_at_last().tasks[2], 3);
	session_remove_dir();
}

static int heard_by_program;

static void on_signal(int signal)
{
	(void)signal;
	__atomic_fetch_add(&heard_by_program, 1, __ATOMIC_RELAXED);
}

TEST(a_signal_asks_for_a_dump_and_is_passed_on)
{
	struct weft_recorder_opts opts = {.trigger_signal = SIGUSR2};
	struct sigaction action = {.sa_handler = on_signal}, before, now;
	struct weft_recorder *rec;

	heard_by_program = 0;
	sigaction(SIGUSR2, &action, &before);
	rec = fly(&opts);
	REQUIRE(rec);
	wakes(1, 0, 9);
	raise(SIGUSR2);
	CHECK_EQ(heard_by_program, 1);
	CHECK(WAIT_FOR(session_stats(rec).dumps == 1));
	CHECK_EQ(look_at_last().tasks[1], 9);
	CHECK(!strncmp(look_at_last().why, "signal ", 7));
	raise(SIGUSR2); /* within the quiet time: the program hears it all the same */
	CHECK_EQ(heard_by_program, 2);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	sigaction(SIGUSR2, NULL, &now);
	CHECK(now.sa_handler == on_signal);
	CHECK_EQ(tally_files(session_dir, ".weft"), 1);
	sigaction(SIGUSR2, &before, NULL);
	session_remove_dir();
}

static char warned[512];

static void keep_warning(enum weft_log_level level, const char *msg, void *data)
{
	(void)level;
	(void)data;
	snprintf(warned, sizeof(warned), "%s", msg);
}

TEST(the_environment_names_the_signal_and_what_comes_after_it)
{
	static const struct {
		const char *text;
		int signal;
	} names[] = {{"USR2", SIGUSR2}, {"SIGUSR1", SIGUSR1}, {"12", 12}};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};
	size_t i;

	session_fresh_dir();
	setenv("WEFT_DIR", session_dir, 1);
	setenv("WEFT_FLIGHT_SECONDS", "10", 1);
	setenv("WEFT_TRIGGER_FORWARD_SECONDS", "2", 1);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		setenv("WEFT_TRIGGER_SIGNAL", names[i].text, 1);
		if (!CHECK_EQ(weft_recorder_open_env(&rec, NULL, &err), 0))
			printf("\t%s\n", err.msg);
		CHECK(rec && rec->options.o.trigger_signal == (uint32_t)names[i].signal);
		CHECK(rec && rec->options.o.trigger_forward_ns == 2 * SECOND);
		CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	}
	setenv("WEFT_TRIGGER_SIGNAL", "KILL", 1);
	CHECK_EQ(weft_recorder_open_env(&rec, NULL, &err), -WEFT_E_OPTION);
	CHECK(strstr(err.msg, "SIGUSR1") != NULL); /* one that can be used */
	setenv("WEFT_TRIGGER_SIGNAL", "USR3", 1);
	weft_set_log(keep_warning, WEFT_LOG_WARN, NULL);
	CHECK_EQ(weft_recorder_open_env(&rec, NULL, &err), 0);
	weft_set_log(NULL, WEFT_LOG_WARN, NULL);
	CHECK(strstr(warned, "WEFT_TRIGGER_SIGNAL=USR3") != NULL && strstr(warned, "USR2") != NULL);
	CHECK(rec && rec->options.o.trigger_signal == 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	unsetenv("WEFT_TRIGGER_SIGNAL");
	unsetenv("WEFT_TRIGGER_FORWARD_SECONDS");
	unsetenv("WEFT_FLIGHT_SECONDS");
	unsetenv("WEFT_DIR");
	session_remove_dir();
}

TEST(a_trigger_signal_that_nobody_had_does_no_harm)
{
	struct weft_recorder_opts opts = {.trigger_signal = (uint32_t)SIGRTMAX, .on_fork = WEFT_FORK_RESTART};
	struct weft_recorder *rec = fly(&opts);
	struct sigaction now;
	pid_t pid;

	REQUIRE(rec);
	CHECK(WAIT_FOR(session_others_asleep()));
	pid = UNDER_TSAN ? 0 : fork(); /* ThreadSanitizer allows no threads in a child */
	if (!pid) {
		alarm(20);
		weft_wake(3, 0xffff);
		raise(SIGRTMAX);
		if (!UNDER_TSAN)
			_exit(weft_recorder_close(rec, NULL) ? 1 : 0); /* which writes what was asked for */
	}
	CHECK(UNDER_TSAN || session_wait(pid) == 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(tally_files(session_dir, ".weft"), 1);
	CHECK_EQ(look_at_last().tasks[3], 1);
	alarm(0);
	sigaction(SIGRTMAX, NULL, &now);
	CHECK(now.sa_handler == SIG_DFL);
	session_remove_dir();
}
