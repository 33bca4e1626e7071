/* SPDX-License-Identifier: Apache-2.0 */
/* Records some segments and ends in one of several ways; for ship.py.
 * usage: ship_program N stop|exit|wait|idle|cycles|fork|call|exec|soak|signal, with WEFT_* in the environment. N is of
 * segments; of cycles; of seconds, for soak. Or: ship_program N reopen DIR URL, N recorders in turn. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weft/weft.h"

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int die(const char *what, const struct weft_error *err)
{
	fprintf(stderr, "%s: %s\n", what, err->msg);
	return 1;
}

static void log_line(enum weft_log_level level, const char *line, void *data)
{
	(void)data;
	fprintf(stderr, "log %d %s\n", (int)level, line);
}

static void emit_polls(void)
{
	for (uint64_t i = 0; i < 200; i++) {
		weft_poll_begin(i, 0);
		weft_poll_end();
	}
}

static int make_segments(struct weft_recorder *rec, int n, struct weft_error *err)
{
	for (int i = 0; i < n; i++) {
		emit_polls();
		if (weft_recorder_rotate(rec, NULL, 0, err) < 0)
			return -1;
	}
	emit_polls();
	return 0;
}

static void show_health(struct weft_recorder *rec)
{
	struct weft_health h = {.size = sizeof(h)};

	weft_recorder_health(rec, &h);
	printf("health ok=%u targets=%u failing=%u sent=%llu waiting=%llu refused=%llu passed=%u failed=%u why=%s\n",
	       h.ok, h.targets, h.failing, (unsigned long long)h.sent, (unsigned long long)h.waiting,
	       (unsigned long long)h.refused, h.passed, h.failed, h.why);
	fflush(stdout);
}

/* Fails with each segment once. */
static int take(struct weft_report *report, void *data)
{
	char mark[8] = "";

	(void)data;
	if (!report->tries) {
		report->retry_after_ns = 1000000;
		return -EAGAIN;
	}
	if (read(report->fd, mark, sizeof(mark)) != sizeof(mark))
		return -EIO;
	printf("took %s %llu\n", report->name, (unsigned long long)report->bytes);
	fflush(stdout);
	return 0;
}

static void *short_thread(void *data)
{
	(void)data;
	emit_polls();
	return NULL;
}

/* What must not grow: memory that is in use, descriptors, threads. */
static void show_use(double seconds)
{
	unsigned long size = 0, resident = 0, fds = 0, threads = 0;
	FILE *statm = fopen("/proc/self/statm", "r");
	DIR *dir = opendir("/proc/self/fd");

	if (statm && fscanf(statm, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	if (statm)
		fclose(statm);
	while (dir && readdir(dir))
		fds++;
	if (dir)
		closedir(dir);
	dir = opendir("/proc/self/task");
	while (dir && readdir(dir))
		threads++;
	if (dir)
		closedir(dir);
	printf("use s=%.1f rss_kb=%lu fds=%lu threads=%lu\n", seconds, resident * 4, fds, threads);
	fflush(stdout);
}

/* Polls, threads that come and go, and a new segment ten times a second. */
static int soak(struct weft_recorder *rec, int seconds, struct weft_error *err)
{
	double begun = now_s(), shown = begun;

	while (now_s() - begun < seconds) {
		struct timespec nap = {0, 100000000};
		pthread_t thread;

		for (int i = 0; i < 4; i++)
			if (pthread_create(&thread, NULL, short_thread, NULL) == 0)
				pthread_join(thread, NULL);
		emit_polls();
		if (weft_recorder_rotate(rec, NULL, 0, err) < 0)
			return die("rotate", err);
		if (now_s() - shown >= 0.5) {
			shown = now_s();
			show_use(shown - begun);
		}
		nanosleep(&nap, NULL);
	}
	show_health(rec);
	return weft_recorder_stop(rec, err) < 0 ? die("stop", err) : 0;
}

static int cycles(struct weft_recorder *rec, int n, struct weft_error *err)
{
	for (int i = 0; i < n; i++) {
		if (weft_recorder_start(rec, err) < 0)
			return die("start", err);
		emit_polls();
		if (weft_recorder_stop(rec, err) < 0)
			return die("stop", err);
		if (i % 50 == 49)
			show_use(i + 1);
	}
	return 0;
}

/* One recorder after the other, each with other options; DIR/0, DIR/1 and DIR/2 in turn. */
static int reopen(int n, const char *dir, const char *url, struct weft_error *err)
{
	for (int i = 0; i < n; i++) {
		struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
		struct weft_recorder *rec = NULL;
		char path[4000], name[20];

		snprintf(path, sizeof(path), "%s/%d", dir, i % 3);
		snprintf(name, sizeof(name), "kind %d", i % 3);
		opts.dir = path;
		opts.name = name;
		opts.sample_hz = i % 3 == 0 ? WEFT_OFF : (uint64_t)(i % 3) * 50;
		opts.wall_hz = i % 2 ? WEFT_OFF : 19;
		opts.keep_bytes = i % 3 == 1 ? (uint64_t)64 << 20 : 0;
		opts.ship_to = i % 3 == 2 ? url : NULL;
		opts.ship_delete = 0;
		opts.ship_wait_ns = UINT64_C(5000000000);
		if (weft_recorder_open(&rec, &opts, err) < 0)
			return die("open", err);
		if (weft_recorder_start(rec, err) < 0 || make_segments(rec, 1, err) < 0)
			return die("start", err);
		if (weft_recorder_pause(rec) < 0 || weft_recorder_start(rec, err) < 0)
			return die("pause", err);
		emit_polls();
		if (weft_recorder_stop(rec, err) < 0)
			return die("stop", err);
		weft_recorder_close(rec, NULL);
		if (i % 30 == 29)
			show_use(i + 1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *end = argc > 2 ? argv[2] : "stop";
	int n = argc > 1 ? atoi(argv[1]) : 3, r;
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};
	double begun;

	weft_set_log(log_line, WEFT_LOG_WARN, NULL);
	if (!strcmp(end, "reopen"))
		return reopen(n, argv[3], argv[4], &err);
	if (weft_recorder_open_env(&rec, NULL, &err) < 0)
		return die("open", &err);
	if (!rec) {
		puts("off");
		return 0;
	}
	if (!strcmp(end, "call") && weft_recorder_report_to(rec, "taker", take, NULL, &err) < 0)
		return die("report_to", &err);
	if (!strcmp(end, "cycles")) {
		r = cycles(rec, n, &err);
		weft_recorder_close(rec, NULL);
		return r;
	}
	if (weft_recorder_start(rec, &err) < 0)
		return die("start", &err);
	if (strcmp(end, "soak") && make_segments(rec, n, &err) < 0)
		return die("rotate", &err);
	if (!strcmp(end, "soak")) {
		r = soak(rec, n, &err);
		weft_recorder_close(rec, NULL);
		return r;
	}
	if (!strcmp(end, "exec")) {
		execl("/bin/sh", "sh", "-c",
		      "ls -l /proc/self/fd; grep -E 'Threads|SigBlk|SigIgn' /proc/self/status; "
		      "grep -c weft /proc/self/maps; cat",
		      (char *)NULL);
		return 1;
	}
	if (!strcmp(end, "wait") || !strcmp(end, "idle")) {
		puts("ready");
		fflush(stdout);
		for (;;) {
			struct timespec nap = {0, 20000000};

			if (!strcmp(end, "wait"))
				emit_polls();
			nanosleep(&nap, NULL);
			show_health(rec);
		}
	}
	if (!strcmp(end, "fork")) {
		pid_t child;

#ifdef __SANITIZE_ADDRESS__ /* its allocator is not locked around a fork, and threads of weft have just begun */
		nanosleep(&(struct timespec){0, 500000000}, NULL);
#endif
		child = fork();

		if (!child) {
			emit_polls();
			exit(0); /* with the exit handlers */
		}
		waitpid(child, &r, 0);
		if (r)
			return 1;
	}
	if (!strcmp(end, "exit")) {
		printf("exiting %.3f\n", now_s());
		fflush(stdout);
		return 0;
	}
	begun = now_s();
	r = weft_recorder_stop(rec, &err);
	printf("stop took %.3f\n", now_s() - begun);
	show_health(rec);
	begun = now_s();
	weft_recorder_close(rec, NULL);
	printf("close took %.3f\n", now_s() - begun);
	fflush(stdout);
	if (!strcmp(end, "signal"))
		raise(SIGUSR1);
	return r < 0;
}
