/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder: nothing is written until somebody or something asks, and then the right seconds are. */
#include "polls.h"

#include <signal.h>
#include <sys/stat.h>

#include "record/setup.h"

#define SECOND (1000 * MS)

static struct weft_recorder *fly(const struct weft_recorder_opts *given)
{
	struct weft_recorder_opts opts = *given;

	opts.flight_ns = opts.flight_ns ? opts.flight_ns : 10 * SECOND;
	return session_start(&opts);
}

struct window {
	uint64_t tasks[16];         /* wakes, by task */
	uint64_t first_ns, last_ns; /* of these */
	uint64_t from_ns, to_ns;    /* as the facts say */
	char why[128];
	uint64_t unheard;
	struct tally tally;
};

static void wake_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct window *w = data;

	(void)seg;
	if (ev->kind != WEFT_KIND_WAKE)
		return;
	w->tasks[ev->fields[0] % 16]++;
	w->first_ns = !w->first_ns || ev->time_ns < w->first_ns ? ev->time_ns : w->first_ns;
	w->last_ns = ev->time_ns > w->last_ns ? ev->time_ns : w->last_ns;
}

static uint64_t fact_number(const struct weft_segment *seg, const char *key)
{
	const char *text = weft_segment_fact(seg, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

static struct window look_at(const char *path)
{
	struct window w = {0};
	struct weft_segment *seg;

	tally_init(&w.tally, 1);
	w.tally.each = wake_event;
	w.tally.data = &w;
	tally_file(&w.tally, path);
	tally_fini(&w.tally);
	CHECK_EQ(w.tally.damaged, 0);
	CHECK_EQ(w.tally.undefined, 0);
	CHECK_EQ(w.tally.backwards, 0);
	if (!CHECK_EQ(weft_segment_open(&seg, path, NULL), 0))
		return w;
	snprintf(w.why, sizeof(w.why), "%s",
		 weft_segment_fact(seg, "dump.why") ? weft_segment_fact(seg, "dump.why") : "");
	w.from_ns = fact_number(seg, "dump.from_ns");
	w.to_ns = fact_number(seg, "dump.to_ns");
	w.unheard = fact_number(seg, "dump.unheard");
	weft_segment_close(seg);
	return w;
}

/* The last dump in session_dir, by name. */
static struct window look_at_last(void)
{
	struct dirent **entries;
	int n = scandir(session_dir, &entries, tally_is_segment, alphasort);
	struct window w = {0};
	char path[4096];

	if (CHECK(n > 0)) {
		snprintf(path, sizeof(path), "%s/%s", session_dir, entries[n - 1]->d_name);
		w = look_at(path);
	}
	for (int i = 0; i < n; i++)
		free(entries[i]);
	if (n >= 0)
		free(entries);
	return w;
}

static void wakes(uint64_t task, uint64_t ago_ns, uint32_t n)
{
	uint64_t tick = weft_now() - polls_ticks(ago_ns);

	while (n--)
		weft_wake_at(task, 0xffff, tick++);
}

TEST(nothing_is_written_until_asked)
{
	struct weft_recorder_opts opts = {.flush_ns = MS, .drain_ns = MS};
	struct weft_recorder *rec = fly(&opts);
	struct weft_error err = {0};
	char path[512];
	struct window w;

	REQUIRE(rec);
	wakes(1, 0, 100);
	CHECK_EQ(weft_recorder_rotate(rec, path, sizeof(path)), 0);
	CHECK_STR(path, "");
	wakes(2, 0, 50);
	CHECK_EQ(tally_files(session_dir, ".weft") + tally_files(session_dir, ".active"), 0);
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, path, sizeof(path), &err), 0);
	CHECK_EQ(tally_files(session_dir, ".weft"), 1);
	CHECK_EQ(session_stats(rec).dumps, 1);
	w = look_at(path);
	CHECK_EQ(w.tasks[1], 100);
	CHECK_EQ(w.tasks[2], 50);
	CHECK_STR(w.why, "call");
	CHECK_EQ(w.to_ns - w.from_ns, 10 * SECOND);
	CHECK(w.first_ns >= w.from_ns && w.last_ns <= w.to_ns);
	CHECK_EQ(weft_recorder_close(rec), 0);
	CHECK_EQ(tally_files(session_dir, ""), 1);
	session_remove_dir();
}

TEST(a_dump_has_the_time_that_was_asked_for)
{
	struct weft_recorder_opts opts = {0};
	struct weft_recorder *rec = fly(&opts);
	char path[512];
	struct window w;

	REQUIRE(rec);
	wakes(0, 9 * SECOND, 1); /* the thread begins now: its first event is not older than its second */
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0), 0);
	wakes(1, 6 * SECOND, 10);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0), 0);
	wakes(2, 3 * SECOND, 20);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0), 0);
	wakes(3, 0, 30);
	CHECK_EQ(weft_recorder_dump(rec, 4 * SECOND, 0, path, sizeof(path), NULL), 0);
	w = look_at(path);
	CHECK_EQ(w.tasks[1], 0);
	CHECK_EQ(w.tasks[2], 20);
	CHECK_EQ(w.tasks[3], 30);
	CHECK_EQ(w.to_ns - w.from_ns, 4 * SECOND);
	CHECK_EQ(weft_recorder_dump(rec, SECOND, 0, path, sizeof(path), NULL), 0);
	w = look_at(path);
	CHECK_EQ(w.tasks[2], 0);
	CHECK_EQ(w.tasks[3], 30);
	CHECK_EQ(weft_recorder_dump(rec, 7 * SECOND, 0, path, sizeof(path), NULL), 0);
	w = look_at(path);
	CHECK_EQ(w.tasks[1], 10);
	CHECK_EQ(session_stats(rec).dumps, 3);
	CHECK_EQ(weft_recorder_close(rec), 0);
	session_remove_dir();
}

struct dumper {
	struct weft_recorder *rec;
	uint64_t back_ns, forward_ns;
	int result, done;
	char path[512];
	pthread_t thread;
};

static void *dump_main(void *data)
{
	struct dumper *d = data;

	d->result = weft_recorder_dump(d->rec, d->back_ns, d->forward_ns, d->path, sizeof(d->path), NULL);
	__atomic_store_n(&d->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void dump_apart(struct dumper *d, struct weft_recorder *rec, uint64_t forward_ns)
{
	*d = (struct dumper){.rec = rec, .forward_ns = forward_ns};
	CHECK_EQ(pthread_create(&d->thread, NULL, dump_main, d), 0);
}

TEST(what_comes_after_the_call_is_in_it_too)
{
	struct weft_recorder_opts opts = {0};
	struct weft_recorder *rec = fly(&opts);
	struct dumper d, other;
	uint64_t begin = session_now_ns(), at[4096];
	uint32_t n = 0, sure = 0;
	struct window w;

	REQUIRE(rec);
	wakes(1, 0, 1);
	dump_apart(&d, rec, 300 * MS);
	dump_apart(&other, rec, 100 * MS);
	while (!__atomic_load_n(&d.done, __ATOMIC_ACQUIRE)) {
		wakes(2, 0, 1);
		at[n++ % 4096] = session_now_ns();
		session_sleep_ns(MS);
		CHECK_EQ(session_stats(rec).state, WEFT_STATE_RECORDING); /* nobody holds the mutex meanwhile */
	}
	pthread_join(d.thread, NULL);
	pthread_join(other.thread, NULL);
	CHECK_EQ(d.result, 0);
	CHECK_EQ(other.result, 0);
	CHECK(session_now_ns() - begin >= 300 * MS);
	w = look_at(d.path);
	CHECK_EQ(w.tasks[1], 1);
	CHECK_EQ(w.to_ns - w.from_ns, 10 * SECOND + 300 * MS);
	while (sure < n && n <= 4096 && at[sure] + MS / 10 < w.to_ns)
		sure++;
	CHECK(w.tasks[2] >= 2 && w.tasks[2] >= sure);
	w = look_at(other.path);
	CHECK_EQ(w.to_ns - w.from_ns, 10 * SECOND + 100 * MS);
	CHECK(strcmp(d.path, other.path) != 0);
	CHECK_EQ(weft_recorder_close(rec), 0);
	session_remove_dir();
}

TEST(stopping_ends_a_dump_that_waits)
{
	struct weft_recorder_opts opts = {0};
	struct weft_recorder *rec = fly(&opts);
	struct dumper d[3];
	char path[512];
	int i;

	REQUIRE(rec);
	wakes(1, 0, 5);
	for (i = 0; i < 3; i++)
		dump_apart(&d[i], rec, 1000 * SECOND);
	CHECK(WAIT_FOR(({
		pthread_mutex_lock(&((struct weft_recorder *)rec)->collector.mutex);
		uint32_t n = rec->collector.flight.n_waiting;
		pthread_mutex_unlock(&((struct weft_recorder *)rec)->collector.mutex);
		n == 3;
	})));
	CHECK_EQ(weft_recorder_stop(rec), 0);
	for (i = 0; i < 3; i++) {
		pthread_join(d[i].thread, NULL);
		CHECK_EQ(d[i].result, 0);
		CHECK_EQ(look_at(d[i].path).tasks[1], 5);
	}
	/* What is in memory can be had after that, too. */
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, path, sizeof(path), NULL), 0);
	CHECK_EQ(look_at(path).tasks[1], 5);
	CHECK_EQ(session_stats(rec).dumps, 4);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	wakes(2, 0, 5);
	dump_apart(&d[0], rec, 1000 * SECOND);
	CHECK(WAIT_FOR(({
		pthread_mutex_lock(&rec->collector.mutex);
		uint32_t n = rec->collector.flight.n_waiting;
		pthread_mutex_unlock(&rec->collector.mutex);
		n == 1;
	})));
	CHECK_EQ(weft_recorder_close(rec), 0);
	pthread_join(d[0].thread, NULL);
	CHECK_EQ(d[0].result, 0);
	CHECK_EQ(look_at(d[0].path).tasks[2], 5);
	session_remove_dir();
}

TEST(memory_holds_no_more_than_it_should)
{
	struct weft_recorder_opts opts = {.flight_ns = 100 * MS};
	struct weft_recorder *rec = fly(&opts);
	int files, i;

	REQUIRE(rec);
	wakes(1, 0, 10);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0), 0);
	CHECK((files = session_fds_of("weft-segment")) > 0);
	for (i = 0; i < 10; i++) {
		session_sleep_ns(60 * MS);
		wakes(2, 0, 10);
		CHECK_EQ(weft_recorder_rotate(rec, NULL, 0), 0);
	}
	CHECK(session_fds_of("weft-segment") <= files + 2);
	CHECK_EQ(weft_recorder_close(rec), 0);
	session_remove_dir();
}

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
	CHECK_EQ(weft_recorder_close(rec), 0);
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
	CHECK_EQ(weft_recorder_close(rec), 0);
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
	CHECK_EQ(weft_recorder_close(rec), 0);
	sigaction(SIGUSR2, NULL, &now);
	CHECK(now.sa_handler == on_signal);
	CHECK_EQ(tally_files(session_dir, ".weft"), 1);
	sigaction(SIGUSR2, &before, NULL);
	session_remove_dir();
}

TEST(a_trigger_signal_that_nobody_had_does_no_harm)
{
	struct weft_recorder_opts opts = {.trigger_signal = (uint32_t)SIGRTMAX, .on_fork = WEFT_FORK_RESTART};
	struct weft_recorder *rec = fly(&opts);
	struct sigaction now;
	pid_t pid;

	REQUIRE(rec);
	pid = UNDER_TSAN ? 0 : fork(); /* ThreadSanitizer allows no threads in a child */
	if (!pid) {
		alarm(20);
		weft_wake(3, 0xffff);
		raise(SIGRTMAX);
		if (!UNDER_TSAN)
			_exit(weft_recorder_close(rec) ? 1 : 0); /* which writes what was asked for */
	}
	CHECK(UNDER_TSAN || session_wait(pid) == 0);
	CHECK_EQ(weft_recorder_close(rec), 0);
	CHECK_EQ(tally_files(session_dir, ".weft"), 1);
	CHECK_EQ(look_at_last().tasks[3], 1);
	alarm(0);
	sigaction(SIGRTMAX, NULL, &now);
	CHECK(now.sa_handler == SIG_DFL);
	session_remove_dir();
}

TEST(a_directory_that_is_gone_is_made_again)
{
	struct weft_recorder_opts opts = {0};
	struct weft_recorder *rec = fly(&opts);
	char path[512], command[128];

	REQUIRE(rec);
	wakes(1, 0, 3);
	snprintf(command, sizeof(command), "rm -rf '%s'", session_dir);
	CHECK_EQ(system(command), 0);
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, path, sizeof(path), NULL), 0);
	CHECK_EQ(look_at(path).tasks[1], 3);
	CHECK_EQ(weft_recorder_close(rec), 0);
	session_remove_dir();
}

TEST(a_dump_that_cannot_be_written_is_an_error_and_a_trigger_tries_again)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_SLOW, .trigger_poll_ns = 20 * MS};
	struct weft_recorder *rec = fly(&opts);
	struct weft_error err = {0};
	char path[512], command[256];

	REQUIRE(rec);
	wakes(1, 0, 3);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0),
		 0); /* a flush in the middle of it would make the directory again */
	snprintf(command, sizeof(command), "rm -rf '%s' && touch '%s'", session_dir, session_dir);
	CHECK_EQ(system(command), 0);
	CHECK(weft_recorder_dump(rec, 0, 0, path, sizeof(path), &err) < 0);
	CHECK_STR(path, "");
	CHECK(err.msg[0]);
	polls_make(1, 30 * MS, 1);
	CHECK(WAIT_FOR(load_relaxed(&rec->collector.flight.retry_ns))); /* it has been tried */
	CHECK_EQ(session_stats(rec).dumps, 0);
	CHECK_EQ(unlink(session_dir), 0);
	CHECK(WAIT_FOR(session_stats(rec).dumps == 1));
	CHECK_EQ(look_at_last().tasks[1], 3);
	CHECK_EQ(weft_recorder_close(rec), 0);
	session_remove_dir();
}

TEST(a_kill_loses_what_was_in_memory_but_not_the_rings)
{
	struct window w;
	pid_t pid;

	session_fresh_dir();
	pid = fork();
	if (!pid) {
		struct weft_recorder_opts opts = {.dir = session_dir};
		struct weft_recorder *rec = fly(&opts);

		alarm(20);
		wakes(1, 0, 10);
		if (!rec || weft_recorder_rotate(rec, NULL, 0) || weft_recorder_dump(rec, 0, 0, NULL, 0, NULL))
			_exit(1);
		wakes(2, 0, 20);
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(session_wait(pid), -1);
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	CHECK_EQ(tally_files(session_dir, ".weft"), 2);
	CHECK_EQ(tally_files(session_dir, ""), 2);
	w = look_at_last();
	CHECK_EQ(w.tasks[1], 10); /* the dump, whose name comes last */
	CHECK_EQ(w.tasks[2], 0);
	session_remove_dir();
}

TEST(counts_of_polls_are_in_dumps)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_CAUGHT};
	struct weft_recorder *rec = fly(&opts);
	struct polls_seen *seen;

	REQUIRE(rec);
	polls_make(1, MS, 100);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0), 0);
	polls_make(1, 2 * MS, 10);
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, NULL, 0, NULL), 0);
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, 110);
	CHECK_EQ(seen->by_bucket[weft__polls_bucket(2 * MS)], 10);
	free(seen);
}

TEST(without_the_option_there_is_nothing_to_dump)
{
	struct weft_recorder *rec = session_start(NULL);
	struct weft_recorder_opts opts = {.size = sizeof(opts), .flight_ns = SECOND};
	struct weft_recorder *none = NULL;
	struct weft_error err = {0};

	REQUIRE(rec);
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, NULL, 0, &err), -WEFT_E_STATE);
	CHECK(strstr(err.msg, "flight_ns") != NULL);
	CHECK_EQ(weft_recorder_dump(NULL, 0, 0, NULL, 0, NULL), 0);
	CHECK_EQ(weft_recorder_close(rec), 0);
	CHECK_EQ(weft_recorder_open(&none, &opts, &err), -WEFT_E_OPTION); /* nowhere to write to */
	session_remove_dir();
}
