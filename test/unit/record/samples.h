/* SPDX-License-Identifier: Apache-2.0 */
/* What the samples of a recording say: how many and how much CPU time for each thread and each function. Functions
 * to be found are in sections of their own, named for them, so that the linker knows where they begin and end. */
#ifndef WEFT_TEST_SAMPLES_H
#define WEFT_TEST_SAMPLES_H

#include <sys/resource.h>
#include <sys/syscall.h>

#include "record/sample/state.h"
#include "session.h"
#include "statistics.h"
#include "unwind/modules.h"

#define BURNER(name)                                                                                                   \
	extern const char __start_code_##name[], __stop_code_##name[];                                                 \
	__attribute__((noinline, noclone, section("code_" #name))) static void name

#define RANGE(name)                                                                                                    \
	{                                                                                                              \
#name, __start_code_##name, __stop_code_##name, 0, 0, 0, 0, 0, 0                                       \
	}

struct samples_function {
	const char *name;
	const char *start, *stop;
	uint64_t self, total; /* samples that end in it, or pass through it */
	uint64_t self_ns, total_ns;
	const struct samples_function *caller; /* must be in each stack that it is in; may be NULL */
	uint64_t uncalled;                     /* stacks in which that is not so */
};

#define SAMPLES_THREADS 8192
struct samples_thread {
	uint32_t tid;
	uint64_t n, ns;
};

struct samples {
	struct samples_function *functions;
	uint32_t n_functions;
	struct samples_thread threads[SAMPLES_THREADS];
	uint32_t n_threads;
	uint64_t n, ns;
	uint64_t complete, cut, lost_way, by_fp, kernel, no_stack;
	uint64_t engines[4];
	uint64_t deepest;
	uint64_t cpus; /* bits */
	uint64_t uncovered;
	char engine[16], why[256], degraded[512];
	struct tally tally;
};

static inline struct samples_thread *samples_thread(struct samples *s, uint32_t tid)
{
	for (uint32_t i = 0; i < s->n_threads; i++)
		if (s->threads[i].tid == tid)
			return &s->threads[i];
	if (s->n_threads == SAMPLES_THREADS)
		return NULL;
	s->threads[s->n_threads].tid = tid;
	return &s->threads[s->n_threads++];
}

static inline void samples_stack(struct samples *s, const struct weft_segment *seg, const struct weft_stack *stack,
				 uint64_t ns)
{
	uint64_t seen = 0;

	s->complete += (stack->flags & WEFT_STACK_COMPLETE) != 0;
	s->cut += (stack->flags & WEFT_STACK_CUT) != 0;
	s->lost_way += (stack->flags & WEFT_STACK_LOST) != 0;
	s->by_fp += (stack->flags & WEFT_STACK_FP) != 0;
	if (stack->n_frames > s->deepest)
		s->deepest = stack->n_frames;
	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct weft_module *module = weft_segment_module(seg, stack->frames[i].module);
		uint64_t at = stack->frames[i].offset + (module ? module->start : 0);

		for (uint32_t f = 0; f < s->n_functions; f++) {
			struct samples_function *function = &s->functions[f];

			if (at < (uint64_t)(uintptr_t)function->start || at >= (uint64_t)(uintptr_t)function->stop)
				continue;
			function->self += i == 0;
			function->self_ns += i == 0 ? ns : 0;
			if (!(seen >> f & 1)) {
				function->total++;
				function->total_ns += ns;
			}
			seen |= UINT64_C(1) << f;
		}
	}
	for (uint32_t f = 0; f < s->n_functions; f++) {
		const struct samples_function *caller = s->functions[f].caller;

		if (caller && seen >> f & 1 && !(seen >> (caller - s->functions) & 1))
			s->functions[f].uncalled++;
	}
}

static inline void samples_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const struct weft_thread *thread = weft_segment_thread(seg, ev->thread);
	const struct weft_stack *stack = NULL;
	struct samples_thread *one;
	struct samples *s = data;

	if (ev->kind != WEFT_KIND_SAMPLE)
		return;
	s->n++;
	s->ns += ev->fields[2];
	s->cpus |= UINT64_C(1) << (ev->fields[3] & 63);
	s->engines[ev->fields[4] & 3]++;
	s->kernel += ev->fields[1] != 0;
	one = samples_thread(s, thread ? thread->tid : 0);
	if (one) {
		one->n++;
		one->ns += ev->fields[2];
	}
	stack = weft_segment_stack(seg, (uint32_t)ev->fields[0]);
	if (stack)
		samples_stack(s, seg, stack, ev->fields[2]);
	else
		s->no_stack++;
}

static inline void samples_facts(struct samples *s, const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, tally_is_segment, alphasort);

	for (int i = 0; i < n; i++) {
		struct weft_segment *seg;
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		if (weft_segment_open(&seg, path, NULL) == 0) {
			const char *engine = weft_segment_fact(seg, "sample.engine");
			const char *why = weft_segment_fact(seg, "sample.why");
			const char *degraded = weft_segment_fact(seg, "degraded.sampling");

			snprintf(s->engine, sizeof(s->engine), "%s", engine ? engine : "");
			snprintf(s->why, sizeof(s->why), "%s", why ? why : "");
			snprintf(s->degraded, sizeof(s->degraded), "%s", degraded ? degraded : "");
			weft_segment_close(seg);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* Reads what is in `dir`. */
static inline void samples_read(struct samples *s, const char *dir, struct samples_function *functions, uint32_t n)
{
	memset(s, 0, sizeof(*s));
	s->functions = functions;
	s->n_functions = n;
	tally_init(&s->tally, 0);
	s->tally.each = samples_event;
	s->tally.data = s;
	tally_dir(&s->tally, dir);
	samples_facts(s, dir);
	for (uint32_t i = 0; i < s->tally.n_losses; i++)
		if (s->tally.losses[i].reason == WEFT_LOSS_UNCOVERED)
			s->uncovered += s->tally.losses[i].count;
	tally_fini(&s->tally);
}

/* Closes the recorder and reads what it wrote. */
static inline void samples_end(struct samples *s, struct weft_recorder *rec, struct samples_function *functions,
			       uint32_t n)
{
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	samples_read(s, session_dir, functions, n);
	CHECK_EQ(s->tally.damaged, 0);
	CHECK_EQ(s->tally.undefined, 0);
	session_remove_dir();
}

static inline uint64_t samples_of(struct samples *s, uint32_t tid)
{
	for (uint32_t i = 0; i < s->n_threads; i++)
		if (s->threads[i].tid == tid)
			return s->threads[i].n;
	return 0;
}

static inline uint32_t samples_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static inline uint64_t samples_cpu_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline uint64_t samples_rusage_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * 1000000000 +
	       ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000;
}

/* A chain of multiplications in a register, which takes the same time wherever its code and its stack lie. */
static inline __attribute__((always_inline)) void samples_spin(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n; i++) {
		x = x * UINT64_C(6364136223846793005) + i;
		__asm__ volatile("" : "+r"(x));
	}
}

/* Uses the CPU for that long. */
static inline __attribute__((unused)) void samples_burn(uint64_t ns)
{
	uint64_t until = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		samples_spin(20000);
}

/* Uses the CPU until there are `n` more samples, of whatever thread: on a busy machine a thread's ticks, and so its
 * samples, are few. False: 20 s of CPU time were not enough. */
static inline __attribute__((unused)) int samples_burn_for(uint64_t n)
{
	uint64_t until = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 20000 * MS;

	n += __atomic_load_n(&weft__engine.samples, __ATOMIC_RELAXED);
	while (__atomic_load_n(&weft__engine.samples, __ATOMIC_RELAXED) < n) {
		if (samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) > until)
			return 0;
		samples_spin(20000);
	}
	return 1;
}

/* Whether all unwind tables are made and nobody is at it. */
static inline int samples_tables(void)
{
	return !__atomic_load_n(&weft__own_threads.tables, __ATOMIC_RELAXED) && !weft__modules_stale();
}

/* Begins when all stacks can be whole: a start does not wait for that when it takes long, as in a build with a
 * sanitizer. */
static inline struct weft_recorder *samples_start(uint32_t engine, uint32_t hz)
{
	struct weft_recorder *rec =
		session_start(&(struct weft_recorder_opts){.sample_engine = engine, .sample_hz = hz});

	if (rec)
		CHECK(WAIT_FOR(samples_tables()));
	return rec;
}

/* Signals reach a program under ThreadSanitizer only where it waits, and those of perf events at places where its
 * runtime cannot have them. */
#define SKIP_UNDER_TSAN()                                                                                              \
	do {                                                                                                           \
		if (UNDER_TSAN)                                                                                        \
			SKIP("ThreadSanitizer holds signals back");                                                    \
	} while (0)

/* Timers that the process has; -1: the kernel does not report. */
static inline int samples_timers(void)
{
	FILE *file = fopen("/proc/self/timers", "re");
	char line[256];
	int n = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		n += !strncmp(line, "ID:", 3);
	fclose(file);
	return n;
}

/* Whether a is within `percent` of b. */
static inline int samples_near(uint64_t a, uint64_t b, uint64_t percent)
{
	uint64_t d = a > b ? a - b : b - a;

	if (d * 100 <= b * percent)
		return 1;
	printf("\t%llu is not within %llu %% of %llu\n", (unsigned long long)a, (unsigned long long)percent,
	       (unsigned long long)b);
	return 0;
}

#endif
