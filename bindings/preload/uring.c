/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that wait for an io_uring: by the functions of liburing, which makes its system calls itself, or by
 * syscall(). A program that has liburing inside it, or makes the call itself, is not seen. liburing's
 * io_uring_wait_cqe is inline and calls nothing when something is ready: to a loop that is then still the same tick. */
#include <linux/io_uring.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload.h"

/* Where the struct io_uring of liburing has its descriptor, since its first version. */
#define RING_FD 196

struct io_uring;
struct kernel_time {
	int64_t sec;
	long long nsec;
};

static int ring_fd(const struct io_uring *ring)
{
	int fd;

	memcpy(&fd, (const char *)ring + RING_FD, sizeof(fd));
	return fd;
}

static uint64_t ring_id(const struct io_uring *ring)
{
	int fd = ring_fd(ring);

	return fd >= 0 ? (uint64_t)fd : (uint64_t)(uintptr_t)ring;
}

static bool is_loop(uint64_t id)
{
	const struct preload_loops *loops = &weft__preload_thread.loops;

	return loops->now.family == PRELOAD_URING && loops->now.id == id;
}

/* The library may be one that only a part of the program has loaded. NULL: not there, as for a program that only
 * asks for the name. */
static void *find(void **at, const char *name)
{
	static const char *const files[] = {"liburing.so.2", "liburing.so.1"};
	void *found = __atomic_load_n(at, __ATOMIC_RELAXED), *library;
	int saved = errno;

	if (WEFT_LIKELY(found != NULL))
		return found;
	found = dlsym(RTLD_NEXT, name);
	for (int i = 0; !found && i < 2; i++) {
		library = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
		if (library) {
			found = dlsym(library, name);
			dlclose(library);
		}
	}
	__atomic_store_n(at, found, __ATOMIC_RELAXED);
	errno = saved;
	return found;
}

struct ring_wait {
	uint64_t since;
	uint32_t number;
};

#define CALLED_WITHIN 4096 /* bytes of stack */
#define SKIPS_MOST 3

/* Of functions of the library that call each other the outermost is the wait. One that was left by longjmp is
 * forgotten soon. */
static bool is_inside(struct preload_thread *t, uintptr_t frame)
{
	bool inside = t->ring_frame > frame && t->ring_frame - frame < CALLED_WITHIN && t->ring_skips < SKIPS_MOST;

	t->ring_skips = inside ? t->ring_skips + 1 : 0;
	return inside;
}

static struct ring_wait before(uint64_t id, int fd, bool parks, uintptr_t site, uintptr_t frame)
{
	struct ring_wait w = {0};

	if (is_inside(&weft__preload_thread, frame))
		return w;
	weft__preload_thread.ring_frame = frame;
	if (is_loop(id)) {
		w.number = weft__preload_wait_begin(parks);
	} else {
		struct preload_wait wait = {.family = PRELOAD_URING,
					    .fd = fd,
					    .id = id,
					    .parks = parks,
					    .site = site,
					    .frame = frame,
					    .tick = w.since = preload_before_wait(PRELOAD_URING, parks)};

		w.number = weft__preload_wait_judge(&wait);
	}
	return w;
}

#define AFTER(w, name, fd, parks)                                                                                      \
	do {                                                                                                           \
		if ((w).number || (w).since)                                                                           \
			weft__preload_thread.ring_frame = 0;                                                           \
		if ((w).number)                                                                                        \
			weft__preload_wait_end((w).number, parks);                                                     \
		else                                                                                                   \
			preload_after(PRELOAD_NAME_##name, (uint64_t)(fd), (w).since);                                 \
	} while (0)

/* WAITS: whether it waits at all, and does not only hand in what is to be done. */
#define URING(name, shown, args, pass, waits, parks_if)                                                                \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) args = find(&real, #name);                                                                  \
		struct ring_wait w;                                                                                    \
		bool parks;                                                                                            \
		int r;                                                                                                 \
                                                                                                                       \
		if (!call)                                                                                             \
			return -ENOSYS;                                                                                \
		if (!(waits))                                                                                          \
			return call pass;                                                                              \
		parks = (parks_if);                                                                                    \
		w = before(ring_id(ring), ring_fd(ring), parks, (uintptr_t)__builtin_return_address(0),                \
			   (uintptr_t)__builtin_frame_address(0));                                                     \
		r = call pass;                                                                                         \
		AFTER(w, shown, ring_fd(ring), parks);                                                                 \
		return r;                                                                                              \
	}

#define SOME_TIME(t) (!(t) || (t)->sec || (t)->nsec)

URING(__io_uring_get_cqe, io_uring_wait_cqe,
      (struct io_uring * ring, void **cqe, unsigned submit, unsigned n, sigset_t *mask), (ring, cqe, submit, n, mask),
      n > 0, true)
URING(io_uring_wait_cqes, io_uring_wait_cqes,
      (struct io_uring * ring, void **cqe, unsigned n, struct kernel_time *time, sigset_t *mask),
      (ring, cqe, n, time, mask), true, SOME_TIME(time))
URING(io_uring_wait_cqes_min_timeout, io_uring_wait_cqes,
      (struct io_uring * ring, void **cqe, unsigned n, struct kernel_time *time, unsigned least, sigset_t *mask),
      (ring, cqe, n, time, least, mask), true, SOME_TIME(time))
URING(io_uring_wait_cqe_timeout, io_uring_wait_cqe_timeout,
      (struct io_uring * ring, void **cqe, struct kernel_time *time), (ring, cqe, time), true, SOME_TIME(time))
URING(io_uring_submit_and_wait, io_uring_submit_and_wait, (struct io_uring * ring, unsigned n), (ring, n), n > 0, true)
URING(io_uring_submit_and_wait_timeout, io_uring_submit_and_wait_timeout,
      (struct io_uring * ring, void **cqe, unsigned n, struct kernel_time *time, sigset_t *mask),
      (ring, cqe, n, time, mask), n > 0, SOME_TIME(time))
URING(io_uring_submit_and_wait_min_timeout, io_uring_submit_and_wait_timeout,
      (struct io_uring * ring, void **cqe, unsigned n, struct kernel_time *time, unsigned least, sigset_t *mask),
      (ring, cqe, n, time, least, mask), n > 0, SOME_TIME(time))

static bool enter_waits(unsigned least, unsigned flags)
{
	return least > 0 && (flags & IORING_ENTER_GETEVENTS);
}

/* A ring that is registered has a number that is no descriptor. */
#ifndef IORING_ENTER_REGISTERED_RING
#define IORING_ENTER_REGISTERED_RING (1U << 4)
#endif
static uint64_t enter_id(unsigned fd, unsigned flags)
{
	return flags & IORING_ENTER_REGISTERED_RING ? UINT64_C(1) << 32 | fd : fd;
}

static int enter_fd(unsigned fd, unsigned flags)
{
	return flags & IORING_ENTER_REGISTERED_RING ? NO_FD : (int)fd;
}

#define ENTER(name, args, pass)                                                                                        \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) args = find(&real, #name);                                                                  \
		struct ring_wait w;                                                                                    \
		int r;                                                                                                 \
                                                                                                                       \
		if (!call)                                                                                             \
			return -ENOSYS;                                                                                \
		if (!enter_waits(least, flags))                                                                        \
			return call pass;                                                                              \
		w = before(enter_id(fd, flags), enter_fd(fd, flags), true, (uintptr_t)__builtin_return_address(0),     \
			   (uintptr_t)__builtin_frame_address(0));                                                     \
		r = call pass;                                                                                         \
		AFTER(w, io_uring_enter, enter_fd(fd, flags), true);                                                   \
		return r;                                                                                              \
	}

ENTER(io_uring_enter, (unsigned fd, unsigned submit, unsigned least, unsigned flags, sigset_t *mask),
      (fd, submit, least, flags, mask))
ENTER(io_uring_enter2, (unsigned fd, unsigned submit, unsigned least, unsigned flags, void *arg, size_t bytes),
      (fd, submit, least, flags, arg, bytes))

long weft__preload_uring_enter(preload_syscall_fn *call, uintptr_t site, long fd, long submit, long least, long flags,
			       long arg, long bytes)
{
	struct ring_wait w;
	long r;

	if (!enter_waits((unsigned)least, (unsigned)flags))
		return call(SYS_io_uring_enter, fd, submit, least, flags, arg, bytes);
	w = before(enter_id((unsigned)fd, (unsigned)flags), enter_fd((unsigned)fd, (unsigned)flags), true, site,
		   (uintptr_t)__builtin_frame_address(0));
	r = call(SYS_io_uring_enter, fd, submit, least, flags, arg, bytes);
	AFTER(w, io_uring_enter, enter_fd((unsigned)fd, (unsigned)flags), true);
	return r;
}

PRELOAD_API void io_uring_queue_exit(struct io_uring *ring);
PRELOAD_API void io_uring_queue_exit(struct io_uring *ring)
{
	static void *real PRELOAD_NEAR;
	void (*call)(struct io_uring *) = find(&real, "io_uring_queue_exit");

	if (is_loop(ring_id(ring)))
		weft__preload_loop_over();
	if (call)
		call(ring);
}
