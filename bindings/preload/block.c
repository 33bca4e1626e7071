/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that an event loop should not wait in. They are measured inside its ticks, which costs two readings of the
 * clock; each is a wait (weft/wait.h): with its stack when it was long, else part of a sum. */
#include <netdb.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

uint32_t weft__preload_names[PRELOAD_NAMES_N];
uint32_t weft__preload_alone;
static uint32_t has_threads; /* the program has made some */

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

/* ARGS are the parameters, PASS their names, OBJECT the fd that it waits for. Outside of a tick the real one is
 * jumped to: one more return behind a system call, which leaves the CPU with the wrong idea of where returns go,
 * would be most of what this costs. */
#define BLOCK(type, name, shown, args, pass, object)                                                                   \
	PRELOAD_API type name args;                                                                                    \
	PRELOAD_API type name args                                                                                     \
	{                                                                                                              \
		static void *real;                                                                                     \
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
		static void *real;                                                                                     \
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
BLOCK_BARE(ssize_t, write, write, (int fd, const void *buf, size_t n), (fd, buf, n),
	   BARE(SYS_write, fd, buf, n, 0, 0, 0), fd)
BLOCK_BARE(ssize_t, writev, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n),
	   BARE(SYS_writev, fd, parts, n, 0, 0, 0), fd)
BLOCK_BARE(ssize_t, pwrite, pwrite, (int fd, const void *buf, size_t n, off_t at), (fd, buf, n, at),
	   BARE(SYS_pwrite64, fd, buf, n, at, 0, 0), fd)
BLOCK_BARE(ssize_t, pwrite64, pwrite, (int fd, const void *buf, size_t n, off64_t at), (fd, buf, n, at),
	   BARE(SYS_pwrite64, fd, buf, n, at, 0, 0), fd)
BLOCK_BARE(ssize_t, recv, recv, (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags),
	   BARE(SYS_recvfrom, fd, buf, n, flags, 0, 0), fd)
BLOCK(ssize_t, __recv_chk, recv, (int fd, void *buf, size_t n, size_t room, int flags), (fd, buf, n, room, flags), fd)
BLOCK_BARE(ssize_t, recvfrom, recvfrom, (int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *len),
	   (fd, buf, n, flags, from, len), BARE(SYS_recvfrom, fd, buf, n, flags, from, len), fd)
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
BLOCK_BARE(int, accept, accept, (int fd, struct sockaddr *from, socklen_t *len), (fd, from, len),
	   BARE(SYS_accept, fd, from, len, 0, 0, 0), fd)
BLOCK_BARE(int, accept4, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags), (fd, from, len, flags),
	   BARE(SYS_accept4, fd, from, len, flags, 0, 0), fd)
BLOCK_BARE(int, connect, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len),
	   BARE(SYS_connect, fd, to, len, 0, 0, 0), fd)
BLOCK(int, fsync, fsync, (int fd), (fd), fd)
BLOCK(int, fdatasync, fdatasync, (int fd), (fd), fd)
BLOCK(int, flock, flock, (int fd, int how), (fd, how), fd)
BLOCK(int, nanosleep, nanosleep, (const struct timespec *time, struct timespec *left), (time, left), NO_FD)
BLOCK(int, clock_nanosleep, clock_nanosleep,
      (clockid_t clock, int flags, const struct timespec *time, struct timespec *left), (clock, flags, time, left),
      NO_FD)
BLOCK(int, usleep, usleep, (useconds_t us), (us), NO_FD)
BLOCK(unsigned, sleep, sleep, (unsigned seconds), (seconds), NO_FD)
BLOCK(pid_t, waitpid, waitpid, (pid_t pid, int *status, int how), (pid, status, how), NO_FD)
BLOCK(pid_t, wait, wait, (int *status), (status), NO_FD)
BLOCK(int, waitid, waitid, (idtype_t type, id_t id, siginfo_t *info, int how), (type, id, info, how), NO_FD)
BLOCK(pid_t, wait4, wait4, (pid_t pid, int *status, int how, struct rusage *used), (pid, status, how, used), NO_FD)
BLOCK(int, getaddrinfo, getaddrinfo,
      (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found),
      (node, service, hints, found), NO_FD)

/* Whether the program has one thread. Nobody can cancel that but itself, and then it is over. */
static void not_alone(void)
{
	__atomic_store_n(&has_threads, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&weft__preload_alone, 0, __ATOMIC_RELAXED);
}

PRELOAD_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data)
{
	static void *real;
	int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		PRELOAD_REAL(real, "pthread_create");

	not_alone();
	return call(thread, attr, start, data);
}

PRELOAD_API int thrd_create(thrd_t *thread, thrd_start_t start, void *data)
{
	static void *real;
	int (*call)(thrd_t *, thrd_start_t, void *) = PRELOAD_REAL(real, "thrd_create");

	not_alone();
	return call(thread, start, data);
}

PRELOAD_API int pthread_cancel(pthread_t thread)
{
	static void *real;
	int (*call)(pthread_t) = PRELOAD_REAL(real, "pthread_cancel");

	not_alone();
	return call(thread);
}

/* weft's own threads do not count. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data)
{
	static void *real;
	int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		PRELOAD_REAL(real, "pthread_create");

	return call(thread, attr, start, data);
}

/* A library between this one and the C library may have functions of its own that are not to be passed by. */
void weft__preload_alone_init(void)
{
	static const char *const bare[] = {"read",    "readv",   "pread",      "pread64",     "write",
					   "writev",  "pwrite",  "pwrite64",   "recv",        "recvfrom",
					   "recvmsg", "send",    "sendto",     "sendmsg",     "accept",
					   "accept4", "connect", "epoll_wait", "epoll_pwait", "poll"};
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	bool all = libc != NULL;
	size_t i;

	for (i = 0; all && i < sizeof(bare) / sizeof(bare[0]); i++)
		all = dlsym(RTLD_NEXT, bare[i]) == dlsym(libc, bare[i]);
	if (libc)
		dlclose(libc);
	if (all && !__atomic_load_n(&has_threads, __ATOMIC_RELAXED))
		__atomic_store_n(&weft__preload_alone, 1, __ATOMIC_RELAXED);
}
