/* SPDX-License-Identifier: Apache-2.0 */
/* A program of its own, linked to the shared library, that emits no event: its threads, and those of a child that it
 * makes, are sampled all the same, and a program that it executes lives. Argument: the directory. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/record/tally.h"
#include "weft/weft.h"

static void *burn(void *data)
{
	struct timespec ts;
	volatile unsigned x = 0;

	do {
		for (int i = 0; i < 10000; i++)
			x = x * 3 + 1;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	} while (ts.tv_sec == 0 && ts.tv_nsec < 200000000);
	return data;
}

static int record(const char *dir)
{
	struct weft_recorder_opts opts = {
		.size = sizeof(opts), .dir = dir, .budget_ppm = WEFT_OFF}; /* samples are counted */
	struct weft_error err = {0};
	struct weft_recorder *rec;
	pthread_t threads[2];

	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "engine_shared: %s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, burn, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return weft_recorder_close(rec, NULL) < 0;
}

int main(int argc, char **argv)
{
	struct tally t;
	int status = 1, bad;
	pid_t pid;

	if (argc != 2)
		return 2;
	bad = record(argv[1]);
	pid = fork();
	if (pid == 0) {
		struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = argv[1], .ring_place = WEFT_RING_DIR};
		struct weft_recorder *rec;

		if (record(argv[1]) || weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0)
			_exit(1);
		burn(NULL);
		execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done", NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	tally_init(&t, 0);
	tally_dir(&t, argv[1]);
	printf("%llu samples in %llu segments, the executed program ended with %d\n",
	       (unsigned long long)t.by_kind[WEFT_KIND_SAMPLE], (unsigned long long)t.segments, status);
	bad |= status || t.by_kind[WEFT_KIND_SAMPLE] < 40 || t.damaged || t.undefined;
	tally_fini(&t);
	return bad;
}
