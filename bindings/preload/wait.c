/* SPDX-License-Identifier: Apache-2.0 */
/* What event loops wait in. From the return of one wait to the beginning of the next is a tick, recorded as a poll of a task that
 * stands for the thread's loop. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

#define WORKERS_MAX 1024

__thread struct preload_thread weft__preload_thread __attribute__((tls_model("initial-exec")));

static int runtime = -1;
static pthread_key_t ending;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t taken[WORKERS_MAX];

static void thread_ends(void *data)
{
	struct preload_thread *t = data;

	if (t->ticking)
		weft_poll_end();
	t->ticking = 0;
	t->family = PRELOAD_NONE;
	weft_task_end(t->task);
	weft_worker_leave();
	__atomic_store_n(&taken[t->index - 1], 0, __ATOMIC_RELEASE);
}

static void prepare(void)
{
	struct weft_runtime_opts opts = {.size = sizeof(opts), .name = "loop"};

	if (pthread_key_create(&ending, thread_ends) == 0)
		runtime = weft_runtime_add(&opts);
}

/* The lowest number that is free, so that threads that come and go do not use them up. */
static uint32_t take_index(void)
{
	uint32_t i, was;

	for (i = 0; i < WORKERS_MAX; i++) {
		was = 0;
		if (__atomic_compare_exchange_n(&taken[i], &was, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return i + 1;
	}
	return 0;
}

static bool become_loop(struct preload_thread *t)
{
	pthread_once(&once, prepare);
	if (runtime < 0)
		return false;
	if (!t->index)
		t->index = take_index();
	if (!t->index)
		return false;
	t->task = t->index;
	pthread_setspecific(ending, t);
	return weft_worker_enter(runtime, t->index - 1) >= 0;
}

static void announce(struct preload_thread *t)
{
	static const char *const names[] = {"loop", "select loop", "poll loop", "epoll_wait loop"};

	weft_task_spawn(t->task, weft_location(names[t->family], NULL, 0));
	t->epoch = weft__preload_epoch;
}

/* Waits that make a loop: a program may poll once and have none, but who has an epoll waits for more than one thing. */
static const uint32_t loop_calls[] = {[PRELOAD_SELECT] = 2, [PRELOAD_POLL] = 2, [PRELOAD_EPOLL] = 1};

static bool find_out(struct preload_thread *t, enum preload_family family)
{
	if (t->family < family) {
		if (++t->calls[family] < loop_calls[family] || !become_loop(t))
			return false;
		t->family = family;
	}
	announce(t);
	return true;
}

/* Whether this wait is the loop's. The higher family wins: who has epoll waits for one thing with poll. */
static bool is_loop(struct preload_thread *t, enum preload_family family)
{
	bool found;

	if (WEFT_LIKELY(t->family == family && t->epoch == weft__preload_epoch))
		return true;
	if (t->family > family || t->quiet || !weft_recording())
		return false;
	/* Locks are taken from here on, and a signal handler may wait or block, too. */
	t->quiet = 1;
	found = find_out(t, family);
	t->quiet = 0;
	return found;
}

void weft__preload_wait_begin(enum preload_family family, bool parks)
{
	struct preload_thread *t = &weft__preload_thread;
	int saved = errno;
	uint64_t now;

	if (t->family != family)
		return;
	now = weft_now();
	if (t->ticking && now)
		weft_poll_end_at(now);
	t->ticking = 0;
	if (parks && now)
		weft_park_at(WEFT_DEPTH_UNKNOWN, now);
	errno = saved;
}

bool weft__preload_wait_end(enum preload_family family, bool parks)
{
	struct preload_thread *t = &weft__preload_thread;
	bool was = t->family == family;
	int saved = errno;
	uint64_t now;

	if (!__atomic_load_n(&weft__preload_on, __ATOMIC_ACQUIRE))
		return false;
	now = is_loop(t, family) ? weft_now() : 0;
	if (now) {
		if (t->ticking) /* of a loop of another kind, or of a handler that waited in here */
			weft_poll_end_at(now);
		if (parks && was)
			weft_unpark_at(WEFT_DEPTH_UNKNOWN, now);
		weft_poll_begin_at(t->task, WEFT_DEPTH_UNKNOWN, now);
		t->ticking = 1;
	}
	errno = saved;
	return now;
}

/* ARGS are the parameters, MADE is the call with them; PARKS says whether the time-out lets it wait. Of a thread that
 * has no loop of this kind it is a call that blocks. */
#define WAIT(kind, name, shown, args, made, object, parks)                                                             \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real;                                                                                     \
		int(*call) args = PRELOAD_REAL(real, #name);                                                           \
		uint64_t since = 0;                                                                                    \
		bool waits = (parks);                                                                                  \
		int r;                                                                                                 \
                                                                                                                       \
		if (weft__preload_thread.family == (kind))                                                             \
			weft__preload_wait_begin((kind), waits);                                                       \
		else                                                                                                   \
			since = preload_before();                                                                      \
		r = (int)(made);                                                                                       \
		if (weft__preload_thread.family > (kind) || !weft__preload_wait_end((kind), waits))                    \
			preload_after(PRELOAD_NAME_##shown, (uint64_t)(object), since);                                \
		return r;                                                                                              \
	}

#if PRELOAD_BARE
#define BARE_OR(bare, made) (preload_alone() ? (bare) : (made))
#else /* not every machine has these calls */
#define BARE_OR(bare, made) (made)
#endif
#define ZERO_SPEC(t) ((t) && (t)->tv_sec == 0 && (t)->tv_nsec == 0)
#define ZERO_VAL(t) ((t) && (t)->tv_sec == 0 && (t)->tv_usec == 0)
#define FIRST(fds, n) ((n) > 0 ? (fds)[0].fd : NO_FD)

WAIT(PRELOAD_EPOLL, epoll_wait, epoll_wait, (int ep, struct epoll_event *events, int most, int timeout),
     BARE_OR(BARE(SYS_epoll_wait, ep, events, most, timeout, 0, 0), call(ep, events, most, timeout)), ep, timeout != 0)
WAIT(PRELOAD_EPOLL, epoll_pwait, epoll_pwait,
     (int ep, struct epoll_event *events, int most, int timeout, const sigset_t *mask),
     BARE_OR(BARE(SYS_epoll_pwait, ep, events, most, timeout, mask, _NSIG / 8), call(ep, events, most, timeout, mask)),
     ep, timeout != 0)
WAIT(PRELOAD_EPOLL, epoll_pwait2, epoll_pwait2,
     (int ep, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask),
     call(ep, events, most, timeout, mask), ep, !ZERO_SPEC(timeout))
WAIT(PRELOAD_POLL, poll, poll, (struct pollfd * fds, nfds_t n, int timeout),
     BARE_OR(BARE(SYS_poll, fds, n, timeout, 0, 0, 0), call(fds, n, timeout)), FIRST(fds, n), timeout != 0)
WAIT(PRELOAD_POLL, ppoll, ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask),
     call(fds, n, timeout, mask), FIRST(fds, n), !ZERO_SPEC(timeout))
WAIT(PRELOAD_POLL, __poll_chk, poll, (struct pollfd * fds, nfds_t n, int timeout, size_t room),
     call(fds, n, timeout, room), FIRST(fds, n), timeout != 0)
WAIT(PRELOAD_POLL, __ppoll_chk, ppoll,
     (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t room),
     call(fds, n, timeout, mask, room), FIRST(fds, n), !ZERO_SPEC(timeout))
WAIT(PRELOAD_SELECT, select, select, (int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),
     call(n, in, out, except, timeout), NO_FD, !ZERO_VAL(timeout))
WAIT(PRELOAD_SELECT, pselect, pselect,
     (int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask),
     call(n, in, out, except, timeout, mask), NO_FD, !ZERO_SPEC(timeout))
