/* SPDX-License-Identifier: Apache-2.0 */
#include "late.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/late.h"
#include "base/ours.h"
#include "base/place.h"
#include "base/private_fds.h"
#include "base/thread.h"
#include "preload.h"
#include "unwind/stack.h"

#define WORTH_PART 2   /* of the time: CPU time that makes a process worth it that has lived for so long, */
#define WORTH_TIMES 10 /* or so many times that time without it */
#define AGAIN_NS UINT64_C(10000000)   /* until it is tried again */
#define SYNC_NS UINT64_C(10000000000) /* a caller waits for the start for at most so long, */
#define LOADER_NS                                                                                                      \
	UINT64_C(20000000) /* and for the loader, in the child of a fork: it may be locked by the caller, or for good */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* WAITS -> STARTS -> DONE; WAITS -> DONE when the process ends, or is not to be recorded. */
enum late_state { LATE_NONE, LATE_WAITS, LATE_STARTS, LATE_DONE };

uint32_t weft__preload_late PRELOAD_NEAR;

static struct {
	uint32_t state; /* enum late_state; futex */
	uint32_t polls; /* calls of poll and select that may be a loop's */
	uint64_t born_ns;
	uint64_t look_ns; /* not again before */
	uint64_t after_ns;
	int signal; /* 0: none */
	int timer;  /* -1: none */
	bool children;
	bool own_malloc; /* the program's malloc is not the C library's */
	bool forked;
	bool stuck;  /* the start takes too long: nobody waits for it */
	bool passed; /* the starter has had the loader's lock */
	const char *dir;
} late PRELOAD_NEAR = {.timer = -1};

/* Of the library inside: record/recorder.c. */
void weft__recorder_prepare(void);
void weft__recorder_settle(void);

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = {0, 0};

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint32_t state_now(void)
{
	return __atomic_load_n(&late.state, __ATOMIC_ACQUIRE);
}

static bool state_change(uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&late.state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool weft__preload_is_own(void)
{
	int child = weft__preload_thread.child.pid;

	return getpid() == (child ? child : weft__preload_pid);
}

/* HOT. */
static void timer_stop(void)
{
	if (late.timer >= 0)
		syscall(SYS_timer_delete, late.timer);
	late.timer = -1;
}

int __wrap_sigaction(int signal, const struct sigaction *want, struct sigaction *ret);

/* What is pending is dropped by ignoring it first: the default of the signal is death. */
static void signal_give(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN};

	timer_stop();
	if (!late.signal)
		return;
	__wrap_sigaction(late.signal, &action, NULL);
	action.sa_handler = SIG_DFL;
	__wrap_sigaction(late.signal, &action, NULL);
	late.signal = 0;
}

/* Before any lock of ours is taken: in the child of a fork the loader may be locked for good, by a thread that is
 * not there any more. Then this thread stays here, and the process is not recorded. */
static void pass_loader(void)
{
	static const char name[] = "weft_recorder_open";

	(void)!dlsym(RTLD_DEFAULT, name);
}

static void finish(void)
{
	__atomic_store_n(&weft__preload_late, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&late.state, LATE_DONE, __ATOMIC_RELEASE);
	syscall(SYS_futex, &late.state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *start_main(void *data)
{
	(void)data;
	weft__ours_begin();
	__atomic_store_n(&weft__late_tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	weft__preload_thread.quiet = 1;
	pthread_setname_np(pthread_self(), "weft-start");
	weft__thread_spares_end();
	if (late.forked) {
		pass_loader();
		__atomic_store_n(&late.passed, true, __ATOMIC_RELAXED);
		__atomic_store_n(&late.stuck, false, __ATOMIC_RELAXED);
	}
	timer_stop();
	/* The program lists, closes and inherits its descriptors at any time, also now. Errors go where its own do. */
	if (weft__preload_private_fds())
		weft__private_fds_begin(STDERR_FILENO);
	weft__late_start_ns = clock_ns(CLOCK_MONOTONIC) - late.born_ns;
	weft__late_start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (weft__preload_open() != 0)
		late.children = false; /* nor are its children */
	weft__preload_counts_leave();
	weft__private_fds_end();
	if (!late.children) /* else it is theirs, too */
		signal_give();
	finish();
	weft__tables_started();
	return NULL;
}

/* Whether a thread is on its way. */
static bool launch(void)
{
	pthread_t thread;
	int err;

	if (!state_change(LATE_WAITS, LATE_STARTS))
		return state_now() == LATE_STARTS;
	weft__recorder_settle();
	weft__thread_spares();
	err = weft__thread_make(&thread, 1, start_main, NULL);
	if (err) {
		weft__thread_spares_end();
		__atomic_store_n(&late.state, LATE_WAITS, __ATOMIC_RELEASE);
	}
	return !err;
}

static void await_for(uint64_t ns)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + ns, now;

	while (state_now() == LATE_STARTS && !__atomic_load_n(&late.stuck, __ATOMIC_RELAXED) &&
	       (now = clock_ns(CLOCK_MONOTONIC)) < until) {
		struct timespec left = {(time_t)((until - now) / 1000000000u), (long)((until - now) % 1000000000u)};

		syscall(SYS_futex, &late.state, FUTEX_WAIT_PRIVATE, LATE_STARTS, &left, NULL, 0);
	}
}

/* In the child of a fork the starter needs the loader's lock. Who makes a thread while a library is loaded has it,
 * and would wait for itself. */
static void await(void)
{
	if (late.forked)
		await_for(LOADER_NS);
	if (!late.forked || __atomic_load_n(&late.passed, __ATOMIC_RELAXED))
		await_for(SYNC_NS);
	if (state_now() == LATE_STARTS)
		__atomic_store_n(&late.stuck, true, __ATOMIC_RELAXED);
}

void weft__preload_late_now(void)
{
	int saved = errno;

	weft__preload_settle();
	if (__atomic_load_n(&weft__preload_late, __ATOMIC_ACQUIRE) && !weft__preload_thread.quiet &&
	    weft__preload_is_own() && launch())
		await();
	errno = saved;
}

static void now_if_calm(void)
{
	int saved = errno;

	weft__preload_settle();
	if (__atomic_load_n(&weft__preload_late, __ATOMIC_ACQUIRE) &&
	    weft__preload_is_calm((uintptr_t)__builtin_frame_address(0)))
		weft__preload_late_now();
	errno = saved;
}

/* A second one of these is as a rule a loop's. */
void weft__preload_late_polls(void)
{
	weft__preload_settle();
	if (__atomic_add_fetch(&late.polls, 1, __ATOMIC_RELAXED) == 2)
		now_if_calm();
	else
		weft__preload_late_call();
}

/* CPU time in fork is the kernel's, and more when weft's memory and thread are there: it makes nothing worth it. */
static bool has_worked(uint64_t cpu_ns)
{
	uint64_t forks_ns = weft__preload_thread.forks_ns;

	return cpu_ns >= forks_ns && cpu_ns - forks_ns >= late.after_ns / WORTH_PART;
}

static bool is_worth_it(uint64_t lived_ns)
{
	return lived_ns >= late.after_ns * WORTH_TIMES || has_worked(clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}

static void look(uint64_t now)
{
	int saved = errno;

	__atomic_store_n(&late.look_ns, now + AGAIN_NS, __ATOMIC_RELAXED);
	if (weft__preload_is_own() && !late.own_malloc && is_worth_it(now - late.born_ns) &&
	    weft__preload_is_calm((uintptr_t)__builtin_frame_address(0)) && launch() && late.after_ns == 0)
		await();
	errno = saved;
}

/* It is too early, as a rule. Then nothing is written, errno included: the last fork has shared all pages, and the
 * first to write copies one. */
void weft__preload_late_call(void)
{
	const struct preload_child *child = &weft__preload_thread.child;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (WEFT_UNLIKELY(child->pid > 0)) {
		if (now < child->born_ns + late.after_ns)
			return;
		weft__preload_settle();
	}
	if (state_now() == LATE_WAITS && now >= __atomic_load_n(&late.look_ns, __ATOMIC_RELAXED))
		look(now);
}

/* HOT, on the thread that is timed. Another's signal of that number does what it would do without us. */
static void due(int number, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	uintptr_t pc, sp;
	int saved = errno;

	weft__preload_settle();
#if defined(__x86_64__)
	pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
	sp = (uintptr_t)uc->uc_mcontext.gregs[REG_RSP];
#else
	pc = (uintptr_t)uc->uc_mcontext.pc;
	sp = (uintptr_t)uc->uc_mcontext.sp;
#endif
	if (info->si_code != SI_TIMER) {
		struct sigaction action = {.sa_handler = SIG_DFL};

		__wrap_sigaction(number, &action, NULL);
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
	} else if (state_now() == LATE_WAITS && weft__preload_is_own() && !late.own_malloc &&
		   has_worked(clock_ns(CLOCK_THREAD_CPUTIME_ID)) && !weft__preload_is_closed(pc) &&
		   weft__preload_is_calm(sp)) {
		launch();
	}
	errno = saved;
}

/* From the middle, as the recorder chooses its own. */
static void signal_take(void)
{
	struct sigaction ours = {.sa_sigaction = due, .sa_flags = SA_SIGINFO | SA_RESTART}, now;
	int half = (SIGRTMAX - SIGRTMIN) / 2, i;

	sigemptyset(&ours.sa_mask);
	for (i = 0; i < half; i++) {
		int number = SIGRTMIN + half + i;

		if (__wrap_sigaction(number, &ours, &now) < 0)
			continue;
		if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL) {
			late.signal = number;
			return;
		}
		__wrap_sigaction(number, &now, NULL);
	}
}

void weft__preload_late_give_signal(int signal)
{
	if (signal != late.signal || !signal || !weft__preload_is_own())
		return;
	weft__preload_settle();
	signal_give();
}

void weft__preload_settle(void)
{
	struct preload_child *child = &weft__preload_thread.child;

	if (WEFT_LIKELY(child->pid <= 0) || getpid() != child->pid)
		return;
	late.born_ns = child->born_ns;
	late.look_ns = late.born_ns + late.after_ns;
	late.timer = child->timer;
	late.polls = 0;
	late.stuck = late.passed = false;
	late.forked = true;
	weft__preload_pid = child->pid;
	weft__preload_epoch++;
	child->pid = 0;
	weft__preload_counts_settle();
	__atomic_store_n(&weft__preload_on, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&late.state, LATE_WAITS, __ATOMIC_RELEASE);
	__atomic_store_n(&weft__preload_late, 1, __ATOMIC_RELEASE);
}

/* Before recorder.c takes its locks: the child must not find a start half done. */
static void fork_prepare(void)
{
	if (state_now() == LATE_STARTS)
		await();
	if (late.children)
		weft__preload_counts_open();
	if (state_now() == LATE_WAITS)
		weft__preload_thread.fork_at_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void fork_parent(void)
{
	struct preload_thread *t = &weft__preload_thread;

	if (t->fork_at_ns)
		t->forks_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - t->fork_at_ns;
	t->fork_at_ns = 0;
}

/* Children are not recorded: nothing of the parent's state is theirs. */
static void renounce(void)
{
	weft__recorder_settle();
	weft__preload_pid = (int)getpid();
	weft__preload_epoch++;
	weft__preload_thread.ticking = 0;
	weft__preload_thread.child.pid = 0;
	late.timer = -1; /* timers are not inherited */
	signal_give();
	__atomic_store_n(&weft__preload_on, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&weft__preload_late, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&late.state, LATE_DONE, __ATOMIC_RELEASE);
}

FORK_CODE static void fork_child(void)
{
	if (late.children)
		weft__preload_child_begin(late.own_malloc ? 0 : late.signal, late.after_ns);
	else
		renounce();
}

/* The process ends. What was to be started is not; what is being started is waited for, to be stopped by the
 * recorder. */
static void process_ends(void)
{
	int saved = errno;

	if (weft__preload_is_own() && state_change(LATE_WAITS, LATE_DONE)) {
		timer_stop();
		__atomic_store_n(&weft__preload_late, 0, __ATOMIC_RELEASE);
		if (!weft__preload_counts_end(CLOCK_PROCESS_CPUTIME_ID, late.born_ns))
			weft__preload_short_line(late.dir, late.born_ns);
		weft__preload_counts_leave();
	}
	errno = saved;
}

enum { EXEC_OTHER, EXEC_PROCESS, EXEC_CHILD };

int weft__preload_late_exec(void)
{
	int child = weft__preload_thread.child.pid, saved = errno, was = EXEC_OTHER;

	if (child > 0 && child == weft__preload_small_pid()) {
		weft__preload_counts_left(1);
		was = EXEC_CHILD;
	} else if (child == 0 && weft__preload_is_own() && weft__preload_counts_leave()) {
		was = EXEC_PROCESS;
	}
	errno = saved;
	return was;
}

void weft__preload_late_exec_failed(int was)
{
	if (was != EXEC_OTHER)
		weft__preload_counts_left(-1);
	if (was == EXEC_PROCESS)
		weft__preload_counts_settle();
}

FORK_CODE static void ends(void)
{
	struct preload_child *child = &weft__preload_thread.child;

	if (child->pid == 0)
		process_ends();
	else if (child->pid == weft__preload_small_pid()) {
		/* It has one thread. */
		if (!weft__preload_counts_end(CLOCK_THREAD_CPUTIME_ID, child->born_ns))
			weft__preload_short_line(late.dir, child->born_ns);
		weft__preload_counts_left(1);
		child->pid = -1;
	}
}

static void at_exit(void)
{
	ends();
	if (weft__preload_is_own() && state_now() == LATE_STARTS)
		await();
}

PRELOAD_API void _exit(int status);
PRELOAD_API void _Exit(int status);

FORK_CODE PRELOAD_API void _exit(int status)
{
	ends();
	for (;;)
		SMALL_CALL(SYS_exit_group, status, 0, 0, 0);
}

PRELOAD_API void _Exit(int status)
{
	_exit(status);
}

void weft__preload_late_init(const char *dir, bool children, uint64_t after_ns)
{
	late.dir = dir;
	late.children = children;
	late.after_ns = after_ns;
	late.own_malloc = !weft__preload_in_libc((void *)(uintptr_t)&malloc) ||
			  !weft__preload_in_libc((void *)(uintptr_t)&calloc);
	weft__recorder_prepare();
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	atexit(at_exit);
	late.born_ns = clock_ns(CLOCK_MONOTONIC);
	late.look_ns = late.born_ns + late.after_ns;
	signal_take();
	weft__preload_restorer_find(late.signal);
	if (after_ns == 0 || late.own_malloc) {
		late.state = LATE_DONE;
		weft__preload_open();
		return;
	}
	__atomic_store_n(&late.state, LATE_WAITS, __ATOMIC_RELEASE);
	__atomic_store_n(&weft__preload_late, 1, __ATOMIC_RELEASE);
	weft__preload_counts_open();
	weft__preload_counts_born();
	if (late.signal)
		late.timer = weft__preload_timer_new(late.signal, (int)syscall(SYS_gettid), after_ns);
}
