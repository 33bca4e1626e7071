/* SPDX-License-Identifier: Apache-2.0 */
/* A collector with a table of files of its own, as the preload library has it: the program's files are the program's
 * alone. */
#include "child.h"
#include "offcpu.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/syscall.h>

#include "base/private_fds.h"

#define FILES 64
#define HIGH 300 /* above what the collector has */

/* ThreadSanitizer takes the same number for the same file: a test that opens any while there is a collector cannot
 * be run by it. */
#define UNLESS_TSAN()                                                                                                  \
	do {                                                                                                           \
		if (UNDER_TSAN)                                                                                        \
			SKIP("ThreadSanitizer takes the same number for the same file");                               \
	} while (0)

static struct weft_recorder *start_private(const struct weft_recorder_opts *opts)
{
	weft__private_fds_wanted = 1;
	return session_start(opts);
}

static int high(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);

	close(fd);
	return moved;
}

static uint32_t collector_tid(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	uint32_t tid = 0;

	while (dir && !tid && (entry = readdir(dir))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file) && !strcmp(name, "weft-collector\n"))
			tid = (uint32_t)atoi(entry->d_name);
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return tid;
}

/* What that number leads to for the collector; "": nothing. */
static const char *file_of_collector(int fd)
{
	static char to[256];
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%u/fd/%d", collector_tid(), fd);
	n = readlink(path, to, sizeof(to) - 1);
	to[n < 0 ? 0 : n] = 0;
	return to;
}

static void emit(int n)
{
	for (int i = 0; i < n; i++)
		weft_wake((uint64_t)i, WEFT_WORKER_NONE);
}

static void end_with(struct weft_recorder *rec, uint64_t wakes)
{
	struct tally t;

	session_end(rec, &t, 0);
	CHECK_EQ(t.by_kind[WEFT_KIND_WAKE], wakes);
	CHECK_EQ(t.lost, 0);
	tally_fini(&t);
}

/* 1: the other end is closed, within seconds. */
static int ends(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	char byte;

	return poll(&wait, 1, 5000) == 1 && read(fd, &byte, 1) == 0;
}

TEST(program_and_collector_do_not_see_files_of_each_other)
{
	int mine = high(open("/dev/null", O_RDWR | O_CLOEXEC));
	struct weft_recorder *rec;

	UNLESS_TSAN();
	rec = start_private(&(struct weft_recorder_opts){.flush_ns = 10 * MS});
	REQUIRE(rec && mine >= HIGH);
	emit(100);
	CHECK(WAIT_FOR(session_stats(rec).events >= 100));
	CHECK(!strcmp(file_of_collector(mine), ""));
	for (int fd = 0; fd < 3; fd++)
		CHECK(!strcmp(file_of_collector(fd), "/"));
	CHECK_EQ(session_fds_of(".weft"), 0);
	end_with(rec, 100);
	weft__private_fds_wanted = 0;
	rec = session_start(NULL);
	REQUIRE(rec);
	CHECK(!strcmp(file_of_collector(mine), "/dev/null"));
	end_with(rec, 0);
	close(mine);
}

TEST(who_waits_for_the_program_to_close_a_file_does_not_wait_for_us)
{
	int fds[2], to, from, out = high(dup(1));
	struct weft_recorder *rec;

	UNLESS_TSAN();
	REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
	from = high(fds[0]);
	to = high(fds[1]);
	fflush(stdout);
	dup2(to, 1);
	rec = start_private(&(struct weft_recorder_opts){.sample_hz = 99, .flush_ns = 10 * MS});
	dup2(out, 1);
	close(out);
	close(to);
	REQUIRE(rec);
	CHECK(ends(from));
	close(from);
	emit(100);
	CHECK(WAIT_FOR(session_stats(rec).events >= 100));
	end_with(rec, 100);
}

/* The program's numbers from 3 on are the collector's, too, and mean something else there. */
static int open_files(int *files)
{
	int n = 0;

	for (int i = 0; i < FILES; i++) {
		char path[400];

		snprintf(path, sizeof(path), "%s/mine.%d", session_dir, i);
		files[i] = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		n += files[i] >= 0 && write(files[i], "mine", 4) == 4;
	}
	return n;
}

static int files_are_whole(const int *files)
{
	char text[8];
	int n = 0;

	for (int i = 0; i < FILES; i++)
		n += pread(files[i], text, sizeof(text), 0) == 4 && lseek(files[i], 0, SEEK_CUR) == 4;
	return n == FILES;
}

TEST(numbers_of_files_in_the_private_table_are_other_files_of_the_program)
{
	struct weft_recorder_opts opts = {.sample_hz = 99, .switches = WEFT_SWITCH_INTERVALS, .flush_ns = 10 * MS};
	struct weft_recorder *rec;
	int files[FILES];

	UNLESS_TSAN();
	rec = start_private(&opts);
	REQUIRE(rec);
	weft_park(0);
	weft_unpark(0); /* opens the thread's schedstat */
	emit(100);
	CHECK(WAIT_FOR(session_stats(rec).events >= 100));
	closefrom(3);
	CHECK_EQ(open_files(files), FILES);
	emit(100);
	CHECK(WAIT_FOR(session_stats(rec).events >= 200));
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 0); /* its locks say that it lives */
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	CHECK(files_are_whole(files));
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	emit(100);
	end_with(rec, 300);
	CHECK(files_are_whole(files));
	for (int i = 0; i < FILES; i++)
		close(files[i]);
}

/* In a child, which ends with 0 when all is as it should be. */
static void child_of(struct weft_recorder *rec, const int *files, int restarts)
{
	alarm(20);
	if (!files_are_whole(files) || weft_recording() != restarts)
		_exit(10);
	emit(restarts ? 50 : 0);
	for (int i = 0; restarts && i < FILES; i++)
		if (strstr(file_of_collector(files[i]), "mine"))
			_exit(11);
	if (weft_recorder_close(rec, NULL) < 0 || !files_are_whole(files))
		_exit(12);
	_exit(0);
}

static void fork_often(int on_fork)
{
	/* A sanitizer's allocator may be locked in a child: less of it there. */
	struct weft_recorder_opts opts = {.sample_hz = SCALED(99, WEFT_OFF),
					  .switches = WEFT_SWITCH_INTERVALS,
					  .flush_ns = SCALED(1, 100) * MS,
					  .on_fork = (uint32_t)on_fork};
	int restarts = on_fork == WEFT_FORK_RESTART, files[FILES], i;
	struct weft_recorder *rec = start_private(&opts);

	REQUIRE(rec);
	CHECK_EQ(open_files(files), FILES);
	for (i = 0; i < SCALED(20, 5); i++) {
		pid_t pid = fork();

		if (!pid)
			child_of(rec, files, restarts);
		emit(10);
		CHECK_EQ(session_wait(pid), 0);
	}
	CHECK(files_are_whole(files));
	end_with(rec, (uint64_t)i * (restarts ? 60 : 10));
	for (i = 0; i < FILES; i++)
		close(files[i]);
}

TEST(a_child_has_none_of_the_private_files_and_loses_none_of_its_own)
{
	UNLESS_TSAN();
	fork_often(WEFT_FORK_OFF);
}

TEST(a_child_that_records_by_itself_has_a_private_fd_table)
{
	if (SCALED(0, 1))
		SKIP("a sanitizer's allocator may be locked in a child");
	fork_often(WEFT_FORK_RESTART);
}

TEST(context_switches_are_recorded)
{
	struct weft_recorder *rec = start_private(&(struct weft_recorder_opts){.switches = WEFT_SWITCH_INTERVALS});
	static struct offcpu off;

	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	CHECK(UNDER_TSAN || session_fds_of("perf_event") == 0);
	for (int i = 0; i < 20; i++)
		session_sleep_ns(MS);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	for (int i = 0; i < 20; i++)
		session_sleep_ns(MS);
	offcpu_end(&off, rec, NULL, 0);
	CHECK(offcpu_thread(&off, (uint32_t)getpid())->n_by_reason[WEFT_OFFCPU_BLOCKED] >= 40);
}

/* Started, paused and stopped by a thread that does not have the files. */
TEST(perf_events_are_not_among_the_files_of_the_program)
{
	struct weft_recorder_opts opts = {.sample_engine = WEFT_ENGINE_PERF, .sample_hz = 499, .flush_ns = 10 * MS};
	struct weft_recorder *rec;
	int files[FILES];

	UNLESS_TSAN();
	rec = start_private(&opts);
	REQUIRE(rec);
	if (weft__engine.ops != &weft__perf_ops)
		SKIP("no perf events here");
	for (int i = 0; i < 3; i++) {
		CHECK(samples_burn_for(5));
		CHECK_EQ(session_fds_of("perf_event"), 0);
		closefrom(3);
		CHECK_EQ(open_files(files), FILES);
		CHECK(samples_burn_for(5));
		CHECK_EQ(i < 2 ? weft_recorder_pause(rec) : weft_recorder_stop(rec, NULL), 0);
		CHECK_EQ(weft_recorder_start(rec, NULL), 0);
		CHECK(files_are_whole(files));
	}
	end_with(rec, 0);
	CHECK(files_are_whole(files));
	closefrom(3);
}

/* A child that has a perf event by the number of one of ours keeps it. */
static void fork_with_an_event(struct weft_recorder *rec)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .disabled = 1};
	int fds[16], n = 0;
	pid_t pid;

	while (n < 16 && (fds[n] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)) >= 0)
		n++;
	REQUIRE(n == 16);
	pid = fork();
	if (pid == 0) {
		weft_recorder_close(rec, NULL);
		for (int i = 0; i < n; i++)
			if (fcntl(fds[i], F_GETFD) < 0)
				_exit(10 + i);
		_exit(0);
	}
	CHECK_EQ(session_wait(pid), 0);
	while (n > 0)
		close(fds[--n]);
}

TEST(a_child_keeps_perf_events_of_its_own_by_the_same_numbers)
{
	const uint32_t engines[] = {WEFT_ENGINE_PERF, WEFT_ENGINE_AUTO};

	UNLESS_TSAN();
	for (int i = 0; i < 2; i++) {
		struct weft_recorder_opts opts = {.sample_engine = engines[i], .sample_hz = 99};
		struct weft_recorder *rec = start_private(&opts);

		REQUIRE(rec);
		if (i == 0 && weft__engine.ops != &weft__perf_ops)
			SKIP("no perf events here");
		CHECK(samples_burn_for(5)); /* of a thread that computes: it has an event beside its timer then */
		fork_with_an_event(rec);
		end_with(rec, 0);
	}
}

TEST(a_dump_is_written)
{
	struct weft_recorder *rec = start_private(&(struct weft_recorder_opts){.flight_ns = 10000 * MS});
	char path[512];

	REQUIRE(rec);
	emit(100);
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, path, sizeof(path), NULL), 0);
	end_with(rec, 100);
}

static void *die_without_a_word(void *data)
{
	weft_park(0);
	weft_unpark(0);
	syscall(SYS_exit, 0);
	return data;
}

/* The collector finds out, and cannot close what the thread had open. */
TEST(the_next_thread_closes_what_one_that_died_left_open)
{
	struct weft_recorder *rec;
	pthread_t thread;

	if (SCALED(0, 1))
		SKIP("sanitizers must see the end of a thread");
	rec = start_private(NULL);
	REQUIRE(rec);
	REQUIRE(pthread_create(&thread, NULL, die_without_a_word, NULL) == 0);
	pthread_join(thread, NULL);
	CHECK_EQ(session_fds_of("/schedstat"), 1);
	CHECK(WAIT_FOR(session_stats(rec).threads == 0));
	for (int i = 0; i < 3; i++) {
		weft_park(0);
		session_sleep_ns(11 * MS);
		weft_unpark(0);
	}
	CHECK_EQ(session_fds_of("/schedstat"), 1);
	end_with(rec, 0);
	CHECK_EQ(session_fds_of("/schedstat"), 0);
}

/* As in a container that does not know the call. */
static void record_without_close_range(const void *data)
{
	const int *mine = data;
	struct weft_recorder *rec;

	REQUIRE(child_refuse(SYS_close_range, ENOSYS) == 0);
	rec = start_private(&(struct weft_recorder_opts){.dir = session_dir, .switches = WEFT_SWITCH_INTERVALS});
	REQUIRE(rec);
	CHECK(!strcmp(file_of_collector(*mine), "/dev/null"));
	emit(100);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
}

TEST(without_a_private_fd_table_recording_works_as_before)
{
	int mine = high(open("/dev/null", O_RDWR | O_CLOEXEC));

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer does not start threads in a child of one that had some");
	CHECK_EQ(child_run(record_without_close_range, &mine), 0);
	close(mine);
}

static void record_as_nobody(const void *data)
{
	struct weft_recorder *rec;
	int files[FILES];

	(void)data;
	REQUIRE(child_become(65534) == 0);
	rec = start_private(&(struct weft_recorder_opts){
		.dir = session_dir, .sample_hz = 99, .switches = WEFT_SWITCH_INTERVALS, .flush_ns = MS});
	REQUIRE(rec);
	CHECK_EQ(open_files(files), FILES);
	emit(100);
	CHECK(WAIT_FOR(session_stats(rec).events >= 100));
	CHECK(!strstr(file_of_collector(files[FILES - 1]), "mine"));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK(files_are_whole(files));
}

TEST(the_private_fd_table_needs_no_privilege)
{
	if (UNDER_TSAN)
		SKIP("ThreadSanitizer does not start threads in a child of one that had some");
	if (getuid() != 0)
		SKIP("only root can become somebody else");
	CHECK_EQ(child_run(record_as_nobody, NULL), 0);
}
