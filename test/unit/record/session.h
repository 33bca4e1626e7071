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

/* Waits until `cond` holds, 10 s at the most; the value is whether it does. */
#define WAIT_FOR(cond)                                                                                                 \
	(__extension__({                                                                                               \
		uint64_t wait_until_ = session_now_ns() + 10000 * MS;                                                  \
		while (!(cond) && session_now_ns() < wait_until_)                                                      \
			session_sleep_ns(MS);                                                                          \
		!!(cond);                                                                                              \
	}))

/* A recorder that records into a fresh session_dir; NULL after a failed check. `opts` may be NULL. */
static inline struct weft_recorder *session_start(const struct weft_recorder_opts *given)
{
	struct weft_recorder_opts opts = given ? *given : (struct weft_recorder_opts){0};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	opts.size = sizeof(opts);
	if (!opts.sample_hz)
		opts.sample_hz = WEFT_SAMPLE_OFF; /* tests count events */
	if (!opts.budget_ppm)
		opts.budget_ppm = WEFT_SAMPLE_OFF; /* and samples, at rates of their own */
	if (!opts.dir) {
		session_fresh_dir();
		opts.dir = session_dir;
	}
	if (!CHECK_EQ(weft_recorder_open(&rec, &opts, &err), 0) || !CHECK_EQ(weft_recorder_start(rec, &err), 0)) {
		printf("\t%s\n", err.msg);
		weft_recorder_close(rec);
		return NULL;
	}
	return rec;
}

/* Closes it and counts what it wrote. */
static inline void session_end(struct weft_recorder *rec, struct tally *t, uint64_t n_sources)
{
	CHECK_EQ(weft_recorder_close(rec), 0);
	tally_init(t, n_sources);
	tally_dir(t, session_dir);
	CHECK_EQ(t->damaged, 0);
	CHECK_EQ(t->undefined, 0);
	CHECK_EQ(t->disorder, 0);
	CHECK_EQ(t->backwards, 0);
	CHECK_EQ(tally_files(session_dir, ".active") + tally_files(session_dir, ".rings"), 0);
	session_remove_dir();
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
