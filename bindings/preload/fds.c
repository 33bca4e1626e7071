/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's files among the program's. A program may count on the numbers that open gives it, and daemons close
 * whatever is open; a number that was closed behind the recorder's back would soon be a file of the program that the
 * recorder writes to. So the recorder's files are moved to high numbers (its calls come here by the linker's
 * --wrap), and the program cannot close them: to it they are not open. Most are not even in the program's table: the
 * collector has one of its own (base/private_fds.h). */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/private_fds.h"
#include "preload.h"

#define FDS 65536    /* numbers from here on are not moved to, nor guarded */
#define HIGHEST 4096 /* the kernel copies the table up to the highest number in each fork */

static uint64_t own[FDS / 64];

long __real_syscall(long number, ...);
int __real_memfd_create(const char *name, unsigned flags);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int fd);
int __wrap_memfd_create(const char *name, unsigned flags);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

static bool is_own(unsigned fd)
{
	return WEFT_UNLIKELY(fd < FDS && __atomic_load_n(&own[fd / 64], __ATOMIC_RELAXED) >> fd % 64 & 1);
}

/* Async-signal-safe, as what it stands behind. What is opened by a thread with a table of its own is not in the
 * program's way. */
static int adopt(int fd)
{
	struct rlimit limit;
	int saved = errno, lowest = 0, high;

	if (fd < 0 || weft__private_fds)
		return fd;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		lowest = limit.rlim_cur / 4 * 3 < HIGHEST ? (int)(limit.rlim_cur / 4 * 3) : HIGHEST;
	high = fd < lowest ? (int)__real_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest) : -1;
	if (high >= 0) {
		__real_syscall(SYS_close, fd);
		fd = high;
	}
	if (fd < FDS)
		__atomic_fetch_or(&own[fd / 64], 1ull << fd % 64, __ATOMIC_RELAXED);
	errno = saved;
	return fd;
}

static void let_go(int fd)
{
	if (fd >= 0 && fd < FDS && !weft__private_fds)
		__atomic_fetch_and(&own[fd / 64], ~(1ull << fd % 64), __ATOMIC_RELAXED);
}

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	return adopt(__real_open(path, flags, mode));
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return adopt(__real_memfd_create(name, flags));
}

int __wrap_close(int fd)
{
	let_go(fd);
	return (int)__real_syscall(SYS_close, fd);
}

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long r;

	if (number == SYS_close)
		let_go((int)a);
	r = __real_syscall(number, a, b, c, d, e, f);
	return number == SYS_openat || number == SYS_perf_event_open ? adopt((int)r) : r;
}

bool weft__preload_own(int fd)
{
	return is_own((unsigned)fd);
}

bool weft__preload_closes(int fd)
{
	if (is_own((unsigned)fd))
		return true;
	if (WEFT_UNLIKELY(preload_epoll_is(&weft__preload_thread.loops, fd)))
		weft__preload_loop_over();
	return false;
}

PRELOAD_API int close(int fd)
{
	static void *real PRELOAD_NEAR;
	int (*call)(int) = PRELOAD_REAL(real, "close");
	uint64_t since;
	int r;

	if (weft__preload_closes(fd)) {
		errno = EBADF;
		return -1;
	}
	since = preload_before();
	if (!since)
		return call(fd);
	r = call(fd);
	preload_after(PRELOAD_NAME_close, (uint64_t)fd, since);
	return r;
}

PRELOAD_API int dup2(int from, int to)
{
	static void *real PRELOAD_NEAR;
	int (*call)(int, int) = PRELOAD_REAL(real, "dup2");

	if (is_own((unsigned)to)) {
		errno = EBADF;
		return -1;
	}
	return call(from, to);
}

PRELOAD_API int dup3(int from, int to, int flags)
{
	static void *real PRELOAD_NEAR;
	int (*call)(int, int, int) = PRELOAD_REAL(real, "dup3");

	if (is_own((unsigned)to)) {
		errno = EBADF;
		return -1;
	}
	return call(from, to, flags);
}

/* The range in pieces, between the recorder's files. */
PRELOAD_API int close_range(unsigned first, unsigned last, int flags)
{
	static void *real PRELOAD_NEAR;
	int (*call)(unsigned, unsigned, int) = PRELOAD_REAL(real, "close_range");
	unsigned fd, begin = first;
	int r;

	/* Those two do not touch files that the collector has: it keeps the old table, and its files are CLOEXEC
	 * already. */
	if (first > last || flags != 0)
		return call(first, last, flags);
	for (fd = first; fd <= last && fd < FDS; fd++) {
		if (!is_own(fd))
			continue;
		r = fd > begin ? call(begin, fd - 1, flags) : 0;
		if (r < 0)
			return r;
		begin = fd + 1;
	}
	return begin <= last ? call(begin, last, flags) : 0;
}

PRELOAD_API void closefrom(int lowest)
{
	int saved = errno, fd, most;

	if (close_range(lowest > 0 ? (unsigned)lowest : 0, UINT_MAX, 0) < 0) {
		most = (int)sysconf(_SC_OPEN_MAX);
		for (fd = lowest > 0 ? lowest : 0; fd < most; fd++)
			close(fd);
	}
	errno = saved;
}
