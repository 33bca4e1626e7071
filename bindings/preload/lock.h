/* SPDX-License-Identifier: Apache-2.0 */
/* What lock.c and condition.c share. */
#ifndef WEFT_PRELOAD_LOCK_H
#define WEFT_PRELOAD_LOCK_H

#include <pthread.h>

#include "preload.h"

#define TIME const struct timespec *until
#define OBJECT(at) ((uint64_t)(uintptr_t)(at))

/* Before weft records nobody is known to wait, and the table is a page that a small process need not map. */
static inline bool is_waited(uint64_t object)
{
	return __atomic_load_n(&weft__preload_on, __ATOMIC_RELAXED) && weft_lock_waited(object);
}

/* Who has a lock is of interest when others wait for it. */
static inline int taken(const volatile void *lock, uint32_t shared, int r)
{
	if (is_waited(OBJECT(lock)) && r == 0)
		weft_slow_lock_taken(OBJECT(lock), shared);
	return r;
}

/* A recursive lock that is taken several times is not given back yet. */
#define LOCK_RECURSIVE 1 /* of the two lowest bits of __kind */

static inline bool gives_back(const pthread_mutex_t *m)
{
	return (m->__data.__kind & 3) != LOCK_RECURSIVE || m->__data.__count <= 1;
}

/* Conditions of before 2.3.2 were something else; on x86-64 the C library still has both. */
#if defined(__x86_64__)
#define COND_REAL(at, name)                                                                                            \
	({                                                                                                             \
		PRELOAD_LISTED_VERSION(at, name, "GLIBC_2.3.2");                                                       \
		WEFT_LIKELY(__atomic_load_n(&(at), __ATOMIC_RELAXED) != NULL)                                          \
		? (at) : weft__preload_find_version(&(at), (name), "GLIBC_2.3.2");                                     \
	})
#else
#define COND_REAL(at, name) PRELOAD_REAL(at, name)
#endif

#endif
