/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that a bare clone made may share the thread-local memory of its maker, and with it the pointer to the
 * maker's ring, which only the maker may write to. Such a thread is recognized by the id that the thread library
 * keeps in that memory: it is the maker's. Where it keeps it is found by looking, in the memory of two threads whose
 * ids are known. CALLER. */
#include <sys/syscall.h>
#include <unistd.h>

#include "record/thread/thread.h"

#define LOOK_BYTES 1024

uint32_t weft__tls_tid(pthread_t thread)
{
	clockid_t clock;

	return pthread_getcpuclockid(thread, &clock) == 0 ? (uint32_t) ~(clock >> 3) : 0;
}

__attribute__((no_sanitize("address"), no_sanitize("thread"))) static int word_is(const char *at, uint32_t value)
{
	return *(const volatile uint32_t *)(const volatile void *)at == value;
}

int32_t weft__tls_find(pthread_t other)
{
	/* In every thread library that is known, a pthread_t is the address of this memory. */
	const char *self_at = (const char *)(uintptr_t)pthread_self(), *other_at = (const char *)(uintptr_t)other;
	uint32_t self_tid = (uint32_t)syscall(SYS_gettid), other_tid = weft__tls_tid(other);

	if (!other_tid || other_tid == self_tid)
		return 0;
	for (int32_t at = 16; at < LOOK_BYTES; at += 4)
		if (word_is(self_at + at, self_tid) && word_is(other_at + at, other_tid))
			return (int32_t)(self_at + at - (const char *)__builtin_thread_pointer());
	return 0;
}
