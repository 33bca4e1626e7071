/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling is a guest in the program: its handlers, its signals, its system calls, its errno and its stacks stay its
 * own. */
/* serial: samples are few, and on a busy machine fewer */
#include "samples.h"

#include <signal.h>
#include <sys/mman.h>

static struct samples result;
static volatile sig_atomic_t app_hits, app_value;
static int done;

static void app_plain(int signal)
{
	app_hits = app_hits + (signal > 0);
}

static void app_info(int signal, siginfo_t *info, void *context)
{
	app_hits = app_hits + (signal > 0 && context != NULL);
	app_value = info->si_value.sival_int;
}

static void app_set(int signal, void *handler, int flags)
{
	struct sigaction action = {.sa_flags = flags};

	if (flags & SA_SIGINFO)
		action.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
	else
		action.sa_handler = (void (*)(int))handler;
	sigemptyset(&action.sa_mask);
	CHECK_EQ(sigaction(signal, &action, NULL), 0);
}

static void *handler_of(int signal)
{
	struct sigaction now;

	sigaction(signal, NULL, &now);
	return (void *)now.sa_handler;
}

/* A recorder whose signal is `signal`. */
static struct weft_recorder *start_on(int signal)
{
	return session_start(&(struct weft_recorder_opts){
		.sample_engine = WEFT_ENGINE_TIMER, .sample_hz = 240, .sample_signal = signal});
}

TEST(dispositions_are_as_they_were_after_stop)
{
	static void *before[65], *during[65];
	struct weft_recorder *rec;
	int taken = 0;

	for (int i = 1; i < 65; i++)
		before[i] = handler_of(i);
	rec = start_on(0);
	REQUIRE(rec);
	for (int i = 1; i < 65; i++)
		during[i] = handler_of(i);
	CHECK(during[SIGPROF] != before[SIGPROF]);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	for (int i = 1; i < 65; i++) {
		taken += during[i] != before[i];
		CHECK(handler_of(i) == before[i]);
	}
	CHECK(taken <= 2);
	CHECK(samples_timers() <= 0);
	samples_end(&result, rec, NULL, 0);
}

TEST(a_handler_that_was_there_gets_its_own_signals)
{
	union sigval value = {.sival_int = 4711};
	struct weft_recorder *rec;

	app_set(SIGUSR1, (void *)app_info, SA_SIGINFO | SA_RESTART);
	app_hits = app_value = 0;
	rec = start_on(SIGUSR1);
	REQUIRE(rec);
	samples_burn(50 * MS);
	CHECK_EQ(app_hits, 0);
	CHECK_EQ(sigqueue(getpid(), SIGUSR1, value), 0);
	CHECK(WAIT_FOR(app_hits == 1));
	CHECK_EQ(app_value, 4711);
	raise(SIGUSR1);
	CHECK_EQ(app_hits, 2);
	if (!UNDER_TSAN)
		CHECK(weft__engine_counts().samples > 0);
	samples_end(&result, rec, NULL, 0);
	CHECK(handler_of(SIGUSR1) == (void *)app_info);
	app_set(SIGUSR1, (void *)app_plain, 0);
	rec = start_on(SIGUSR1);
	REQUIRE(rec);
	raise(SIGUSR1);
	CHECK_EQ(app_hits, 3);
	samples_end(&result, rec, NULL, 0);
	app_set(SIGUSR1, (void *)SIG_DFL, 0);
}

TEST(a_signal_that_the_program_ignores_stays_ignored)
{
	struct weft_recorder *rec;

	app_set(SIGUSR2, (void *)SIG_IGN, 0);
	rec = start_on(SIGUSR2);
	REQUIRE(rec);
	raise(SIGUSR2); /* and nothing happens */
	samples_burn(20 * MS);
	samples_end(&result, rec, NULL, 0);
	CHECK(handler_of(SIGUSR2) == (void *)SIG_IGN);
	app_set(SIGUSR2, (void *)SIG_DFL, 0);
}

TEST(a_signal_whose_default_is_death_still_kills)
{
	int status = 0;
	pid_t pid;

	session_fresh_dir();
	pid = fork();
	if (pid == 0) {
		struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){
			.dir = session_dir, .ring_place = WEFT_RING_DIR, .sample_hz = 240, .sample_signal = SIGPROF});

		samples_burn(10 * MS);
		if (rec)
			raise(SIGPROF);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF);
	session_remove_dir();
}

TEST(a_taken_signal_is_left_alone)
{
	void *const taken[] = {(void *)app_plain, (void *)SIG_IGN};

	SKIP_UNDER_TSAN();
	for (int i = 0; i < 2; i++) {
		struct weft_recorder *rec;

		app_set(SIGPROF, taken[i], 0);
		app_hits = 0;
		rec = start_on(0);
		REQUIRE(rec);
		CHECK(handler_of(SIGPROF) == taken[i]);
		samples_burn(100 * MS);
		CHECK_EQ(app_hits, 0);
		samples_end(&result, rec, NULL, 0);
		CHECK(result.n > 5);
		CHECK(handler_of(SIGPROF) == taken[i]);
	}
	app_set(SIGPROF, (void *)SIG_DFL, 0);
}

TEST(a_handler_installed_over_ours_stays_and_we_move_on)
{
	struct weft_recorder *rec;
	uint64_t before;

	SKIP_UNDER_TSAN();
	rec = start_on(0);
	REQUIRE(rec);
	samples_burn(20 * MS);
	app_set(SIGPROF, (void *)app_plain, SA_RESTART);
	/* The collector finds out, and its timers come by another signal from then on. */
	for (int i = 0; i < 1000; i++) {
		app_hits = 0;
		before = weft__engine_counts().samples;
		samples_burn(30 * MS);
		if (weft__engine_counts().samples > before && app_hits == 0)
			break;
	}
	CHECK(weft__engine_counts().samples > before);
	CHECK_EQ(app_hits, 0);
	samples_end(&result, rec, NULL, 0);
	CHECK(handler_of(SIGPROF) == (void *)app_plain);
	CHECK(samples_timers() <= 0);
	app_set(SIGPROF, (void *)SIG_DFL, 0);
}

static uint64_t missed(void)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < result.tally.n_losses; i++) {
		const struct weft_loss *loss = &result.tally.losses[i];

		count += loss->reason == WEFT_LOSS_SIGNAL ? loss->count : 0;
		CHECK(loss->reason != WEFT_LOSS_SIGNAL || loss->to_ns > loss->from_ns);
	}
	return count;
}

/* Whether the collector finds out, or stop does. */
TEST(what_another_handler_got_is_counted)
{
	uint64_t hits[2] = {0, 0};

	SKIP_UNDER_TSAN();
	/* The collector may be quicker than the first signal. */
	for (int i = 0; i < 40 && (!hits[0] || !hits[1]); i++) {
		struct weft_recorder *rec = start_on(0);
		uint64_t cpu = samples_cpu_ns(CLOCK_PROCESS_CPUTIME_ID), sampled;
		int stop = i & 1;

		REQUIRE(rec);
		samples_burn(20 * MS);
		app_set(SIGPROF, (void *)app_plain, SA_RESTART);
		app_hits = 0;
		sampled = weft__engine_counts().samples;
		do {
			samples_burn(50 * MS);
		} while (!stop && weft__engine_counts().samples == sampled);
		samples_end(&result, rec, NULL, 0);
		cpu = samples_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
		hits[stop] += (uint64_t)app_hits;
		/* Intervals differ by a fourth, the last sample before may stand for more than its own, and one
		 * signal may come after the count. */
		CHECK(missed() + 3 >= (uint64_t)app_hits - (uint64_t)app_hits / 4);
		CHECK(missed() <= cpu / (1000 * MS / 240));
		app_set(SIGPROF, (void *)SIG_DFL, 0);
	}
	CHECK(hits[0] && hits[1]);
}

static struct sigaction before_us;

static void app_passes_on(int signal, siginfo_t *info, void *context)
{
	before_us.sa_sigaction(signal, info, context);
}

TEST(a_handler_that_passes_signals_on_costs_nothing)
{
	struct sigaction action = {.sa_sigaction = app_passes_on, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	rec = start_on(0);
	REQUIRE(rec);
	sigemptyset(&action.sa_mask);
	CHECK_EQ(sigaction(SIGPROF, NULL, &before_us), 0);
	CHECK_EQ(sigaction(SIGPROF, &action, NULL), 0);
	samples_burn(100 * MS);
	samples_end(&result, rec, NULL, 0);
	CHECK(result.n > 5);
	CHECK(missed() <= 3); /* of each thread, what was not a whole period yet */
	app_set(SIGPROF, (void *)SIG_DFL, 0);
}

struct reader {
	int fd, err;
	long got;
	uint64_t spurious;
};

/* Burns, then waits in read, which must come back with the byte and nothing else. */
static void *read_main(void *data)
{
	struct reader *reader = data;
	char byte;

	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		samples_burn(3 * MS);
		errno = 0;
		reader->got = read(reader->fd, &byte, 1);
		if (reader->got != 1)
			reader->spurious++;
	}
	return NULL;
}

TEST(waiting_system_calls_are_not_disturbed)
{
	struct weft_recorder *rec;
	struct reader reader = {0};
	pthread_t thread;
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
	reader.fd = fds[0];
	rec = start_on(0);
	REQUIRE(rec);
	CHECK_EQ(pthread_create(&thread, NULL, read_main, &reader), 0);
	for (int i = 0; i < 60; i++) {
		session_sleep_ns(2 * MS);
		CHECK_EQ(write(fds[1], "x", 1), 1);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	pthread_join(thread, NULL);
	CHECK_EQ(reader.spurious, 0);
	samples_end(&result, rec, NULL, 0);
	close(fds[0]);
	close(fds[1]);
}

/* A thread that sleeps has no CPU time, so nothing may wake it, while others burn, come and go. */
static void *sleep_main(void *data)
{
	uint64_t *woken = data;

	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		struct timespec ts = {0, 20000000};

		if (nanosleep(&ts, NULL) < 0 && errno == EINTR)
			(*woken)++;
	}
	return NULL;
}

static void *burn_5_ms(void *data)
{
	samples_burn(5 * MS);
	return data;
}

TEST(threads_that_sleep_are_not_woken)
{
	struct weft_recorder *rec;
	uint64_t woken[3] = {0};
	pthread_t sleepers[3], thread;

	SKIP_UNDER_TSAN();
	__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
	rec = start_on(0);
	REQUIRE(rec);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&sleepers[i], NULL, sleep_main, &woken[i]), 0);
	for (int i = 0; i < 60; i++) {
		CHECK_EQ(pthread_create(&thread, NULL, burn_5_ms, NULL), 0);
		samples_burn(5 * MS);
		pthread_join(thread, NULL);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		pthread_join(sleepers[i], NULL);
	/* A tick may fall into the few instructions before the sleep. */
	CHECK(woken[0] + woken[1] + woken[2] <= 1);
	samples_end(&result, rec, NULL, 0);
}

TEST(a_sample_leaves_errno_as_it_was)
{
	struct weft_recorder *rec;
	uint64_t until, wrong = 0;

	rec = start_on(0);
	REQUIRE(rec);
	until = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 100 * MS;
	while (samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
		for (int i = 0; i < 1000; i++) {
			errno = 1000 + i;
			samples_spin(10);
			wrong += errno != 1000 + i;
		}
	}
	CHECK_EQ(wrong, 0);
	samples_end(&result, rec, NULL, 0);
}

BURNER(burn_in_handler)(void)
{
	samples_burn(120 * MS);
}

BURNER(burning_handler)(int signal)
{
	(void)signal;
	burn_in_handler();
	__asm__ volatile(""); /* no tail call */
}

BURNER(calls_the_handler)(void)
{
	raise(SIGUSR1);
	__asm__ volatile(""); /* no tail call */
}

static int own_stack_known(void)
{
	const struct weft__slot *slot = weft__slot_find((uint32_t)syscall(SYS_gettid), NULL);

	return slot && load_relaxed(&slot->stack_high) != 0;
}

static void check_altstack(uint32_t engine, uint32_t hz, int known)
{
	struct samples_function functions[] = {RANGE(burn_in_handler), RANGE(calls_the_handler),
					       RANGE(burning_handler)};
	size_t bytes = 1 << 16, i;
	stack_t before, alt = {.ss_size = bytes};
	struct weft_recorder *rec;

	alt.ss_sp = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_EQ(sigaltstack(&alt, &before), 0);
	app_set(SIGUSR1, (void *)burning_handler, SA_ONSTACK);
	rec = samples_start(engine, hz);
	REQUIRE(rec);
	for (i = 0; known && (i < 5 || (i < 100 && !own_stack_known())); i++)
		samples_burn(20 * MS);
	CHECK(!known || own_stack_known());
	calls_the_handler();
	functions[0].caller = &functions[2];
	functions[2].caller = &functions[1];
	samples_end(&result, rec, functions, 3);
	printf("\t%llu samples, %llu in the handler, %llu lost\n", (unsigned long long)result.n,
	       (unsigned long long)functions[0].total, (unsigned long long)result.lost_way);
	CHECK(functions[0].total >= 5);
	/* From the alternate stack through the signal's frame to the thread's own, each of them. A sample that came
	 * with the signal is of the handler's first instruction, and one may be of raise before, one after. */
	CHECK_EQ(functions[2].total, functions[0].total + functions[2].self);
	CHECK_EQ(functions[0].uncalled, 0);
	CHECK_EQ(functions[2].uncalled, 0);
	CHECK(functions[1].total <= functions[2].total + 2);
	CHECK(result.complete * 100 >= result.n * 95);
	app_set(SIGUSR1, (void *)SIG_DFL, 0);
	sigaltstack(&before, NULL);
	munmap(alt.ss_sp, bytes);
}

TEST(handlers_on_an_alternate_stack_have_whole_stacks)
{
	SKIP_UNDER_TSAN();
	check_altstack(WEFT_ENGINE_TIMER, 240, 1);
	check_altstack(WEFT_ENGINE_PERF, 999, 1);
}

static void *altstack_main(void *data)
{
	(void)data;
	check_altstack(WEFT_ENGINE_TIMER, 240, 0);
	return NULL;
}

/* The first sample of a thread, and all others, may be on such a stack. */
TEST(a_thread_that_is_first_met_on_an_alternate_stack_has_whole_stacks)
{
	pthread_t thread;

	SKIP_UNDER_TSAN();
	check_altstack(WEFT_ENGINE_TIMER, 240, 0);
	CHECK_EQ(pthread_create(&thread, NULL, altstack_main, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

#if defined(__x86_64__)
/* As OpenSSL's SHA-512: where the frame is, is kept below the stack pointer. */
__asm__(".text\n"
	".type by_red_zone, @function\n"
	"by_red_zone:\n"
	".cfi_startproc\n"
	"mov %rsp, %rax\n"
	".cfi_def_cfa rax, 8\n"
	"sub $256, %rsp\n"
	"and $-64, %rsp\n"
	"mov %rax, -8(%rsp)\n"
	".cfi_escape 0x0f, 5, 0x77, 0x78, 0x06, 0x23, 8\n" /* the word at rsp - 8, and 8 */
	"1: xor %eax, %eax\n"
	"dec %rdi\n"
	"jnz 1b\n"
	"mov -8(%rsp), %rsp\n"
	".cfi_def_cfa rsp, 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size by_red_zone, . - by_red_zone\n");
void by_red_zone(uint64_t turns);

TEST(a_frame_that_is_found_below_the_stack_pointer)
{
	uint64_t until;
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 240);
	REQUIRE(rec);
	until = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 120 * MS;
	while (samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		by_red_zone(1000000);
	samples_end(&result, rec, NULL, 0);
	printf("\t%llu samples, %llu complete\n", (unsigned long long)result.n, (unsigned long long)result.complete);
	CHECK(result.n >= 5);
	CHECK_EQ(result.complete, result.n);
}
#endif

static void trap_handler(int signal)
{
	app_hits = app_hits + (signal == SIGTRAP);
}

/* A signal stack as Rust's threads have, and then a page that nobody may touch. */
static void *burn_on_a_small_signal_stack(void *data)
{
	char *at = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t small = {.ss_sp = at + 4096, .ss_size = 8192}, off = {.ss_flags = SS_DISABLE};

	if (!CHECK(at != MAP_FAILED) || !CHECK_EQ(mprotect(at, 4096, PROT_NONE), 0) ||
	    !CHECK_EQ(sigaltstack(&small, NULL), 0))
		return data;
	samples_burn(300 * MS);
	CHECK_EQ(sigaltstack(&off, NULL), 0);
	munmap(at, 3 * 4096);
	return data;
}

TEST(a_signal_stack_of_8_kib_is_enough_for_samples)
{
	struct weft_recorder_stats stats = WEFT_OPTIONS_INIT(weft_recorder_stats);
	struct weft_recorder *rec;
	pthread_t thread;

#ifdef __SANITIZE_ADDRESS__
	SKIP("frames of AddressSanitizer need more than such a stack has");
#endif
	if (2 * sysconf(_SC_MINSIGSTKSZ) > 7600)
		SKIP("two handlers need more than 8 KiB with the registers of this CPU");
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 99});
	REQUIRE(rec);
	REQUIRE(pthread_create(&thread, NULL, burn_on_a_small_signal_stack, NULL) == 0);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_recorder_stats(rec, &stats), 0);
	CHECK(stats.samples > 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

struct stack_of {
	size_t bytes;
	uint64_t cpu_ns;
	useconds_t nap_us; /* before it burns */
};

static void *burn_on_a_signal_stack_of(void *data)
{
	const struct stack_of *of = data;
	char *at = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t small = {.ss_sp = at + 2 * 4096, .ss_size = of->bytes}, off = {.ss_flags = SS_DISABLE};

	if (at == MAP_FAILED || mprotect(at, 2 * 4096, PROT_NONE) < 0 || sigaltstack(&small, NULL) < 0)
		_exit(3);
	usleep(of->nap_us);
	samples_burn(of->cpu_ns);
	sigaltstack(&off, NULL);
	munmap(at, 4 * 4096);
	return data;
}

/* Threads come and go, so there is a second source of signals, and both expire at the same tick as often as not. */
static int churn_on_signal_stacks_of(size_t bytes, uint32_t engine)
{
	/* While one naps the collector, which goes behind all others, has a CPU to find them with. */
	struct stack_of of[2] = {{.bytes = bytes, .cpu_ns = 15 * MS},
				 {.bytes = bytes, .cpu_ns = 15 * MS, .nap_us = 8000}};
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){
		.dir = session_dir, .ring_place = WEFT_RING_DIR, .sample_engine = engine, .sample_hz = 240});
	pthread_t threads[2];

	for (int i = 0; rec && i < 40; i++) {
		for (int j = 0; j < 2; j++)
			if (pthread_create(&threads[j], NULL, burn_on_a_signal_stack_of, &of[j]))
				return 4;
		for (int j = 0; j < 2; j++)
			pthread_join(threads[j], NULL);
	}
	if (!rec || weft__engine_counts().samples < 5)
		return 5;
	return weft_recorder_close(rec, NULL) ? 6 : 0;
}

TEST(a_signal_stack_with_no_room_for_two_handlers_ends_nobody)
{
	static const uint32_t engines[] = {WEFT_ENGINE_TIMER, WEFT_ENGINE_AUTO};
	size_t frame = (size_t)sysconf(_SC_MINSIGSTKSZ), sizes[] = {frame + 900, frame + 1800, 2 * frame};

	SKIP_UNDER_TSAN();
#ifdef __SANITIZE_ADDRESS__
	SKIP("frames of AddressSanitizer need more than such a stack has");
#endif
	if (sizes[2] > 8192)
		SKIP("two handlers need more than 8 KiB with the registers of this CPU: there is one source of "
		     "signals");
	for (int i = 0; i < 6; i++) {
		int status = -1;
		pid_t pid;

		session_fresh_dir();
		pid = fork();
		if (pid == 0)
			_exit(churn_on_signal_stacks_of(sizes[i / 2] & ~(size_t)63, engines[i % 2]));
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		if (!CHECK_EQ(status, 0))
			printf("\tstacks of %zu bytes, engine %u\n", sizes[i / 2] & ~(size_t)63, engines[i % 2]);
		session_remove_dir();
	}
}

TEST(a_program_s_own_breakpoints_are_its_own)
{
	struct weft_recorder *rec;

	SKIP_UNDER_TSAN();
	app_set(SIGTRAP, (void *)trap_handler, SA_RESTART);
	app_hits = 0;
	rec = samples_start(WEFT_ENGINE_PERF, 999);
	REQUIRE(rec);
	samples_burn(20 * MS);
	CHECK_EQ(app_hits, 0);
	raise(SIGTRAP);
#if defined(__x86_64__)
	__asm__ volatile("int3");
	CHECK_EQ(app_hits, 2);
#else
	CHECK_EQ(app_hits, 1);
#endif
	samples_end(&result, rec, NULL, 0);
	/* Ours may stay in front of it, for signals that are still under way. */
	app_hits = 0;
	raise(SIGTRAP);
	CHECK_EQ(app_hits, 1);
	app_set(SIGTRAP, (void *)SIG_DFL, 0);
}
