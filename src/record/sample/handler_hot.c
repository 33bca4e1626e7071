/* SPDX-License-Identifier: Apache-2.0 */
/* The one signal handler. HOT.
 *
 * The frames go to memory that is not on the thread's stack, which may be small: a few buffers that all threads
 * share, of which each CPU has a favourite. They are in use for microseconds; when all are taken, or the stack is too
 * small, the sample is lost and counted. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/place.h"
#include "record/ring/ring.h"
#include "record/ring/stacks.h"
#include "record/sample/perf_state.h"
#include "record/sample/precise.h"
#include "record/sample/sample.h"
#include "record/sample/state.h"
#include "record/tables/frames.h"
#include "record/wait/context.h"
#include "unwind/stack.h"
#include "unwind/unwind.h"
#include "weft/event.h"

#define SCRATCHES 64
#define KERNEL_DEPTH_MAX 256
#define HANDLER_MOST_NS 100000
#define SMALL_STACK 16384 /* a signal stack up to this has room for one handler only */
#define UNWIND_ROOM 2560  /* bytes of stack: unwinding takes up to 1500 below the handler */

struct sigaction weft__engine_before[65][2];
uint32_t weft__engine_before_turn[65];

static uint64_t scratch_user[SCRATCHES][WEFT__UNWIND_DEPTH_MAX] LARGE_TABLE;
static uint64_t scratch_kernel[SCRATCHES][KERNEL_DEPTH_MAX] LARGE_TABLE;
static uint64_t scratch_taken; /* bit by bit */

static uint32_t cpu_now(void)
{
	unsigned cpu = UINT32_MAX;

#if defined(__x86_64__)
	/* The kernel keeps the number there for the vDSO: it is an instruction, not a call. */
	if (weft__engine.has_rdtscp) {
		unsigned low, high;

		__asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(cpu));
		return cpu & 0xfff;
	}
#endif
	if (syscall(SYS_getcpu, &cpu, NULL, NULL) < 0)
		return UINT32_MAX;
	return cpu;
}

static int scratch_take(uint32_t cpu)
{
	for (uint32_t i = 0; i < SCRATCHES; i++) {
		uint32_t at = (cpu + i) % SCRATCHES;
		uint64_t bit = UINT64_C(1) << at;

		if (!(load_relaxed(&scratch_taken) & bit) &&
		    !(__atomic_fetch_or(&scratch_taken, bit, __ATOMIC_ACQUIRE) & bit))
			return (int)at;
	}
	return -1;
}

static void scratch_give(int at)
{
	__atomic_fetch_and(&scratch_taken, ~(UINT64_C(1) << at), __ATOMIC_RELEASE);
}

/* Whether the thread has the thread-local memory of another one. Asked once; without touching memory that may not be
 * there. */
static int shares_tls(struct weft__slot *slot, uint32_t tid)
{
	struct iovec to, from;
	uint32_t word = 0;

	if (slot && slot->tls)
		return slot->tls == TLS_SHARED;
	if (!load_relaxed(&weft__engine.tid_at))
		return 0;
	from.iov_base = (char *)__builtin_thread_pointer() + load_relaxed(&weft__engine.tid_at);
	to.iov_base = &word;
	from.iov_len = to.iov_len = sizeof(word);
	if (syscall(SYS_process_vm_readv, syscall(SYS_getpid), &to, 1, &from, 1, 0) < 0 && errno != EFAULT)
		word = load_relaxed((uint32_t *)from.iov_base);
	if (slot)
		slot->tls = word == tid ? TLS_OWN : TLS_SHARED;
	return word != tid;
}

/* From the stack pointer up, and what is a function's own below it: some find their frame by a word there (OpenSSL's
 * SHA-512). */
static struct weft__unwind_range range_from(uint64_t sp, uint64_t low, uint64_t high)
{
	uint64_t zone = ARCH_RED_ZONE;

	return weft__unwind_live(sp - low < zone ? low : sp - zone, high);
}

/* What the unwinder may read. A thread's own stack is looked up once; the stack of a handler is known from the
 * context, and leads to the thread's own. Anything else, such as a coroutine's, is looked up each time, because it
 * may be gone the next. */
static void stack_of(const struct weft__hit *hit, uint64_t sp, struct weft__unwind_stack *stack)
{
	const ucontext_t *uc = hit->context;
	struct weft__slot *slot = hit->slot;
	uint64_t low = slot ? slot->stack_low : 0, high = slot ? slot->stack_high : 0;
	uint64_t alt = (uint64_t)(uintptr_t)uc->uc_stack.ss_sp;
	struct weft__stack_bounds bounds;

	stack->range[0] = stack->range[1] = weft__unwind_live(0, 0);
	if (sp >= low && sp < high) {
		stack->range[0] = range_from(sp, low, high);
		return;
	}
	if (!(uc->uc_stack.ss_flags & SS_DISABLE) && sp - alt < uc->uc_stack.ss_size) {
		if (slot && !high && !shares_tls(slot, hit->tid) && weft__stack_bounds_own(&bounds) == 0 &&
		    bounds.sure) {
			slot->stack_low = low = bounds.low;
			slot->stack_high = high = bounds.high;
		}
		stack->range[0] = range_from(sp, alt, alt + uc->uc_stack.ss_size);
		stack->range[1] = weft__unwind_live(low, high);
		return;
	}
	if (weft__stack_bounds_find(sp, &bounds) < 0)
		return;
	stack->range[0] = range_from(sp, bounds.low, bounds.high);
	if (slot && bounds.sure) {
		slot->stack_low = bounds.low;
		slot->stack_high = bounds.high;
	}
}

static void hit_emit(const struct weft__hit *hit, const struct weft__sample *sample)
{
	struct weft_ring *none = NULL;
	int borrowed;

	add_relaxed(&weft__engine.samples, 1);
	add_relaxed(&weft__engine.weight_ns, sample->weight_ns);
	if (shares_tls(hit->slot, hit->tid)) {
		weft__sample_emit_in(
			weft__ring_foreign(hit->slot ? &hit->slot->foreign : &none, hit->tid, 2, sample->tick), sample);
		return;
	}
	borrowed = weft__context_borrow(sample->tick);
	weft__sample_emit(sample);
	if (borrowed)
		weft__context_return(sample->tick);
}

static void sample_lost(uint64_t tick)
{
	add_relaxed(&weft__engine.samples, 1);
	weft__stacks_lost(tick);
}

/* Whether the handler is near the end of the thread's signal stack. Rust's threads have one of 8 KiB, of which the
 * kernel takes 3 KiB for each handler, ours and those of the program that it interrupts. */
static int is_cramped(const ucontext_t *uc)
{
	uint64_t below = (uint64_t)(uintptr_t)__builtin_frame_address(0) - (uint64_t)(uintptr_t)uc->uc_stack.ss_sp;

	return !(uc->uc_stack.ss_flags & SS_DISABLE) && below < uc->uc_stack.ss_size && below < UNWIND_ROOM;
}

/* A signal stack that is too small for the handlers of two signals at once. */
static int is_small(const ucontext_t *uc)
{
	/* Of a program's first thread that has none, the flags do not say so. */
	return !(uc->uc_stack.ss_flags & SS_DISABLE) && uc->uc_stack.ss_size &&
	       uc->uc_stack.ss_size < weft__engine.stack_least;
}

/* Holds the net's signal back while a sample is taken on a small signal stack, which has no room for a second handler
 * in the middle of unwinding. Until here there is. 0: there was no need to. */
static int net_hold(const ucontext_t *uc, uint64_t *before)
{
	uint64_t net = weft__engine.net_signal ? UINT64_C(1) << (weft__engine.net_signal - 1) : 0;

	if (!net || uc->uc_stack.ss_flags & SS_DISABLE || uc->uc_stack.ss_size > SMALL_STACK)
		return 0;
	return syscall(SYS_rt_sigprocmask, SIG_BLOCK, &net, before, sizeof(net)) == 0;
}

static void hit_sample(const struct weft__hit *hit)
{
	struct weft__sample sample = {.tick = hit->tick, .engine = hit->engine, .weight_ns = hit->weight_ns};
	struct weft__unwind_stack stack;
	struct weft__unwind_regs regs;
	const struct weft__modules *modules;
	uint32_t visit;
	int buffer;

	sample.cpu = cpu_now();
	buffer = scratch_take(sample.cpu);
	if (buffer < 0) {
		sample_lost(hit->tick);
		return;
	}
	weft__unwind_regs_set(&regs, hit->context);
	stack_of(hit, regs.r[ARCH_SP], &stack);
	modules = weft__modules_enter(&visit);
	sample.n_user = (uint32_t)weft__unwind(modules, &regs, &stack, scratch_user[buffer], weft__unwinding.depth,
					       &sample.user_flags);
	if (modules && !weft__modules_find(modules, regs.pc))
		sample.user_flags |= WEFT__UNWIND_NO_CODE;
	/* Code that came since the last look, here or among the callers: the next sample should find its tables. */
	if (sample.user_flags & (WEFT__UNWIND_NO_CODE | WEFT__UNWIND_LOST) && !load_relaxed(&weft__unwinding.stale) &&
	    !swap_seq_cst(&weft__unwinding.stale, 1u))
		weft__collector_wake();
	weft__modules_leave(visit);
	if (!shares_tls(hit->slot, hit->tid))
		sample.n_user = weft__frames_mix(scratch_user[buffer], sample.n_user, WEFT__UNWIND_DEPTH_MAX,
						 &sample.user_flags);
	sample.user = scratch_user[buffer];
	if (weft__engine.kernel && weft__engine.ops->kernel) {
		sample.kernel = scratch_kernel[buffer];
		sample.n_kernel = weft__engine.ops->kernel(hit->slot, scratch_kernel[buffer], KERNEL_DEPTH_MAX);
	}
	hit_emit(hit, &sample);
	scratch_give(buffer);
}

/* Does what the kernel would have done without us. */
static void chain_default(int signal, siginfo_t *info)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action = {SIG_DFL, 0, NULL, 0};

	/* It is blocked until this handler returns, and comes then. */
	syscall(SYS_rt_sigaction, signal, &action, NULL, sizeof(action.mask));
	if (syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), syscall(SYS_gettid), signal, info) < 0)
		syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), signal);
}

/* The kernel took a thread of ours, which lets the signal of the net through. The program's handler has no business
 * there: its threads may block the signal, and ours may have other files (base/private_fds.h). So it goes to the
 * process again, and never to this thread. */
static void chain_elsewhere(int signal, siginfo_t *info, ucontext_t *context)
{
	uint64_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask |= UINT64_C(1) << (signal - 1);
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	if (syscall(SYS_rt_sigqueueinfo, syscall(SYS_getpid), signal, info) < 0)
		syscall(SYS_kill, syscall(SYS_getpid), signal);
}

static void chain(int signal, siginfo_t *info, void *context)
{
	struct sigaction *before = weft__signal_before(signal);
	int once = before->sa_flags & (int)SA_RESETHAND;
	void (*plain)(int) = before->sa_handler;
	void (*full)(int, siginfo_t *, void *) = before->sa_sigaction;
	int with_info = before->sa_flags & SA_SIGINFO;
	uint64_t mask;

	if (!with_info && plain == SIG_IGN)
		return;
	if (!with_info && plain == SIG_DFL) {
		if (signal != SIGURG && signal != SIGCHLD && signal != SIGWINCH && signal != SIGCONT)
			chain_default(signal, info);
		return;
	}
	if (once) {
		before->sa_flags = 0;
		before->sa_handler = SIG_DFL;
	}
	/* Its mask is in force while it runs, and so is ours from before when it returns. */
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &before->sa_mask, &mask, sizeof(mask));
	if (with_info)
		full(signal, info, context);
	else
		plain(signal);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/* A handler that was preempted took long, but of the CPU no more than others do. */
static void count_cost(uint32_t gate, uint64_t tick)
{
	uint64_t ns = weft_tick_ns(weft_tick(gate) - tick);

	add_relaxed(&weft__engine.signals, 1);
	add_relaxed(&weft__engine.spent_ns, ns < HANDLER_MOST_NS ? ns : HANDLER_MOST_NS);
}

void weft__engine_handler(int signal, siginfo_t *info, void *context)
{
	uint32_t mine = weft__timer_ops.mine(info) ? WEFT_ENGINE_TIMER : weft__perf_mine(info) ? WEFT_ENGINE_PERF : 0;
	uint32_t gate = weft_gate_on();
	struct weft__hit hit = {.engine = mine, .context = context};
	int saved = errno;

	if (!mine && signal == weft__engine.net_signal && weft__thread_ours((uint32_t)syscall(SYS_gettid))) {
		chain_elsewhere(signal, info, context);
		errno = saved;
		return;
	}
	if (!mine) {
		chain(signal, info, context);
		return;
	}
	if (gate && weft__engine_enter()) {
		hit.tick = weft_tick(gate);
		if (is_small(context))
			weft__net_cramped();
		if (mine == weft__engine.ops->id)
			weft__engine.ops->match(info, &hit);
		else if (mine == WEFT_ENGINE_TIMER) /* the net, or a timer beside perf events */
			weft__timer_ops.match(info, &hit);
		else
			weft__precise_match(info, &hit);
		if (hit.slot)
			store_relaxed(&hit.slot->hits, hit.slot->hits + 1);
		if (hit.weight_ns && is_cramped(context)) {
			sample_lost(hit.tick);
		} else if (hit.weight_ns) {
			uint64_t before;
			int held = net_hold(context, &before);

			hit_sample(&hit);
			if (held)
				syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
		}
		count_cost(gate, hit.tick);
		weft__engine_leave();
	}
	errno = saved;
}
