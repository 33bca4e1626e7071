/* SPDX-License-Identifier: Apache-2.0 */
/* What one sample takes from the thread that is sampled: a loop 30 calls deep reads the counter all the time; what is
 * missing between two readings was taken from it, and by a sample when one was counted meanwhile. So all of the
 * kernel's part is in it: the tick or the interrupt, the signal, the return. Samplers take turns in short slices; the
 * figure is the median of such gaps. A gap longer than any sample is somebody else's turn and does not count. The
 * collector runs on another CPU. Beside it, at the same rate: a timer and a perf event of the same kinds whose handlers
 * count and return, and gperftools. */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/syscall.h>

#include "bench.h"
#include "first.h"
#include "unwind_inside/chain.c"

#define SLICE_NS 200000000u
#define TURN_SLICES 4
#define CALM_US 3500000   /* after which the timer engine believes that it knows all threads */
#define GAP_NS 300        /* no pass of the loop takes so long */
#define FOREIGN_NS 100000 /* no sample does */

enum mode { EMPTY, TIMER, EMPTY_PERF, PERF, GPERFTOOLS, N_MODES };

static const char *const names[N_MODES] = {"sample_cost_empty", "sample_cost_timer", "sample_cost_empty_perf",
					   "sample_cost_perf", "sample_cost_gperftools"};

struct profiler_state {
	int enabled;
	time_t since;
	char name[1024];
	int samples;
};

static struct {
	int (*start)(const char *path);
	void (*stop)(void);
	void (*state)(struct profiler_state *state);
} gperf;

static volatile uint64_t sink, empty_hits;
static uint32_t rate_hz;
static struct bench_samples gaps[N_MODES];
static struct bench_samples *now_into; /* NULL: warming up */
static uint64_t (*now_samples)(void);  /* counts up with each sample of this thread */

static inline uint64_t counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return bench_now_ns();
#endif
}

static uint64_t samples_empty(void)
{
	return empty_hits;
}

/* The thread emits nothing else. */
static uint64_t samples_weft(void)
{
	return __atomic_load_n(&weft_ring_self->resv, __ATOMIC_RELAXED);
}

static uint64_t samples_gperf(void)
{
	struct profiler_state state;

	gperf.state(&state);
	return (uint64_t)state.samples;
}

static void burn(void)
{
	double ns = bench_ns_per_tick();
	uint64_t last = counter(), x = last, end = last + (uint64_t)(SLICE_NS / ns);
	uint64_t gap = (uint64_t)(GAP_NS / ns), foreign = (uint64_t)(FOREIGN_NS / ns), before = now_samples();

	while (last < end) {
		uint64_t now;

		for (int i = 0; i < 8; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
		now = counter();
		if (__builtin_expect(now - last > gap, 0)) {
			uint64_t samples = now_samples();

			if (samples != before && now_into && now - last < foreign)
				bench_add(now_into, (double)(now - last) * ns / 1e3);
			before = samples;
			now = counter();
		}
		last = now;
	}
	sink += x;
}

/* Once for the caches and the ring, and then for the figure. */
static void burn_for(enum mode mode, uint64_t (*samples)(void))
{
	now_samples = samples;
	now_into = NULL;
	chain_plain(burn);
	now_into = &gaps[mode];
	for (int i = 0; i < TURN_SLICES; i++)
		chain_plain(burn);
}

static void on_empty(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	empty_hits++;
}

static void run_empty(void)
{
	struct sigaction action = {.sa_sigaction = on_empty, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, before;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 3};
	long ns = 1000000000 / (long)rate_hz;
	struct itimerspec spec = {{0, ns}, {0, ns}};
	timer_t timer;

	event._sigev_un._tid = (int)syscall(SYS_gettid);
	sigaction(SIGRTMIN + 3, &action, &before);
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) < 0)
		exit(1);
	timer_settime(timer, 0, &spec, NULL);
	burn_for(EMPTY, samples_empty);
	timer_delete(timer);
	sigaction(SIGRTMIN + 3, &before, NULL);
}

/* As the perf engine has it. */
static void run_empty_perf(void)
{
	struct sigaction action = {.sa_sigaction = on_empty, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, before;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000 / rate_hz,
		.sigtrap = 1,
		.remove_on_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd;

	sigaction(SIGTRAP, &action, &before);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0) {
		burn_for(EMPTY_PERF, samples_empty);
		close(fd);
	}
	sigaction(SIGTRAP, &before, NULL);
}

static void run_engine(enum mode mode, uint32_t engine)
{
	struct weft_recorder_opts opts = {
		.size = sizeof(opts), .sample_hz = rate_hz, .sample_engine = engine, .budget_ppm = WEFT_OFF};
	struct weft_recorder *rec = bench_record_apart(&opts);

	bench_sleep_us(CALM_US);
	burn_for(mode, samples_weft);
	weft_recorder_close(rec, NULL);
}

static const char *gperf_open(void)
{
	char rate[16];
	void *lib;

	snprintf(rate, sizeof(rate), "%u", rate_hz);
	setenv("CPUPROFILE_FREQUENCY", rate, 1);
	lib = dlopen("libprofiler.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return "no libprofiler.so.0 (Debian: libgoogle-perftools4)";
	*(void **)&gperf.start = dlsym(lib, "ProfilerStart");
	*(void **)&gperf.stop = dlsym(lib, "ProfilerStop");
	*(void **)&gperf.state = dlsym(lib, "ProfilerGetCurrentState");
	return gperf.start && gperf.stop && gperf.state ? NULL : "libprofiler has not these functions";
}

/* It says something on standard error at every end. */
static void run_gperf(void)
{
	if (!gperf.start || !gperf.start("/dev/null"))
		return;
	burn_for(GPERFTOOLS, samples_gperf);
	gperf.stop();
}

static uint32_t tick_hz(void)
{
	struct timespec res;

	clock_getres(CLOCK_MONOTONIC_COARSE, &res);
	return (uint32_t)(1000000000 / res.tv_nsec);
}

int main(int argc, char **argv)
{
	int rounds = bench_quick(argc, argv) ? 2 : 10;
	const char *why;
	double empty;

	rate_hz = tick_hz();
	why = gperf_open();
	if (why)
		fprintf(stderr, "bench: %s\n", why);
	bench_first();
	bench_pin(BENCH_CPU_LAST);
	bench_ns_per_tick();
	for (int i = 0; i < rounds; i++) {
		run_empty();
		run_engine(TIMER, WEFT_ENGINE_TIMER);
		run_empty_perf();
		run_engine(PERF, WEFT_ENGINE_PERF);
		run_gperf();
	}
	empty = bench_median(&gaps[EMPTY]);
	for (enum mode mode = EMPTY; mode < N_MODES; mode++) {
		double cost = bench_median(&gaps[mode]);
		int on_perf = mode == PERF && gaps[EMPTY_PERF].n;
		double base = on_perf ? bench_median(&gaps[EMPTY_PERF]) : empty;

		if (!gaps[mode].n)
			continue;
		bench_print(
			names[mode], cost, "us/sample", mode == EMPTY ? NULL : "baseline", base, cost / base,
			"lost to a sample of a loop 30 deep, the kernel's part included; %zu samples at %u Hz, half of "
			"them from %.3g to %.3g; baseline: an empty handler on a %s of the same kind",
			gaps[mode].n, rate_hz, bench_quantile(&gaps[mode], 0.25), bench_quantile(&gaps[mode], 0.75),
			on_perf ? "perf event" : "timer");
	}
	return 0;
}
