/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of the C library's streams. Each call on a stream takes its lock inside the library; a thread that blocks in
 * a write to a full pipe keeps it, and all others that print wait for that thread, not for the pipe. So a stream
 * that is in use is waited for here, before the call. */
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lock.h"
#include "stream_lock.h"

#define TID_WITHIN 2048 /* bytes of a thread's descriptor in which its id is looked for */

/* Where the C library keeps the id of a thread, whose descriptor is what pthread_self answers; 0: it was not found. */
static size_t tid_at;

static bool read_own(uint64_t from, void *to, size_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};

	return syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static void find_tid(void)
{
	static int words[TID_WITHIN / sizeof(int)];
	int tid = (int)syscall(SYS_gettid);
	size_t i, found = 0, n = 0;

	if (!read_own((uint64_t)pthread_self(), words, sizeof(words)))
		return;
	for (i = 1; i < TID_WITHIN / sizeof(int); i++)
		if (words[i] == tid) {
			found = i * sizeof(int);
			n++;
		}
	if (n == 1)
		__atomic_store_n(&tid_at, found, __ATOMIC_RELAXED);
}

/* A thread that ended with the lock may have left nothing to be read. */
static uint32_t stream_holder(const FILE *file)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct stream_lock *lock = (const void *)file->_lock;
	uint64_t owner = (uint64_t)(uintptr_t)__atomic_load_n(&lock->owner, __ATOMIC_RELAXED);
	uint32_t tid = 0;

	pthread_once(&once, find_tid);
	if (!owner || !tid_at || !read_own(owner + tid_at, &tid, sizeof(tid)))
		return 0;
	return tid & 0x3fffffff;
}

/* Not kept: a thread that is cancelled in the call would never give it back. Another may get it first, then; it is
 * seldom. */
void weft__preload_stream_wait(FILE *file, enum preload_name name)
{
	int saved = errno;

	weft_wait_begin_held(WEFT_WAIT_LOCK, weft__preload_names[name], OBJECT(file),
			     stream_holder(file) | WEFT_HOLDER_ASK);
	flockfile(file);
	weft_wait_end(WEFT_WAIT_LOCK, OBJECT(file));
	taken(file, 0, 0);
	funlockfile(file);
	errno = saved;
}
