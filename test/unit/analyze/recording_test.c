/* SPDX-License-Identifier: Apache-2.0 */
/* Real files: grouping by recording, order of time across a rotation, polls that cross it, damage, no memory. */
#include "analyze/recording.h"

#include <errno.h>
#include <sys/stat.h>

#include "analyze/analysis.h"
#include "segfile.h"
#include "stingy.h"
#include "weft/hooks.h"

/* Thread 1 was drained before thread 2 when the segment was sealed: its events from 3000 on are in the next one, though
 * thread 2 has one of 3500 in this. The poll of task 1 is open across the border. */
static const struct segfile_event before[] = {
	EV(1001000, 1, SPAWN, 1, 1), EV(1002000, 1, POLL_BEGIN, 1, 0), EV(1001500, 2, POLL_BEGIN, 2, 0),
	EV(1001600, 2, POLL_END),    EV(1003500, 2, WAKE, 3, 0),
};
static const struct segfile_event after[] = {
	EV(1003000, 1, SPAWN, 3, 2), EV(1005000, 1, POLL_END),         EV(1006000, 1, POLL_BEGIN, 3, 0),
	EV(1006100, 1, POLL_END),    EV(1004000, 2, POLL_BEGIN, 2, 0), EV(1004100, 2, POLL_END),
};
static const struct segfile first = {7, 0, "42", before, 5, NULL, 0, 0};
static const struct segfile second = {7, 1, "42", after, 6, NULL, 0, 1};
static const struct segfile other = {9, 3, "43", before, 5, NULL, 0, 0};
static const char *const names[] = {"b.weft", "a.weft.active", "c.weft", "copy.weft", "junk.weft", "notes.txt", NULL};

static char dir[256];

static void setup(void)
{
	segfile_dir(dir, sizeof(dir));
	segfile_write(&first, segfile_path(dir, "b.weft"));
	segfile_write(&second, segfile_path(dir, "a.weft.active"));
}

struct seen {
	uint64_t times[32];
	size_t n;
	int stop_at;
};

static int see(void *data, const struct weft__event *ev)
{
	struct seen *seen = data;

	if (seen->stop_at && seen->n + 1 == (size_t)seen->stop_at)
		return -EINTR;
	if (seen->n < 32)
		seen->times[seen->n++] = ev->time_ns;
	return 0;
}

static void define_dump(struct weft__defs *defs, const struct segfile *of)
{
	(void)of;
	weft__defs_fact(defs, "dump.why", "signal 12");
}

/* Two dumps of one recording, the second of which has what the first has, and what is not dumped: nothing counts
 * twice. */
TEST(each_dump_of_a_flight_recorder_is_for_itself)
{
	static const struct segfile dumps[] = {{7, 0, "42", before, 4, NULL, 0, 0},
					       {7, 1, "42", before, 5, NULL, 0, 0}};
	struct weft__recordings list = {0};
	size_t i;

	segfile_dir(dir, sizeof(dir));
	segfile_more = define_dump;
	segfile_write(&dumps[1], segfile_path(dir, "b.weft"));
	segfile_write(&dumps[0], segfile_path(dir, "c.weft"));
	segfile_more = NULL;
	segfile_write(&second, segfile_path(dir, "a.weft.active"));
	CHECK_EQ(weft__recordings_add(&list, dir, NULL), 0);
	weft__recordings_settle(&list);
	REQUIRE(list.n == 3);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(list.all[i].n_files, 1);
		CHECK_EQ(list.all[i].missing_segments, 0);
		CHECK_EQ(list.all[i].n_events, list.all[i].dump ? 3 + list.all[i].dump : 6);
	}
	CHECK_EQ(list.n_refused, 0);
	weft__recordings_fini(&list);
	segfile_remove(dir, names);
}

TEST(events_come_in_order_of_time_across_segments)
{
	struct weft__recordings list = {0};
	struct seen seen = {0};
	struct weft__events_ops ops = {.event = see, .data = &seen};
	size_t i;

	setup();
	CHECK_EQ(weft__recordings_add(&list, dir, NULL), 0);
	weft__recordings_settle(&list);
	REQUIRE(list.n == 1);
	CHECK_EQ(list.all[0].n_files, 2);
	CHECK_EQ(list.all[0].files[0].info.sequence, 0);
	CHECK_EQ(list.all[0].start_ns, SEGFILE_MONO);
	CHECK_EQ(list.all[0].start_real_ns, SEGFILE_REAL);
	CHECK_EQ(list.all[0].n_events, 11);
	CHECK_EQ(list.all[0].missing_segments, 0);
	CHECK_EQ(weft__recording_events(&list.all[0], 0, UINT64_MAX, &ops), 0);
	CHECK_EQ(seen.n, 11);
	for (i = 1; i < seen.n; i++)
		CHECK(seen.times[i - 1] <= seen.times[i]);
	seen = (struct seen){0};
	CHECK_EQ(weft__recording_events(&list.all[0], 1003000, 1004000, &ops), 0);
	CHECK_EQ(seen.n, 2);
	seen = (struct seen){.stop_at = 3};
	CHECK_EQ(weft__recording_events(&list.all[0], 0, UINT64_MAX, &ops), -EINTR);
	weft__recordings_fini(&list);
	segfile_remove(dir, names);
}

static int push(void *data, const struct weft__event *ev)
{
	return weft__analysis_push(data, ev);
}

/* The whole way from files to figures. */
static int analyse(struct weft__recordings *list, struct weft__analysis **a, const struct weft__result **r)
{
	struct weft__analysis_opts opts = {0};
	struct weft__events_ops ops = {.event = push};
	int rc = weft__recordings_add(list, dir, NULL);

	if (rc < 0)
		return rc;
	weft__recordings_settle(list);
	if (list->n == 0)
		return -ENOENT;
	opts.names = &list->all[0].names;
	opts.start_ns = list->all[0].start_ns;
	rc = weft__analysis_open(a, &opts);
	ops.data = *a;
	if (rc == 0)
		rc = weft__recording_events(&list->all[0], 0, UINT64_MAX, &ops);
	return rc < 0 ? rc : weft__analysis_finish(*a, list->all[0].last_ns, r);
}

TEST(a_poll_may_cross_a_rotation)
{
	struct weft__recordings list = {0};
	struct weft__analysis *a = NULL;
	const struct weft__result *r = NULL;

	setup();
	CHECK_EQ(analyse(&list, &a, &r), 0);
	REQUIRE(r != NULL);
	CHECK_EQ(r->polls.n, 4);
	CHECK_EQ(r->poll.began_before, 0);
	CHECK_EQ(r->poll.open, 0);
	CHECK_EQ(r->poll.longest[0].task, 1);
	CHECK_EQ(r->poll.longest[0].rank_ns, 3000);
	CHECK_EQ(r->poll.longest[0].location, 1);
	/* the wake of 1003500 is in the first file, the spawn of 1003000 in the second */
	CHECK_EQ(r->delays.n, 1);
	CHECK_EQ(r->poll.delayed[0].location, 2);
	CHECK_EQ(r->poll.delayed[0].rank_ns, 2500);
	weft__analysis_close(a);
	weft__recordings_fini(&list);
	segfile_remove(dir, names);
}

TEST(recordings_are_kept_apart_and_copies_count_once)
{
	static const struct segfile copy = {7, 0, "42", before, 4, NULL, 0, 0}; /* with less in it */
	struct weft__recordings list = {0};
	struct weft_error err = {0};
	FILE *junk;

	setup();
	segfile_write(&other, segfile_path(dir, "c.weft"));
	segfile_write(&copy, segfile_path(dir, "copy.weft"));
	junk = fopen(segfile_path(dir, "junk.weft"), "w");
	REQUIRE(junk != NULL);
	fputs("this is no segment, however it is called", junk);
	fclose(junk);
	junk = fopen(segfile_path(dir, "notes.txt"), "w");
	REQUIRE(junk != NULL);
	fclose(junk);
	CHECK_EQ(weft__recordings_add(&list, dir, &err), 0);
	CHECK_EQ(weft__recordings_add(&list, segfile_path(dir, "b.weft"), &err), 0); /* again, the same file */
	CHECK_EQ(weft__recordings_add(&list, segfile_path(dir, "nothing"), &err), -ENOENT);
	CHECK(strstr(err.msg, "nothing") != NULL);
	weft__recordings_settle(&list);
	CHECK_EQ(list.n, 2);
	CHECK_EQ(list.n_refused, 2);
	CHECK_EQ(list.all[0].n_events + list.all[1].n_events, 16);
	CHECK_STR(weft__names_fact(&list.all[list.all[0].id[0] == 9 ? 0 : 1].names, "process.pid"), "43");
	weft__recordings_fini(&list);
	segfile_remove(dir, names);
}

TEST(damage_of_a_segment_is_kept_with_its_file)
{
	struct weft__recordings list = {0};
	struct weft__analysis *a = NULL;
	const struct weft__result *r = NULL;
	struct stat st;

	setup();
	CHECK_EQ(stat(segfile_path(dir, "a.weft.active"), &st), 0);
	CHECK_EQ(truncate(segfile_path(dir, "a.weft.active"), st.st_size - 7), 0);
	CHECK_EQ(analyse(&list, &a, &r), 0);
	REQUIRE(r != NULL);
	CHECK_EQ(r->n_events, 5);
	CHECK_EQ(r->poll.open, 1);
	CHECK_EQ(list.all[0].files[1].damaged_places, 1);
	CHECK(list.all[0].files[1].damage != NULL && list.all[0].files[1].damage[0]);
	CHECK(list.all[0].files[1].missing_bytes > 0);
	weft__analysis_close(a);
	weft__recordings_fini(&list);
	segfile_remove(dir, names);
}

TEST(no_memory_at_any_allocation_is_an_error)
{
	struct stingy stingy = {0};
	struct weft_allocator allocator = {stingy_resize, stingy_release, &stingy};
	long granted;
	int rc = -ENOMEM;

	setup();
	weft_set_allocator(&allocator);
	for (granted = 0; rc < 0 && granted < 5000; granted++) {
		struct weft__recordings list = {0};
		struct weft__analysis *a = NULL;
		const struct weft__result *r = NULL;

		stingy.left = granted;
		rc = analyse(&list, &a, &r);
		if (rc < 0 && !CHECK_EQ(rc, -ENOMEM))
			break;
		weft__analysis_close(a);
		weft__recordings_fini(&list);
		if (!CHECK_EQ(stingy.live, 0))
			break;
	}
	weft_set_allocator(NULL);
	CHECK_EQ(rc, 0);
	CHECK(granted > 50);
	segfile_remove(dir, names);
}
