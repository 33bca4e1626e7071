/* SPDX-License-Identifier: Apache-2.0 */
/* A program that closes every file it finds: its next files have our numbers, and stay its own. */
#include "session.h"
#include "tally.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>

#define FILES 64

static int mine[FILES];

/* As a daemon does that was started with who knows what: all but the standard three. */
static void close_everything(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int fds[1024], n = 0;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && n < 1024)
		if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(dir))
			fds[n++] = atoi(entry->d_name);
	closedir(dir);
	while (n)
		close(fds[--n]);
}

/* All the numbers that were ours, and more. */
static void open_mine(void)
{
	for (int i = 0; i < FILES; i++) {
		char path[400];

		snprintf(path, sizeof(path), "%s/mine.%d", session_dir, i);
		mine[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		CHECK(mine[i] >= 0);
		CHECK_EQ(write(mine[i], "mine", 4), 4);
	}
}

static void check_mine(void)
{
	for (int i = 0; i < FILES; i++) {
		char text[8];

		CHECK_EQ(pread(mine[i], text, sizeof(text), 0), 4);
		close(mine[i]);
	}
}

static void *emit(void *data)
{
	for (int i = 0; i < 100; i++)
		weft_wake((uint64_t)i, WEFT_WORKER_NONE);
	return data;
}

static void emit_in_a_thread(void)
{
	pthread_t thread;

	REQUIRE(pthread_create(&thread, NULL, emit, NULL) == 0);
	pthread_join(thread, NULL);
}

static uint64_t wakes(void)
{
	struct tally tally;

	tally_init(&tally, 0);
	tally_dir(&tally, session_dir);
	CHECK_EQ(tally.damaged, 0);
	CHECK_EQ(tally.undefined, 0);
	tally_fini(&tally);
	return tally.by_kind[WEFT_KIND_WAKE];
}

TEST(files_of_the_program_are_neither_written_to_nor_closed)
{
	struct weft_recorder_opts opts = {
		.sample_hz = 99, .sample_engine = WEFT_ENGINE_PERF, .switches = WEFT_SWITCH_INTERVALS};
	struct weft_recorder *rec = session_start(&opts);
	uint64_t events;

	REQUIRE(rec);
	weft_park(0);
	weft_unpark(0); /* opens the thread's schedstat */
	emit(NULL);
	CHECK(WAIT_FOR(session_stats(rec).events >= 102));
	close_everything();
	open_mine();
	emit_in_a_thread();
	events = session_stats(rec).events;
	emit(NULL);
	CHECK(WAIT_FOR(session_stats(rec).events >= events + 100));
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	weft_string("defined later");
	emit_in_a_thread();
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	check_mine();
	CHECK_EQ(wakes(), 400);
	session_remove_dir();
}

TEST(what_was_in_memory_is_lost_and_what_comes_is_not)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .sample_hz = WEFT_OFF, .flush_ns = 20 * MS};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	session_fresh_dir();
	REQUIRE(weft_recorder_open(&rec, &opts, &err) == 0 && weft_recorder_start(rec, &err) == 0);
	emit(NULL);
	CHECK(WAIT_FOR(session_stats(rec).events >= 100));
	close_everything();
	open_mine();
	emit(NULL);
	CHECK(WAIT_FOR(session_stats(rec).events >= 200));
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	check_mine();
	CHECK_EQ(weft_recorder_save(rec, session_dir, &err), 1);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(wakes(), 100);
	session_remove_dir();
}

/* The lock says that the process lives. */
TEST(nobody_takes_the_recording_of_such_a_program_for_that_of_a_dead_one)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.flush_ns = 20 * MS});
	struct weft_error err = {0};

	REQUIRE(rec);
	emit(NULL);
	CHECK(WAIT_FOR(session_stats(rec).events >= 100));
	close_everything();
	emit(NULL);
	CHECK(WAIT_FOR(session_stats(rec).events >= 200));
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, &err), 0);
	emit(NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(wakes(), 300);
	session_remove_dir();
}
