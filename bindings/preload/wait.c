/* SPDX-License-Identifier: Apache-2.0 */
/* What event loops wait in. From the return of a loop's wait to the beginning of its next is a tick, recorded as a
 * poll of a task that stands for the thread's loop. Which waits are the loop's is judged in loop.c. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

#define WORKERS_MAX 8192 /* as many as threads can be workers, of a process */

__thread struct preload_thread weft__preload_thread __attribute__((tls_model("initial-exec")));

static void on_exit_end(void);

static uint32_t runtime;
static pthread_key_t ending PRELOAD_NEAR;
static bool key_made PRELOAD_NEAR;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t taken[WORKERS_MAX / 64];

static void thread_ends(void *data)
{
	struct preload_thread *t = data;

	if (t->ticking)
		weft_poll_end();
	t->ticking = 0;
	t->loops = (struct preload_loops){0};
	weft_task_end(t->task);
	weft_worker_leave();
	__atomic_fetch_and(&taken[(t->index - 1) / 64], ~(1ull << (t->index - 1) % 64), __ATOMIC_RELEASE);
	t->task = t->index = 0;
}

/* Before the recorder makes its own: threads call what they end with in the order in which it was made, and the tick
 * must have ended before the thread's ring is given back. */
void weft__preload_wait_init(void)
{
	key_made = pthread_key_create(&ending, thread_ends) == 0;
}

static void prepare(void)
{
	struct weft_runtime_opts opts = {.size = sizeof(opts), .name = "loop"};

	if (key_made)
		runtime = weft_runtime_add(&opts, NULL);
	atexit(on_exit_end);
}

/* The lowest number that is free, so that threads that come and go do not use them up. */
static uint32_t take_index(void)
{
	for (uint32_t i = 0; i < WORKERS_MAX / 64; i++) {
		uint64_t was = __atomic_load_n(&taken[i], __ATOMIC_RELAXED);

		while (~was) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~was);

			if (__atomic_compare_exchange_n(&taken[i], &was, was | 1ull << bit, false, __ATOMIC_ACQUIRE,
							__ATOMIC_RELAXED))
				return i * 64 + bit + 1;
		}
	}
	return 0;
}

static bool become_loop(struct preload_thread *t)
{
	pthread_once(&once, prepare);
	if (!runtime)
		return false;
	if (!t->index)
		t->index = take_index();
	if (!t->index)
		return false;
	pthread_setspecific(ending, t);
	if (!weft_worker_enter(runtime, t->index - 1, NULL))
		return false;
	t->task = t->index;
	return true;
}

static void announce(struct preload_thread *t)
{
	static const char *const names[] = {"loop", "select loop", "poll loop", "epoll_wait loop", "io_uring loop"};

	weft_task_spawn(t->task, weft_location(names[t->loops.now.family], NULL, 0));
}

/* Locks are taken here, and a signal handler may wait or block, too. */
static void know_loop(struct preload_thread *t)
{
	bool known;

	weft__preload_late_now();
	t->quiet++;
	known = become_loop(t);
	weft__preload_loop_seen(known);
	if (known)
		announce(t);
	t->epoch = weft__preload_epoch;
	t->quiet--;
}

static void begin(struct preload_thread *t, bool parks, uint64_t now)
{
	if (t->ticking)
		weft_poll_end_at(now);
	t->ticking = 0;
	if (parks)
		weft_park_at(WEFT_DEPTH_UNKNOWN, now);
}

uint32_t weft__preload_wait_begin(bool parks)
{
	struct preload_thread *t = &weft__preload_thread;
	int saved = errno;
	uint64_t now = t->quiet ? 0 : weft_now_ticks();

	t->loops.now.waits++;
	t->loops.now.parks += parks;
	if (WEFT_UNLIKELY(t->epoch != weft__preload_epoch || t->child.pid > 0) && !t->quiet &&
	    (now || weft__preload_late || t->child.pid > 0)) {
		know_loop(t);
		now = weft_now_ticks();
	}
	if (now && t->task)
		begin(t, parks, now);
	errno = saved;
	return t->loops.number;
}

uint32_t weft__preload_wait_judge(const struct preload_wait *wait)
{
	struct preload_thread *t = &weft__preload_thread;
	enum preload_judged judged = PRELOAD_OTHER;
	int saved = errno;

	if (!__atomic_load_n(&weft__preload_on, __ATOMIC_ACQUIRE) || t->quiet || t->child.pid || !wait->tick)
		return 0;
	weft__preload_seen(wait);
	t->quiet++; /* a signal handler may wait, too */
	judged = weft__preload_judge(&t->loops, wait);
	t->quiet--;
	if (judged == PRELOAD_FIRST) {
		errno = saved;
		return PRELOAD_NO_TICK;
	}
	if (judged == PRELOAD_FOUND || (judged == PRELOAD_MINE && t->epoch != weft__preload_epoch))
		know_loop(t);
	if (judged != PRELOAD_OTHER && t->task)
		begin(t, wait->parks, wait->tick);
	errno = saved;
	return judged != PRELOAD_OTHER ? t->loops.number : 0;
}

void weft__preload_wait_end(uint32_t number, bool parks)
{
	struct preload_thread *t = &weft__preload_thread;
	int saved = errno;
	uint64_t now = t->quiet ? 0 : weft_now_ticks();

	if (now && t->task && t->loops.number == number) {
		if (t->ticking) /* a handler waited in here */
			weft_poll_end_at(now);
		if (parks)
			weft_unpark_at(WEFT_DEPTH_UNKNOWN, now);
		weft_poll_begin_at(t->task, WEFT_DEPTH_UNKNOWN, now);
		t->ticking = 1;
	}
	errno = saved;
}

static void end_tick(struct preload_thread *t)
{
	if (t->ticking)
		weft_poll_end();
	t->ticking = 0;
}

void weft__preload_loop_over(void)
{
	struct preload_thread *t = &weft__preload_thread;
	int saved = errno;

	end_tick(t);
	weft__preload_forget(&t->loops);
	errno = saved;
}

/* What is done on exit is not part of the tick that exit was called in. */
static void on_exit_end(void)
{
	end_tick(&weft__preload_thread);
}

/* ARGS are the parameters, MADE is the call with them; PARKS says whether the time-out lets it wait, PATIENT whether
 * it lets it wait for as long as a start may take, QUICK whether it is surely the wait of the thread's loop, JUDGED
 * is what else is known of it. A wait that is not the loop's is a call that blocks. */
#define WAIT(name, shown, args, made, object, parks_if, patient, quick, ...)                                           \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) args = PRELOAD_REAL(real, #name);                                                           \
		const struct preload_loops *loops = &weft__preload_thread.loops;                                       \
		uintptr_t site = (uintptr_t)__builtin_return_address(0);                                               \
		bool waits = (parks_if);                                                                               \
		uint64_t since = 0;                                                                                    \
		uint32_t number;                                                                                       \
		int r;                                                                                                 \
                                                                                                                       \
		if (quick) {                                                                                           \
			number = weft__preload_wait_begin(waits);                                                      \
		} else {                                                                                               \
			struct preload_wait wait = {.site = site,                                                      \
						    .frame = (uintptr_t)__builtin_frame_address(0),                    \
						    .parks = waits,                                                    \
						    __VA_ARGS__};                                                      \
                                                                                                                       \
			wait.tick = since = preload_before_wait(wait.family, patient);                                 \
			number = weft__preload_wait_judge(&wait);                                                      \
		}                                                                                                      \
		r = (int)(made);                                                                                       \
		if (number)                                                                                            \
			weft__preload_wait_end(number, waits);                                                         \
		else                                                                                                   \
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
#define PATIENT_NS 10000000
#define PATIENT_MS(t) ((t) < 0 || (t) >= PATIENT_NS / 1000000)
#define PATIENT_SPEC(t) (!(t) || (t)->tv_sec || (t)->tv_nsec >= PATIENT_NS)
#define PATIENT_VAL(t) (!(t) || (t)->tv_sec || (t)->tv_usec >= PATIENT_NS / 1000)
#define FIRST(fds, n) ((n) > 0 ? (fds)[0].fd : NO_FD)

#define EPOLL(name, args, made, parks)                                                                                 \
	WAIT(name, name, args, made, ep, parks, true, preload_epoll_is(loops, ep), .family = PRELOAD_EPOLL, .fd = ep,  \
	     .id = (uint64_t)(unsigned)ep)
#define POLL(name, shown, args, made, parks, patient)                                                                  \
	WAIT(name, shown, args, made, FIRST(fds, n), parks, patient, preload_poll_is(loops, fds, n, site),             \
	     .family = PRELOAD_POLL, .fd = NO_FD, .at = fds, .n = (uint32_t)n)
#define SELECT(name, args, made, parks, patient)                                                                       \
	WAIT(name, name, args, made, NO_FD, parks, patient, false && loops, .family = PRELOAD_SELECT, .fd = NO_FD,     \
	     .at = in ? in : out, .n = n > 0 ? (uint32_t)n : 0, .sets = {in, out, except})

EPOLL(epoll_wait, (int ep, struct epoll_event *events, int most, int timeout),
      BARE_OR(BARE(SYS_epoll_wait, ep, events, most, timeout, 0, 0), call(ep, events, most, timeout)), timeout != 0)
EPOLL(epoll_pwait, (int ep, struct epoll_event *events, int most, int timeout, const sigset_t *mask),
      BARE_OR(BARE(SYS_epoll_pwait, ep, events, most, timeout, mask, _NSIG / 8), call(ep, events, most, timeout, mask)),
      timeout != 0)
EPOLL(epoll_pwait2,
      (int ep, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask),
      call(ep, events, most, timeout, mask), !ZERO_SPEC(timeout))
POLL(poll, poll, (struct pollfd * fds, nfds_t n, int timeout),
     BARE_OR(BARE(SYS_poll, fds, n, timeout, 0, 0, 0), call(fds, n, timeout)), timeout != 0, PATIENT_MS(timeout))
POLL(ppoll, ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask),
     call(fds, n, timeout, mask), !ZERO_SPEC(timeout), PATIENT_SPEC(timeout))
POLL(__poll_chk, poll, (struct pollfd * fds, nfds_t n, int timeout, size_t room), call(fds, n, timeout, room),
     timeout != 0, PATIENT_MS(timeout))
POLL(__ppoll_chk, ppoll,
     (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t room),
     call(fds, n, timeout, mask, room), !ZERO_SPEC(timeout), PATIENT_SPEC(timeout))
SELECT(select, (int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),
       call(n, in, out, except, timeout), !ZERO_VAL(timeout), PATIENT_VAL(timeout))
SELECT(pselect, (int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask),
       call(n, in, out, except, timeout, mask), !ZERO_SPEC(timeout), PATIENT_SPEC(timeout))
