/* SPDX-License-Identifier: Apache-2.0 */
/* When threads that wait are looked at, and that a fork in the middle of it does no harm. */
#include "child.h"
#include "walls.h"

/* Closes the recorder and answers what its segment says. */
static uint32_t facts_end(struct weft_recorder *rec, char *why, size_t bytes)
{
	struct weft_segment *seg;
	char path[512];
	const char *hz;
	uint32_t value = UINT32_MAX;

	if (CHECK_EQ(weft_recorder_rotate(rec, path, sizeof(path), NULL), 0) &&
	    CHECK_EQ(weft_segment_open(&seg, path, NULL), 0)) {
		hz = weft_segment_fact(seg, "wall.hz");
		snprintf(why, bytes, "%s",
			 weft_segment_fact(seg, "wall.why") ? weft_segment_fact(seg, "wall.why") : "");
		value = hz ? (uint32_t)strtoul(hz, NULL, 10) : UINT32_MAX;
		weft_segment_close(seg);
	}
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
	return value;
}

TEST(threads_have_wall_samples_where_switches_cannot_be_recorded)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.wall_hz = 33});
	char why[128];
	pid_t child;
	int status;

	REQUIRE(rec);
	weft_poll_begin(1, 0);
	CHECK_EQ(facts_end(rec, why, sizeof(why)), 33);
	CHECK_STR(why, "asked for");
	child = fork();
	if (!child) {
		if (child_refuse(SYS_perf_event_open, EPERM))
			_exit(77);
		rec = session_start(&(struct weft_recorder_opts){.sample_hz = 99});
		if (!rec)
			_exit(1);
		weft_poll_begin(1, 0);
		_exit(facts_end(rec, why, sizeof(why)) == 10 && strstr(why, "switches") ? 0 : 1);
	}
	status = session_wait(child);
	if (status == 77)
		SKIP("no filters of system calls here");
	CHECK_EQ(status, 0);
}

static struct walls result;

static void *nap_main(void *data)
{
	for (int i = 0; i < 200; i++)
		session_sleep_ns(MS);
	return data;
}

TEST(children_take_wall_samples_of_their_own_threads)
{
	struct weft_recorder *rec;
	pthread_t threads[4];

	if (SCALED(0, 1))
		SKIP("the sanitizers do not hold their allocator still across a fork");
	rec = session_start(
		&(struct weft_recorder_opts){.wall_hz = 1000, .on_fork = WEFT_FORK_RESTART, .budget_ppm = WEFT_OFF});
	REQUIRE(rec);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, nap_main, NULL), 0);
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, nap_main, NULL))
				_exit(1);
			session_sleep_ns(30 * MS);
			_exit(weft_recorder_close(rec, NULL) == 0 ? 0 : 2);
		}
		CHECK_EQ(session_wait(child), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	walls_end(&result, rec, NULL, 0);
	printf("\t%llu events of %u threads\n", (unsigned long long)result.n, result.n_threads);
	CHECK(result.n_threads >= 14);
}
