/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame costs: in a handler over a stack 30 deep without frame pointers, from a copy of it, and with cold
 * caches; and what making the tables costs. Beside it, from the same innermost function: libunwind's cached backtrace
 * (opened, not linked), glibc's backtrace, elfutils on the same copies, and a walk over frame pointers on the same
 * calls with frame pointers. */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/stat.h>

#include "bench.h"
#include "unwind/stack.h"
#include "unwind/unwind.h"
#include "unwind_inside/chain.h"
#include "unwind_inside/elfutils.h"

#define STACK_COPY 65536
#define ELFUTILS_ROUNDS 50 /* of so many walks: it is slow */
#define ELFUTILS_WALKS 10
#define WALKS 200
#define COLD_WALKS 20

static int rounds;
static struct weft__stack_bounds bounds;
static int (*unw_backtrace)(void **buffer, int size);
static struct bench_samples warm, cold, copied, libunwind, glibc, framed, libunwind_first;
static size_t frames, framed_frames;
/* The last moment, for those that take longer than a handler may. */
static struct {
	struct weft__unwind_regs regs;
	struct weft__unwind_range copy;
	uint8_t bytes[STACK_COPY];
} kept;
static volatile uint64_t sink;

static double per_frame(uint64_t begin, uint64_t end, size_t n)
{
	return (double)(end - begin) * bench_ns_per_tick() / (double)n;
}

static void check_complete(size_t n, uint32_t flags)
{
	if (n >= CHAIN_DEPTH && flags == (WEFT__UNWIND_COMPLETE | (flags & WEFT__UNWIND_SIGNAL)))
		return;
	fprintf(stderr, "bench: a stack of %zu frames, flags %u\n", n, flags);
	exit(1);
}

static void measure_cold(const struct weft__unwind_regs *regs, const struct weft__unwind_stack *stack)
{
	static uint64_t out[256];
	uint64_t spent = 0, n = 0;
	uint32_t flags, visit;
	const struct weft__modules *set = weft__modules_enter(&visit);

	for (int i = 0; i < COLD_WALKS; i++) {
		uint64_t begin;

		memset(set->cache, 0, sizeof(*set->cache) << WEFT__UNWIND_CACHE_BITS);
		set->cache[0].check = 1;
		begin = bench_tick();
		n += weft__unwind(set, regs, stack, out, 256, &flags);
		spent += bench_tick() - begin;
	}
	bench_add(&cold, per_frame(0, spent, n));
	weft__modules_leave(visit);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	static uint64_t out[256];
	static uint8_t copy[STACK_COPY];
	struct weft__unwind_regs regs;
	struct weft__unwind_stack stack = {0}, copied_stack = {0};
	uint32_t flags, visit;
	uint64_t begin, sp;

	(void)signal;
	(void)info;
	weft__unwind_regs_set(&regs, context);
	sp = regs.r[ARCH_SP];
	stack.range[0] = weft__unwind_live(sp, bounds.high);
	begin = bench_tick();
	for (int i = 0; i < WALKS; i++) {
		frames = weft__unwind(weft__modules_enter(&visit), &regs, &stack, out, 256, &flags);
		weft__modules_leave(visit);
	}
	bench_add(&warm, per_frame(begin, bench_tick(), WALKS * frames));
	check_complete(frames, flags);
	copied_stack.range[0] = (struct weft__unwind_range){sp, sp + sizeof(copy), copy};
	if (copied_stack.range[0].high > bounds.high)
		copied_stack.range[0].high = bounds.high;
	begin = bench_tick();
	for (int i = 0; i < WALKS; i++) {
		memcpy(copy, (const void *)(uintptr_t)sp, copied_stack.range[0].high - sp);
		weft__unwind(weft__modules_enter(&visit), &regs, &copied_stack, out, 256, &flags);
		weft__modules_leave(visit);
	}
	bench_add(&copied, per_frame(begin, bench_tick(), WALKS * frames));
	check_complete(frames, flags);
	measure_cold(&regs, &stack);
	memcpy(kept.bytes, copy, sizeof(copy));
	kept.regs = regs;
	kept.copy = copied_stack.range[0];
	kept.copy.bytes = kept.bytes;
}

static void measure_elfutils(int n_rounds)
{
	struct bench_samples each = {0};
	void *state = elfutils_open();
	size_t n = state ? elfutils_walk(state, &kept.regs, &kept.copy) : 0; /* reads the files */
	double ours, theirs;

	if (n < CHAIN_DEPTH) {
		fprintf(stderr, "bench: elfutils sees %zu frames\n", n);
		return;
	}
	for (int i = 0; i < n_rounds; i++) {
		uint64_t begin = bench_tick();

		for (int k = 0; k < ELFUTILS_WALKS; k++)
			n = elfutils_walk(state, &kept.regs, &kept.copy);
		bench_add(&each, per_frame(begin, bench_tick(), ELFUTILS_WALKS * n));
	}
	ours = bench_median(&copied);
	theirs = bench_median(&each);
	bench_print(
		"unwind_copy", ours, "ns/frame", "baseline", theirs, ours / theirs,
		"from a copy, the copying of %zu bytes included; baseline: elfutils (libdwfl) on the same copy, %zu "
		"frames, files read before",
		(size_t)(kept.copy.high - kept.copy.low), n);
	elfutils_close(state);
	free(each.at);
}

static void innermost(void)
{
	void *out[256];
	uint64_t begin;
	int n = 0;

	for (int i = 0; i < rounds; i++) {
		raise(SIGUSR1);
		if (unw_backtrace) {
			if (i == 0) {
				begin = bench_tick();
				n = unw_backtrace(out, 256);
				bench_add(&libunwind_first, per_frame(begin, bench_tick(), (size_t)n));
			}
			begin = bench_tick();
			for (int k = 0; k < WALKS; k++)
				n = unw_backtrace(out, 256);
			bench_add(&libunwind, per_frame(begin, bench_tick(), WALKS * (size_t)n));
		}
		begin = bench_tick();
		for (int k = 0; k < WALKS / 10; k++)
			n = backtrace(out, 256);
		bench_add(&glibc, per_frame(begin, bench_tick(), WALKS / 10 * (size_t)n));
		sink += (uint64_t)n;
	}
}

/* A frame-pointer walk that checks its bounds, as far as the frames have one. */
static void innermost_framed(void)
{
	uint64_t begin, out[256];
	size_t n = 0;

	for (int i = 0; i < rounds; i++) {
		begin = bench_tick();
		for (int k = 0; k < WALKS; k++) {
			uint64_t fp = (uint64_t)(uintptr_t)__builtin_frame_address(0);

			n = 0;
			while (n < CHAIN_DEPTH && fp >= bounds.low && fp <= bounds.high - 16 && fp % 8 == 0) {
				const uint64_t *at = (const uint64_t *)(uintptr_t)fp;

				out[n++] = at[1];
				if (at[0] <= fp)
					break;
				fp = at[0];
			}
			BENCH_BARRIER();
		}
		bench_add(&framed, per_frame(begin, bench_tick(), WALKS * n));
		sink += out[n - 1];
	}
	framed_frames = n;
}

static void print_table(const char *what, const char *const *paths, int repeats)
{
	struct bench_samples ms = {0};
	struct weft__unwind_table *table = NULL;
	struct stat st;
	char name[64];

	while (*paths && stat(*paths, &st) < 0)
		paths++;
	if (!*paths) {
		fprintf(stderr, "bench: no file for unwind_table_build of %s\n", what);
		return;
	}
	for (int i = 0; i < repeats; i++) {
		uint64_t begin = bench_now_ns();

		weft__unwind_table_free(table);
		table = NULL;
		if (weft__unwind_table_open(&table, *paths, NULL) < 0) {
			fprintf(stderr, "bench: no table of %s\n", *paths);
			return;
		}
		bench_add(&ms, (double)(bench_now_ns() - begin) / 1e6);
	}
	snprintf(name, sizeof(name), "unwind_table_build_%s", what);
	bench_print(name, bench_median(&ms), "ms", NULL, 0, 0,
		    "%s of %.1f MB, file reading included; %u entries, %u rows, %u rules", *paths,
		    (double)st.st_size / 1e6, table->stats.fdes, table->n_rows, table->n_rules);
	snprintf(name, sizeof(name), "unwind_table_bytes_%s", what);
	bench_print(name, (double)table->memory_bytes, "bytes", NULL, 0, 0, "%.0f bytes for 1,000 bytes of code",
		    1000 * (double)table->memory_bytes / (double)table->stats.code_bytes);
	weft__unwind_table_free(table);
	free(ms.at);
}

int main(int argc, char **argv)
{
	static const char *const libc[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", NULL};
	static const char *const big[] = {"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
					  "/usr/lib/gcc/x86_64-linux-gnu/12/cc1", NULL};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	double base, value;

	rounds = bench_quick(argc, argv) ? 50 : 1000;
	bench_pin(BENCH_CPU_LAST);
	bench_ns_per_tick();
	if (lib)
		*(void **)&unw_backtrace = dlsym(lib, "unw_backtrace");
	if (weft__modules_refresh() < 0 || weft__stack_bounds_self(&bounds) < 0)
		return 1;
	sigaction(SIGUSR1, &action, NULL);
	sink += chain_plain(innermost);
	sink += chain_framed(innermost_framed);

	value = bench_median(&warm);
	base = bench_median(&framed);
	bench_print("unwind_warm", value, "ns/frame", "floor", base, value / base,
		    "in the handler, %zu frames without frame pointers; floor: a frame-pointer walk", frames);
	bench_print("unwind_frame_pointers", base, "ns/frame", NULL, 0, 0, "checked walk, %zu frames", framed_frames);
	if (unw_backtrace) {
		base = bench_median(&libunwind);
		bench_print("unwind_libunwind", base, "ns/frame", NULL, 0, 0,
			    "unw_backtrace, cached, from the same function; the first time %.0f",
			    bench_median(&libunwind_first));
		bench_print("unwind_warm_vs_libunwind", value, "ns/frame", "baseline", base, value / base,
			    "baseline: unw_backtrace, cached");
	}
	base = bench_median(&glibc);
	bench_print("unwind_glibc", base, "ns/frame", NULL, 0, 0, "backtrace(), from the same function");
	value = bench_median(&cold);
	bench_print("unwind_cold", value, "ns/frame", "baseline", base, value / base,
		    "all addresses out of the rule cache; baseline: glibc's backtrace");
	measure_elfutils(rounds < ELFUTILS_ROUNDS ? rounds : ELFUTILS_ROUNDS);
	print_table("libc", libc, 10);
	print_table("large", big, 3);
	weft__modules_stop();
	return 0;
}
