/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder: nothing is written until somebody or something asks, and then the right seconds are. */
#include "flight.h"

TEST(nothing_is_written_until_asked)
{
	struct weft_recorder_opts opts = {.flush_ns = MS, .drain_ns = MS};
	struct weft_recorder *rec = fly(&opts);
	struct weft_error err = {0};
	char path[512];
	struct window w;

	REQUIRE(rec);
	wakes(1, 0, 100);
	CHECK_EQ(weft_recorder_rotate(rec, path, sizeof(path), NULL), 0);
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
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
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
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	wakes(1, 6 * SECOND, 10);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	wakes(2, 3 * SECOND, 20);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
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
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
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

TEST(a_dump_has_what_comes_after_the_call)
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
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
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
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
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
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
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
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	CHECK((files = session_fds_of("weft-segment")) > 0);
	for (i = 0; i < 10; i++) {
		session_sleep_ns(60 * MS);
		wakes(2, 0, 10);
		CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	}
	CHECK(session_fds_of("weft-segment") <= files + 2);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
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
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
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
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL),
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
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
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
		if (!rec || weft_recorder_rotate(rec, NULL, 0, NULL) || weft_recorder_dump(rec, 0, 0, NULL, 0, NULL))
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
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
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
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(weft_recorder_open(&none, &opts, &err), -WEFT_E_OPTION); /* nowhere to write to */
	session_remove_dir();
}

/* Each piece reports everything that its events need, and a reader takes only so many definitions. */
TEST(a_dump_of_very_many_pieces_reads_clean)
{
	struct weft_recorder_opts opts = {.flight_ns = 1000 * SECOND, .switches = WEFT_SWITCH_OFF};
	struct weft_recorder *rec = fly(&opts);
	char path[512];
	struct window w;
	int i;

	REQUIRE(rec);
	for (i = 0; i < 400; i++) {
		wakes(1, 0, 2);
		CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	}
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, path, sizeof(path), NULL), 0);
	w = look_at(path);
	CHECK_EQ(w.tasks[1], 800);
	CHECK_STR(w.why, "call");
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}
