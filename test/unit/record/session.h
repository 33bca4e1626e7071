/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the recorder share: a scratch directory, a recorder in it, and sizes that fit the build. */
#ifndef WEFT_TEST_SESSION_H
#define WEFT_TEST_SESSION_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/ring/ring.h"
#include "tally.h"
#include "weft/weft.h"
#include "weft_test.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SCALED(full, sanitized) (sanitized)
#else
#define SCALED(full, sanitized) (full)
#endif

#define MS UINT64_C(1000000)

static char session_dir[64];

static inline void session_fresh_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(session_dir, sizeof(session_dir), "%.40s/weft-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(session_dir))
		session_dir[0] = 0;
}

static inline void session_remove_dir(void)
{
	char command[128];

	if (!session_dir[0])
		return;
	snprintf(command, sizeof(command), "rm -rf '%s'", session_dir);
	CHECK_EQ(system(command), 0);
	session_dir[0] = 0;
}

static inline void session_sleep_ns(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static inline uint64_t session_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Waits until `cond` holds, 10 s at the most; the value is whether it did. What held once may not hold any more when
 * it is looked at again. */
#define WAIT_FOR(cond)                                                                                                 \
	(__extension__({                                                                                               \
		uint64_t wait_until_ = session_now_ns() + 10000 * MS;                                                  \
		bool held_;                                                                                            \
		while (!(held_ = !!(cond)) && session_now_ns() < wait_until_)                                          \
			session_sleep_ns(MS);                                                                          \
		held_;                                                                                                 \
	}))

/* Whether that thread, or process, waits for something. */
static inline int session_asleep(uint32_t tid)
{
	char path[64], text[256];
	const char *state = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	file = fopen(path, "re");
	if (file && fgets(text, sizeof(text), file))
		state = strrchr(text, ')');
	if (file)
		fclose(file);
	return state && state[1] == ' ' && state[2] == 'S';
}

/* Whether all other threads of this process do. A child that is to make threads is forked then: AddressSanitizer's
 * allocator has locks that are held for ever in a child when another thread held them. */
static inline int session_others_asleep(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int asleep = dir != NULL;

	while (asleep && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != gettid())
			asleep = session_asleep((uint32_t)atoi(entry->d_name));
	if (dir)
		closedir(dir);
	return asleep;
}

/* Time for which a hypervisor kept CPUs of this machine to itself, since it was started. The CPU clocks of threads
 * leave it out, though these threads were not switched out. */
static inline uint64_t session_stolen_ns(void)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long stolen = 0;

	if (file && fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) != 1)
		stolen = 0;
	if (file)
		fclose(file);
	return stolen * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* A recorder that records into a fresh session_dir; NULL after a failed check. `opts` may be NULL. */
static inline struct weft_recorder *session_start(const struct weft_recorder_opts *given)
{
	struct weft_recorder_opts opts = given ? *given : (struct weft_recorder_opts){0};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	opts.size = sizeof(opts);
	if (!opts.sample_hz)
		opts.sample_hz = WEFT_OFF; /* tests count events */
	if (!opts.budget_ppm)
		opts.budget_ppm = WEFT_OFF; /* and samples, at rates of their own */
	if (!opts.dir) {
		session_fresh_dir();
		opts.dir = session_dir;
	}
	if (!CHECK_EQ(weft_recorder_open(&rec, &opts, &err), 0) || !CHECK_EQ(weft_recorder_start(rec, &err), 0)) {
		printf("\t%s\n", err.msg);
		weft_recorder_close(rec, NULL);
		return NULL;
	}
	return rec;
}

/* Closes it and counts what it wrote. */
static inline void session_end(struct weft_recorder *rec, struct tally *t, uint64_t n_sources)
{
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(t, n_sources);
	tally_dir(t, session_dir);
	CHECK_EQ(t->damaged, 0);
	CHECK_EQ(t->undefined, 0);
	CHECK_EQ(t->disorder, 0);
	CHECK_EQ(t->backwards, 0);
	CHECK_EQ(tally_files(session_dir, ".active") + tally_files(session_dir, ".rings"), 0);
	session_remove_dir();
}

/* The same for who looks at each event; `seen` is what it is given. */
static inline void session_read_back(struct weft_recorder *rec,
				     void (*each)(const struct weft_segment *seg, const struct weft_event_view *ev,
						  void *data),
				     void *seen)
{
	struct tally t;

	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = each;
	t.data = seen;
	tally_dir(&t, session_dir);
	CHECK_EQ(t.damaged + t.undefined + t.lost, 0);
	session_remove_dir();
	tally_fini(&t);
}

static inline struct weft_recorder_stats session_stats(struct weft_recorder *rec)
{
	struct weft_recorder_stats stats = {.size = sizeof(stats)};

	CHECK_EQ(weft_recorder_stats(rec, &stats), 0);
	return stats;
}

/* The ring of the calling thread. */
static inline struct ring_page *session_ring(void)
{
	return weft__ring_mine();
}

static inline int session_entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline int session_fds(void)
{
	return session_entries("/proc/self/fd");
}

/* Files of the process whose name, as the kernel has it, has that in it. Others, which the collector has open for a
 * moment, do not count. */
static inline int session_fds_of(const char *part)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		char to[256];
		ssize_t got = readlinkat(dirfd(dir), entry->d_name, to, sizeof(to) - 1);

		to[got < 0 ? 0 : got] = 0;
		n += strstr(to, part) != NULL;
	}
	if (dir)
		closedir(dir);
	return n;
}

static inline int session_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	int c, n = 0;

	while (file && (c = getc(file)) != EOF)
		n += c == '\n';
	if (file)
		fclose(file);
	return n;
}

/* The exit status of a child, or -1 when it did not exit by itself. */
static inline int session_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
