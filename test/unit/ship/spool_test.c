/* SPDX-License-Identifier: Apache-2.0 */
/* A directory as a queue: what waits, what is noted, who may send, and a worker over ten minutes of outage. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dir.h"
#include "ship/spool.h"
#include "ship/worker.h"
#include "weft/event.h"
#include "weft/recorder.h"
#include "weft_test.h"

#define SECOND UINT64_C(1000000000)

static char dir[64];

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/weft-spool-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
}

static void remove_dir(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK_EQ(system(command), 0);
}

static void make_file(const char *name, long age_s)
{
	struct timespec times[2];
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	CHECK(write(fd, "bytes", 5) == 5);
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= age_s;
	times[1] = times[0];
	futimens(fd, times);
	close(fd);
}

static size_t list(struct weft__spool *spool, struct weft__spooled *first)
{
	struct weft__spooled *all;
	int at = weft__spool_dir(spool, NULL);
	size_t n;

	CHECK_EQ(weft__spool_list(spool, at, NULL, &all, &n, NULL), 0);
	if (n && first)
		*first = all[0];
	weft__free(all);
	close(at);
	return n;
}

/* A year forward, and back: what waited is as old as it is. What is written meanwhile has the new time. */
TEST(a_clock_that_is_set_does_not_age_what_was_there)
{
	const uint64_t day = 86400 * SECOND, year = 365 * day, then = 1000 * day;
	struct weft__jump jump = {0};

	weft__jump_note(&jump, then, 7 * SECOND);
	weft__jump_note(&jump, then + day, 7 * SECOND + day);
	CHECK_EQ(weft__jump_age(&jump, then), day);
	weft__jump_note(&jump, then + day + year + 5 * SECOND, 12 * SECOND + day);
	CHECK_EQ(weft__jump_age(&jump, then), day + 5 * SECOND);
	CHECK_EQ(weft__jump_age(&jump, then + day + year), 5 * SECOND);
	weft__jump_note(&jump, then + day + 9 * SECOND, 16 * SECOND + day);
	CHECK_EQ(weft__jump_age(&jump, then), day + 9 * SECOND);
	CHECK_EQ(weft__jump_age(&jump, then + day + year), 0);
}

/* Adjustment, and a machine that slept: CLOCK_BOOTTIME went on. */
TEST(time_that_passed_is_no_jump)
{
	struct weft__jump jump = {0};

	weft__jump_note(&jump, 1000 * SECOND, 10 * SECOND);
	weft__jump_note(&jump, 90000 * SECOND, 89011 * SECOND);
	CHECK_EQ(weft__jump_age(&jump, 1000 * SECOND), 89000 * SECOND);
}

TEST(a_refusal_from_the_future_is_tried_now)
{
	struct weft__spool spool;
	struct weft__spooled first = {0};
	struct timespec later[2] = {{0, 0}, {0, 0}};
	int at;

	make_dir();
	weft__spool_init(&spool, dir, "0000aaaa");
	make_file("a.weft", 5);
	CHECK_EQ(list(&spool, &first), 1);
	at = weft__spool_dir(&spool, NULL);
	CHECK_EQ(weft__spool_refused(&spool, at, &first, "no"), 0);
	CHECK_EQ(list(&spool, &first), 1);
	CHECK(first.tries == 1 && first.due_ns > 0);
	later[0].tv_sec = later[1].tv_sec = time(NULL) + 86400;
	CHECK_EQ(utimensat(at, "a.weft.ship-0000aaaa", later, 0), 0);
	CHECK_EQ(list(&spool, &first), 1);
	CHECK(first.tries == 1 && first.due_ns == 0);
	close(at);
	remove_dir();
}

TEST(the_oldest_is_first_and_what_is_sent_is_not_listed)
{
	struct weft__spool spool, other;
	struct weft__spooled first;
	int at;

	make_dir();
	weft__spool_init(&spool, dir, "0000aaaa");
	weft__spool_init(&other, dir, "0000bbbb");
	make_file("b.weft", 10);
	make_file("a.weft", 5);
	make_file("c.weft.active", 20);
	make_file("c.txt", 20);
	CHECK_EQ(list(&spool, &first), 2);
	CHECK_STR(first.name, "b.weft");
	at = weft__spool_dir(&spool, NULL);
	CHECK_EQ(weft__spool_sent(&spool, at, "b.weft"), 0);
	CHECK_EQ(list(&spool, &first), 1);
	CHECK_STR(first.name, "a.weft");
	CHECK_EQ(list(&other, NULL), 2);
	CHECK(weft__spool_has(at, "b.weft", "0000aaaa") && !weft__spool_has(at, "b.weft", "0000bbbb"));
	weft__spool_remove(at, "b.weft");
	CHECK(faccessat(at, "b.weft.ship-0000aaaa", F_OK, 0) < 0);
	close(at);
	remove_dir();
}

TEST(old_segments_are_left_alone_and_marks_without_one_are_removed)
{
	struct weft__spool spool;

	make_dir();
	weft__spool_init(&spool, dir, "0000aaaa");
	spool.age_ns = 100 * SECOND;
	make_file("a.weft", 50);
	make_file("b.weft", 150);
	make_file("gone.weft.ship-0000aaaa", 0);
	make_file("gone.weft.ship-zzzzzzzz", 0);
	CHECK_EQ(list(&spool, NULL), 1);
	{
		char path[200];

		snprintf(path, sizeof(path), "%s/gone.weft.ship-0000aaaa", dir);
		CHECK(access(path, F_OK) < 0);
		snprintf(path, sizeof(path), "%s/gone.weft.ship-zzzzzzzz", dir);
		CHECK(access(path, F_OK) == 0);
	}
	remove_dir();
}

TEST(a_refusal_waits_longer_each_time_and_then_is_for_good)
{
	struct weft__spool spool;
	struct weft__spooled first;
	uint64_t due = 0;
	int at, i;

	make_dir();
	weft__spool_init(&spool, dir, "0000aaaa");
	make_file("a.weft", 5);
	at = weft__spool_dir(&spool, NULL);
	for (i = 0; i < SPOOL_TRIES; i++) {
		CHECK_EQ(list(&spool, &first), 1);
		CHECK_EQ(first.tries, i);
		CHECK(i == 0 || first.due_ns > due);
		due = first.due_ns;
		CHECK_EQ(weft__spool_refused(&spool, at, &first, "too\nlarge"), 0);
	}
	CHECK_EQ(list(&spool, NULL), 0);
	spool.again = 1;
	CHECK_EQ(list(&spool, NULL), 1);
	close(at);
	remove_dir();
}

TEST(one_process_has_the_lock)
{
	struct weft__spool spool, other;
	int status = 0;
	pid_t child;

	make_dir();
	weft__spool_init(&spool, dir, "0000aaaa");
	weft__spool_init(&other, dir, "0000bbbb");
	CHECK_EQ(weft__spool_lock(&spool, NULL), 0);
	CHECK_EQ(weft__spool_lock(&spool, NULL), 0);
	child = fork();
	if (!child) {
		struct weft__spool mine;

		weft__spool_init(&mine, dir, "0000aaaa");
		_exit(weft__spool_lock(&mine, NULL) == -WEFT_E_BUSY && !weft__spool_lock(&other, NULL) ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	weft__spool_fini(&spool);
	child = fork();
	if (!child)
		_exit(weft__spool_lock(&spool, NULL) == 0 ? 0 : 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	remove_dir();
}

/* A target that is down, by the test's clock. */
static int down, calls, taken;

static int take(struct weft_report *report, void *data)
{
	(void)report;
	(void)data;
	calls++;
	if (down)
		return -EIO;
	taken++;
	return 0;
}

static void make_segments(int n)
{
	struct weft_recorder *rec;

	REQUIRE(weft_recorder_open(&rec, WEFT_OPTIONS(weft_recorder_opts, .dir = dir, .sample_hz = WEFT_OFF), NULL) ==
		0);
	for (int i = 0; i < n; i++) {
		weft_recorder_start(rec, NULL);
		weft_poll_begin(1, 0);
		weft_poll_end();
		weft_recorder_stop(rec, NULL);
	}
	weft_recorder_close(rec, NULL);
}

TEST(ten_minutes_of_outage_lose_nothing_and_cost_few_tries)
{
	struct weft__worker_opts opts = {.target = {.url = "taker", .fn = take}, .dir = dir};
	uint64_t now = 1000 * SECOND, end = now + 600 * SECOND;
	struct weft__worker w;

	make_dir();
	make_segments(3);
	REQUIRE(weft__worker_open(&w, &opts, NULL) == 0);
	for (down = 1, calls = taken = 0; now < end;)
		now = weft__worker_turn(&w, now);
	CHECK(calls >= 8 && calls <= 24);
	CHECK(w.state.failing && w.state.broken);
	CHECK_EQ(w.state.waiting, 3);
	CHECK(weft__worker_turn(&w, now - 1) == now);
	down = 0;
	now = weft__worker_turn(&w, now);
	CHECK_EQ(taken, 3);
	CHECK_EQ(w.state.waiting, 0);
	CHECK(!w.state.failing && !w.state.broken);
	weft__worker_turn(&w, now);
	CHECK_EQ(taken, 3);
	weft__worker_close(&w);
	remove_dir();
}
