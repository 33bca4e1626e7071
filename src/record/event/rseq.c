/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether this machine has the detector of weft/ring.h.
 *
 * Restartable sequences: when the kernel switches a thread out, or delivers a signal to it, it looks at the word `rseq_cs` of
 * the thread's area, which the C library has registered. If that points to a description of a range of code that the thread is not
 * in, the word is cleared. The two descriptions here are of empty ranges, so it always is.
 *
 * The kernel ends a process whose description is not well-formed: the four bytes before `abort_ip` must be the signature that
 * the area was registered with. Whether all of that works is tried, not concluded from versions. */
#include <linux/rseq.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "record/event/account.h"
#include "weft/ring.h"

#define RSEQ_TRIES 5 /* at staying on the CPU for a moment */

#if defined(__x86_64__)
#define RSEQ_SIGNATURE "0x53053053"
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define RSEQ_SIGNATURE "0xd428bc00"
#endif

/* Of the C library, from 2.35 on. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

#ifdef RSEQ_SIGNATURE
extern const char weft__rseq_abort[] __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
	".balign 4\n"
	".long " RSEQ_SIGNATURE "\n"
	".globl weft__rseq_abort\n"
	".hidden weft__rseq_abort\n"
	"weft__rseq_abort:\n"
	".long 0\n"
	".popsection");

/* The second means that the open poll has been off the CPU (WEFT_RSEQ_OFF). */
static struct rseq_cs rseq_none[2] __attribute__((aligned(64)));

static void rseq_arm(uint64_t at, uint64_t word)
{
#if defined(__x86_64__)
	__asm__ volatile("movq %0, %%fs:(%1)" : : "r"(word), "r"(at) : "memory");
#else
	__asm__ volatile("mrs x9, tpidr_el0\n\tstr %0, [x9, %1]" : : "r"(word), "r"(at) : "x9", "memory");
#endif
}

static int rseq_stays(uint64_t at, uint64_t word)
{
	int i;

	for (i = 0; i < RSEQ_TRIES; i++) {
		rseq_arm(at, word);
		syscall(SYS_getppid);
		if (weft_rseq_word() == word)
			return 1;
	}
	return 0;
}

static const char *rseq_try(uint64_t at, uint64_t word)
{
	struct timespec moment = {0, 1};
	const char *why = NULL;

	if (!rseq_stays(at, word))
		why = "the C library's area is in use by others";
	rseq_arm(at, word);
	nanosleep(&moment, NULL);
	if (!why && weft_rseq_word())
		why = "the kernel does not clear it";
	rseq_arm(at, 0);
	return why;
}

const char *weft__rseq_find(uint64_t *at, uint64_t *armed)
{
	size_t i;

	_Static_assert(sizeof(rseq_none[0]) == WEFT_RSEQ_OFF, "the second description is one bit away from the first");
	if (!&__rseq_size || !&__rseq_offset || __rseq_size == 0)
		return "the C library has registered no area for restartable sequences";
	for (i = 0; i < 2; i++) {
		rseq_none[i].start_ip = (uintptr_t)weft__rseq_abort;
		rseq_none[i].abort_ip = (uintptr_t)weft__rseq_abort;
	}
	*at = (uint64_t)(__rseq_offset + (ptrdiff_t)offsetof(struct rseq, rseq_cs));
	*armed = (uintptr_t)&rseq_none[0];
	store_relaxed(&weft_gate.rseq_at, *at);
	return rseq_try(*at, *armed);
}
#else
const char *weft__rseq_find(uint64_t *at, uint64_t *armed)
{
	(void)at, (void)armed;
	return "not known on this machine";
}
#endif
