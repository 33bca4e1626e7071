/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/atomic.h"
#include "unwind/stack.h"

#define LOOK_WORDS 384              /* of a descriptor: glibc's has 288 */
#define MAIN_MOST UINT64_C(8388608) /* when there is no limit */
#define PAGE 4096u

int weft__stack_bounds_self(struct weft__stack_bounds *ret)
{
	pthread_attr_t attr;
	void *low;
	size_t bytes;
	int error = pthread_getattr_np(pthread_self(), &attr);

	if (error)
		return -error;
	error = pthread_attr_getstack(&attr, &low, &bytes);
	pthread_attr_destroy(&attr);
	if (error)
		return -error;
	ret->low = (uint64_t)(uintptr_t)low;
	ret->high = ret->low + bytes;
	ret->sure = 1;
	return 0;
}

__attribute__((no_sanitize("address"), no_sanitize("thread"))) static uint64_t descriptor_word(const uint64_t *words,
											       uint32_t i)
{
	return ((const volatile uint64_t *)words)[i];
}

/* In every thread library that is known, a pthread_t is the address of the descriptor, and the thread pointer is as
 * far from it in all threads. Three words in a row are begin, length and guard of the stack when the mapping that the
 * descriptor is in begins behind the guard, and the stack ends behind the descriptor. Not by pthread_getattr_np(),
 * which allocates: on a thread of weft's that would make a heap of 128 MiB of address space. */
static int32_t block_find(pthread_t other)
{
	const uint64_t *words = (const uint64_t *)(uintptr_t)other;
	struct weft__stack_bounds map;
	uint32_t i;

	if (weft__stack_map((uint64_t)(uintptr_t)words, &map) < 0)
		return 0;
	for (i = 2; i + 2 < LOOK_WORDS && (uint64_t)(uintptr_t)(words + i + 3) <= map.high; i++) {
		uint64_t begin = descriptor_word(words, i), bytes = descriptor_word(words, i + 1),
			 guard = descriptor_word(words, i + 2);
		uint64_t end = begin + bytes;

		if (guard && begin + guard == map.low && bytes > guard && end > (uint64_t)(uintptr_t)(words + i + 2) &&
		    end <= map.high && end % PAGE == 0)
			return (int32_t)(i * sizeof(*words)) -
			       (int32_t)((char *)__builtin_thread_pointer() - (char *)(uintptr_t)pthread_self());
	}
	return 0;
}

void weft__stack_learn(pthread_t other)
{
	struct weft__stack_bounds bounds;
	struct rlimit limit;

	if (!load_relaxed(&weft__stack_learned.block_at))
		store_relaxed(&weft__stack_learned.block_at, block_find(other));
	if (load_relaxed(&weft__stack_learned.main_high) || weft__stack_map(0, &bounds) < 0)
		return;
	store_relaxed(&weft__stack_learned.main_most,
		      getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < MAIN_MOST ? limit.rlim_cur : MAIN_MOST);
	store_release(&weft__stack_learned.main_high, bounds.high);
}
