/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads on one CPU hand a futex to and fro, which is hardly anything but context switches, while recording
 * with everything on is switched on and off. Writes a line of JSON for each slice, as the example server does: the
 * CPU time of the whole process, weft's threads included, and how often the futex went round. The first seconds, in
 * which the governor finds its rates, are left out.
 *
 * usage: bench_pingpong DIR SECONDS */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "bench.h"

#define SLICE_US 500000
#define FIND_US 10000000

static uint32_t turn, over;
static uint64_t n_turns;

static void *player(void *data)
{
	uint32_t me = data != NULL, now;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != me &&
		       !__atomic_load_n(&over, __ATOMIC_RELAXED))
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
		if (!me)
			__atomic_store_n(&n_turns, n_turns + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&turn, !me, __ATOMIC_RELEASE);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static void slice(struct weft_recorder *rec, int on)
{
	uint64_t begin, cpu, turns;

	if (on)
		bench_check(weft_recorder_start(rec, NULL), &(struct weft_error){0});
	else
		weft_recorder_pause(rec);
	begin = bench_now_ns();
	cpu = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	turns = __atomic_load_n(&n_turns, __ATOMIC_RELAXED);
	bench_sleep_us(SLICE_US);
	cpu = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	turns = __atomic_load_n(&n_turns, __ATOMIC_RELAXED) - turns;
	printf("{\"on\": %d, \"begin_ns\": %llu, \"end_ns\": %llu, \"cpu_ns\": %llu, \"requests\": %llu}\n", on,
	       (unsigned long long)begin, (unsigned long long)bench_now_ns(), (unsigned long long)cpu,
	       (unsigned long long)turns);
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = {
		.size = sizeof(opts), .switches = WEFT_SWITCH_INTERVALS, .sample_hz = 99, .wall_hz = 10};
	struct weft_recorder *rec;
	struct weft_error err;
	pthread_t threads[2];
	uint64_t until;

	if (argc != 3) {
		fprintf(stderr, "usage: bench_pingpong DIR SECONDS\n");
		return 2;
	}
	opts.dir = argv[1];
	bench_check(weft_recorder_open(&rec, &opts, &err), &err);
	bench_pin(BENCH_CPU_LAST);
	for (uintptr_t i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, player, i ? &turn : NULL))
			return 1;
	bench_pin(BENCH_CPU_FIRST);
	bench_check(weft_recorder_start(rec, &err), &err);
	bench_sleep_us(FIND_US);
	until = bench_now_ns() + strtoull(argv[2], NULL, 10) * 1000000000u;
	while (bench_now_ns() < until) {
		slice(rec, 1);
		slice(rec, 0);
		slice(rec, 0);
		slice(rec, 1);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return weft_recorder_close(rec, NULL) < 0;
}
