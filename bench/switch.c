/* SPDX-License-Identifier: Apache-2.0 */
/* What is added to a context switch: two threads on one CPU wake each other through a futex, so that each wake is a
 * switch. With sampling, or with records of switches, and without, in slices of a fixed number of switches that take
 * turns in one process; the figure is the median difference, in CPU time of the two threads, which what others do on
 * the machine is not part of. The samples' own time is in it; the collector's is not, and is measured by itself. The
 * same with nothing switched on is what chance does. While threads come and go the timer engine has a timer on the
 * whole process, too; that is measured apart. Records of switches are beside what a profiler from outside does: a
 * sample of each switch with its call chain. */
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "bench.h"
#include "first.h"

#define SLICE_WAKES 10000 /* of each thread, and so twice as many switches */
#define TURN 6            /* slices before, with, and after */
#define CALM_US 3500000   /* after which the timer engine believes that it knows all threads */

#define CHAIN_BYTES (8u << 20) /* of a thread's ring: the chains of a slice */

static uint32_t turn; /* whose it is */
static int tids[2];
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
	tids[1] = (int)syscall(SYS_gettid);
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

/* Samples of every switch of both threads, with the call chains of user code and of the kernel. */
static struct {
	int fd[2];
	struct perf_event_mmap_page *page[2];
} chains = {{-1, -1}, {NULL, NULL}};

static void chains_stop(void)
{
	for (int i = 0; i < 2; i++) {
		if (chains.page[i])
			munmap(chains.page[i], CHAIN_BYTES + 4096);
		if (chains.fd[i] >= 0)
			close(chains.fd[i]);
		chains.page[i] = NULL;
		chains.fd[i] = -1;
	}
}

static int chains_start(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
	};

	for (int i = 0; i < 2; i++) {
		void *at;

		chains.fd[i] = (int)syscall(SYS_perf_event_open, &attr, tids[i], -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (chains.fd[i] < 0)
			break;
		at = mmap(NULL, CHAIN_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, chains.fd[i], 0);
		if (at == MAP_FAILED)
			break;
		chains.page[i] = at;
	}
	if (chains.page[0] && chains.page[1])
		return 1;
	chains_stop();
	return 0;
}

/* What is in the rings is thrown away, so that there is room for the next slice. */
static void chains_empty(void)
{
	for (int i = 0; i < 2; i++)
		if (chains.page[i])
			__atomic_store_n(&chains.page[i]->data_tail,
					 __atomic_load_n(&chains.page[i]->data_head, __ATOMIC_ACQUIRE),
					 __ATOMIC_RELEASE);
}

struct way {
	const char *name;
	const char *what;
	struct weft_recorder_opts opts;
	uint64_t calm_us;
	enum { NOTHING, RECORDER, CHAINS } how;
};

struct result {
	struct bench_samples off, diff;
	struct bench_samples turns; /* the median of each: its slices are like each other */
	uint64_t samples;
	uint64_t collector_ns, switches, lost;
	int refused;
};

static void switch_on(const struct way *way, struct weft_recorder *rec, struct result *result)
{
	struct weft_error err;

	if (way->how == CHAINS)
		result->refused = !chains_start();
	if (way->how != RECORDER)
		return;
	bench_pin(BENCH_CPU_FIRST); /* where the collector stays */
	bench_check(weft_recorder_start(rec, &err), &err);
	bench_pin(BENCH_CPU_LAST);
	bench_sleep_us(way->calm_us);
}

/* Slices without, with, and without again. */
static void take_turn(const struct way *way, struct weft_recorder *rec, struct result *result)
{
	struct bench_samples mine = {0};
	double ns[3][TURN];

	for (int part = 0; part < 3; part++) {
		if (part == 1)
			switch_on(way, rec, result);
		measure();
		for (int i = 0; i < TURN; i++) {
			chains_empty();
			ns[part][i] = measure();
		}
		if (part != 1)
			continue;
		result->samples = bench_stats(rec).samples;
		result->lost = bench_stats(rec).lost;
		weft_recorder_stop(rec, NULL);
		chains_stop();
		result->collector_ns += bench_stats(rec).collector_ns; /* of this start's */
		result->switches += 2 * SLICE_WAKES * (TURN + 1);
	}
	for (int i = 0; i < TURN; i++) {
		double off = (ns[0][TURN - 1 - i] + ns[2][i]) / 2;

		bench_add(&result->off, off);
		bench_add(&result->diff, ns[1][i] - off);
		bench_add(&mine, ns[1][i] - off);
	}
	bench_add(&result->turns, bench_median(&mine));
	free(mine.at);
}

static void run(const struct way *way, int turns)
{
	struct weft_recorder_opts opts = way->opts;
	struct result result = {0};
	struct weft_recorder *rec = NULL;
	char collector[96] = "";
	double value, off;

	opts.size = sizeof(opts);
	opts.budget_ppm = WEFT_OFF;
	if (way->how == RECORDER)
		rec = bench_record_apart(&opts);
	weft_recorder_stop(rec, NULL);
	for (int i = 0; i < turns && !result.refused; i++)
		take_turn(way, rec, &result);
	if (result.refused) {
		printf("{\"name\": \"%s\", \"value\": null, \"unit\": \"ns/switch\", \"note\": \"context switches "
		       "cannot "
		       "be sampled here\"}\n",
		       way->name);
		return;
	}
	value = bench_median(&result.diff);
	bench_between_samples(&result.turns);
	off = bench_median(&result.off);
	if (rec)
		snprintf(collector, sizeof(collector), ", the collector used %.0f ns for each switch, %llu events lost",
			 (double)result.collector_ns / (double)result.switches, (unsigned long long)result.lost);
	bench_print(way->name, value, "ns/switch", "baseline", off, (off + value) / off,
		    "%s; %zu slices of %d switches, %llu samples%s; baseline: without", way->what, result.diff.n,
		    2 * SLICE_WAKES, (unsigned long long)result.samples, collector);
	weft_recorder_close(rec, NULL);
	free(result.off.at);
	free(result.diff.at);
	free(result.turns.at);
}

#define SAMPLED(ENGINE)                                                                                                \
	{                                                                                                              \
		.sample_hz = 99, .sample_engine = ENGINE, .switches = WEFT_SWITCH_OFF                                  \
	}
#define SWITCHES(MODE, HZ)                                                                                             \
	{                                                                                                              \
		.sample_hz = HZ, .switches = MODE                                                                      \
	}

static const struct way ways[] = {
	{"switch_tax_chance", "added to a switch by nothing", {0}, 0, NOTHING},
	{"switch_tax_timer", "added to a switch by sampling at 99 Hz", SAMPLED(WEFT_ENGINE_TIMER), CALM_US, RECORDER},
	{"switch_tax_timer_young", "the same in the first seconds, and while threads come and go",
	 SAMPLED(WEFT_ENGINE_TIMER), 0, RECORDER},
	{"switch_tax_perf", "added to a switch by sampling at 99 Hz", SAMPLED(WEFT_ENGINE_PERF), 0, RECORDER},
	{"switch_cost", "added to a switch by recording when it was, of threads that were there at the start",
	 SWITCHES(WEFT_SWITCH_INTERVALS, WEFT_OFF), 0, RECORDER},
	{"switch_cost_stacks", "the same with stacks, of about 5,000 switches a second",
	 SWITCHES(WEFT_SWITCH_STACKS, 99), 0, RECORDER},
	{"switch_cost_callchains",
	 "added by a sample of each with its call chain, as perf record -e cs -g makes them",
	 {0},
	 0,
	 CHAINS},
};

int main(int argc, char **argv)
{
	int turns = bench_quick(argc, argv) ? 3 : 15;
	pthread_t thread;

	bench_first();
	bench_pin(BENCH_CPU_LAST);
	pthread_barrier_init(&gate, NULL, 2);
	tids[0] = (int)syscall(SYS_gettid);
	if (pthread_create(&thread, NULL, second, NULL))
		return 1;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		run(&ways[i], turns);
	done = 1;
	pthread_barrier_wait(&gate);
	pthread_join(thread, NULL);
	return 0;
}
