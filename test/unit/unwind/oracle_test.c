/* SPDX-License-Identifier: Apache-2.0 */
/* Our stacks beside libunwind's: at every single instruction of some code (the processor's trap flag), and at moments that a timer
 * chooses. Both must give the same frames, to the thread's first function. */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include "oracle.h"
#include "weft_test.h"

static void *plain, *thrown, *rust;
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
		rust = fixture_make("rustc -O --crate-type cdylib", "sort.rs");
	return why;
}

/* `least` of a thousand complete. A throw is not: while the C++ library moves registers over to the frame that catches, its own frame
 * is half overwritten, and no table says how. libunwind is lost there, too. */
static void agree(unsigned least)
{
	CHECK(seen.complete * 1000 >= seen.samples * least);
	CHECK((seen.same + seen.both_lost) * 1000 >= seen.samples * 995);
}

#if defined(__x86_64__)
static void trap_flag_on(void)
{
	__asm__ volatile(
		"leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::
			: "memory", "cc");
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	int saved = errno;

	(void)signal;
	(void)info;
	if (stop || seen.samples >= want)
		uc->uc_mcontext.gregs[REG_EFL] &= ~0x100;
	else
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
	want = most;
	sigaction(SIGTRAP, &action, &before);
	if (CHECK_EQ(pthread_create(&thread, NULL, stepped, &run), 0))
		pthread_join(thread, NULL);
	sigaction(SIGTRAP, &before, NULL);
	seen_print(name);
	CHECK(seen.samples > 500);
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
STEP_TEST(every_instruction_of_a_throw, thrown, "fixture_throw", 60000, 990)
STEP_TEST(every_instruction_of_rust, rust, "fixture_rust", 60000, 990)
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
	CHECK(weft__modules_refresh() >= 0);
	memset(&seen, 0, sizeof(seen));
	want = n;
	stop = 0;
	sigaction(SIGPROF, &action, &before);
	if (CHECK_EQ(pthread_create(&thread, NULL, sampled, &timed), 0))
		pthread_join(thread, NULL);
	signal(SIGPROF, SIG_IGN);
	sigaction(SIGPROF, &before, NULL);
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
SAMPLE_TEST(samples_of_a_throw, thrown, "fixture_throw", 2000, 970)
SAMPLE_TEST(samples_of_rust, rust, "fixture_rust", 2000, 970)
