/* SPDX-License-Identifier: Apache-2.0 */
/* libunwind beside our unwinder, on the same registers at the same moment, and fixtures that are compiled when the
 * test runs. libunwind is opened, not linked: linked, it takes the place of backtrace() and of the C++ unwinder. */
#ifndef WEFT_TEST_UNWIND_ORACLE_H
#define WEFT_TEST_UNWIND_ORACLE_H

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "unwind/stack.h"
#include "unwind/unwind.h"

#define DEPTH WEFT__UNWIND_DEPTH_MAX

#if defined(__x86_64__)
#define UNW(name) "_ULx86_64_" name
#define UNW_IP 16
#else
#define UNW(name) "_ULaarch64_" name
#define UNW_IP 32
#endif

static struct oracle {
	void *lib;
	int (*init)(void *cursor, void *context, int flag);
	int (*step)(void *cursor);
	int (*get)(void *cursor, int reg, uint64_t *value);
	int (*is_signal)(void *cursor);
} oracle;

static inline const char *oracle_open(void)
{
	if (oracle.lib)
		return NULL;
	oracle.lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	if (!oracle.lib)
		return "no libunwind.so.8 (Debian: libunwind8)";
	*(void **)&oracle.init = dlsym(oracle.lib, UNW("init_local2"));
	*(void **)&oracle.step = dlsym(oracle.lib, UNW("step"));
	*(void **)&oracle.get = dlsym(oracle.lib, UNW("get_reg"));
	*(void **)&oracle.is_signal = dlsym(oracle.lib, UNW("is_signal_frame"));
	return oracle.init && oracle.step && oracle.get && oracle.is_signal ? NULL
									    : "libunwind has not these functions";
}

/* In the form that weft__unwind has: addresses inside the instruction. */
static inline size_t oracle_unwind(void *uc, uint64_t *out, size_t max)
{
	static __thread uint64_t cursor[512] __attribute__((aligned(64)));
	size_t n = 0;

	if (oracle.init(cursor, uc, 1 /* UNW_INIT_SIGNAL_FRAME */) < 0)
		return 0;
	do {
		uint64_t ip = 0;
		int interrupted = n == 0;

		/* It says so of the frame that a signal interrupted, when it comes there from the trampoline. */
		if (n > 0 && oracle.is_signal(cursor) > 0) {
			interrupted = 1;
			out[n - 1] += n > 1;
		}
		if (oracle.get(cursor, UNW_IP, &ip) < 0 || ip == 0)
			break;
		out[n++] = interrupted ? ip : ip - 1;
	} while (n < max && oracle.step(cursor) > 0);
	return n;
}

/* What was seen of one case. Written by the handler only. */
struct seen {
	uint64_t samples, complete, lost, cut, used_fp, signal, frames;
	uint64_t same;     /* as libunwind's, and both reach the thread's first function */
	uint64_t beyond;   /* ours reaches it, libunwind's does not */
	uint64_t proved;   /* of these, the calls that were seen being made say the same */
	uint64_t leaf_odd; /* the interrupted place is in no module */
	uint64_t entry;    /* where the first stack ended that both agreed on: the thread's first function */
	unsigned n_shown, n_lost;
	uint64_t lost_at[8];
	struct {
		size_t n_ours, n_theirs, first;
		uint32_t flags;
		uint64_t ours[48], theirs[48];
	} shown[4]; /* the first that differed */
};

static struct seen seen;
static __thread struct weft__unwind_stack my_stack;
static __thread uint64_t ours[DEPTH], theirs[DEPTH];
static int compare_only_complete;
static int (*proof)(size_t n); /* whether `ours` is right, where libunwind cannot report; NULL: nobody knows */

static inline void stack_learn(void)
{
	struct weft__stack_bounds bounds;

	memset(&my_stack, 0, sizeof(my_stack));
	if (weft__stack_bounds_self(&bounds) == 0)
		my_stack.range[0] = weft__unwind_live(bounds.low, bounds.high);
}

static inline void seen_differ(size_t n, size_t n_theirs, uint32_t flags)
{
	unsigned at = seen.n_shown;

	if (at >= 4)
		return;
	seen.n_shown++;
	seen.shown[at].n_ours = n;
	seen.shown[at].n_theirs = n_theirs;
	seen.shown[at].flags = flags;
	for (size_t i = 0; i < 48; i++) {
		seen.shown[at].ours[i] = i < n ? ours[i] : 0;
		seen.shown[at].theirs[i] = i < n_theirs ? theirs[i] : 0;
	}
	for (seen.shown[at].first = 0; seen.shown[at].first < n && seen.shown[at].first < n_theirs;
	     seen.shown[at].first++)
		if (ours[seen.shown[at].first] != theirs[seen.shown[at].first])
			break;
}

/* Where a thread begins: the first agreed stack ended there, or it is the program's or the loader's first function. */
static inline int is_entry(const struct weft__modules *set, uint64_t addr)
{
	uint64_t loader = getauxval(AT_BASE);
	const struct weft__module *module = loader ? weft__modules_find(set, loader) : NULL;

	return addr == seen.entry || addr - getauxval(AT_ENTRY) < 64 ||
	       (module && weft__modules_find(set, addr) == module);
}

static inline void sample_compare(void *context, const struct weft__modules *set, size_t n, uint32_t flags)
{
	size_t n_theirs;
	int same, whole;

	seen.samples++;
	seen.frames += n;
	seen.lost += !!(flags & WEFT__UNWIND_LOST);
	seen.cut += !!(flags & WEFT__UNWIND_CUT);
	seen.used_fp += !!(flags & WEFT__UNWIND_FP);
	seen.signal += !!(flags & WEFT__UNWIND_SIGNAL);
	seen.leaf_odd += !!(flags & WEFT__UNWIND_NO_CODE);
	if (flags & WEFT__UNWIND_LOST && seen.n_lost < 8)
		seen.lost_at[seen.n_lost++] = ours[0];
	if (compare_only_complete) {
		seen.complete += !!(flags & WEFT__UNWIND_COMPLETE);
		return;
	}
	n_theirs = oracle_unwind(context, theirs, DEPTH);
	same = n == n_theirs && memcmp(ours, theirs, n * sizeof(ours[0])) == 0;
	if (same && flags & WEFT__UNWIND_COMPLETE && !seen.entry)
		seen.entry = ours[n - 1];
	whole = flags & WEFT__UNWIND_COMPLETE && is_entry(set, ours[n - 1]);
	seen.complete += (uint64_t)whole;
	seen.same += (uint64_t)(same && whole);
	if (same)
		return;
	if (whole && n_theirs && !is_entry(set, theirs[n_theirs - 1])) {
		seen.beyond++;
		if (proof && proof(n))
			seen.proved++;
		else if (proof)
			seen_differ(n, n_theirs, flags);
	} else {
		seen_differ(n, n_theirs, flags);
	}
}

/* Both unwinders on what a handler was given. */
static inline void sample(void *context)
{
	struct weft__unwind_regs regs;
	struct weft__unwind_stack stack = my_stack;
	uint32_t flags, visit;
	const struct weft__modules *set;
	size_t n;

	weft__unwind_regs_set(&regs, context);
	if (regs.r[ARCH_SP] > stack.range[0].low && regs.r[ARCH_SP] < stack.range[0].high)
		stack.range[0] = weft__unwind_live(regs.r[ARCH_SP], stack.range[0].high);
	set = weft__modules_enter(&visit);
	n = weft__unwind(set, &regs, &stack, ours, DEPTH, &flags);
	sample_compare(context, set, n, flags);
	weft__modules_leave(visit);
}

static inline void print_address(uint64_t addr)
{
	Dl_info info;

	if (addr && dladdr((void *)(uintptr_t)addr, &info))
		printf("%s+%#llx in %s", info.dli_sname ? info.dli_sname : "?",
		       (unsigned long long)(addr -
					    (uint64_t)(uintptr_t)(info.dli_saddr ? info.dli_saddr : info.dli_fbase)),
		       info.dli_fname);
	else
		printf("%#llx", (unsigned long long)addr);
}

static inline void seen_print(const char *name)
{
	printf("\t%s: %llu samples, %llu complete (%.2f %%), %llu the same as libunwind's, %llu beyond where that is "
	       "lost, %llu of these proved, %llu lost, %llu by frame pointer, %.1f frames each\n",
	       name, (unsigned long long)seen.samples, (unsigned long long)seen.complete,
	       seen.samples ? 100 * (double)seen.complete / (double)seen.samples : 0, (unsigned long long)seen.same,
	       (unsigned long long)seen.beyond, (unsigned long long)seen.proved, (unsigned long long)seen.lost,
	       (unsigned long long)seen.used_fp, seen.samples ? (double)seen.frames / (double)seen.samples : 0);
	for (unsigned i = 0; i < seen.n_lost; i++) {
		printf("\tlost from ");
		print_address(seen.lost_at[i]);
		printf("\n");
	}
	for (unsigned i = 0; i < seen.n_shown; i++) {
		printf("\tdiffer at %zu: %zu frames, flags %u; libunwind's %zu\n", seen.shown[i].first,
		       seen.shown[i].n_ours, seen.shown[i].flags, seen.shown[i].n_theirs);
		for (size_t k = 0; k < 48 && (seen.shown[i].ours[k] || seen.shown[i].theirs[k]); k++) {
			printf("\t\t%s ", seen.shown[i].ours[k] == seen.shown[i].theirs[k] ? " " : "*");
			print_address(seen.shown[i].ours[k]);
			printf("  |  ");
			print_address(seen.shown[i].theirs[k]);
			printf("\n");
		}
	}
}

static char fixture_dir[64];

static inline void fixture_remove(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", fixture_dir);
	if (*fixture_dir && system(command) != 0)
		perror(fixture_dir);
}

/* Compiles fixture/NAME into a library and opens it; NULL after saying that there is no such compiler. */
static inline void *fixture_make(const char *compiler, const char *name)
{
	const char *source = getenv("WEFT_SOURCE");
	char command[1024], path[256];
	void *lib;
	int status;

	if (!*fixture_dir) {
		strcpy(fixture_dir, "/tmp/weft-unwind-XXXXXX");
		if (!mkdtemp(fixture_dir)) {
			*fixture_dir = 0;
			return NULL;
		}
		atexit(fixture_remove);
	}
	snprintf(path, sizeof(path), "%s/%s.so", fixture_dir, name);
	snprintf(command, sizeof(command), "%s -o %s %s/test/unit/unwind/fixture/%s", compiler, path,
		 source ? source : ".", name);
	status = system(command);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		printf("\treason: no compiler: %s\n", compiler);
		return NULL;
	}
	if (status != 0) {
		fprintf(stderr, "%s cannot be compiled\n", name);
		exit(1);
	}
	lib = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!lib)
		printf("\treason: %s\n", dlerror());
	return lib;
}

static inline void *fixture_open(const char *compiler, const char *name, const char *flags)
{
	char command[256];

	snprintf(command, sizeof(command), "%s -O2 -g0 -D_GNU_SOURCE -fomit-frame-pointer -fPIC -shared %s", compiler,
		 flags);
	return fixture_make(command, name);
}

#endif
