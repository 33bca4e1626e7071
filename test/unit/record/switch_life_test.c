/* SPDX-License-Identifier: Apache-2.0 */
/* the switch source through starts, pauses, forks, and threads that come and go. */
#include "sleepers.h"

TEST(a_thread_that_was_there_before_is_recorded)
{
	struct weft_recorder *rec;
	struct thread sleeper;

	sleeper_start(&sleeper, 2 * MS);
	rec = life_start();
	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	CHECK(sleep_more(&sleeper, 1, 25));
	offcpu_end(&result, rec, NULL, 0);
	sleeper_end(&sleeper);
	CHECK(offcpu_thread(&result, sleeper.tid)->n >= 10);
	CHECK(offcpu_thread(&result, sleeper.tid)->ns >= 45 * MS);
	CHECK_EQ(offcpu_thread(&result, sleeper.tid)->overlaps, 0);
}

TEST(one_that_slept_all_the_time_was_off_all_the_time)
{
	uint64_t begin = session_now_ns(), end;
	struct offcpu_thread *thread;
	struct weft_recorder *rec;
	struct thread sleeper;

	sleeper_start(&sleeper, 0);
	rec = life_start();
	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	session_sleep_ns(50 * MS);
	weft_recorder_stop(rec, NULL);
	end = session_now_ns();
	offcpu_end(&result, rec, NULL, 0);
	sleeper_end(&sleeper);
	thread = offcpu_thread(&result, sleeper.tid);
	CHECK_EQ(thread->n, 1);
	CHECK(thread->ns >= 50 * MS);
	CHECK(thread->first_ns >= begin && thread->last_ns <= end);
}

TEST(what_lies_in_a_pause_is_in_no_interval)
{
	struct weft_recorder *rec;
	struct thread sleeper;
	uint64_t paused, went_on;

	sleeper_start(&sleeper, 0);
	rec = life_start();
	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	session_sleep_ns(30 * MS);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	paused = session_now_ns();
	CHECK(weft__switch.running == NULL);
	session_sleep_ns(60 * MS);
	went_on = session_now_ns();
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	session_sleep_ns(30 * MS);
	offcpu_end(&result, rec, NULL, 0);
	sleeper_end(&sleeper);
	CHECK(paused < went_on);
	for (uint32_t i = 0; i < result.n_threads; i++) {
		struct offcpu_thread *thread = &result.threads[i];

		CHECK(thread->last_ns <= paused || thread->first_ns >= went_on ||
		      thread->last_ns - thread->first_ns >= thread->ns + (went_on - paused));
	}
	CHECK(offcpu_thread(&result, sleeper.tid)->ns >= 58 * MS);
}

TEST(many_starts_and_pauses_leave_nothing_open)
{
	struct weft_recorder *rec = life_start();
	int fds, mappings;

	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	weft_recorder_stop(rec, NULL);
	fds = session_fds();
	mappings = session_mappings();
	for (int i = 0; i < SCALED(400, 100); i++) {
		CHECK_EQ(weft_recorder_start(rec, NULL), 0);
		CHECK_EQ(i % 2 ? weft_recorder_stop(rec, NULL) : weft_recorder_pause(rec), 0);
	}
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	CHECK_EQ(session_fds(), fds);
	CHECK(UNDER_TSAN || session_mappings() <= mappings + 8);
	CHECK(session_stats(rec).rings < 16);
	offcpu_end(&result, rec, NULL, 0);
}

/* The collector may come to it only when nothing records any more. */
TEST(a_recording_of_a_moment_loses_nothing)
{
	struct weft_recorder *rec;
	struct thread sleeper;

	sleeper_start(&sleeper, 0);
	rec = life_start();
	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	for (int i = 1; i < 50; i++) {
		CHECK_EQ(i % 2 ? weft_recorder_stop(rec, NULL) : weft_recorder_pause(rec), 0);
		CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	}
	offcpu_end(&result, rec, NULL, 0);
	sleeper_end(&sleeper);
	CHECK(offcpu_thread(&result, sleeper.tid)->n >= 50);
	CHECK_EQ(offcpu_thread(&result, sleeper.tid)->overlaps, 0);
	CHECK_EQ(result.lost, 0);
}

static void *brief_main(void *data)
{
	uint64_t *off = data;
	struct offcpu_truth begin = offcpu_truth();

	session_sleep_ns(2 * MS);
	*off = offcpu_since(&begin);
	return NULL;
}

/* Without the segment, which the collector opens when it gets to it. */
static int lasting_fds(void)
{
	return session_fds() - session_fds_of(".active");
}

TEST(threads_that_come_and_go_are_all_there)
{
	struct weft_recorder *rec = life_start();
	uint64_t truth = 0, reported = 0, seen = 0, stolen = session_stolen_ns();
	int fds, perf;

	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	fds = lasting_fds();
	perf = perf_fds();
	for (int i = 0; i < 50; i++) {
		pthread_t threads[4];
		uint64_t off[4];

		for (int k = 0; k < 4; k++)
			CHECK_EQ(pthread_create(&threads[k], NULL, brief_main, &off[k]), 0);
		for (int k = 0; k < 4; k++) {
			pthread_join(threads[k], NULL);
			truth += off[k];
		}
	}
	stolen = session_stolen_ns() - stolen;
	CHECK_EQ(perf_fds(), perf);
	CHECK(WAIT_FOR(lasting_fds() <= fds)); /* the collector has others open for a moment */
	offcpu_end(&result, rec, NULL, 0);
	for (uint32_t i = 0; i < result.n_threads; i++) {
		if (result.threads[i].tid == samples_tid())
			continue;
		reported += result.threads[i].ns;
		seen++;
	}
	printf("\t%llu threads, %.1f ms of %.1f\n", (unsigned long long)seen, (double)reported / 1e6,
	       (double)truth / 1e6);
	CHECK(seen >= 200 || result.lost);
	CHECK(reported + stolen >= truth * 9 / 10);
}

TEST(a_child_has_none_of_it_and_the_parent_goes_on)
{
	struct weft_recorder *rec = life_start();
	uint64_t before;
	pid_t pid;

	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	CHECK(perf_fds() > 0);
	pid = fork();
	if (pid == 0)
		_exit(perf_fds() || weft__switch.running ? 1 : 0);
	CHECK_EQ(session_wait(pid), 0);
	CHECK_EQ(system("test -z \"$(ls -l /proc/self/fd | grep perf_event)\""), 0);
	before = session_now_ns();
	session_sleep_ns(10 * MS);
	offcpu_end(&result, rec, NULL, 0);
	CHECK(offcpu_thread(&result, samples_tid())->last_ns >= before + 10 * MS);
}

TEST(a_child_that_records_by_itself_records_switches)
{
	struct weft_recorder *rec;
	uint32_t child;
	int link[2];
	pid_t pid;

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer has no threads in a child");
#ifdef __SANITIZE_ADDRESS__
	SKIP("AddressSanitizer's allocator may be locked for ever in a child of a process with threads");
#endif
	rec = session_start(&(struct weft_recorder_opts){
		.switches = WEFT_SWITCH_INTERVALS, .on_fork = WEFT_FORK_RESTART, .budget_ppm = WEFT_OFF});
	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	CHECK_EQ(pipe(link), 0);
	pid = fork();
	if (pid == 0) {
		child = samples_tid();
		(void)!write(link[1], &child, sizeof(child));
		WAIT_FOR(session_asleep((uint32_t)getppid())); /* it waits for this one */
		session_sleep_ns(20 * MS);
		_exit(weft_recorder_close(rec, NULL) ? 1 : 0);
	}
	CHECK_EQ(session_wait(pid), 0);
	CHECK_EQ(read(link[0], &child, sizeof(child)), sizeof(child));
	close(link[0]);
	close(link[1]);
	offcpu_end(&result, rec, NULL, 0);
	CHECK(offcpu_thread(&result, child)->ns >= 20 * MS);
	CHECK(offcpu_thread(&result, samples_tid())->ns >= 15 * MS); /* it waited for the child */
}

TEST(rotation_loses_no_interval_off_the_cpu)
{
	struct offcpu_truth begin;
	struct weft_recorder *rec = life_start();
	uint64_t off, reported, stolen;

	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	stolen = session_stolen_ns();
	begin = offcpu_truth();
	for (int i = 0; i < 5; i++) {
		session_sleep_ns(5 * MS);
		CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	}
	session_sleep_ns(5 * MS);
	off = offcpu_since(&begin);
	stolen = session_stolen_ns() - stolen;
	offcpu_end(&result, rec, NULL, 0);
	reported = offcpu_thread(&result, samples_tid())->ns;
	CHECK(reported >= 29 * MS && reported + stolen >= off * 8 / 10);
	CHECK_EQ(result.lost, 0);
}

/* Rings that nobody empties run over: what is lost is reported, and what is reported is true. */
TEST(switches_that_the_kernel_had_no_room_for_are_counted_as_lost)
{
	struct weft_recorder *rec;
	struct offcpu_truth begin;
	uint64_t off, reported, end_ns;

	weft__switch.pages_most = 4;
	rec = life_start();
	weft__switch.pages_most = 0;
	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	begin = offcpu_truth();
	weft__switch_source.fork(SOURCE_LOCK, NULL); /* the collector waits for it */
	for (int i = 0; i < 2000; i++)
		session_sleep_ns(1000);
	weft__switch_source.fork(SOURCE_UNLOCK, NULL);
	session_sleep_ns(5 * MS);
	CHECK(WAIT_FOR(weft__switch_counts().switches > 500));
	off = offcpu_until(&begin, &end_ns);
	offcpu_window(samples_tid(), begin.wall_ns, end_ns);
	offcpu_end(&result, rec, NULL, 0);
	reported = offcpu_thread(&result, samples_tid())->ns;
	printf("\t%llu records lost, %.1f ms of %.1f reported\n", (unsigned long long)result.lost,
	       (double)reported / 1e6, (double)off / 1e6);
	CHECK(result.lost > 0);
	CHECK(reported <= off + off / 20 + 5 * MS);
	CHECK_EQ(offcpu_thread(&result, samples_tid())->overlaps, 0);
}

TEST(without_being_asked_for_or_samples_there_are_none)
{
	struct weft_recorder *rec = session_start(NULL);

	REQUIRE(rec);
	weft_task_end(1);
	session_sleep_ns(5 * MS);
	CHECK(weft__switch.running == NULL);
	offcpu_end(&result, rec, NULL, 0);
	CHECK_STR(result.mode, "off");
	CHECK_STR(result.degraded, "");
	CHECK_EQ(result.n, 0);
}

TEST(the_governor_can_hold_records_of_context_switches)
{
	struct weft_recorder *rec = life_start();
	struct offcpu_thread *thread;
	uint64_t held, went_on, reported = 0;

	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	session_sleep_ns(10 * MS);
	held = session_now_ns();
	weft__switch_hold(1);
	CHECK(weft__switch.running == NULL);
	CHECK(weft__switch_works());
	CHECK_EQ(weft__switch_cost_ns(), 0);
	session_sleep_ns(20 * MS);
	weft__switch_hold(0);
	CHECK(WAIT_FOR(weft__switch_cost_ns())); /* not before opening it is worth it */
	went_on = session_now_ns();
	session_sleep_ns(10 * MS);
	offcpu_end(&result, rec, NULL, 0);
	thread = offcpu_thread(&result, samples_tid());
	CHECK(thread->ns >= 19 * MS);
	CHECK(thread->ns <= thread->last_ns - thread->first_ns - 20 * MS);
	CHECK_EQ(result.lost, 0);
	for (uint32_t i = 0; i < result.tally.n_losses; i++)
		if (result.tally.losses[i].reason == WEFT_LOSS_SWITCH) {
			CHECK(result.tally.losses[i].from_ns >= held && result.tally.losses[i].to_ns <= went_on);
			reported += result.tally.losses[i].to_ns - result.tally.losses[i].from_ns;
		}
	CHECK(reported >= 20 * MS);
}
