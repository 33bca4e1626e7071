/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether this machine has the detector of weft/ring.h.
 *
 * Restartable sequences: when the kernel switches a thread out, or delivers a signal to it, it looks at the word
 * `rseq_cs` of the thread's area, which the C library has registered. If that points to a description of a range of
 * code that the thread is not in, the word is cleared. The two descriptions here are of empty ranges, so it always
 * is.
 *
 * The kernel ends a process whose description is not well-formed: the four bytes before `abort_ip` must be the
 * signature that the area was registered with. So the descriptions are in a page of their own, which is never given
 * back: threads point there for as long as they live, whatever becomes of the recorder, or of a library that this is
 * linked into. Nothing jumps to `abort_ip`, since the ranges are empty. Where an empty range begins means nothing, so
 * that word is the signature, too: a switch reads one line of the cache for all of it. Whether all of that works is
 * tried, not concluded from versions. */
#include <linux/rseq.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "record/event/account.h"
#include "weft/ring.h"

#define RSEQ_TRIES 5 /* at staying on the CPU for a moment */

#if defined(__x86_64__)
#define RSEQ_SIGNATURE 0x53053053u
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define RSEQ_SIGNATURE 0xd428bc00u
#endif

/* Of the C library, from 2.35 on. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

#ifdef RSEQ_SIGNATURE
/* The second description means that the open poll has been off the CPU (WEFT_RSEQ_OFF). */
struct rseq_page {
	struct rseq_cs none[2];
};
static struct rseq_page *rseq_page;

static int rseq_page_make(void)
{
	struct rseq_page *page;
	size_t i;

	if (rseq_page)
		return 1;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 0;
	for (i = 0; i < 2; i++) {
		page->none[i].start_ip = RSEQ_SIGNATURE;
		page->none[i].abort_ip = (uintptr_t)&page->none[i].start_ip + sizeof(uint32_t);
	}
	mprotect(page, sizeof(*page), PROT_READ);
	rseq_page = page;
	return 1;
}

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

/* A sleep whose end comes before the thread has left the CPU is none: then a longer one says it. */
static int rseq_is_cleared(uint64_t at, uint64_t word)
{
	struct timespec moment = {0, 1};
	int i;

	for (i = 0; i < RSEQ_TRIES; i++) {
		rseq_arm(at, word);
		nanosleep(&moment, NULL);
		if (!weft_rseq_word())
			return 1;
		moment.tv_nsec = moment.tv_nsec * 20 % 1000000;
	}
	return 0;
}

static const char *rseq_try(uint64_t at, uint64_t word)
{
	const char *why = NULL;

	if (!rseq_stays(at, word))
		why = "the C library's area is in use by others";
	else if (!rseq_is_cleared(at, word))
		why = "the kernel does not clear it";
	rseq_arm(at, 0);
	return why;
}

const char *weft__rseq_find(uint64_t *at, uint64_t *armed)
{
	_Static_assert(sizeof(struct rseq_cs) == WEFT_RSEQ_OFF,
		       "the second description is one bit away from the first");
	if (!&__rseq_size || !&__rseq_offset || __rseq_size == 0)
		return "the C library has registered no area for restartable sequences";
	if (!rseq_page_make())
		return "no memory";
	*at = (uint64_t)(__rseq_offset + (ptrdiff_t)offsetof(struct rseq, rseq_cs));
	*armed = (uintptr_t)&rseq_page->none[0];
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
