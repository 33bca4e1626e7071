/* SPDX-License-Identifier: Apache-2.0 */
/* A signal handler that emits, after every single instruction of an emit: with the CPU's trap flag set there is one.
 * What is published must never become unpublished again, and nothing may be lost. */
/* optimized: an emit that is not has several times the instructions, each of which is a trap */
#include "session.h"

#include <signal.h>

#if defined(__x86_64__) && !UNDER_TSAN

static struct {
	struct weft_ring *ring;
	uint64_t head, back, emitted, random;
	unsigned often; /* of 16 */
} step;

static void on_trap(int signal)
{
	uint64_t head = __atomic_load_n(&step.ring->head, __ATOMIC_RELAXED);

	(void)signal;
	step.back += head < step.head;
	step.random ^= step.random << 13;
	step.random ^= step.random >> 7;
	step.random ^= step.random << 17;
	if (step.random >> 60 < step.often) {
		weft_poll_end();
		step.emitted++;
	}
	step.head = __atomic_load_n(&step.ring->head, __ATOMIC_RELAXED);
}

/* The flag is set on the stack, which must not be the red zone. */
static void __attribute__((noinline)) emit_stepped(uint64_t i)
{
	__asm__ volatile("subq $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; addq $128, %%rsp" : : : "memory", "cc");
	weft_poll_begin(i, 3);
	__asm__ volatile("subq $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; addq $128, %%rsp"
			 :
			 :
			 : "memory", "cc");
}

TEST(handlers_between_any_two_instructions_of_an_emit)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.ring_bytes = 1 << 24});
	struct sigaction trap = {.sa_handler = on_trap}, before;
	struct weft_recorder_stats stats;
	uint64_t i, n = SCALED(100, 20); /* each step is a trap, which in a virtual machine takes 0.1 ms */

	REQUIRE(rec);
	weft_poll_begin(1, 1);
	step.ring = weft_ring_self;
	step.random = 88172645463325252u;
	sigaction(SIGTRAP, &trap, &before);
	for (step.often = 1; step.often <= 5; step.often++) {
		for (i = 0; i < n; i++) {
			step.head = step.ring->head;
			emit_stepped(i);
		}
	}
	sigaction(SIGTRAP, &before, NULL);
	CHECK_EQ(step.back, 0);
	CHECK(step.emitted > n);
	CHECK_EQ(step.ring->head, step.ring->resv);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	stats = session_stats(rec);
	CHECK_EQ(stats.lost, 0);
	CHECK(stats.events >= step.emitted + 5 * n + 1);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

#else

TEST(handlers_between_any_two_instructions_of_an_emit)
{
	SKIP("single steps are an x86-64 matter, and the sanitizer's own code is no place for them");
}

#endif
