/* SPDX-License-Identifier: Apache-2.0 */
/* A dump that is not over when its process is killed: what there is of it is in its file, and recovery makes it
 * whole. */
#include "flight.h"

struct plan {
	struct weft_recorder_opts opts;
	int call;                   /* by weft_recorder_dump, not by a trigger */
	uint32_t on_disk, in_rings; /* wakes after the trigger, as the kill finds them */
};

static void *call_dump(void *rec)
{
	weft_recorder_dump(rec, 0, 1000 * SECOND, NULL, 0, NULL);
	return NULL;
}

static int is_draft(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return strstr(entry->d_name, "-dump-") && n > 7 && !strcmp(entry->d_name + n - 7, ".active");
}

/* What the draft has of a task by now, as anybody sees who looks into the directory. */
static uint64_t drafted(uint64_t task)
{
	struct dirent **entries;
	int n = scandir(session_dir, &entries, is_draft, alphasort), i;
	struct window w = {0};
	char path[4096];

	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", session_dir, entries[i]->d_name);
		tally_init(&w.tally, 1);
		w.tally.each = wake_event;
		w.tally.data = &w;
		tally_file(&w.tally, path);
		tally_fini(&w.tally);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return w.tasks[task];
}

/* Task 1 is woken before the trigger, 2 after it and so that it is on the disk, 3 in the last moment. */
static void fly_and_be_killed(const struct plan *plan)
{
	struct weft_recorder_opts opts = plan->opts;
	pthread_t caller;
	pid_t pid = fork();

	if (!pid) {
		struct weft_recorder *rec;

		opts.flush_ns = plan->on_disk ? MS : 1000 * SECOND;
		opts.switches = WEFT_SWITCH_OFF;
		opts.dir = session_dir;
		opts.no_recover = 1;
		rec = fly(&opts);
		if (!rec)
			_exit(2);
		wakes(1, 0, 7);
		if (plan->call)
			pthread_create(&caller, NULL, call_dump, rec);
		else
			raise(SIGUSR2);
		if (!WAIT_FOR(drafted(1) == 7))
			_exit(3);
		wakes(2, 0, plan->on_disk);
		if (!WAIT_FOR(drafted(2) == plan->on_disk))
			_exit(4);
		wakes(3, 0, plan->in_rings);
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(session_wait(pid), -1);
}

static void check_killed(const struct plan *plan)
{
	struct window w;

	session_fresh_dir();
	fly_and_be_killed(plan);
	CHECK_EQ(tally_files(session_dir, ".weft"), 0);
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	CHECK_EQ(tally_files(session_dir, ""), 1);
	w = look_at_last();
	CHECK_EQ(w.tasks[1], 7);
	CHECK_EQ(w.tasks[2], plan->on_disk);
	CHECK_EQ(w.tasks[3], plan->opts.ring_place == WEFT_RING_MEMORY ? 0 : plan->in_rings);
	CHECK_EQ(w.tally.recovered, 1);
	CHECK_EQ(w.tally.lost, 0);
	CHECK_STR(w.why, plan->call ? "call" : "signal 12");
	CHECK(w.to_ns - w.from_ns > 1000 * SECOND);
	session_remove_dir();
}

TEST(a_dump_that_is_not_over_survives_a_kill)
{
	static const struct weft_recorder_opts by_signal = {.trigger_signal = SIGUSR2,
							    .trigger_forward_ns = 1000 * SECOND};
	static const struct weft_recorder_opts by_call = {0};

	check_killed(&(struct plan){by_signal, 0, 0, 5});
	check_killed(&(struct plan){by_signal, 0, 9, 0});
	check_killed(&(struct plan){by_signal, 0, 9, 5});
	check_killed(&(struct plan){by_call, 1, 9, 5});
}

TEST(without_rings_to_recover_what_was_flushed_is_there)
{
	struct plan plan = {
		{.trigger_signal = SIGUSR2, .trigger_forward_ns = 1000 * SECOND, .ring_place = WEFT_RING_MEMORY},
		0,
		9,
		0};

	check_killed(&plan);
}

/* More is recorded meanwhile than the memory takes: what was before the trigger is on the disk. */
TEST(what_came_before_a_trigger_stays_however_much_comes_after_it)
{
	struct weft_recorder_opts opts = {.trigger_signal = SIGUSR2,
					  .trigger_forward_ns = 1000 * SECOND,
					  .segment_bytes = 64 * 1024,
					  .switches = WEFT_SWITCH_OFF};
	struct weft_recorder *rec = fly(&opts);
	uint64_t n = 0;

	REQUIRE(rec);
	wakes(1, 0, 7);
	raise(SIGUSR2);
	REQUIRE(WAIT_FOR(drafted(1) == 7));
	while (session_stats(rec).bytes < 4 * opts.segment_bytes && n < 10000000) {
		wakes(2, 0, 1000);
		n += 1000;
		if (weft_recorder_rotate(rec, NULL, 0, NULL)) /* no event is lost */
			break;
	}
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	CHECK(rec->collector.segments.n_deleted > 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(tally_files(session_dir, ""), 1);
	CHECK_EQ(look_at_last().tasks[1], 7);
	CHECK_EQ(look_at_last().tasks[2], n);
	session_remove_dir();
}

/* The draft is deleted, as a person may do, or the directory with it. */
TEST(a_draft_that_was_deleted_is_made_again)
{
	struct weft_recorder_opts opts = {.trigger_signal = SIGUSR2,
					  .trigger_forward_ns = 1000 * SECOND,
					  .flush_ns = MS,
					  .ring_place = WEFT_RING_MEMORY,
					  .switches = WEFT_SWITCH_OFF};
	struct weft_recorder *rec = fly(&opts);
	char command[128];

	REQUIRE(rec);
	wakes(1, 0, 7);
	raise(SIGUSR2);
	REQUIRE(WAIT_FOR(drafted(1) == 7));
	snprintf(command, sizeof(command), "rm -rf '%s'", session_dir);
	CHECK_EQ(system(command), 0);
	wakes(2, 0, 3);
	CHECK(WAIT_FOR(drafted(2) == 3));
	CHECK_EQ(drafted(1), 7);
	wakes(3, 0, 2);
	CHECK_EQ(system(command), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(tally_files(session_dir, ""), 1);
	CHECK_EQ(look_at_last().tasks[1], 7);
	CHECK_EQ(look_at_last().tasks[2], 3);
	CHECK_EQ(look_at_last().tasks[3], 2);
	session_remove_dir();
}

/* Numbers: one that is asked for while another has its draft. */
TEST(a_dump_beside_a_draft_has_a_file_of_its_own)
{
	struct weft_recorder_opts opts = {
		.trigger_signal = SIGUSR2, .trigger_forward_ns = 1000 * SECOND, .switches = WEFT_SWITCH_OFF};
	struct weft_recorder *rec = fly(&opts);
	char path[512];

	REQUIRE(rec);
	wakes(1, 0, 7);
	raise(SIGUSR2);
	REQUIRE(WAIT_FOR(drafted(1) == 7));
	wakes(2, 0, 3);
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, path, sizeof(path), NULL), 0);
	CHECK(strstr(path, "-dump-000001.weft") != NULL);
	CHECK_STR(look_at(path).why, "call");
	CHECK_EQ(look_at(path).tasks[1], 7);
	CHECK_EQ(look_at(path).tasks[2], 3);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(tally_files(session_dir, ".weft"), 2);
	CHECK_EQ(tally_files(session_dir, ""), 2);
	session_remove_dir();
}
