/* SPDX-License-Identifier: Apache-2.0 */
/* Locks, conditions and semaphores, on every thread of the program. One that is free is taken at the first try,
 * without a reading of the clock; only one that is not is a wait. The try takes the lock in the very cases in which
 * the call that waits would not have waited, and leaves the judgement of everything else (a lock that the thread has
 * already, one whose holder died, a time that is none) to that. */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>

#include "lock.h"

/* The C library keeps these in the lock; a lock that passes on priorities has them in the word that the kernel sees. */
#define LOCK_TID 0x3fffffff
#define LOCK_INHERITS 32 /* of __kind */

static uint32_t mutex_holder(const pthread_mutex_t *mutex)
{
	int kind = __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED);
	int word = kind & LOCK_INHERITS ? __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED)
					: __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);

	return (uint32_t)word & LOCK_TID;
}

static uint32_t rwlock_holder(const pthread_rwlock_t *lock)
{
	return (uint32_t)__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
}

static bool valid(clockid_t clock, const struct timespec *time)
{
	return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && time && time->tv_nsec >= 0 &&
	       time->tv_nsec < 1000000000;
}

/* CAN says whether it makes sense to try; SHARED, that others may have it at the same time. */
#define LOCK(what, shared, name, args, pass, can, try, object, holder)                                                 \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) args = PRELOAD_REAL(real, #name);                                                           \
		int r;                                                                                                 \
                                                                                                                       \
		if (!weft_recording() || !(can))                                                                       \
			return call pass;                                                                              \
		r = try(object);                                                                                       \
		if (WEFT_LIKELY(r != EBUSY))                                                                           \
			return taken(object, shared, r);                                                               \
		weft_wait_begin_held(what, weft__preload_names[PRELOAD_NAME_##name], OBJECT(object),                   \
				     holder(object) | WEFT_HOLDER_ASK);                                                \
		r = call pass;                                                                                         \
		if (r)                                                                                                 \
			weft_slow_lock_seen(OBJECT(object), holder(object));                                           \
		weft_wait_end(what, OBJECT(object));                                                                   \
		return taken(object, shared, r);                                                                       \
	}

LOCK(WEFT_WAIT_LOCK, 0, pthread_mutex_lock, (pthread_mutex_t * m), (m), true, pthread_mutex_trylock, m, mutex_holder)
LOCK(WEFT_WAIT_LOCK, 0, pthread_mutex_timedlock, (pthread_mutex_t * m, TIME), (m, until), valid(CLOCK_REALTIME, until),
     pthread_mutex_trylock, m, mutex_holder)
LOCK(WEFT_WAIT_LOCK, 0, pthread_mutex_clocklock, (pthread_mutex_t * m, clockid_t clock, TIME), (m, clock, until),
     valid(clock, until), pthread_mutex_trylock, m, mutex_holder)
LOCK(WEFT_WAIT_RWLOCK, 1, pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l), true, pthread_rwlock_tryrdlock, l,
     rwlock_holder)
LOCK(WEFT_WAIT_RWLOCK, 0, pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l), true, pthread_rwlock_trywrlock, l,
     rwlock_holder)
LOCK(WEFT_WAIT_RWLOCK, 1, pthread_rwlock_timedrdlock, (pthread_rwlock_t * l, TIME), (l, until),
     valid(CLOCK_REALTIME, until), pthread_rwlock_tryrdlock, l, rwlock_holder)
LOCK(WEFT_WAIT_RWLOCK, 0, pthread_rwlock_timedwrlock, (pthread_rwlock_t * l, TIME), (l, until),
     valid(CLOCK_REALTIME, until), pthread_rwlock_trywrlock, l, rwlock_holder)
LOCK(WEFT_WAIT_RWLOCK, 1, pthread_rwlock_clockrdlock, (pthread_rwlock_t * l, clockid_t clock, TIME), (l, clock, until),
     valid(clock, until), pthread_rwlock_tryrdlock, l, rwlock_holder)
LOCK(WEFT_WAIT_RWLOCK, 0, pthread_rwlock_clockwrlock, (pthread_rwlock_t * l, clockid_t clock, TIME), (l, clock, until),
     valid(clock, until), pthread_rwlock_trywrlock, l, rwlock_holder)

/* One that spins uses the CPU meanwhile. Nothing in it says who has it. */
static uint32_t nobody(const volatile void *lock)
{
	(void)lock;
	return 0;
}

LOCK(WEFT_WAIT_LOCK, 0, pthread_spin_lock, (pthread_spinlock_t * s), (s), true, pthread_spin_trylock, s, nobody)

/* Those of C11 are the same underneath, and call them inside the C library. */
static int try_mtx(mtx_t *m)
{
	int r = mtx_trylock(m);

	return r == thrd_busy ? EBUSY : r;
}

static uint32_t mtx_holder(const mtx_t *m)
{
	return mutex_holder((const pthread_mutex_t *)(const void *)m);
}

LOCK(WEFT_WAIT_LOCK, 0, mtx_lock, (mtx_t * m), (m), true, try_mtx, m, mtx_holder)
LOCK(WEFT_WAIT_LOCK, 0, mtx_timedlock, (mtx_t * m, TIME), (m, until), valid(CLOCK_REALTIME, until), try_mtx, m,
     mtx_holder)

/* The other side: what those who wait are to know. */
static uint32_t is_shared(const pthread_rwlock_t *l)
{
	return rwlock_holder(l) == 0;
}

#define UNLOCK(name, type, can, shared)                                                                                \
	PRELOAD_API int name(type *lock);                                                                              \
	PRELOAD_API int name(type *lock)                                                                               \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int (*call)(type *) = PRELOAD_REAL(real, #name);                                                       \
                                                                                                                       \
		if (is_waited(OBJECT(lock)) && (can))                                                                  \
			weft_slow_lock_given(OBJECT(lock), shared);                                                    \
		return call(lock);                                                                                     \
	}

UNLOCK(pthread_mutex_unlock, pthread_mutex_t, gives_back(lock), 0)
UNLOCK(pthread_rwlock_unlock, pthread_rwlock_t, true, is_shared(lock))
UNLOCK(pthread_spin_unlock, pthread_spinlock_t, true, 0)
UNLOCK(mtx_unlock, mtx_t, gives_back((const pthread_mutex_t *)(const void *)lock), 0)

/* A cancellation that is due happens here whether or not there is something to wait for. */
#define SEMAPHORE(name, args, pass, can)                                                                               \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) args = PRELOAD_REAL(real, #name);                                                           \
		int r, saved = errno;                                                                                  \
                                                                                                                       \
		if (!weft_recording() || !(can))                                                                       \
			return call pass;                                                                              \
		pthread_testcancel();                                                                                  \
		if (sem_trywait(sem) == 0)                                                                             \
			return 0;                                                                                      \
		errno = saved;                                                                                         \
		weft_wait_begin_held(WEFT_WAIT_SEMAPHORE, weft__preload_names[PRELOAD_NAME_##name], OBJECT(sem), 0);   \
		r = call pass;                                                                                         \
		weft_wait_end(WEFT_WAIT_SEMAPHORE, OBJECT(sem));                                                       \
		return r;                                                                                              \
	}

SEMAPHORE(sem_wait, (sem_t * sem), (sem), true)
SEMAPHORE(sem_timedwait, (sem_t * sem, TIME), (sem, until), valid(CLOCK_REALTIME, until))
SEMAPHORE(sem_clockwait, (sem_t * sem, clockid_t clock, TIME), (sem, clock, until), valid(clock, until))

PRELOAD_API int pthread_join(pthread_t thread, void **result)
{
	static void *real PRELOAD_NEAR;
	int (*call)(pthread_t, void **) = PRELOAD_REAL(real, "pthread_join");
	int r;

	weft_wait_begin_held(WEFT_WAIT_THREAD, weft__preload_names[PRELOAD_NAME_pthread_join], (uint64_t)thread, 0);
	r = call(thread, result);
	weft_wait_end(WEFT_WAIT_THREAD, (uint64_t)thread);
	return r;
}

PRELOAD_API int thrd_join(thrd_t thread, int *result)
{
	static void *real PRELOAD_NEAR;
	int (*call)(thrd_t, int *) = PRELOAD_REAL(real, "thrd_join");
	int r;

	weft_wait_begin_held(WEFT_WAIT_THREAD, weft__preload_names[PRELOAD_NAME_thrd_join], (uint64_t)thread, 0);
	r = call(thread, result);
	weft_wait_end(WEFT_WAIT_THREAD, (uint64_t)thread);
	return r;
}

PRELOAD_API int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	static void *real PRELOAD_NEAR;
	int (*call)(pthread_barrier_t *) = PRELOAD_REAL(real, "pthread_barrier_wait");
	int r;

	weft_wait_begin_held(WEFT_WAIT_CONDITION, weft__preload_names[PRELOAD_NAME_pthread_barrier_wait],
			     OBJECT(barrier), 0);
	r = call(barrier);
	weft_wait_end(WEFT_WAIT_CONDITION, OBJECT(barrier));
	return r;
}

/* Locks and conditions of runtimes that do not use the C library's, such as Rust's. What a word is, its value says
 * while a thread waits for it: Rust's Mutex is waited for, without a time-out, when it is 2, its RwLock when one of
 * its two highest bits says so; and a word that is waited for with another value is neither (a Condvar counts, and
 * passes 2 once). Who wakes somebody up has just given the lock back: that is the only time that a holder shows
 * itself. */
typedef preload_syscall_fn syscall_fn;

#define FUTEX_LOCKED 2
#define FUTEX_SHARED 0xc0000000u
#define FUTEX_PARKED 0xffffffffu
#define FUTEX_OTHERS 1024 /* a power of two */

static uint64_t futex_others[FUTEX_OTHERS]; /* words that are no locks, by their hash */

static uint64_t *futex_other(uint64_t word)
{
	return &futex_others[weft_wait_hash(word) >> 32 & (FUTEX_OTHERS - 1)];
}

static uint32_t futex_kind(uint64_t word, long op, uint32_t value, long time)
{
	op &= FUTEX_CMD_MASK;
	if (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2)
		return WEFT_WAIT_LOCK;
	if (value == FUTEX_LOCKED && !time && __atomic_load_n(futex_other(word), __ATOMIC_RELAXED) != word)
		return WEFT_WAIT_LOCK;
	if (value & FUTEX_SHARED && value != FUTEX_PARKED && !time)
		return WEFT_WAIT_RWLOCK;
	if (value != FUTEX_LOCKED)
		__atomic_store_n(futex_other(word), word, __ATOMIC_RELAXED);
	return WEFT_WAIT_CONDITION;
}

/* It was taken for a lock, and now has a value that a lock never has. */
static uint32_t futex_was(uint64_t word, uint32_t what)
{
	struct weft_waits *waits = weft_waits_self;
	struct weft_wait_slot *slot = &waits->own[waits->depth ? waits->depth - 1 : 0];

	if (what != WEFT_WAIT_LOCK ||
	    __atomic_load_n((const uint32_t *)(uintptr_t)word, __ATOMIC_RELAXED) <= FUTEX_LOCKED)
		return what;
	__atomic_store_n(futex_other(word), word, __ATOMIC_RELAXED);
	if (!waits->depth || slot->object != word || slot->key >> 32 != what)
		return what;
	__atomic_store_n(&slot->key, weft_wait_key(WEFT_WAIT_CONDITION, (uint32_t)slot->key), __ATOMIC_RELAXED);
	return WEFT_WAIT_CONDITION;
}

__attribute__((noinline)) static long futex(syscall_fn *call, long word, long op, long value, long time, long other,
					    long bits)
{
	uint32_t what = futex_kind((uint64_t)word, op, (uint32_t)value, time), holder = 0;
	bool inherits = what == WEFT_WAIT_LOCK && (op & FUTEX_CMD_MASK) != FUTEX_WAIT &&
			(op & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET;
	int saved;
	long r;

	if (inherits && weft_recording())
		holder = __atomic_load_n((const uint32_t *)(uintptr_t)word, __ATOMIC_RELAXED) & LOCK_TID;
	if (weft_lock_waited((uint64_t)word))
		weft_slow_lock_missed((uint64_t)word);
	weft_wait_begin_held(what, weft__preload_names[PRELOAD_NAME_futex], (uint64_t)word,
			     what == WEFT_WAIT_CONDITION ? 0 : holder | WEFT_HOLDER_ASK);
	r = call(SYS_futex, word, op, value, time, other, bits);
	saved = errno;
	if (r == 0 && !inherits)
		what = futex_was((uint64_t)word, what);
	weft_wait_end(what, (uint64_t)word);
	/* It takes the lock now, or waits again. */
	if (r == 0 && what == WEFT_WAIT_LOCK)
		taken((const void *)word, 0, 0);
	errno = saved;
	return r;
}

static bool waits(long number, long op)
{
	op &= FUTEX_CMD_MASK;
	return number == SYS_futex &&
	       (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2);
}

static bool wakes(long number, long op)
{
	op &= FUTEX_CMD_MASK;
	return number == SYS_futex && (op == FUTEX_WAKE || op == FUTEX_WAKE_BITSET || op == FUTEX_UNLOCK_PI);
}

/* Of the library inside: record/last.h. */
void weft__last_bare_exit(int code);

extern void *weft__preload_real_syscall;
void *weft__preload_real_syscall PRELOAD_NEAR __attribute__((visibility("hidden")));

syscall_fn weft__preload_syscall __attribute__((visibility("hidden"), used));
long weft__preload_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	syscall_fn *call = PRELOAD_REAL(weft__preload_real_syscall, "syscall");

	if (waits(number, b) && !weft__preload_thread.quiet)
		return futex(call, a, b, c, d, e, f);
	if (weft_lock_waited((uint64_t)a) && wakes(number, b))
		weft_slow_lock_given((uint64_t)a, 0);
	if (number == SYS_close && weft__preload_closes((int)a)) {
		errno = EBADF;
		return -1;
	}
	if (number == SYS_sigaltstack)
		return sigaltstack((const stack_t *)a, (stack_t *)b);
	if (number == SYS_execve || number == SYS_execveat) {
		bool had = weft__preload_exec_begin();
		long r = call(number, a, b, c, d, e, f);

		weft__preload_exec_failed(had);
		return r;
	}
	if (number == SYS_exit)
		weft__last_bare_exit((int)a);
	if (number == SYS_io_uring_enter && !weft__preload_thread.quiet)
		return weft__preload_uring_enter(call, (uintptr_t)__builtin_return_address(0), a, b, c, d, e, f);
	return call(number, a, b, c, d, e, f);
}

/* Everything but that is jumped to with the stack as it is: what is where the last argument would be belongs to the
 * caller when it gave fewer, and others may write there. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpl $202, %edi\n" /* SYS_futex */
	"	je weft__preload_syscall\n"
	"	cmpl $3, %edi\n" /* SYS_close */
	"	je weft__preload_syscall\n"
	"	cmpl $426, %edi\n" /* SYS_io_uring_enter */
	"	je weft__preload_syscall\n"
	"	cmpl $60, %edi\n" /* SYS_exit */
	"	je weft__preload_syscall\n"
	"	cmpl $59, %edi\n" /* SYS_execve */
	"	je weft__preload_syscall\n"
	"	cmpl $322, %edi\n" /* SYS_execveat */
	"	je weft__preload_syscall\n"
	"	cmpl $131, %edi\n" /* SYS_sigaltstack */
	"	je weft__preload_syscall\n"
	"	movq weft__preload_real_syscall(%rip), %rax\n"
	"	testq %rax, %rax\n"
	"	je weft__preload_syscall\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size syscall, . - syscall\n");
_Static_assert(SYS_futex == 202 && SYS_close == 3 && SYS_io_uring_enter == 426 && SYS_exit == 60 &&
		       SYS_sigaltstack == 131,
	       "as above");
#else
syscall_fn preload_syscall __asm__("syscall") PRELOAD_API;
long preload_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	return weft__preload_syscall(number, a, b, c, d, e, f);
}
#endif

/* What weft itself calls. Its waits are nobody's business. */
#define OWN(name, find, args, pass)                                                                                    \
	int __wrap_##name args;                                                                                        \
	int __wrap_##name args                                                                                         \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) args = find(real, #name);                                                                   \
                                                                                                                       \
		return call pass;                                                                                      \
	}

OWN(pthread_mutex_lock, PRELOAD_REAL, (pthread_mutex_t * m), (m))
OWN(pthread_mutex_unlock, PRELOAD_REAL, (pthread_mutex_t * m), (m))
OWN(pthread_rwlock_unlock, PRELOAD_REAL, (pthread_rwlock_t * l), (l))
OWN(pthread_rwlock_rdlock, PRELOAD_REAL, (pthread_rwlock_t * l), (l))
OWN(pthread_rwlock_wrlock, PRELOAD_REAL, (pthread_rwlock_t * l), (l))
OWN(pthread_cond_wait, COND_REAL, (pthread_cond_t * cond, pthread_mutex_t *m), (cond, m))
OWN(pthread_cond_timedwait, COND_REAL, (pthread_cond_t * cond, pthread_mutex_t *m, TIME), (cond, m, until))
OWN(pthread_join, PRELOAD_REAL, (pthread_t thread, void **result), (thread, result))
OWN(sem_wait, PRELOAD_REAL, (sem_t * sem), (sem))
