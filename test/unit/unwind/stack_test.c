/* SPDX-License-Identifier: Apache-2.0 */
/* Where stacks end: as /proc/self/maps says it, and without a file once that was learned. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "unwind/stack.h"
#include "weft_test.h"

#define STACK_BYTES (4096u * 1024) /* as much as sanitizers need */

struct seen {
	struct weft__stack_bounds by_maps, learned, own;
	int rc_maps, rc_learned, rc_own;
	uint64_t sp;
};

/* No file can be opened until it is given back. */
static struct rlimit forbid_files(void)
{
	struct rlimit none, before;

	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	return before;
}

static struct weft__stack_learned learned;

/* Both ways, on the calling thread. */
static void *look(void *data)
{
	struct seen *seen = data;
	struct rlimit before;

	seen->sp = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	memset(&weft__stack_learned, 0, sizeof(weft__stack_learned));
	seen->rc_maps = weft__stack_bounds_find(seen->sp, &seen->by_maps);
	weft__stack_learned = learned;
	before = forbid_files();
	seen->rc_learned = weft__stack_bounds_find(seen->sp, &seen->learned);
	seen->rc_own = weft__stack_bounds_own(&seen->own);
	setrlimit(RLIMIT_NOFILE, &before);
	return NULL;
}

static void *wait_for_end(void *data)
{
	pthread_mutex_lock(data);
	pthread_mutex_unlock(data);
	return NULL;
}

static void learn(void)
{
	pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;

	pthread_mutex_lock(&end);
	CHECK_EQ(pthread_create(&thread, NULL, wait_for_end, &end), 0);
	weft__stack_learn(thread);
	pthread_mutex_unlock(&end);
	pthread_join(thread, NULL);
	learned = weft__stack_learned;
}

static void look_in_thread(const pthread_attr_t *attr, struct seen *seen)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, attr, look, seen), 0);
	pthread_join(thread, NULL);
}

static void check_same(const struct seen *seen)
{
	CHECK_EQ(seen->rc_maps, 0);
	CHECK_EQ(seen->rc_learned, 0);
	CHECK_EQ(seen->learned.sure, 1);
	CHECK_EQ(seen->learned.high, seen->by_maps.high);
	CHECK(seen->learned.low >= seen->by_maps.low);
	CHECK(seen->learned.low <= seen->sp);
}

TEST(stacks_of_threads_are_found_without_a_file)
{
	static const size_t sizes[] = {0, STACK_BYTES, 16 * STACK_BYTES};
	static const size_t guards[] = {4096, 0, 65536};
	pthread_attr_t attr;
	struct seen seen;
	int i, k;

	learn();
	CHECK(learned.block_at != 0);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 3; k++) {
			memset(&seen, 0, sizeof(seen));
			pthread_attr_init(&attr);
			pthread_attr_setguardsize(&attr, guards[k]);
			if (sizes[i])
				pthread_attr_setstacksize(&attr, sizes[i]);
			look_in_thread(&attr, &seen);
			check_same(&seen);
			CHECK_EQ(seen.rc_own, 0);
			CHECK_EQ(seen.own.high, seen.learned.high);
			pthread_attr_destroy(&attr);
		}
	}
}

TEST(a_stack_that_the_program_gave_to_a_thread_is_found_without_a_file)
{
	char *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct seen seen = {0};
	pthread_attr_t attr;

	REQUIRE(memory != MAP_FAILED);
	learn();
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstack(&attr, memory, STACK_BYTES), 0);
	look_in_thread(&attr, &seen);
	check_same(&seen);
	pthread_attr_destroy(&attr);
	munmap(memory, STACK_BYTES);
}

TEST(the_first_threads_stack_is_found_without_a_file)
{
	struct seen seen = {0};

	learn();
	look(&seen);
	check_same(&seen);
}

static ucontext_t outside, inside;
static struct seen on_coroutine;

static void coroutine(void)
{
	look(&on_coroutine);
}

static void *run_coroutine(void *memory)
{
	getcontext(&inside);
	inside.uc_stack.ss_sp = memory;
	inside.uc_stack.ss_size = STACK_BYTES;
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	swapcontext(&outside, &inside);
	return NULL;
}

/* It is somebody's memory, which may be gone the next time: nothing is concluded from the thread's own. */
TEST(the_stack_of_a_coroutine_is_looked_up_each_time)
{
	char *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	REQUIRE(memory != MAP_FAILED);
	learn();
	run_coroutine(memory);
	CHECK_EQ(on_coroutine.rc_maps, 0);
	CHECK_EQ(on_coroutine.by_maps.sure, 0);
	CHECK(on_coroutine.rc_learned < 0);
	CHECK_EQ(pthread_create(&thread, NULL, run_coroutine, memory), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(on_coroutine.rc_maps, 0);
	CHECK(on_coroutine.rc_learned < 0);
	munmap(memory, STACK_BYTES);
}
