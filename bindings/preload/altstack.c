/* SPDX-License-Identifier: Apache-2.0 */
/* Alternate stacks for signals. The kernel takes 2,048 bytes, and needs more than 3,000 for one signal where the CPU
 * has wide registers. A program whose handlers rarely run, or run one at a time, may have measured its stack for
 * them alone; samples come at any time, and in its handlers, too. So a small one is answered by a larger one of
 * ours, with room for what the program gave and a sample: the program reads back what it set, and its handlers run on
 * ours. A large one stays the program's: some make contexts on theirs. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#define FRAME_LEAST 2048   /* where the kernel does not say */
#define HANDLER_BYTES 4096 /* that a sample needs besides the kernel's frame, with room to spare */
#define SMALL 16384        /* less than this is small, or than two signals need */

/* Of the library inside: record/sample/machine.c. What the frame of a thread has no room for until it asks for it. */
unsigned long weft__machine_unused_frame(void);

static __thread struct {
	stack_t theirs;    /* that ours stands for */
	void *ours;        /* NULL: none */
	size_t ours_bytes; /* of the mapping */
	int active;        /* the kernel has ours */
} alternate __attribute__((tls_model("initial-exec")));

static size_t sample_bytes(void)
{
	unsigned long most = getauxval(AT_MINSIGSTKSZ), unused = weft__machine_unused_frame();
	size_t frame = most > unused ? most - unused : 0;

	return (frame > FRAME_LEAST ? frame : FRAME_LEAST) + HANDLER_BYTES;
}

static int call(const stack_t *want, stack_t *ret)
{
	static void *real PRELOAD_NEAR;
	int (*fn)(const stack_t *, stack_t *) = PRELOAD_REAL(real, "sigaltstack");

	return fn(want, ret);
}

static bool is_small(const stack_t *want)
{
	size_t two = 2 * sample_bytes();

	return !(want->ss_flags & SS_DISABLE) && want->ss_size < (two > SMALL ? two : SMALL);
}

static bool on_ours(void)
{
	char here;

	return alternate.ours && (uintptr_t)&here - (uintptr_t)alternate.ours < alternate.ours_bytes;
}

/* Not while a handler runs on it, which is possible with SS_AUTODISARM. */
static void give_back(void)
{
	alternate.active = 0;
	if (!alternate.ours || on_ours())
		return;
	munmap(alternate.ours, alternate.ours_bytes);
	alternate.ours = NULL;
}

static bool have(size_t theirs)
{
	size_t bytes = (theirs + sample_bytes() + 4095) / 4096 * 4096;
	void *at;

	if (alternate.ours && (alternate.ours_bytes >= bytes || on_ours()))
		return alternate.ours_bytes >= bytes;
	if (alternate.ours)
		munmap(alternate.ours, alternate.ours_bytes);
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	alternate.ours = at == MAP_FAILED ? NULL : at;
	alternate.ours_bytes = bytes;
	return alternate.ours != NULL;
}

/* What the kernel has of ours the program knows as its own. */
static void as_theirs(stack_t *ret, bool was_active, const stack_t *theirs)
{
	if (!ret || !was_active || ret->ss_sp != alternate.ours)
		return;
	ret->ss_sp = theirs->ss_sp;
	ret->ss_size = theirs->ss_size;
}

/* The kernel judges what the program gives first. No sample may come between. */
static int change(const stack_t *want, stack_t *ret)
{
	sigset_t all, before;
	stack_t theirs = *want, ours; /* `ret` may be the same */
	bool was_active = alternate.active;
	stack_t had = alternate.theirs;
	int r, error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = call(want, ret);
	error = errno;
	if (r == 0) {
		as_theirs(ret, was_active, &had);
		if (is_small(&theirs) && have(theirs.ss_size)) {
			ours = (stack_t){alternate.ours, theirs.ss_flags & ~SS_ONSTACK, alternate.ours_bytes};
			alternate.theirs = theirs;
			alternate.active = call(&ours, NULL) == 0;
		} else {
			give_back();
		}
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return r;
}

PRELOAD_API int sigaltstack(const stack_t *want, stack_t *ret)
{
	int r;

	if (want && (alternate.active || alternate.ours || is_small(want)))
		return change(want, ret);
	r = call(want, ret);
	if (r == 0)
		as_theirs(ret, alternate.active, &alternate.theirs);
	return r;
}

void weft__preload_alternate_end(void)
{
	stack_t off = {.ss_flags = SS_DISABLE};
	stack_t now;

	if (!alternate.ours || on_ours())
		return;
	if (call(NULL, &now) == 0 && now.ss_sp == alternate.ours && call(&off, NULL) < 0)
		return;
	give_back();
}
