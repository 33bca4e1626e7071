/* SPDX-License-Identifier: Apache-2.0 */
/* Our stacks beside libunwind's: at every single instruction of some code (the processor's trap flag), and at moments
 * that a timer chooses. Both must give the same frames, to the thread's first function. */
/* presets: asan release: it takes long */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include "oracle.h"
#include "unwind/walk.h"
#include "weft_test.h"

static void *plain, *thrown, *within, *rust;
static uint64_t want;
static volatile int stop;

static const char *ready(void)
{
	static const char *why;
	static int tried;

	if (tried++)
		return why;
#if defined(__SANITIZE_THREAD__)
	return why = "ThreadSanitizer delivers signals later, from a place of its own";
#endif
	why = oracle_open();
	if (!why && !(plain = fixture_open("cc", "plain.c", "-Wl,-z,lazy")))
		why = "no fixture";
	if (!why)
		thrown = fixture_open("c++", "throw.cc", "");
	if (!why)
		within = fixture_open("c++ -x c++", "throw_within.cc",
				      "-static-libgcc -static-libstdc++ -Wl,-Bsymbolic");
	if (!why)
		rust = fixture_make("rustc -O --crate-type cdylib", "sort.rs");
	return why;
}

/* Of a thousand samples so many must be complete, to the thread's first function; and so many of a thousand the same
 * as libunwind's, frame for frame, or proved in another way where libunwind loses its way. It does, in a throw, while
 * libgcc moves the catcher's registers into its own frame (landing_hot.c): what is right there, the tests know that go
 * through it instruction by instruction. */
static void agree(unsigned least)
{
	CHECK(seen.complete * 1000 >= seen.samples * least);
	CHECK((seen.same + seen.proved) * 1000 >= seen.samples * 995);
}

/* The instructions at which stacks beyond libunwind's were proved, for the samples that a timer takes of the same
 * code: at one of them, or at another of the same function. Where libunwind is lost in a loop of libgcc's depends on
 * the round, and so on what is thrown through. */
#define PROVED_MAX 4096
#define FUNCTION_BYTES 0x220 /* of uw_install_context_1 */
static uint64_t proved_at[PROVED_MAX];
static size_t n_proved;

static int proved_within(uint64_t bytes)
{
	for (size_t i = 0; i < n_proved; i++)
		if (proved_at[i] - ours[0] < bytes || ours[0] - proved_at[i] < bytes)
			return 1;
	return 0;
}

static int proved_before(size_t n)
{
	(void)n;
	return proved_within(FUNCTION_BYTES);
}

#if defined(__x86_64__)
static void trap_flag_on(void)
{
	__asm__ volatile(
		"leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::
			: "memory", "cc");
}

/* The stack as it is made: each call that an instruction was seen to make, until the stack pointer is above it
 * again. */
static struct {
	uint64_t slot[DEPTH], back[DEPTH];
	size_t n;
	uint64_t pc, sp; /* before the instruction */
} calls;

WALK_RAW static void calls_follow(const ucontext_t *uc)
{
	uint64_t pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP], sp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
	uint64_t top = *(const uint64_t *)(uintptr_t)sp;

	while (calls.n && calls.slot[calls.n - 1] < sp)
		calls.n--;
	if (sp == calls.sp - 8 && top > calls.pc && top <= calls.pc + 15 && calls.n < DEPTH) {
		calls.slot[calls.n] = sp;
		calls.back[calls.n++] = top;
	}
	calls.pc = pc;
	calls.sp = sp;
}

/* The unwinder's own frames, the landing pad, and then the callers of whoever catches; the frames between may be left
 * out. */
static int calls_prove(size_t n)
{
	size_t own = 0, outer = 0;

	/* Two frames called the first that was seen to be called: the thread library's. */
	if (n < 3 || !calls.n)
		return 0;
	for (; outer < calls.n && outer + 2 < n && ours[n - 3 - outer] == calls.back[outer] - 1; outer++)
		;
	while (own < calls.n && (own == 0 ? calls.pc : calls.back[calls.n - own] - 1) == ours[own])
		own++;
	if (!(outer > 0 && own > 0 && own + outer + 2 + 1 >= n))
		return 0;
	if (!proved_within(1) && n_proved < PROVED_MAX)
		proved_at[n_proved++] = ours[0];
	return 1;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	int saved = errno;

	(void)signal;
	(void)info;
	if (stop || seen.samples >= want)
		uc->uc_mcontext.gregs[REG_EFL] &= ~0x100;
	calls_follow(uc);
	if (uc->uc_mcontext.gregs[REG_EFL] & 0x100)
		sample(context);
	errno = saved;
}

static void *stepped(void *arg)
{
	void (*run)(void) = *(void (**)(void))arg;

	stack_learn();
	run();
	stop = 0;
	trap_flag_on();
	run();
	stop = 1;
	return NULL;
}

/* Lets a thread go through `name` once unseen and once instruction by instruction, up to `most` of them. */
static void step_through(void *lib, const char *name, uint64_t most, unsigned least)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART}, before;
	void (*run)(void);
	pthread_t thread;

	*(void **)&run = dlsym(lib, name);
	if (!CHECK(run != NULL))
		return;
	CHECK(weft__modules_refresh() >= 0);
	memset(&seen, 0, sizeof(seen));
	memset(&calls, 0, sizeof(calls));
	want = most;
	proof = calls_prove;
	sigaction(SIGTRAP, &action, &before);
	if (CHECK_EQ(pthread_create(&thread, NULL, stepped, &run), 0))
		pthread_join(thread, NULL);
	sigaction(SIGTRAP, &before, NULL);
	proof = NULL;
	seen_print(name);
	CHECK(seen.samples > 500);
	CHECK_EQ(seen.proved, seen.beyond);
	agree(least);
}

#define STEP_TEST(test, lib, name, most, least)                                                                        \
	TEST(test)                                                                                                     \
	{                                                                                                              \
		const char *why = ready();                                                                             \
		if (why)                                                                                               \
			SKIP(why);                                                                                     \
		if (!(lib))                                                                                            \
			SKIP("no fixture");                                                                            \
		step_through((lib), (name), (most), (least));                                                          \
	}

STEP_TEST(every_instruction_of_plain_code, plain, "fixture_plain", 20000, 1000)
STEP_TEST(every_instruction_of_recursion, plain, "fixture_shallow", 20000, 1000)
STEP_TEST(every_instruction_of_realigned_stacks, plain, "fixture_drap", 20000, 1000)
STEP_TEST(every_instruction_of_libc, plain, "fixture_libc", 60000, 1000)
STEP_TEST(every_instruction_around_a_signal, plain, "fixture_signal", 20000, 1000)
STEP_TEST(every_instruction_of_a_throw, thrown, "fixture_throw", 90000, 1000)
STEP_TEST(every_instruction_of_a_throw_by_a_libgcc_of_ones_own, within, "fixture_throw", 90000, 1000)
STEP_TEST(every_instruction_of_rust, rust, "fixture_rust", 60000, 1000)
#endif

static void on_timer(int signal, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)signal;
	(void)info;
	sample(context);
	if (seen.samples >= want)
		stop = 1;
	errno = saved;
}

struct timed {
	void (*run)(void);
	const char *name;
};

static void *sampled(void *arg)
{
	struct timed *timed = arg;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	struct itimerspec spec = {{0, 200000}, {0, 200000}};
	uint64_t begin = (uint64_t)time(NULL);
	timer_t timer;

	stack_learn();
	event._sigev_un._tid = (int)syscall(SYS_gettid);
	if (!CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0))
		return NULL;
	timer_settime(timer, 0, &spec, NULL);
	while (!stop && (uint64_t)time(NULL) - begin < 20)
		timed->run();
	timer_delete(timer);
	return NULL;
}

static void sample_some(void *lib, const char *name, uint64_t n, unsigned least)
{
	struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART}, before;
	struct timed timed = {NULL, name};
	pthread_t thread;

	*(void **)&timed.run = dlsym(lib, name);
	if (!CHECK(timed.run != NULL))
		return;
#if defined(__x86_64__)
	if (!n_proved && (lib == thrown || lib == rust)) /* when this test is run by itself */
		step_through(lib, name, 90000, 1000);
#endif
	CHECK(weft__modules_refresh() >= 0);
	memset(&seen, 0, sizeof(seen));
	want = n;
	stop = 0;
	proof = proved_before;
	sigaction(SIGPROF, &action, &before);
	if (CHECK_EQ(pthread_create(&thread, NULL, sampled, &timed), 0))
		pthread_join(thread, NULL);
	signal(SIGPROF, SIG_IGN);
	sigaction(SIGPROF, &before, NULL);
	proof = NULL;
	seen_print(name);
	CHECK(seen.samples >= n / 4);
	agree(least);
}

#define SAMPLE_TEST(test, lib, name, n, least)                                                                         \
	TEST(test)                                                                                                     \
	{                                                                                                              \
		const char *why = ready();                                                                             \
		if (why)                                                                                               \
			SKIP(why);                                                                                     \
		if (!(lib))                                                                                            \
			SKIP("no fixture");                                                                            \
		sample_some((lib), (name), (n), (least));                                                              \
	}

SAMPLE_TEST(samples_of_plain_code, plain, "fixture_plain", 2000, 995)
SAMPLE_TEST(samples_of_recursion_300_deep, plain, "fixture_deep", 1000, 995)
SAMPLE_TEST(samples_of_realigned_stacks, plain, "fixture_drap", 2000, 995)
SAMPLE_TEST(samples_of_libc, plain, "fixture_libc", 2000, 995)
SAMPLE_TEST(samples_of_a_signal_handler, plain, "fixture_signal", 2000, 995)
SAMPLE_TEST(samples_of_a_fault_handler, plain, "fixture_fault", 2000, 995)
SAMPLE_TEST(samples_of_a_throw, thrown, "fixture_throw", 4000, 995)
SAMPLE_TEST(samples_of_rust, rust, "fixture_rust", 4000, 995)
