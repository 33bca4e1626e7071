/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_PRELOAD_STREAM_LOCK_H
#define WEFT_PRELOAD_STREAM_LOCK_H

#include <pthread.h>
#include <stdio.h>

#include "lock.h"
#include "preload.h"

#define STREAM_USER_LOCK 0x8000 /* of _flags: the program locks it, __fsetlocking */

/* What FILE's _lock points to. */
struct stream_lock {
	int lock;
	int count;
	void *owner; /* as pthread_self answers */
};

/* Waits until nobody has the stream. */
void weft__preload_stream_wait(FILE *file, enum preload_name name);

/* Before a call on a stream: waits if another thread has it. */
static inline void stream_begin(FILE *file, enum preload_name name)
{
	const struct stream_lock *lock = file ? (const void *)file->_lock : NULL;

	if (!lock || WEFT_LIKELY(__atomic_load_n(&lock->lock, __ATOMIC_RELAXED) == 0) ||
	    __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == (void *)pthread_self() ||
	    file->_flags & STREAM_USER_LOCK || weft__preload_thread.quiet || !weft_recording())
		return;
	weft__preload_stream_wait(file, name);
}

/* Behind it: those who wait know who had it. `file` may be closed. */
static inline void stream_end(const FILE *file)
{
	if (is_waited(OBJECT(file)))
		weft_slow_lock_given((uint64_t)(uintptr_t)file, 0);
}

#endif
