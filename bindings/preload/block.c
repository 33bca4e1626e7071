/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that an event loop should not wait in. A short one costs two readings of the clock, and that only inside a tick; a long
 * one is an event `blocked`. */
#include <netdb.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

#define MEASURE_NS 10000000 /* readings of the clocks that lie this far apart tell ns from ticks */

uint64_t weft__preload_threshold;

static struct {
	uint64_t tick, ns, threshold_ns;
} clock_first;

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* What `call` of the event may be. */
static const char *const calls[] = {
	"epoll_wait",
	"epoll_pwait",
	"epoll_pwait2",
	"poll",
	"ppoll",
	"select",
	"pselect",
	"read",
	"pread",
	"write",
	"pwrite",
	"recv",
	"recvfrom",
	"recvmsg",
	"send",
	"sendmsg",
	"accept",
	"accept4",
	"connect",
	"fsync",
	"fdatasync",
	"flock",
	"nanosleep",
	"clock_nanosleep",
	"usleep",
	"sleep",
	"waitpid",
	"getaddrinfo",
	"pthread_mutex_lock",
};
#define N_CALLS (sizeof(calls) / sizeof(calls[0]))
static uint32_t call_ids[N_CALLS];
static int blocked_kind;

void weft__preload_block_init(uint64_t threshold_ns)
{
	static const struct weft_field fields[] = {
		{"call", WEFT_TYPE_STRING, NULL},
		{"object", WEFT_TYPE_U64, NULL},
		{"duration", WEFT_TYPE_U64, "ns"},
	};
	size_t i;

	clock_first.tick = weft_now();
	clock_first.ns = clock_ns();
	clock_first.threshold_ns = threshold_ns;
	for (i = 0; i < N_CALLS; i++)
		call_ids[i] = weft_string(calls[i]);
	blocked_kind = weft_event_define("blocked", fields, 3);
}

static uint32_t call_id(const char *call)
{
	size_t i;

	for (i = 0; i < N_CALLS; i++)
		if (strcmp(calls[i], call) == 0)
			return call_ids[i];
	return 0;
}

/* The longer the program runs, the better the ratio of the clocks is known; a TSC that weft uses does not change its rate. */
static uint64_t ticks_to_ns(uint64_t ticks)
{
	uint64_t run_ticks = weft_now() - clock_first.tick, run_ns = clock_ns() - clock_first.ns;
	double ns_per_tick = run_ticks ? (double)run_ns / (double)run_ticks : 0;

	if (run_ns >= MEASURE_NS && ns_per_tick > 0)
		__atomic_store_n(&weft__preload_threshold, (uint64_t)((double)clock_first.threshold_ns / ns_per_tick),
				 __ATOMIC_RELAXED);
	return (uint64_t)((double)ticks * ns_per_tick);
}

void weft__preload_blocked(const char *call, uint64_t object, uint64_t since)
{
	uint64_t fields[3], now = weft_now();
	int saved = errno;

	if (!now || now < since)
		return;
	fields[2] = ticks_to_ns(now - since);
	if (fields[2] >= clock_first.threshold_ns) {
		fields[0] = call_id(call);
		fields[1] = object;
		weft_event(blocked_kind, fields, 3);
	}
	errno = saved;
}

/* ARGS are the parameters, PASS their names, OBJECT the fd or address that it waits for. */
#define BLOCK(type, name, shown, args, pass, object)                                                                   \
	PRELOAD_API type name args;                                                                                    \
	PRELOAD_API type name args                                                                                     \
	{                                                                                                              \
		static void *real;                                                                                     \
		type(*call) args = PRELOAD_REAL(real, #name);                                                          \
		uint64_t since = preload_before();                                                                     \
		type r = call pass;                                                                                    \
                                                                                                                       \
		preload_after(shown, (uint64_t)(object), since);                                                       \
		return r;                                                                                              \
	}

BLOCK(ssize_t, read, "read", (int fd, void *buf, size_t n), (fd, buf, n), fd)
BLOCK(ssize_t, __read_chk, "read", (int fd, void *buf, size_t n, size_t room), (fd, buf, n, room), fd)
BLOCK(ssize_t, pread, "pread", (int fd, void *buf, size_t n, off_t at), (fd, buf, n, at), fd)
BLOCK(ssize_t, pread64, "pread", (int fd, void *buf, size_t n, off64_t at), (fd, buf, n, at), fd)
BLOCK(ssize_t, write, "write", (int fd, const void *buf, size_t n), (fd, buf, n), fd)
BLOCK(ssize_t, pwrite, "pwrite", (int fd, const void *buf, size_t n, off_t at), (fd, buf, n, at), fd)
BLOCK(ssize_t, pwrite64, "pwrite", (int fd, const void *buf, size_t n, off64_t at), (fd, buf, n, at), fd)
BLOCK(ssize_t, recv, "recv", (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags), fd)
BLOCK(ssize_t, __recv_chk, "recv", (int fd, void *buf, size_t n, size_t room, int flags), (fd, buf, n, room, flags), fd)
BLOCK(ssize_t, recvfrom, "recvfrom", (int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *len),
      (fd, buf, n, flags, from, len), fd)
BLOCK(ssize_t, recvmsg, "recvmsg", (int fd, struct msghdr *msg, int flags), (fd, msg, flags), fd)
BLOCK(ssize_t, send, "send", (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags), fd)
BLOCK(ssize_t, sendmsg, "sendmsg", (int fd, const struct msghdr *msg, int flags), (fd, msg, flags), fd)
BLOCK(int, accept, "accept", (int fd, struct sockaddr *from, socklen_t *len), (fd, from, len), fd)
BLOCK(int, accept4, "accept4", (int fd, struct sockaddr *from, socklen_t *len, int flags), (fd, from, len, flags), fd)
BLOCK(int, connect, "connect", (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len), fd)
BLOCK(int, fsync, "fsync", (int fd), (fd), fd)
BLOCK(int, fdatasync, "fdatasync", (int fd), (fd), fd)
BLOCK(int, flock, "flock", (int fd, int how), (fd, how), fd)
BLOCK(int, nanosleep, "nanosleep", (const struct timespec *time, struct timespec *left), (time, left), 0)
BLOCK(int, clock_nanosleep, "clock_nanosleep",
      (clockid_t clock, int flags, const struct timespec *time, struct timespec *left), (clock, flags, time, left), 0)
BLOCK(int, usleep, "usleep", (useconds_t us), (us), 0)
BLOCK(unsigned, sleep, "sleep", (unsigned seconds), (seconds), 0)
BLOCK(pid_t, waitpid, "waitpid", (pid_t pid, int *status, int how), (pid, status, how), pid)
BLOCK(int, getaddrinfo, "getaddrinfo",
      (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found),
      (node, service, hints, found), 0)

/* A lock that is free is taken at the first try; only one that is not is measured. */
PRELOAD_API int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static void *real;
	int (*call)(pthread_mutex_t *) = PRELOAD_REAL(real, "pthread_mutex_lock");
	uint64_t since;
	int r;

	if (WEFT_LIKELY(!weft__preload_thread.ticking))
		return call(mutex);
	r = pthread_mutex_trylock(mutex);
	if (r != EBUSY)
		return r;
	since = preload_before();
	r = call(mutex);
	preload_after("pthread_mutex_lock", (uint64_t)(uintptr_t)mutex, since);
	return r;
}
