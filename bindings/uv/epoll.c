/* SPDX-License-Identifier: Apache-2.0 */
/* epoll_wait and epoll_pwait, as libuv calls them: the C library's, with the time before and after. The dynamic linker
 * finds these first because every program has libc behind the libraries that it is linked to. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loop.h"

typedef int wait_fn(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask);

static wait_fn *next_pwait;
static int (*next_wait)(int fd, struct epoll_event *events, int n, int timeout);
static __thread bool trying, tried;

__attribute__((constructor)) static void find_next(void)
{
	next_pwait = (wait_fn *)(uintptr_t)dlsym(RTLD_NEXT, "epoll_pwait");
	next_wait = (int (*)(int, struct epoll_event *, int, int))(uintptr_t)dlsym(RTLD_NEXT, "epoll_wait");
}

static int wait_plain(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
	if (!mask && next_wait)
		return next_wait(fd, events, n, timeout);
	if (next_pwait)
		return next_pwait(fd, events, n, timeout, mask);
	return (int)syscall(SYS_epoll_pwait, fd, events, n, timeout, mask, 8); /* before the constructor */
}

static int wait_noted(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
	int rc, saved;

	if (trying)
		tried = true;
	if (!weft__uv_wait_begin(fd, timeout))
		return wait_plain(fd, events, n, timeout, mask);
	rc = wait_plain(fd, events, n, timeout, mask);
	saved = errno;
	weft__uv_wait_end(timeout);
	errno = saved;
	return rc;
}

WEFT_API int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
	return wait_noted(fd, events, n, timeout, mask);
}

WEFT_API int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	return wait_noted(fd, events, n, timeout, NULL);
}

static bool seen;

static void stop_idle(uv_idle_t *idle)
{
	uv_close((uv_handle_t *)idle, NULL);
}

/* A loop of its own that turns once: does libuv come here? */
static void try_once(void)
{
	uv_loop_t loop;
	uv_idle_t idle;

	if (uv_loop_init(&loop) < 0)
		return;
	uv_idle_init(&loop, &idle);
	uv_idle_start(&idle, stop_idle);
	trying = true;
	uv_run(&loop, UV_RUN_DEFAULT);
	trying = false;
	uv_loop_close(&loop);
	seen = tried;
}

bool weft__uv_epoll_seen(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, try_once);
	return seen;
}
