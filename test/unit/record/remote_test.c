/* SPDX-License-Identifier: Apache-2.0 */
/* A look from outside at one thread. */
#include "record/wall/remote.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "base/atomic.h"
#include "child.h"
#include "record/sample/state.h"
#include "samples.h"
#include "unwind/unwind.h"

static int pipe_fds[2];
static uint32_t tid, go_on;
static int recursions;

BURNER(waits_below)(int depth)
{
	char room[1000], byte;

	__asm__ volatile("" ::"r"(room) : "memory");
	if (depth)
		waits_below(depth - 1);
	else
		(void)!read(pipe_fds[0], &byte, 1);
	__asm__ volatile("" ::: "memory");
}

static void *wait_main(void *data)
{
	(void)data;
	store_release(&tid, samples_tid());
	waits_below(recursions);
	return NULL;
}

static pthread_t wait_start(int depth, size_t stack_bytes)
{
	struct weft__remote seen;
	pthread_attr_t attr;
	pthread_t thread;

	CHECK_EQ(pipe(pipe_fds), 0);
	CHECK(weft__modules_refresh() >= 0);
	weft__unwinding.depth = 0;
	recursions = depth;
	store_release(&tid, 0u);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack_bytes);
	CHECK_EQ(pthread_create(&thread, &attr, wait_main, NULL), 0);
	pthread_attr_destroy(&attr);
	CHECK(WAIT_FOR(load_acquire(&tid)));
	CHECK(WAIT_FOR((weft__remote_look(tid, 0, &seen), seen.state == REMOTE_WAITS && seen.call == SYS_read + 1)));
	return thread;
}

static void wait_end(pthread_t thread)
{
	CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
	pthread_join(thread, NULL);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	weft__modules_stop();
}

/* Frames of the look that are in the function. */
static int frames_below(const struct weft__remote *seen)
{
	int n = 0;

	for (uint32_t i = 0; i < seen->n; i++)
		n += seen->frames[i] >= (uint64_t)(uintptr_t)__start_code_waits_below &&
		     seen->frames[i] < (uint64_t)(uintptr_t)__stop_code_waits_below;
	return n;
}

TEST(a_thread_that_waits_has_its_call_and_its_stack)
{
	pthread_t thread = wait_start(5, 1 << 20);
	struct weft__remote seen;

	weft__remote_look(tid, 0, &seen);
	CHECK_EQ(seen.state, REMOTE_WAITS);
	CHECK_EQ(seen.call, SYS_read + 1);
	CHECK_EQ(frames_below(&seen), 6);
	CHECK(seen.flags & WEFT_STACK_COMPLETE);
	CHECK(!(seen.flags & (WEFT_STACK_LOST | WEFT_STACK_CUT)));
	weft__remote_look(tid, 1, &seen);
	CHECK_EQ(seen.state, REMOTE_WAITS);
	CHECK_EQ(seen.n, 0);
	wait_end(thread);
	weft__remote_look(tid, 0, &seen);
	CHECK_EQ(seen.state, REMOTE_GONE);
}

TEST(a_deep_stack_is_whole_and_a_deeper_one_says_that_it_is_cut)
{
	pthread_t thread = wait_start(150, 8 << 20);
	struct weft__remote seen;

	weft__remote_look(tid, 0, &seen);
	CHECK_EQ(frames_below(&seen), 151);
	CHECK(seen.flags & WEFT_STACK_COMPLETE);
	wait_end(thread);
	thread = wait_start(500, 8 << 20);
	weft__remote_look(tid, 0, &seen);
	CHECK(frames_below(&seen) > 150);
	CHECK(seen.flags & WEFT_STACK_CUT);
	CHECK(!(seen.flags & (WEFT_STACK_LOST | WEFT_STACK_COMPLETE)));
	wait_end(thread);
}

static void *spin_main(void *data)
{
	(void)data;
	store_release(&tid, samples_tid());
	while (!load_acquire(&go_on))
		samples_spin(1000);
	return NULL;
}

TEST(a_thread_that_runs_is_left_alone)
{
	struct weft__remote seen;
	pthread_t thread;

	store_release(&go_on, 0u);
	store_release(&tid, 0u);
	CHECK_EQ(pthread_create(&thread, NULL, spin_main, NULL), 0);
	CHECK(WAIT_FOR(load_acquire(&tid)));
	for (int i = 0; i < 100; i++) {
		weft__remote_look(tid, 0, &seen);
		CHECK_EQ(seen.state, REMOTE_RUNNING);
		CHECK_EQ(seen.n, 0);
	}
	store_release(&go_on, 1u);
	pthread_join(thread, NULL);
}

/* What lies on the stack of a thread that waits may be anything: here its whole stack says that it came from itself. */
static void *rubbish_main(void *data)
{
	uint64_t room[8192];
	char byte;

	for (size_t i = 0; i < 8192; i++)
		room[i] = i % 3 == 0   ? (uint64_t)(uintptr_t)&room[i * 7 % 8192]
			  : i % 3 == 1 ? (uint64_t)(uintptr_t)&rubbish_main + i % 64
				       : (uint64_t)(uintptr_t)&read + i % 32;
	store_release(&tid, samples_tid());
	/* A call that waits with a stack pointer in the middle of it. */
#if defined(__x86_64__)
	long got;

	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %4, %%rsp\n\tsyscall\n\tmov %%rbx, %%rsp"
			 : "=a"(got)
			 : "0"((long)SYS_read), "D"((long)pipe_fds[0]), "S"(&byte), "r"(&room[100]), "d"(1L)
			 : "rbx", "rcx", "r11", "memory");
#else
	(void)!read(pipe_fds[0], &byte, 1);
#endif
	return data;
}

TEST(rubbish_on_a_stack_ends_the_walk_and_nothing_else)
{
	struct weft__remote seen;
	pthread_t thread;

	CHECK_EQ(pipe(pipe_fds), 0);
	CHECK(weft__modules_refresh() >= 0);
	store_release(&tid, 0u);
	CHECK_EQ(pthread_create(&thread, NULL, rubbish_main, NULL), 0);
	CHECK(WAIT_FOR(load_acquire(&tid)));
	CHECK(WAIT_FOR((weft__remote_look(tid, 0, &seen), seen.state == REMOTE_WAITS && seen.call == SYS_read + 1)));
	CHECK(seen.n >= 1 && seen.n <= WEFT__UNWIND_DEPTH_MAX);
	wait_end(thread);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST(where_reading_memory_is_forbidden_there_is_another_way)
{
	pid_t child = fork();

	if (!child) {
		struct weft__remote seen;

		if (child_refuse(SYS_process_vm_readv, EPERM))
			_exit(77);
		wait_start(5, 1 << 20);
		weft__remote_look(tid, 0, &seen);
		_exit(frames_below(&seen) == 6 && seen.flags & WEFT_STACK_COMPLETE ? 0 : 1);
	}
	CHECK(child > 0);
	switch (session_wait(child)) {
	case 77:
		SKIP("no filters of system calls here");
	case 0:
		break;
	default:
		CHECK(!"the stack is whole");
	}
}
#endif
