/* SPDX-License-Identifier: Apache-2.0 */
/* libweft-preload.so records a program that knows nothing of weft. start.c opens the recorder before main; wait.c
 * and uring.c have the calls that an event loop waits in, whose returns begin its ticks; loop.c knows which are the
 * loop's own; unseen.c says which loops cannot be recorded; block.c and stdio.c have the other calls that may block;
 * describe.c says what their descriptors are; lock.c has locks and semaphores, condition.c conditions; threads.c
 * knows whose threads are whose; fds.c keeps the recorder's files and the program's apart, signals.c their signals,
 * altstack.c the stacks of these, ids.c their users and groups; exec.c sees that no sample comes to the program
 * after exec; late.c starts the recorder when it is worth it, calm.c knows where that can be done, and short.c
 * counts what ends before. symbol.c looks for names without allocating memory.
 *
 * Every interposed function leaves errno, results and cancellation as they were. What weft's own threads do is not
 * measured: they are quiet, and call the real ones of lock.c (--wrap). */
#ifndef WEFT_PRELOAD_H
#define WEFT_PRELOAD_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "late.h"
#include "loop.h"
#include "symbol.h"
#include "weft/weft.h"

#define PRELOAD_API __attribute__((visibility("default")))

/* A child of fork that is not worth anything yet: the fork handler has written nothing but this, in a page that fork
 * has copied anyway. What else this process has in memory is as in the parent, until late.c settles it. */
struct preload_child {
	int pid;   /* 0: this is none, or is settled; -1: it is over */
	int timer; /* -1: none */
	uint64_t born_ns;
};

struct preload_thread {
	uint32_t ticking; /* between the return of the loop's wait and the next one */
	uint32_t quiet;   /* nothing is measured: a thread of weft's, or in here, where locks are taken */
	uint32_t epoch;   /* of the process, when `task` was announced; it changes with fork */
	uint32_t index;   /* of the worker, from 1 */
	uint64_t task;
	uintptr_t ring_frame; /* of the call in which it waits for an io_uring; 0: none */
	uint32_t ring_skips;
	uint32_t to_bytes;
	const void *to;                /* where the last connect went, while it lasts */
	uint64_t fork_at_ns, forks_ns; /* before the start: CPU time when its fork began, and that its forks took */
	struct preload_child child;
	struct preload_loops loops;
};

extern __thread struct preload_thread weft__preload_thread __attribute__((tls_model("initial-exec")));
extern struct weft_recorder *weft__preload_recorder; /* NULL: none */
extern uint32_t weft__preload_on;                    /* a recorder was opened */
extern uint32_t weft__preload_epoch;                 /* starts at 1 and goes up in each forked child */
extern int weft__preload_pid;                        /* of the process; not that of the child of a vfork */

/* What is called instead, found at the first call. The constructor of another library may come before ours. */
void *weft__preload_find(void **at, const char *name);
void *weft__preload_find_version(void **at, const char *name, const char *version);

/* Side by side, in pages that a small process writes to once. */
#define PRELOAD_NEAR __attribute__((section("preload_near")))

/* All of them are looked up by the constructor, as far as they are there: later the loader may be locked. */
struct preload_real {
	void **at;
	const char *name, *version; /* NULL: any */
} __attribute__((aligned(32)));     /* in the section as in an array */

#define PRELOAD_LISTED_VERSION(at, name, version)                                                                      \
	static struct preload_real listed                                                                              \
		__attribute__((section("preload_reals"), used)) = {&(at), (name), (version)};                          \
	(void)listed
#define PRELOAD_LISTED(at, name) PRELOAD_LISTED_VERSION(at, name, NULL)

#define PRELOAD_REAL(at, name)                                                                                         \
	({                                                                                                             \
		PRELOAD_LISTED(at, name);                                                                              \
		WEFT_LIKELY(__atomic_load_n(&(at), __ATOMIC_RELAXED) != NULL) ? (at)                                   \
									      : weft__preload_find(&(at), (name));     \
	})

/* Before a wait that is the loop's own if it was judged so (loop.h): the tick ends. Returns the number of the loop,
 * 0 when the wait is another, which is then a call that blocks. */
uint32_t weft__preload_wait_begin(bool parks);
uint32_t weft__preload_wait_judge(const struct preload_wait *wait);
#define PRELOAD_NO_TICK UINT32_MAX /* for a number: a wait that may be the first of a loop, and is not recorded */
/* From the constructor. */
void weft__preload_wait_init(void);
/* After the wait of that loop: a tick begins. */
void weft__preload_wait_end(uint32_t number, bool parks);
/* The calling thread's loop is over, as its epoll descriptor is about to be closed. */
void weft__preload_loop_over(void);

/* describe.c, before the recorder is opened, and unseen.c. */
void weft__preload_describe_init(void);
void weft__preload_unseen_tend(void);
void weft__preload_seen(const struct preload_wait *wait);
void weft__preload_loop_seen(bool recorded);

/* The program is about to close FD. Answers whether it is the recorder's, and must stay. */
bool weft__preload_closes(int fd);
/* Whether it is the recorder's, in the program's table. */
bool weft__preload_own(int fd);

/* memory.c. A thread of weft's begins: the program does not lock its stack. One of the program's begins, perhaps on a
 * stack that one of weft's had. */
void weft__preload_stack_begin(void);
void weft__preload_stack_theirs(void);

/* exec.c. Around a call that makes the calling thread another program, or fails. */
bool weft__preload_exec_begin(void);
void weft__preload_exec_failed(bool had);

/* altstack.c, when the calling thread ends. */
void weft__preload_alternate_end(void);

/* io_uring_enter by syscall(), called at SITE. */
typedef long preload_syscall_fn(long number, long a, long b, long c, long d, long e, long f);
long weft__preload_uring_enter(preload_syscall_fn *call, uintptr_t site, long fd, long submit, long least, long flags,
			       long arg, long bytes);

/* Names of waits. */
#define PRELOAD_NAMES(X)                                                                                               \
	X(epoll_wait)                                                                                                  \
	X(epoll_pwait)                                                                                                 \
	X(epoll_pwait2)                                                                                                \
	X(poll)                                                                                                        \
	X(ppoll)                                                                                                       \
	X(select)                                                                                                      \
	X(pselect)                                                                                                     \
	X(read)                                                                                                        \
	X(readv)                                                                                                       \
	X(pread)                                                                                                       \
	X(preadv)                                                                                                      \
	X(write)                                                                                                       \
	X(writev)                                                                                                      \
	X(pwrite)                                                                                                      \
	X(pwritev)                                                                                                     \
	X(recv)                                                                                                        \
	X(recvfrom)                                                                                                    \
	X(recvmsg)                                                                                                     \
	X(recvmmsg)                                                                                                    \
	X(send)                                                                                                        \
	X(sendto)                                                                                                      \
	X(sendmsg)                                                                                                     \
	X(sendmmsg)                                                                                                    \
	X(accept)                                                                                                      \
	X(accept4)                                                                                                     \
	X(connect)                                                                                                     \
	X(sendfile)                                                                                                    \
	X(splice)                                                                                                      \
	X(copy_file_range)                                                                                             \
	X(open)                                                                                                        \
	X(openat)                                                                                                      \
	X(fsync)                                                                                                       \
	X(fdatasync)                                                                                                   \
	X(sync)                                                                                                        \
	X(syncfs)                                                                                                      \
	X(msync)                                                                                                       \
	X(fallocate)                                                                                                   \
	X(posix_fallocate)                                                                                             \
	X(ftruncate)                                                                                                   \
	X(flock)                                                                                                       \
	X(lockf)                                                                                                       \
	X(fcntl)                                                                                                       \
	X(nanosleep)                                                                                                   \
	X(clock_nanosleep)                                                                                             \
	X(usleep)                                                                                                      \
	X(sleep)                                                                                                       \
	X(pause)                                                                                                       \
	X(sigsuspend)                                                                                                  \
	X(sigwait)                                                                                                     \
	X(sigwaitinfo)                                                                                                 \
	X(sigtimedwait)                                                                                                \
	X(semop)                                                                                                       \
	X(semtimedop)                                                                                                  \
	X(msgsnd)                                                                                                      \
	X(msgrcv)                                                                                                      \
	X(wait)                                                                                                        \
	X(waitid)                                                                                                      \
	X(wait3)                                                                                                       \
	X(wait4)                                                                                                       \
	X(waitpid)                                                                                                     \
	X(system)                                                                                                      \
	X(pclose)                                                                                                      \
	X(getaddrinfo)                                                                                                 \
	X(close)                                                                                                       \
	X(fflush)                                                                                                      \
	X(fclose)                                                                                                      \
	X(fwrite)                                                                                                      \
	X(fputs)                                                                                                       \
	X(puts)                                                                                                        \
	X(fread)                                                                                                       \
	X(fgets)                                                                                                       \
	X(getline)                                                                                                     \
	X(getdelim)                                                                                                    \
	X(printf)                                                                                                      \
	X(fprintf)                                                                                                     \
	X(pthread_spin_lock)                                                                                           \
	X(pthread_mutex_lock)                                                                                          \
	X(pthread_mutex_timedlock)                                                                                     \
	X(pthread_mutex_clocklock)                                                                                     \
	X(pthread_rwlock_rdlock)                                                                                       \
	X(pthread_rwlock_wrlock)                                                                                       \
	X(pthread_rwlock_timedrdlock)                                                                                  \
	X(pthread_rwlock_timedwrlock)                                                                                  \
	X(pthread_rwlock_clockrdlock)                                                                                  \
	X(pthread_rwlock_clockwrlock)                                                                                  \
	X(pthread_cond_wait)                                                                                           \
	X(pthread_cond_timedwait)                                                                                      \
	X(pthread_cond_clockwait)                                                                                      \
	X(sem_wait)                                                                                                    \
	X(sem_timedwait)                                                                                               \
	X(sem_clockwait)                                                                                               \
	X(pthread_barrier_wait)                                                                                        \
	X(futex)                                                                                                       \
	X(mtx_lock)                                                                                                    \
	X(mtx_timedlock)                                                                                               \
	X(cnd_wait)                                                                                                    \
	X(cnd_timedwait)                                                                                               \
	X(thrd_join)                                                                                                   \
	X(pthread_join)                                                                                                \
	X(io_uring_enter)                                                                                              \
	X(io_uring_wait_cqe)                                                                                           \
	X(io_uring_wait_cqes)                                                                                          \
	X(io_uring_wait_cqe_timeout)                                                                                   \
	X(io_uring_submit_and_wait)                                                                                    \
	X(io_uring_submit_and_wait_timeout)

/* clang-format off */
enum preload_name {
#define X(name) PRELOAD_NAME_##name,
	PRELOAD_NAMES(X)
#undef X
	PRELOAD_NAMES_N
};
/* clang-format on */

extern uint32_t weft__preload_names[PRELOAD_NAMES_N]; /* ids of strings, from the constructor on */

#define NO_FD (-1) /* object of a call that waits for no file */

/* Nothing records: perhaps it is time to. Not yet, as a rule. */
static inline uint64_t preload_before_start(void (*start)(void))
{
	if (WEFT_LIKELY(!__atomic_load_n(&weft__preload_late, __ATOMIC_RELAXED) &&
			weft__preload_thread.child.pid <= 0) ||
	    weft__preload_thread.quiet)
		return 0;
	start();
	return weft_wait_since();
}

/* The tick before a call that may block, 0 when nobody wants to know. */
static inline uint64_t preload_before(void)
{
	uint64_t since = WEFT_LIKELY(!weft__preload_thread.quiet) ? weft_wait_since() : 0;

	return WEFT_LIKELY(since != 0) ? since : preload_before_start(weft__preload_late_call);
}

/* The same before what a loop may wait in. PATIENT: the time-out is longer than a start takes. */
static inline uint64_t preload_before_wait(uint32_t family, bool patient)
{
	uint64_t since = WEFT_LIKELY(!weft__preload_thread.quiet) ? weft_wait_since() : 0;

	if (WEFT_LIKELY(since != 0))
		return since;
	return preload_before_start(family >= PRELOAD_EPOLL ? weft__preload_late_now
				    : patient               ? weft__preload_late_polls
							    : weft__preload_late_call);
}

static inline void preload_after(enum preload_name name, uint64_t object, uint64_t since)
{
	if (WEFT_UNLIKELY(since != 0))
		weft_waited(WEFT_WAIT_CALL, weft__preload_names[name], object, 0, since);
}

/* From the constructor: what may later be wanted in a signal handler, where nothing can be registered. */
void weft__preload_names_init(void);

/* The C library calls the system without ado as long as there is one thread, and makes the call cancellable, for some
 * 40 ns, from then on. Because of weft's own threads there is never one thread; so while the program has made none,
 * its calls are made from here as the C library would make them. 1: so it is, and the functions that are called are
 * the C library's. */
extern uint32_t weft__preload_alone;
/* From the constructor. */
void weft__preload_alone_init(void);
void weft__preload_threads_init(void);

#if defined(__x86_64__)
#define PRELOAD_BARE 1
static inline long preload_bare(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (WEFT_UNLIKELY((unsigned long)r > -4096UL)) {
		errno = (int)-r;
		r = -1;
	}
	return r;
}
#else
#define PRELOAD_BARE 0
static inline long preload_bare(long number, long a, long b, long c, long d, long e, long f)
{
	(void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	return -1;
}
#endif

#define BARE(number, a, b, c, d, e, f)                                                                                 \
	preload_bare(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* For the first moments of a process or a child of fork: system calls without the C library, whose code it would have
 * to map first. */
#if PRELOAD_BARE
#define SMALL_CALL6(number, a, b, c, d, e, f) BARE(number, a, b, c, d, e, f)
#else
long __real_syscall(long number, ...);
#define SMALL_CALL6(number, a, b, c, d, e, f) __real_syscall(number, a, b, c, d, e, f)
#endif
#define SMALL_CALL(number, a, b, c, d) SMALL_CALL6(number, a, b, c, d, 0, 0)

static inline bool preload_alone(void)
{
	return PRELOAD_BARE && __atomic_load_n(&weft__preload_alone, __ATOMIC_RELAXED);
}

#endif
