/* SPDX-License-Identifier: Apache-2.0 */
/* A program for budget.sh: two threads hand a futex to and fro, which is hardly anything but context switches, with
 * everything on. Says what weft used in millionths of what the program used, once it had some seconds to find its
 * rates.
 *
 * usage: budget_program DIR BUDGET_PPM SECONDS */
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weft/weft.h"

static uint32_t turn, over;
static uint64_t n_turns;

static void *player(void *data)
{
	uint32_t me = data != NULL, now;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != me &&
		       !__atomic_load_n(&over, __ATOMIC_RELAXED))
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
		n_turns += !me;
		__atomic_store_n(&turn, !me, __ATOMIC_RELEASE);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .switches = WEFT_SWITCH_INTERVALS, .wall_hz = 10};
	struct weft_recorder_stats early = {.size = sizeof(early)}, late = {.size = sizeof(late)};
	struct weft_recorder *rec;
	struct weft_error err;
	pthread_t threads[2];
	unsigned seconds;

	if (argc != 4)
		die("usage: budget_program DIR BUDGET_PPM SECONDS");
	opts.dir = argv[1];
	opts.budget_ppm = (uint32_t)strtoul(argv[2], NULL, 10);
	if (!opts.budget_ppm)
		opts.budget_ppm = WEFT_OFF;
	seconds = (unsigned)strtoul(argv[3], NULL, 10);
	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0)
		die(err.msg);
	for (uintptr_t i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, player, i ? &turn : NULL))
			die("no thread");
	sleep(seconds / 3);
	weft_recorder_stats(rec, &early);
	sleep(seconds - seconds / 3);
	weft_recorder_stats(rec, &late);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("ppm %.0f first %.0f limited %u hz %u turns %llu program_ms %llu cost_ms %llu\n",
	       1e6 * (double)(late.cost_ns - early.cost_ns) / (double)(late.program_ns - early.program_ns),
	       1e6 * (double)early.cost_ns / (double)early.program_ns, late.limited, late.sample_hz,
	       (unsigned long long)n_turns, (unsigned long long)(late.program_ns / 1000000),
	       (unsigned long long)(late.cost_ns / 1000000));
	return weft_recorder_close(rec, NULL) < 0;
}
