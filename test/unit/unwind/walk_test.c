/* SPDX-License-Identifier: Apache-2.0 */
/* The unwinder on stacks that only weft__unwind itself is asked about: copies, alternate stacks, deep ones, code
 * without rules. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"
#include "weft_test.h"

static void *lib;

static void *symbol(const char *name)
{
	if (!lib)
		lib = fixture_open("cc", "plain.c", "");
	weft__modules_refresh();
	return lib ? dlsym(lib, name) : NULL;
}

/* What the handler below does with each context; set by the tests. */
static void (*on_context)(const ucontext_t *uc);

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	on_context(context);
}

static void inside(void)
{
	raise(SIGUSR1);
}

/* Runs a fixture that calls `inside` in its middle, which is then looked at by `look`. */
static int look_inside(const char *name, void (*look)(const ucontext_t *uc), int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags}, before;
	void (*run)(void);
	void (**hook)(void) = symbol("fixture_inside");

	*(void **)&run = symbol(name);
	if (!CHECK(run && hook))
		return 0;
	stack_learn();
	on_context = look;
	*hook = inside;
	sigaction(SIGUSR1, &action, &before);
	run();
	sigaction(SIGUSR1, &before, NULL);
	*hook = NULL;
	return 1;
}

static uint64_t first[DEPTH], second[DEPTH];
static size_t n_first, n_second;
static uint32_t first_flags, second_flags;

static int in_function(uint64_t addr, const char *name)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)addr, &info) && info.dli_sname && strcmp(info.dli_sname, name) == 0;
}

static size_t count_of(const uint64_t *out, size_t n, uint64_t low, uint64_t high)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += out[i] >= low && out[i] < high;
	return count;
}

/* The frames of others, redzones and all. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static void raw_copy(uint8_t *to, uint64_t from,
										    uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		((volatile uint8_t *)to)[i] = *(const volatile uint8_t *)(uintptr_t)(from + i);
}

static void look_copied(const ucontext_t *uc)
{
	const struct weft__modules *set;
	uint32_t visit;
	static uint8_t copy[1 << 20];
	struct weft__unwind_stack stack = my_stack;
	struct weft__unwind_regs regs;
	uint64_t sp, bytes;

	weft__unwind_regs_set(&regs, uc);
	sp = regs.r[ARCH_SP];
	set = weft__modules_enter(&visit);
	n_first = weft__unwind(set, &regs, &stack, first, DEPTH, &first_flags);
	bytes = stack.range[0].high - sp;
	if (bytes > sizeof(copy))
		bytes = sizeof(copy);
	raw_copy(copy, sp, bytes);
	stack.range[0] = (struct weft__unwind_range){sp, sp + bytes, copy};
	/* Only what a perf event has. */
	regs.valid = (uint64_t)1 << ARCH_SP | (uint64_t)1 << ARCH_FP;
	n_second = weft__unwind(set, &regs, &stack, second, DEPTH, &second_flags);
	weft__modules_leave(visit);
}

TEST(a_copied_stack_gives_the_same_frames)
{
	if (!look_inside("fixture_deep", look_copied, 0))
		return;
	CHECK(n_first > 300);
	CHECK_EQ(first_flags, WEFT__UNWIND_COMPLETE);
	CHECK_EQ(second_flags, WEFT__UNWIND_COMPLETE);
	CHECK_EQ(n_first, n_second);
	CHECK(memcmp(first, second, n_first * 8) == 0);
}

static void look_short_copy(const ucontext_t *uc)
{
	const struct weft__modules *set;
	uint32_t visit;
	static uint8_t copy[2048];
	struct weft__unwind_stack stack = {0};
	struct weft__unwind_regs regs;

	weft__unwind_regs_set(&regs, uc);
	raw_copy(copy, regs.r[ARCH_SP], sizeof(copy));
	stack.range[0] = (struct weft__unwind_range){regs.r[ARCH_SP], regs.r[ARCH_SP] + sizeof(copy), copy};
	set = weft__modules_enter(&visit);
	n_first = weft__unwind(set, &regs, &stack, first, DEPTH, &first_flags);
	weft__modules_leave(visit);
}

TEST(a_copy_that_ends_too_soon_is_lost_there)
{
	if (!look_inside("fixture_deep", look_short_copy, 0))
		return;
	CHECK(n_first > 5 && n_first < 300);
	CHECK_EQ(first_flags, WEFT__UNWIND_LOST);
}

static void look_at_depths(const ucontext_t *uc)
{
	const struct weft__modules *set;
	uint32_t visit;
	struct weft__unwind_regs regs;

	weft__unwind_regs_set(&regs, uc);
	set = weft__modules_enter(&visit);
	n_first = weft__unwind(set, &regs, &my_stack, first, DEPTH, &first_flags);
	n_second = weft__unwind(set, &regs, &my_stack, second, 10, &second_flags);
	weft__modules_leave(visit);
}

TEST(a_stack_deeper_than_asked_for_is_cut_and_keeps_its_leaf)
{
	if (!look_inside("fixture_deepest", look_at_depths, 0))
		return;
	CHECK_EQ(n_first, WEFT__UNWIND_DEPTH_MAX);
	CHECK_EQ(first_flags, WEFT__UNWIND_CUT);
	CHECK_EQ(n_second, 10);
	CHECK_EQ(second_flags, WEFT__UNWIND_CUT);
	CHECK(memcmp(first, second, n_second * 8) == 0);
}

static void look_alternate(const ucontext_t *uc)
{
	const struct weft__modules *set;
	uint32_t visit;
	struct weft__unwind_stack stack = my_stack;
	struct weft__unwind_regs regs;
	stack_t alt;

	sigaltstack(NULL, &alt);
	weft__unwind_regs_set(&regs, uc);
	stack.range[1] = stack.range[0];
	stack.range[0] =
		weft__unwind_live((uint64_t)(uintptr_t)alt.ss_sp, (uint64_t)(uintptr_t)alt.ss_sp + alt.ss_size);
	set = weft__modules_enter(&visit);
	n_first = weft__unwind(set, &regs, &stack, first, DEPTH, &first_flags);
	weft__modules_leave(visit);
	CHECK(regs.r[ARCH_SP] >= stack.range[0].low && regs.r[ARCH_SP] < stack.range[0].high);
}

TEST(a_handler_on_an_alternate_stack_leads_to_the_threads_own)
{
	void *run = symbol("fixture_altstack");
	size_t at;

#if defined(__SANITIZE_THREAD__)
	SKIP("ThreadSanitizer delivers signals later, on another stack");
#endif
	if (!look_inside("fixture_altstack", look_alternate, 0))
		return;
	CHECK_EQ(first_flags, WEFT__UNWIND_COMPLETE | WEFT__UNWIND_SIGNAL);
	for (at = 0; at < n_first && !in_function(first[at], "fixture_altstack"); at++)
		;
	CHECK(at > 4 && at < n_first);
	CHECK(run != NULL);
}

#if defined(__x86_64__)
static ucontext_t coroutine, back;

static void in_coroutine(void)
{
	inside();
}

static void look_at_coroutine(const ucontext_t *uc)
{
	const struct weft__modules *set;
	uint32_t visit;
	struct weft__unwind_stack stack = {0};
	struct weft__unwind_regs regs;
	uint64_t low = (uint64_t)(uintptr_t)coroutine.uc_stack.ss_sp;

	weft__unwind_regs_set(&regs, uc);
	stack.range[0] = weft__unwind_live(low, low + coroutine.uc_stack.ss_size);
	set = weft__modules_enter(&visit);
	n_first = weft__unwind(set, &regs, &stack, first, DEPTH, &first_flags);
	weft__modules_leave(visit);
}

/* Nobody called its first function: what it returns to is the begin of another. */
TEST(a_stack_that_makecontext_made_is_whole)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, before;
	size_t bytes = 256 * 1024;
	uint64_t returns_to;
	char *stack;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	SKIP("sanitizers know of one stack for each thread");
#endif
	stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(stack != MAP_FAILED);
	REQUIRE(getcontext(&coroutine) == 0);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = bytes;
	coroutine.uc_link = &back;
	makecontext(&coroutine, in_coroutine, 0);
	memcpy(&returns_to, (void *)(uintptr_t)coroutine.uc_mcontext.gregs[REG_RSP], 8);
	weft__modules_refresh();
	on_context = look_at_coroutine;
	sigaction(SIGUSR1, &action, &before);
	swapcontext(&back, &coroutine);
	sigaction(SIGUSR1, &before, NULL);
	CHECK_EQ(first_flags, WEFT__UNWIND_COMPLETE);
	CHECK(n_first > 1);
	CHECK_EQ(first[n_first - 1], returns_to);
	munmap(stack, bytes);
}
#endif

static void look_plain(const ucontext_t *uc)
{
	const struct weft__modules *set;
	uint32_t visit;
	struct weft__unwind_regs regs;

	weft__unwind_regs_set(&regs, uc);
	set = weft__modules_enter(&visit);
	n_first = weft__unwind(set, &regs, &my_stack, first, DEPTH, &first_flags);
	weft__modules_leave(visit);
}

#if defined(__x86_64__)
/* As Go calls C: the rules are those of the caller's stack, and the stack pointer is on another one, where a pointer
 * to the caller's own data is in the place of the return address. */
__asm__(".text\n"
	".type go_calls, @function\n"
	"go_calls:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	"push %rbx\n"
	"mov %rsp, %rbx\n"
	"sub $24, %rsp\n"
	".cfi_def_cfa rsp, 16\n"
	"mov %rsi, 8(%rsp)\n"
	"mov $1, %ebp\n"
	"call *%rdi\n"
	".globl go_returns\n"
	"go_returns:\n"
	"mov 8(%rsp), %rdi\n"
	"mov 8(%rdi), %rsi\n"
	"mov %rbx, %rsp\n"
	"pop %rbx\n"
	"pop %rbp\n"
	"ret\n"
	".cfi_endproc\n"
	".size go_calls, . - go_calls\n");
void go_calls(void (*function)(void), void *data);
extern const char go_returns[];

TEST(a_frame_whose_caller_is_on_another_stack_is_the_last)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, before;
	void *heap = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(heap != MAP_FAILED);
	weft__modules_refresh();
	stack_learn();
	on_context = look_plain;
	sigaction(SIGUSR1, &action, &before);
	go_calls(inside, heap);
	CHECK_EQ(first_flags & (WEFT__UNWIND_LOST | WEFT__UNWIND_COMPLETE), WEFT__UNWIND_LOST);
	CHECK(n_first > 2);
	CHECK_EQ(first[n_first - 1] + 1, (uint64_t)(uintptr_t)go_returns);
	sigaction(SIGUSR1, &before, NULL);
	munmap(heap, 4096);
}

/* As OpenSSL's AES-GCM: the frame is found by a register that calls may change, and that its own callee keeps. */
__asm__(".text\n"
	".type found_by_rax, @function\n"
	"found_by_rax:\n"
	".cfi_startproc\n"
	"lea (%rsp), %rax\n"
	".cfi_def_cfa rax, 8\n"
	"push %rbx\n"
	".cfi_offset rbx, -16\n"
	"push %rbp\n"
	".cfi_offset rbp, -24\n"
	"sub $128, %rsp\n"
	"and $-128, %rsp\n"
	"mov $1, %ebp\n"
	"call keeps_rax\n"
	".globl found_returns\n"
	"found_returns:\n"
	"mov -16(%rax), %rbp\n"
	".cfi_restore rbp\n"
	"mov -8(%rax), %rbx\n"
	".cfi_restore rbx\n"
	"lea (%rax), %rsp\n"
	".cfi_def_cfa rsp, 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size found_by_rax, . - found_by_rax\n"
	".type keeps_rax, @function\n"
	"keeps_rax:\n"
	".cfi_startproc\n"
	"int3\n"
	"ret\n"
	".cfi_endproc\n"
	".size keeps_rax, . - keeps_rax\n");
void found_by_rax(void);
extern const char found_returns[];

TEST(a_frame_that_is_found_by_a_register_that_calls_may_change)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, before;

	weft__modules_refresh();
	stack_learn();
	on_context = look_plain;
	sigaction(SIGTRAP, &action, &before);
	found_by_rax();
	sigaction(SIGTRAP, &before, NULL);
	CHECK_EQ(first_flags, WEFT__UNWIND_COMPLETE);
	CHECK(n_first > 3);
	CHECK_EQ(first[1] + 1, (uint64_t)(uintptr_t)found_returns);
}
#endif

TEST(a_stack_that_was_not_given_is_not_read)
{
	/* The frames are another thread's, the range is ours. */
	if (!look_inside("fixture_thread", look_plain, 0))
		return;
	CHECK_EQ(first_flags, WEFT__UNWIND_LOST);
	CHECK_EQ(n_first, 1);
}

#if defined(__x86_64__)
/* Code made at run time, with a frame pointer: push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const uint8_t made[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

static void (*made_code(void))(void (*)(void))
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run)(void (*)(void));

	if (page == MAP_FAILED)
		return NULL;
	memcpy(page, made, sizeof(made));
	*(void **)&run = page;
	return run;
}

TEST(code_without_rules_is_walked_by_its_frame_pointer)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, before;
	void (*run)(void (*)(void)) = made_code();
	uint64_t page;

	REQUIRE(run != NULL);
	weft__modules_refresh();
	stack_learn();
	on_context = look_plain;
	sigaction(SIGUSR1, &action, &before);
	run(inside);
	sigaction(SIGUSR1, &before, NULL);
	page = (uint64_t)(uintptr_t)run;
	CHECK_EQ(first_flags, WEFT__UNWIND_COMPLETE | WEFT__UNWIND_FP);
	CHECK_EQ(count_of(first, n_first, page, page + sizeof(made)), 1);
	munmap((void *)(uintptr_t)page, 4096);
}

static void look_at_nothing(const ucontext_t *uc)
{
	const struct weft__modules *set;
	uint32_t visit;
	struct weft__unwind_regs regs;

	weft__unwind_regs_set(&regs, uc);
	set = weft__modules_enter(&visit);
	n_first = weft__unwind(set, &regs, &my_stack, first, DEPTH, &first_flags);
	weft__modules_leave(visit);
	/* Returns as if the call had. */
	((ucontext_t *)(uintptr_t)uc)->uc_mcontext.gregs[REG_RIP] = *(greg_t *)(uintptr_t)regs.r[ARCH_SP];
	((ucontext_t *)(uintptr_t)uc)->uc_mcontext.gregs[REG_RSP] += 8;
}

__attribute__((noinline)) static int call_nothing(void (*volatile nothing)(void))
{
	nothing();
	return 7;
}

TEST(a_call_to_address_zero_still_shows_who_called)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, before;

	weft__modules_refresh();
	stack_learn();
	on_context = look_at_nothing;
	sigaction(SIGSEGV, &action, &before);
	CHECK_EQ(call_nothing(NULL), 7);
	sigaction(SIGSEGV, &before, NULL);
	CHECK_EQ(first[0], 0);
	CHECK(n_first > 3);
	CHECK(first_flags & WEFT__UNWIND_COMPLETE && first_flags & WEFT__UNWIND_NO_CODE);
}
#endif

/* A cache of zeroes must not have a rule for any of them. */
TEST(addresses_where_nothing_can_be_are_lost)
{
	static const uint64_t nowhere[] = {0, 1, 2, UINT64_MAX - 1, UINT64_MAX};
	struct weft__unwind_stack stack = {0};
	uint32_t visit;
	const struct weft__modules *set;

	CHECK(weft__modules_refresh() >= 0);
	set = weft__modules_enter(&visit);
	for (unsigned i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		struct weft__unwind_regs regs = {.pc = nowhere[i], .valid = 1u << ARCH_SP};

		CHECK_EQ(weft__unwind(set, &regs, &stack, first, DEPTH, &first_flags), 1);
		CHECK_EQ(first[0], nowhere[i]);
		CHECK(first_flags & WEFT__UNWIND_LOST);
	}
	weft__modules_leave(visit);
}

TEST(without_a_set_there_is_the_leaf)
{
	struct weft__unwind_regs regs = {.pc = 1234};
	struct weft__unwind_stack stack = {0};

	CHECK_EQ(weft__unwind(NULL, &regs, &stack, first, DEPTH, &first_flags), 1);
	CHECK_EQ(first[0], 1234);
	CHECK_EQ(first_flags, WEFT__UNWIND_LOST);
	CHECK_EQ(weft__unwind(NULL, &regs, &stack, first, 0, &first_flags), 0);
}

/* `arg` is NULL for the main thread, whose mapping has the arguments and the environment above the stack. */
static void *bounds_of_thread(void *arg)
{
	struct weft__stack_bounds library, maps;
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);

	CHECK_EQ(weft__stack_bounds_self(&library), 0);
	CHECK_EQ(weft__stack_bounds_find(here, &maps), 0);
	CHECK(library.sure && maps.sure);
	CHECK(library.low < here && here < library.high);
	CHECK(maps.low < here && here < maps.high);
	CHECK(arg ? maps.high <= library.high : maps.high >= library.high);
	return NULL;
}

TEST(bounds_of_stacks_are_found_both_ways)
{
	pthread_t thread;

	bounds_of_thread(NULL);
	REQUIRE(pthread_create(&thread, NULL, bounds_of_thread, my_stack.range) == 0);
	pthread_join(thread, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* As each of thousands of threads does when its first sample comes; the stack of this one is at the end of the list. */
TEST(bounds_are_found_without_reading_a_list_of_thousands)
{
	enum { PAGES = 4000, LOOKUPS = 200, LISTS = 20 };
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0), begin, list_ns;
	char *pages = mmap(NULL, PAGES * 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), buf[256];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), known = 0;
	struct weft__stack_bounds bounds;
	struct utsname name;

	if (uname(&name) < 0 || strverscmp(name.release, "6.11") < 0)
		SKIP("Linux before 6.11 has no such question");
	REQUIRE(pages != MAP_FAILED && fd >= 0);
	for (int i = 0; i < PAGES; i++)
		mprotect(pages + i * 2 * 4096, 4096, PROT_READ);
	begin = now_ns();
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	list_ns = now_ns() - begin;
	begin = now_ns();
	for (int i = 0; i < LOOKUPS; i++)
		known += weft__stack_bounds_find(here, &bounds) == 0 && bounds.sure;
	CHECK_EQ(known, LOOKUPS);
	CHECK(now_ns() - begin < LISTS * list_ns);
	close(fd);
	munmap(pages, PAGES * 2 * 4096);
}

TEST(bounds_of_a_stack_of_ones_own_are_not_sure)
{
	struct weft__stack_bounds bounds;
	char *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(page != MAP_FAILED);
	CHECK_EQ(weft__stack_bounds_find((uint64_t)(uintptr_t)page + 100, &bounds), 0);
	CHECK_EQ(bounds.sure, 0);
	CHECK(bounds.low <= (uint64_t)(uintptr_t)page && bounds.high >= (uint64_t)(uintptr_t)page + 65536);
	munmap(page, 65536);
	CHECK_EQ(weft__stack_bounds_find(8, &bounds), -ENOENT);
}
