/* SPDX-License-Identifier: Apache-2.0 */
/* What sampling at 99 Hz adds to a context switch: two threads on one CPU wake each other through a futex, so that each
 * wake is a switch. With sampling and without, in slices of a fixed number of switches that take turns in one process;
 * the figure is the median difference, in CPU time of the two threads, which what others do on the machine is not part
 * of. The samples' own time is in it. The same with nothing switched on is what chance does. While threads come and go
 * the timer engine has a timer on the whole process, too; that is measured apart. */
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "bench.h"
#include "first.h"

#define SLICE_WAKES 10000 /* of each thread, and so twice as many switches */
#define TURN 6            /* slices before, with, and after */
#define CALM_US 3500000   /* after which the timer engine believes that it knows all threads */

static uint32_t turn;   /* whose it is */
static uint64_t cpu[2]; /* of the slice, of each thread */
static pthread_barrier_t gate;
static int done;

static void futex_wait(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void play(uint32_t me)
{
	uint64_t begin = bench_cpu_ns();

	for (int i = 0; i < SLICE_WAKES; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != me)
			futex_wait(&turn, !me);
		__atomic_store_n(&turn, !me, __ATOMIC_RELEASE);
		futex_wake(&turn);
	}
	cpu[me] = bench_cpu_ns() - begin;
}

static void *second(void *arg)
{
	(void)arg;
	for (;;) {
		pthread_barrier_wait(&gate);
		if (done)
			return NULL;
		play(1);
		pthread_barrier_wait(&gate);
	}
}

/* One slice: ns for each switch. */
static double measure(void)
{
	turn = 0;
	pthread_barrier_wait(&gate);
	play(0);
	pthread_barrier_wait(&gate);
	return (double)(cpu[0] + cpu[1]) / (2.0 * SLICE_WAKES);
}

struct result {
	struct bench_samples off, diff;
	uint64_t samples;
};

/* Slices without, with, and without again. `rec` NULL: nothing is switched on. */
static void take_turn(struct weft_recorder *rec, uint64_t calm_us, struct result *result)
{
	double ns[3][TURN];
	struct weft_error err;

	for (int part = 0; part < 3; part++) {
		if (part == 1) {
			bench_check(weft_recorder_start(rec, &err), &err);
			bench_sleep_us(calm_us);
		} else {
			weft_recorder_stop(rec);
		}
		measure();
		for (int i = 0; i < TURN; i++)
			ns[part][i] = measure();
		if (part == 1)
			result->samples = bench_stats(rec).samples;
	}
	for (int i = 0; i < TURN; i++) {
		double off = (ns[0][TURN - 1 - i] + ns[2][i]) / 2;

		bench_add(&result->off, off);
		bench_add(&result->diff, ns[1][i] - off);
	}
}

/* Half of a range that holds the true median with a probability of 95 in 100. */
static double uncertainty(struct bench_samples *s)
{
	double half = 0.98 / sqrt((double)s->n);

	return (bench_quantile(s, fmin(1, 0.5 + half)) - bench_quantile(s, fmax(0, 0.5 - half))) / 2;
}

static void run(const char *name, uint32_t engine, uint64_t calm_us, int turns, const char *what)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .sample_hz = 99, .sample_engine = engine};
	struct result result = {0};
	struct weft_recorder *rec = engine == WEFT_ENGINE_AUTO ? NULL : bench_record_apart(&opts);
	double value, off;

	for (int i = 0; i < turns; i++)
		take_turn(rec, calm_us, &result);
	value = bench_median(&result.diff);
	off = bench_median(&result.off);
	bench_print(name, value, "ns/switch", "baseline", off, (off + value) / off,
		    "%s; give or take %.2g (95 %%), %zu slices of %d switches, %llu samples; baseline: without", what,
		    uncertainty(&result.diff), result.diff.n, 2 * SLICE_WAKES, (unsigned long long)result.samples);
	weft_recorder_close(rec);
	free(result.off.at);
	free(result.diff.at);
}

int main(int argc, char **argv)
{
	int turns = bench_quick(argc, argv) ? 3 : 15;
	pthread_t thread;

	bench_first();
	bench_pin(BENCH_CPU_LAST);
	pthread_barrier_init(&gate, NULL, 2);
	if (pthread_create(&thread, NULL, second, NULL))
		return 1;
	run("switch_tax_chance", WEFT_ENGINE_AUTO, 0, turns, "added to a switch by nothing");
	run("switch_tax_timer", WEFT_ENGINE_TIMER, CALM_US, turns, "added to a switch by sampling at 99 Hz");
	run("switch_tax_timer_young", WEFT_ENGINE_TIMER, 0, turns,
	    "the same in the first seconds, and while threads come and go");
	run("switch_tax_perf", WEFT_ENGINE_PERF, 0, turns, "added to a switch by sampling at 99 Hz");
	done = 1;
	pthread_barrier_wait(&gate);
	pthread_join(thread, NULL);
	return 0;
}
