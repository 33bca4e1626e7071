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

#include "base/apart.h"
#include "base/late.h"
#include "base/ours.h"
#include "base/thread.h"
#include "preload.h"
#include "unwind/stack.h"

#define WORTH_PART 10  /* of the time: CPU time that makes a process worth it that has lived for so long, */
#define WORTH_TIMES 10 /* or so many times that time without it */
#define AGAIN_NS UINT64_C(10000000)   /* until it is tried again */
#define SYNC_NS UINT64_C(10000000000) /* a caller waits for the start for at most so long, */
#define LOADER_NS                                                                                                      \
	UINT64_C(20000000) /* and for the loader, in the child of a fork: it may be locked by the caller, or for good */
#define SCAN_BYTES (UINT64_C(1) << 20)
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* WAITS -> STARTS -> DONE; WAITS -> DONE when the process ends, or is not to be recorded. */
enum late_state { LATE_NONE, LATE_WAITS, LATE_STARTS, LATE_DONE };

struct range {
	uintptr_t low, high;
};

uint32_t weft__preload_late;

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
	bool stuck;             /* the start takes too long: nobody waits for it */
	bool passed;            /* the starter has had the loader's lock */
	uintptr_t restorer;     /* what handlers return to; 0: into the vDSO */
	struct range closed[4]; /* code in which a lock may be held: the C library, the loader, the vDSO, ours */
	const char *dir;
} late = {.timer = -1};

extern void *__libc_stack_end;

/* Of the library inside: record/recorder.c. */
void weft__recorder_prepare(void);

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

/* HOT. In the child of a vfork everything is shared and nothing is ours. */
static bool is_own_process(void)
{
	return getpid() == weft__preload_pid;
}

static bool is_closed(uintptr_t pc)
{
	for (size_t i = 0; i < sizeof(late.closed) / sizeof(late.closed[0]); i++)
		if (pc >= late.closed[i].low && pc < late.closed[i].high)
			return true;
	return false;
}

/* HOT. Whether a word on the stack is what a signal handler returns to. */
__attribute__((no_sanitize("address", "thread"))) static bool has_handler(uintptr_t sp, uintptr_t high)
{
	const struct range *vdso = &late.closed[2];

	for (const uintptr_t *at = (const uintptr_t *)((sp + 7) & ~(uintptr_t)7); (uintptr_t)(at + 1) <= high; at++)
		if (late.restorer ? *at == late.restorer : *at >= vdso->low && *at < vdso->high)
			return true;
	return false;
}

/* HOT. Whether the program is in no signal handler: one may have interrupted the C library anywhere. A stack that is too
 * deep to be looked at counts as one. */
static bool is_calm(uintptr_t sp)
{
	struct weft__stack_bounds bounds = {.high = (uintptr_t)__libc_stack_end};
	stack_t alternate;

	if (sigaltstack(NULL, &alternate) < 0 || alternate.ss_flags & SS_ONSTACK)
		return false;
	if ((sp > bounds.high || bounds.high - sp > SCAN_BYTES) && weft__stack_bounds_find(sp, &bounds) < 0)
		return false;
	return bounds.high - sp <= SCAN_BYTES && !has_handler(sp, bounds.high);
}

/* HOT. */
static void timer_stop(void)
{
	if (late.timer >= 0)
		syscall(SYS_timer_delete, late.timer);
	late.timer = -1;
}

static void timer_start(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = late.signal};
	struct itimerspec spec = {.it_interval = {0, (long)AGAIN_NS}};

	if (!late.signal)
		return;
	event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
	spec.it_value.tv_sec = (time_t)(late.after_ns / 1000000000u);
	spec.it_value.tv_nsec = (long)(late.after_ns % 1000000000u | 1); /* 0 would be never */
	if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &late.timer) < 0)
		late.timer = -1;
	else if (syscall(SYS_timer_settime, late.timer, 0, &spec, NULL) < 0)
		timer_stop();
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

/* Before any lock of ours is taken: in the child of a fork the loader may be locked for good, by a thread that is not there
 * any more. Then this thread stays here, and the process is not recorded. */
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
	signal_give();
	/* The program lists, closes and inherits its descriptors at any time, also now. Errors go where its own do. */
	if (weft__preload_files_apart())
		weft__apart_begin(STDERR_FILENO);
	weft__late_start_ns = clock_ns(CLOCK_MONOTONIC) - late.born_ns;
	weft__late_start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (weft__preload_open() != 0)
		late.children = false; /* nor are its children */
	weft__apart_end();
	finish();
	return NULL;
}

/* Whether a thread is on its way. */
static bool launch(void)
{
	pthread_t thread;
	int err;

	if (!state_change(LATE_WAITS, LATE_STARTS))
		return state_now() == LATE_STARTS;
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

/* In the child of a fork the starter needs the loader's lock. Who makes a thread while a library is loaded has it, and would wait for itself. */
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

	if (__atomic_load_n(&weft__preload_late, __ATOMIC_ACQUIRE) && !weft__preload_thread.quiet && is_own_process() &&
	    launch())
		await();
	errno = saved;
}

static void now_if_calm(void)
{
	int saved = errno;

	if (__atomic_load_n(&weft__preload_late, __ATOMIC_ACQUIRE) && is_calm((uintptr_t)__builtin_frame_address(0)))
		weft__preload_late_now();
	errno = saved;
}

/* A second one of these is as a rule a loop's. */
void weft__preload_late_polls(void)
{
	if (__atomic_add_fetch(&late.polls, 1, __ATOMIC_RELAXED) == 2)
		now_if_calm();
	else
		weft__preload_late_call();
}

static bool is_worth_it(uint64_t lived_ns)
{
	return lived_ns >= late.after_ns * WORTH_TIMES ||
	       clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= late.after_ns / WORTH_PART;
}

void weft__preload_late_call(void)
{
	int saved = errno;
	uint64_t now;

	if (state_now() != LATE_WAITS)
		return;
	now = clock_ns(CLOCK_MONOTONIC);
	if (now >= __atomic_load_n(&late.look_ns, __ATOMIC_RELAXED)) {
		__atomic_store_n(&late.look_ns, now + AGAIN_NS, __ATOMIC_RELAXED);
		if (is_own_process() && !late.own_malloc && is_worth_it(now - late.born_ns) &&
		    is_calm((uintptr_t)__builtin_frame_address(0)) && launch() && late.after_ns == 0)
			await();
	}
	errno = saved;
}

/* HOT, on the thread that is timed. Another's signal of that number does what it would do without us. */
static void due(int number, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	uintptr_t pc, sp;
	int saved = errno;

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
	} else if (state_now() == LATE_WAITS && is_own_process() && !late.own_malloc && !is_closed(pc) && is_calm(sp)) {
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

#if defined(__x86_64__)
struct kernel_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static void restorer_find(void)
{
	struct kernel_sigaction now = {0};

	if (late.signal && syscall(SYS_rt_sigaction, late.signal, NULL, &now, sizeof(now.mask)) == 0)
		late.restorer = (uintptr_t)now.restorer;
}
#else
static void restorer_find(void)
{
}
#endif

void weft__preload_late_give_signal(int signal)
{
	if (__atomic_load_n(&weft__preload_late, __ATOMIC_ACQUIRE) && signal == late.signal && is_own_process())
		signal_give();
}

static int find_range(struct dl_phdr_info *info, size_t bytes, void *data)
{
	const uintptr_t known[4] = {(uintptr_t)&gnu_get_libc_version, (uintptr_t)getauxval(AT_BASE),
				    (uintptr_t)getauxval(AT_SYSINFO_EHDR), (uintptr_t)&weft__preload_late_call};
	struct range all = {UINTPTR_MAX, 0};

	(void)bytes;
	(void)data;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t low = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		all.low = low < all.low ? low : all.low;
		all.high = low + part->p_memsz > all.high ? low + part->p_memsz : all.high;
	}
	for (size_t i = 0; i < 4; i++)
		if (known[i] >= all.low && known[i] < all.high)
			late.closed[i] = all;
	return 0;
}

void weft__preload_code_init(void)
{
	dl_iterate_phdr(find_range, NULL);
}

bool weft__preload_in_libc(const void *at)
{
	return (uintptr_t)at >= late.closed[0].low && (uintptr_t)at < late.closed[0].high;
}

/* A process begins: this one, or the child of a fork. */
static void begin(void)
{
	late.born_ns = clock_ns(CLOCK_MONOTONIC);
	late.look_ns = late.born_ns + late.after_ns;
	late.polls = 0;
	late.stuck = late.passed = false;
	__atomic_store_n(&late.state, LATE_WAITS, __ATOMIC_RELEASE);
	__atomic_store_n(&weft__preload_late, 1, __ATOMIC_RELEASE);
	if (!late.signal)
		signal_take();
	timer_start();
}

/* Before recorder.c takes its locks: the child must not find a start half done. */
static void fork_prepare(void)
{
	if (state_now() == LATE_STARTS)
		await();
}

static void fork_child(void)
{
	uint32_t state = state_now();

	late.timer = -1; /* timers are not inherited */
	late.forked = true;
	weft__preload_pid = (int)getpid();
	if (late.children && state != LATE_NONE) {
		__atomic_store_n(&weft__preload_on, 0, __ATOMIC_RELEASE);
		begin();
	} else if (state == LATE_WAITS) {
		signal_give();
		__atomic_store_n(&weft__preload_late, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&late.state, LATE_DONE, __ATOMIC_RELEASE);
	}
}

#define DIGITS 24

static char *put_number(char *to, uint64_t number)
{
	char digits[DIGITS];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	to = mempcpy(to, digits + at, sizeof(digits) - at);
	*to++ = ' ';
	return to;
}

long __real_syscall(long number, ...);

/* HOT. "PID CPU_NS LIVED_NS NAME": written in one piece, so that lines of many processes do not mix. */
static void write_short(void)
{
	char path[PATH_MAX + 32], line[4 * DIGITS + 64], *to = line;
	size_t n = strlen(late.dir), name = strnlen(program_invocation_short_name, 48);
	long fd;

	memcpy(path, late.dir, n);
	memcpy(path + n, "/short-processes.txt", sizeof("/short-processes.txt"));
	to = put_number(to, (uint64_t)weft__preload_pid);
	to = put_number(to, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	to = put_number(to, clock_ns(CLOCK_MONOTONIC) - late.born_ns);
	for (size_t i = 0; i < name; i++) {
		unsigned char c = (unsigned char)program_invocation_short_name[i];

		*to++ = (char)(c > ' ' && c < 127 ? c : '_');
	}
	*to++ = '\n';
	fd = __real_syscall(SYS_openat, -1, path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	(void)!__real_syscall(SYS_write, fd, line, to - line);
	__real_syscall(SYS_close, fd);
}

/* The process ends. What was to be started is not; what is being started is waited for, to be stopped by the recorder. */
static void ends(void)
{
	int saved = errno;

	if (!is_own_process())
		return;
	if (state_change(LATE_WAITS, LATE_DONE)) {
		timer_stop();
		__atomic_store_n(&weft__preload_late, 0, __ATOMIC_RELEASE);
		write_short();
	}
	errno = saved;
}

static void at_exit(void)
{
	ends();
	if (is_own_process() && state_now() == LATE_STARTS)
		await();
}

PRELOAD_API void _exit(int status);
PRELOAD_API void _Exit(int status);

PRELOAD_API void _exit(int status)
{
	ends();
	for (;;)
		__real_syscall(SYS_exit_group, status);
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
	pthread_atfork(fork_prepare, NULL, fork_child);
	atexit(at_exit);
	if (after_ns == 0 || late.own_malloc) {
		late.state = LATE_DONE;
		late.born_ns = clock_ns(CLOCK_MONOTONIC);
		weft__preload_open();
		return;
	}
	begin();
	restorer_find();
}
