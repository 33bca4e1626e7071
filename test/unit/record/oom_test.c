/* SPDX-License-Identifier: Apache-2.0 */
/* Out of memory at any allocation: an error or carrying on without, no crash, no leak, and the next try works. */
/* presets: asan: what fails is the same in all */
#include "session.h"

#include <signal.h>

static long fail_at; /* the allocation that fails, from 1; 0: none */
static long allocations;
static long live;

static void *resize(void *ptr, size_t bytes, void *data)
{
	void *moved;

	(void)data;
	if (__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED) == __atomic_load_n(&fail_at, __ATOMIC_RELAXED))
		return NULL;
	moved = realloc(ptr, bytes);
	if (moved && !ptr)
		__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	return moved;
}

static void release(void *ptr, void *data)
{
	(void)data;
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	free(ptr);
}

static void use_counting_allocator(void)
{
	static const struct weft_allocator counting = {resize, release, NULL};

	weft_set_allocator(&counting);
}

static void fail_from_here(long n)
{
	__atomic_store_n(&allocations, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&fail_at, n, __ATOMIC_RELAXED);
}

static void *emit_in_thread(void *data)
{
	weft_park(0);
	return data;
}

/* Everything a program does with a recorder. Answers whether all of it worked; each call may fail, none may crash. */
static int whole_life(void)
{
	struct weft_recorder_opts opts = {
		.size = sizeof(opts), .dir = session_dir, .max_threads = 8, .ring_bytes = 8192};
	static const char *const labels[] = {"a=b", NULL};
	struct weft_recorder *rec = NULL;
	pthread_t thread;
	int ok, kind, runtime;
	uint64_t i;

	opts.labels = labels;
	kind = tally_kind();
	runtime = weft_runtime_add(
		&(struct weft_runtime_opts){sizeof(struct weft_runtime_opts), "pool", NULL, NULL, NULL}, NULL);
	ok = kind >= WEFT_KIND_USER && runtime > 0;
	ok &= weft_string("some text") > 0;
	ok &= weft_location("place", "file.c", 1) > 0;
	if (runtime > 0)
		ok &= weft_worker_enter(runtime, 0, NULL) > 0;
	if (weft_recorder_open(&rec, &opts, NULL) < 0)
		return 0;
	ok &= weft_recorder_start(rec, NULL) == 0;
	for (i = 1; i <= 50; i++)
		tally_emit(kind, 0, i);
	if (pthread_create(&thread, NULL, emit_in_thread, NULL) == 0)
		pthread_join(thread, NULL);
	ok &= weft_recorder_rotate(rec, NULL, 0, NULL) == 0;
	for (i = 51; i <= 100; i++)
		tally_emit(kind, 0, i);
	ok &= weft_recorder_close(rec, NULL) == 0;
	return ok;
}

static void empty_dir(void)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf '%s' && mkdir '%s'", session_dir, session_dir);
	CHECK_EQ(system(command), 0);
}

static int all_there(void)
{
	struct tally t;
	int ok;

	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	ok = t.sources[0].count == 100 && !t.damaged && !t.undefined && !t.disorder && !t.lost;
	if (!ok)
		printf("\t%llu events, %llu damaged, %llu undefined, %llu out of order, %llu lost\n",
		       (unsigned long long)t.sources[0].count, (unsigned long long)t.damaged,
		       (unsigned long long)t.undefined, (unsigned long long)t.disorder, (unsigned long long)t.lost);
	tally_fini(&t);
	return ok;
}

/* In a child: a life in which allocation n fails, then two that are whole. Exit: 0 when n was reached, 100 when not. */
static void lives(long n)
{
	long reached, once;

	alarm(60);
	use_counting_allocator();
	fail_from_here(n);
	if (!whole_life() && allocations < n)
		_exit(1);
	reached = allocations >= n;
	fail_from_here(0);
	weft_recover(session_dir, NULL, NULL, NULL); /* what a close that failed left */
	empty_dir();
	if (!whole_life())
		_exit(2);
	if (!all_there())
		_exit(3);
	once = live;
	empty_dir();
	if (!whole_life() || !all_there())
		_exit(4);
	if (live > once + 8) { /* a runtime is added each time; its record is in a buffer that may grow */
		printf("\tlive blocks: %ld, then %ld\n", once, live);
		_exit(5);
	}
	_exit(reached ? 0 : 100);
}

TEST(a_recorder_s_life_survives_any_allocation_that_fails)
{
	long n = 1, step = SCALED(1, 3);
	int status = 0;

	session_fresh_dir();
	while (n < 2000) {
		pid_t pid;

		empty_dir();
		pid = fork();
		if (!pid)
			lives(n);
		status = session_wait(pid);
		if (status == 100)
			break;
		if (!CHECK_EQ(status, 0)) {
			printf("\tallocation %ld\n", n);
			if (status < 0)
				break;
		}
		n += step;
	}
	printf("\t%ld allocations\n", n);
	CHECK_EQ(status, 100);
	session_remove_dir();
}

static void leave_a_segment(void)
{
	CHECK(whole_life());
}

static int read_all(const char *path)
{
	struct weft_segment *seg = NULL;
	struct weft_cursor *cursor = NULL;
	struct weft_event_view ev;
	int r = weft_segment_open(&seg, path, NULL);

	if (!r)
		r = weft_cursor_open(&cursor, seg, WEFT_ORDER_TIME, 0, UINT64_MAX, NULL);
	while (!r && (r = weft_cursor_next(cursor, &ev)) > 0)
		r = 0;
	weft_cursor_close(cursor);
	weft_segment_close(seg);
	return r;
}

TEST(a_reader_survives_any_allocation_that_fails)
{
	char path[512] = "";
	struct dirent *entry;
	long n, before;
	int r = -1;
	DIR *dir;

	session_fresh_dir();
	leave_a_segment();
	dir = opendir(session_dir);
	REQUIRE(dir);
	while ((entry = readdir(dir)))
		if (tally_is_segment(entry))
			snprintf(path, sizeof(path), "%s/%s", session_dir, entry->d_name);
	closedir(dir);
	use_counting_allocator();
	before = live;
	for (n = 1; n < 2000 && r; n++) {
		fail_from_here(n);
		r = read_all(path);
		CHECK(r == 0 || r == -ENOMEM);
		CHECK_EQ(live, before);
	}
	CHECK_EQ(r, 0);
	printf("\t%ld allocations\n", n);
	fail_from_here(0);
	weft_set_allocator(NULL);
	session_remove_dir();
}

/* A recorder in a child that is killed: 50 events in a segment, 50 in the rings. */
static void leave_a_wreck(void)
{
	pid_t pid = fork();

	if (!pid) {
		struct weft_recorder_opts opts = {.size = sizeof(opts),
						  .dir = session_dir,
						  .max_threads = 8,
						  .flush_ns = MS,
						  .drain_ns = MS,
						  .ring_bytes = 8192};
		struct weft_recorder *rec;
		int kind = tally_kind();
		uint64_t i;

		if (weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0)
			_exit(1);
		for (i = 1; i <= 100; i++) {
			tally_emit(kind, 0, i);
			if (i == 50)
				session_sleep_ns(20 * MS);
		}
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(session_wait(pid), -1);
}

TEST(recovery_survives_any_allocation_that_fails_and_then_finds_everything)
{
	long n, before;
	int r = 0;

	session_fresh_dir();
	leave_a_wreck();
	use_counting_allocator();
	before = live;
	for (n = 1; n < 2000 && r != 1; n++) {
		fail_from_here(n);
		r = weft_recover(session_dir, NULL, NULL, NULL);
		CHECK(r == 0 || r == 1 || r == -ENOMEM);
		CHECK_EQ(live, before);
	}
	CHECK_EQ(r, 1);
	printf("\t%ld allocations\n", n);
	fail_from_here(0);
	weft_set_allocator(NULL);
	CHECK(all_there());
	CHECK_EQ(tally_files(session_dir, ".active") + tally_files(session_dir, ".rings") +
			 tally_files(session_dir, ".broken"),
		 0);
	session_remove_dir();
}
