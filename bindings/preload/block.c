/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that may block, on all threads of the program. They are measured, which costs two readings of the clock; each
 * is a wait (weft/wait.h): with its stack when it was long, else part of a sum. */
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

uint32_t weft__preload_names[PRELOAD_NAMES_N];

void weft__preload_names_init(void)
{
	static const char *const names[] = {
#define X(name) #name,
		PRELOAD_NAMES(X)
#undef X
	};
	size_t i;

	for (i = 0; i < PRELOAD_NAMES_N; i++)
		weft__preload_names[i] = weft_string(names[i]);
}

/* ARGS are the parameters, PASS their names, OBJECT the fd that it waits for. When nothing records the real one
 * is jumped to: one more return behind a system call, which leaves the CPU with the wrong idea of where returns go,
 * would be most of what this costs. */
#define BLOCK(type, name, shown, args, pass, object)                                                                   \
	PRELOAD_API type name args;                                                                                    \
	PRELOAD_API type name args                                                                                     \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		type(*call) args = PRELOAD_REAL(real, #name);                                                          \
		uint64_t since = preload_before();                                                                     \
		type r;                                                                                                \
                                                                                                                       \
		if (!since)                                                                                            \
			return call pass;                                                                              \
		r = call pass;                                                                                         \
		preload_after(PRELOAD_NAME_##shown, (uint64_t)(object), since);                                        \
		return r;                                                                                              \
	}

/* The same for a call that is no more than one of the system's, BARE, which the C library makes cancellable. */
#define BLOCK_BARE(type, name, shown, args, pass, bare, object)                                                        \
	PRELOAD_API type name args;                                                                                    \
	PRELOAD_API type name args                                                                                     \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		uint64_t since = preload_before();                                                                     \
		type r;                                                                                                \
                                                                                                                       \
		if (preload_alone()) {                                                                                 \
			r = (type)(bare);                                                                              \
		} else {                                                                                               \
			type(*call) args = PRELOAD_REAL(real, #name);                                                  \
                                                                                                                       \
			if (!since)                                                                                    \
				return call pass;                                                                      \
			r = call pass;                                                                                 \
		}                                                                                                      \
		preload_after(PRELOAD_NAME_##shown, (uint64_t)(object), since);                                        \
		return r;                                                                                              \
	}

BLOCK_BARE(ssize_t, read, read, (int fd, void *buf, size_t n), (fd, buf, n), BARE(SYS_read, fd, buf, n, 0, 0, 0), fd)
BLOCK(ssize_t, __read_chk, read, (int fd, void *buf, size_t n, size_t room), (fd, buf, n, room), fd)
BLOCK_BARE(ssize_t, readv, readv, (int fd, const struct iovec *parts, int n), (fd, parts, n),
	   BARE(SYS_readv, fd, parts, n, 0, 0, 0), fd)
BLOCK_BARE(ssize_t, pread, pread, (int fd, void *buf, size_t n, off_t at), (fd, buf, n, at),
	   BARE(SYS_pread64, fd, buf, n, at, 0, 0), fd)
BLOCK_BARE(ssize_t, pread64, pread, (int fd, void *buf, size_t n, off64_t at), (fd, buf, n, at),
	   BARE(SYS_pread64, fd, buf, n, at, 0, 0), fd)
BLOCK(ssize_t, __pread_chk, pread, (int fd, void *buf, size_t n, off_t at, size_t room), (fd, buf, n, at, room), fd)
BLOCK(ssize_t, __pread64_chk, pread, (int fd, void *buf, size_t n, off64_t at, size_t room), (fd, buf, n, at, room), fd)
BLOCK(ssize_t, preadv, preadv, (int fd, const struct iovec *parts, int n, off_t at), (fd, parts, n, at), fd)
BLOCK(ssize_t, preadv64, preadv, (int fd, const struct iovec *parts, int n, off64_t at), (fd, parts, n, at), fd)
BLOCK(ssize_t, preadv2, preadv, (int fd, const struct iovec *parts, int n, off_t at, int flags),
      (fd, parts, n, at, flags), fd)
BLOCK(ssize_t, preadv64v2, preadv, (int fd, const struct iovec *parts, int n, off64_t at, int flags),
      (fd, parts, n, at, flags), fd)
BLOCK_BARE(ssize_t, write, write, (int fd, const void *buf, size_t n), (fd, buf, n),
	   BARE(SYS_write, fd, buf, n, 0, 0, 0), fd)
BLOCK_BARE(ssize_t, writev, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n),
	   BARE(SYS_writev, fd, parts, n, 0, 0, 0), fd)
BLOCK_BARE(ssize_t, pwrite, pwrite, (int fd, const void *buf, size_t n, off_t at), (fd, buf, n, at),
	   BARE(SYS_pwrite64, fd, buf, n, at, 0, 0), fd)
BLOCK_BARE(ssize_t, pwrite64, pwrite, (int fd, const void *buf, size_t n, off64_t at), (fd, buf, n, at),
	   BARE(SYS_pwrite64, fd, buf, n, at, 0, 0), fd)
BLOCK(ssize_t, pwritev, pwritev, (int fd, const struct iovec *parts, int n, off_t at), (fd, parts, n, at), fd)
BLOCK(ssize_t, pwritev64, pwritev, (int fd, const struct iovec *parts, int n, off64_t at), (fd, parts, n, at), fd)
BLOCK(ssize_t, pwritev2, pwritev, (int fd, const struct iovec *parts, int n, off_t at, int flags),
      (fd, parts, n, at, flags), fd)
BLOCK(ssize_t, pwritev64v2, pwritev, (int fd, const struct iovec *parts, int n, off64_t at, int flags),
      (fd, parts, n, at, flags), fd)
BLOCK_BARE(ssize_t, recv, recv, (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags),
	   BARE(SYS_recvfrom, fd, buf, n, flags, 0, 0), fd)
BLOCK(ssize_t, __recv_chk, recv, (int fd, void *buf, size_t n, size_t room, int flags), (fd, buf, n, room, flags), fd)
BLOCK_BARE(ssize_t, recvfrom, recvfrom, (int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *len),
	   (fd, buf, n, flags, from, len), BARE(SYS_recvfrom, fd, buf, n, flags, from, len), fd)
BLOCK(ssize_t, __recvfrom_chk, recvfrom,
      (int fd, void *buf, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *len),
      (fd, buf, n, room, flags, from, len), fd)
BLOCK(int, recvmmsg, recvmmsg, (int fd, struct mmsghdr *msgs, unsigned n, int flags, struct timespec *time),
      (fd, msgs, n, flags, time), fd)
BLOCK(int, sendmmsg, sendmmsg, (int fd, struct mmsghdr *msgs, unsigned n, int flags), (fd, msgs, n, flags), fd)
BLOCK_BARE(ssize_t, recvmsg, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags),
	   BARE(SYS_recvmsg, fd, msg, flags, 0, 0, 0), fd)
BLOCK_BARE(ssize_t, send, send, (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags),
	   BARE(SYS_sendto, fd, buf, n, flags, 0, 0), fd)
BLOCK_BARE(ssize_t, sendto, sendto,
	   (int fd, const void *buf, size_t n, int flags, const struct sockaddr *to, socklen_t len),
	   (fd, buf, n, flags, to, len), BARE(SYS_sendto, fd, buf, n, flags, to, len), fd)
BLOCK_BARE(ssize_t, sendmsg, sendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags),
	   BARE(SYS_sendmsg, fd, msg, flags, 0, 0, 0), fd)
BLOCK(ssize_t, sendfile, sendfile, (int to, int from, off_t *at, size_t n), (to, from, at, n), to)
BLOCK(ssize_t, sendfile64, sendfile, (int to, int from, off64_t *at, size_t n), (to, from, at, n), to)
BLOCK(ssize_t, splice, splice, (int from, off64_t *at, int to, off64_t *to_at, size_t n, unsigned flags),
      (from, at, to, to_at, n, flags), from)
BLOCK(ssize_t, copy_file_range, copy_file_range,
      (int from, off64_t *at, int to, off64_t *to_at, size_t n, unsigned flags), (from, at, to, to_at, n, flags), to)
BLOCK_BARE(int, accept, accept, (int fd, struct sockaddr *from, socklen_t *len), (fd, from, len),
	   BARE(SYS_accept, fd, from, len, 0, 0, 0), fd)
BLOCK_BARE(int, accept4, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags), (fd, from, len, flags),
	   BARE(SYS_accept4, fd, from, len, flags, 0, 0), fd)
/* The peer of a connect that failed is known only from here. */
static inline int noted(int fd, const struct sockaddr *to, socklen_t len)
{
	weft__preload_thread.to = to;
	weft__preload_thread.to_bytes = len;
	return fd;
}

BLOCK_BARE(int, connect, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len),
	   BARE(SYS_connect, fd, to, len, 0, 0, 0), noted(fd, to, len))
BLOCK(int, fsync, fsync, (int fd), (fd), fd)
BLOCK(int, fdatasync, fdatasync, (int fd), (fd), fd)
BLOCK(int, syncfs, syncfs, (int fd), (fd), fd)
BLOCK(int, msync, msync, (void *at, size_t n, int flags), (at, n, flags), NO_FD)
BLOCK(int, fallocate, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), fd)
BLOCK(int, fallocate64, fallocate, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n), fd)
BLOCK(int, posix_fallocate, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n), fd)
BLOCK(int, posix_fallocate64, posix_fallocate, (int fd, off64_t at, off64_t n), (fd, at, n), fd)
BLOCK(int, ftruncate, ftruncate, (int fd, off_t n), (fd, n), fd)
BLOCK(int, ftruncate64, ftruncate, (int fd, off64_t n), (fd, n), fd)
BLOCK(int, flock, flock, (int fd, int how), (fd, how), fd)
BLOCK(int, lockf, lockf, (int fd, int how, off_t n), (fd, how, n), fd)
BLOCK(int, lockf64, lockf, (int fd, int how, off64_t n), (fd, how, n), fd)
BLOCK(int, nanosleep, nanosleep, (const struct timespec *time, struct timespec *left), (time, left), NO_FD)
BLOCK(int, clock_nanosleep, clock_nanosleep,
      (clockid_t clock, int flags, const struct timespec *time, struct timespec *left), (clock, flags, time, left),
      NO_FD)
BLOCK(int, usleep, usleep, (useconds_t us), (us), NO_FD)
BLOCK(unsigned, sleep, sleep, (unsigned seconds), (seconds), NO_FD)
BLOCK(int, pause, pause, (void), (), NO_FD)
BLOCK(int, sigsuspend, sigsuspend, (const sigset_t *mask), (mask), NO_FD)
BLOCK(int, sigwait, sigwait, (const sigset_t *set, int *sig), (set, sig), NO_FD)
BLOCK(int, sigwaitinfo, sigwaitinfo, (const sigset_t *set, siginfo_t *info), (set, info), NO_FD)
BLOCK(int, sigtimedwait, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *time),
      (set, info, time), NO_FD)
BLOCK(int, semop, semop, (int id, struct sembuf *ops, size_t n), (id, ops, n), NO_FD)
BLOCK(int, semtimedop, semtimedop, (int id, struct sembuf *ops, size_t n, const struct timespec *time),
      (id, ops, n, time), NO_FD)
BLOCK(int, msgsnd, msgsnd, (int id, const void *msg, size_t n, int flags), (id, msg, n, flags), NO_FD)
BLOCK(ssize_t, msgrcv, msgrcv, (int id, void *msg, size_t n, long type, int flags), (id, msg, n, type, flags), NO_FD)
BLOCK(int, system, system, (const char *command), (command), NO_FD)
BLOCK(int, pclose, pclose, (FILE * pipe), (pipe), NO_FD)
BLOCK(pid_t, waitpid, waitpid, (pid_t pid, int *status, int how), (pid, status, how), NO_FD)
BLOCK(pid_t, wait, wait, (int *status), (status), NO_FD)
BLOCK(int, waitid, waitid, (idtype_t type, id_t id, siginfo_t *info, int how), (type, id, info, how), NO_FD)
BLOCK(pid_t, wait3, wait3, (int *status, int how, struct rusage *used), (status, how, used), NO_FD)
BLOCK(pid_t, wait4, wait4, (pid_t pid, int *status, int how, struct rusage *used), (pid, status, how, used), NO_FD)
BLOCK(int, getaddrinfo, getaddrinfo,
      (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found),
      (node, service, hints, found), NO_FD)

PRELOAD_API void sync(void)
{
	static void *real PRELOAD_NEAR;
	void (*call)(void) = PRELOAD_REAL(real, "sync");
	uint64_t since = preload_before();

	call();
	preload_after(PRELOAD_NAME_sync, (uint64_t)NO_FD, since);
}

/* The mode is there for some flags only; what is passed on when it is not is not looked at. */
#define OPEN(name, shown, args, pass, object)                                                                          \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) args = PRELOAD_REAL(real, #name);                                                           \
		uint64_t since = preload_before();                                                                     \
		mode_t mode;                                                                                           \
		va_list more;                                                                                          \
		int r;                                                                                                 \
                                                                                                                       \
		va_start(more, flags);                                                                                 \
		mode = va_arg(more, mode_t);                                                                           \
		va_end(more);                                                                                          \
		r = call pass;                                                                                         \
		preload_after(PRELOAD_NAME_##shown, (uint64_t)(object), since);                                        \
		return r;                                                                                              \
	}

OPEN(open, open, (const char *path, int flags, ...), (path, flags, mode), NO_FD)
OPEN(open64, open, (const char *path, int flags, ...), (path, flags, mode), NO_FD)
OPEN(openat, openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode), NO_FD)
OPEN(openat64, openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode), NO_FD)
BLOCK(int, __open_2, open, (const char *path, int flags), (path, flags), NO_FD)
BLOCK(int, __open64_2, open, (const char *path, int flags), (path, flags), NO_FD)
BLOCK(int, __openat_2, openat, (int dir, const char *path, int flags), (dir, path, flags), NO_FD)
BLOCK(int, __openat64_2, openat, (int dir, const char *path, int flags), (dir, path, flags), NO_FD)

/* What a program asks to find out what is open: files of the recorder's are not, to it. */
static bool preload_looks(int what)
{
	return what == F_GETFD || what == F_SETFD || what == F_GETFL || what == F_SETFL;
}

/* Of all that this does, waiting for a lock on a part of a file is what blocks. */
#define FCNTL(name)                                                                                                    \
	PRELOAD_API int name(int fd, int what, ...);                                                                   \
	PRELOAD_API int name(int fd, int what, ...)                                                                    \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int (*call)(int, int, ...) = PRELOAD_REAL(real, #name);                                                \
		uint64_t since = what == F_SETLKW || what == F_OFD_SETLKW ? preload_before() : 0;                      \
		va_list more;                                                                                          \
		void *with;                                                                                            \
		int r;                                                                                                 \
                                                                                                                       \
		va_start(more, what);                                                                                  \
		with = va_arg(more, void *);                                                                           \
		va_end(more);                                                                                          \
		if (preload_looks(what) && weft__preload_own(fd)) {                                                    \
			errno = EBADF;                                                                                 \
			return -1;                                                                                     \
		}                                                                                                      \
		r = call(fd, what, with);                                                                              \
		preload_after(PRELOAD_NAME_fcntl, (uint64_t)fd, since);                                                \
		return r;                                                                                              \
	}

FCNTL(fcntl)
FCNTL(fcntl64)
