/* SPDX-License-Identifier: Apache-2.0 */
/* optimized: it is nothing but computation */
#include "base/heap.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "weft_test.h"

#define BLOCKS 400
#define ROUNDS 40000
#define FORKS 30
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MALLOCS 1
#else
#define MALLOCS 0
#endif

struct held {
	unsigned char *at;
	size_t bytes;
	unsigned char fill;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* Mostly small, some of them larger than any class. */
static size_t random_bytes(uint64_t *state)
{
	return 1 + next_random(state) % ((size_t)1 << (4 + next_random(state) % 16));
}

static int is_whole(const struct held *held, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (held->at[i] != held->fill)
			return 0;
	return 1;
}

/* Answers how many blocks had something else in them than they were filled with. */
static uint64_t use_blocks(uint64_t seed)
{
	static const struct held none;
	struct held *held = calloc(BLOCKS, sizeof(*held));
	uint64_t state = seed, wrong = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct held *one = &held[next_random(&state) % BLOCKS];
		size_t bytes = random_bytes(&state);

		if (one->at && next_random(&state) % 2) {
			wrong += !is_whole(one, one->bytes);
			weft__heap_release(one->at);
			*one = none;
			continue;
		}
		one->at = weft__heap_resize(one->at, bytes);
		wrong += !one->at || (uintptr_t)one->at % 16 != 0;
		wrong += !is_whole(one, bytes < one->bytes ? bytes : one->bytes);
		one->bytes = bytes;
		one->fill = (unsigned char)next_random(&state);
		memset(one->at, one->fill, bytes);
	}
	for (int i = 0; i < BLOCKS; i++)
		weft__heap_release(held[i].at);
	free(held);
	return wrong;
}

TEST(blocks_keep_what_is_in_them)
{
	CHECK_EQ(use_blocks(1), 0);
}

static void *use_main(void *data)
{
	*(uint64_t *)data = use_blocks(*(uint64_t *)data);
	return NULL;
}

TEST(threads_have_blocks_of_their_own)
{
	uint64_t seeds[] = {2, 3, 4, 5};
	pthread_t threads[4];

#if defined(__SANITIZE_THREAD__)
	SKIP("ThreadSanitizer does not see that the kernel has unmapped before it maps again");
#endif
	for (int i = 0; i < 4; i++)
		REQUIRE(pthread_create(&threads[i], NULL, use_main, &seeds[i]) == 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(seeds[i], 0);
	}
}

TEST(nothing_is_as_large_as_all)
{
	void *one = weft__heap_resize(NULL, 100);

	CHECK(!weft__heap_resize(NULL, SIZE_MAX));
	CHECK(!weft__heap_resize(NULL, SIZE_MAX - 16));
	CHECK(!weft__heap_resize(NULL, SIZE_MAX / 2));
	CHECK(!weft__heap_resize(one, SIZE_MAX - 20));
	weft__heap_release(one);
	one = weft__heap_resize(NULL, 1 << 20);
	CHECK(one && !weft__heap_resize(one, SIZE_MAX - 4096));
	weft__heap_release(one);
	weft__heap_release(NULL);
}

/* mincore() says which pages are there. */
static size_t pages_there(const void *at, size_t bytes)
{
	uintptr_t begin = ((uintptr_t)at + 4095) & ~(uintptr_t)4095;
	size_t n = bytes / 4096 - 1, there = 0;
	unsigned char in[512];

	if (n > sizeof(in) || mincore((void *)begin, n * 4096, in) < 0) /* NOLINT(performance-no-int-to-ptr) */
		return SIZE_MAX;
	for (size_t i = 0; i < n; i++)
		there += in[i] & 1;
	return there;
}

TEST(a_large_block_of_zeros_takes_no_memory_until_it_is_written_to)
{
	size_t bytes = (size_t)1 << 20;

	if (MALLOCS)
		SKIP("memory is malloc's under a sanitizer");
	for (int round = 0; round < 3; round++) {
		unsigned char *at = weft__calloc(1, bytes);

		CHECK(at != NULL);
		CHECK_EQ(pages_there(at, bytes), 0);
		for (size_t i = 0; i < bytes; i++)
			if (at[i])
				CHECK_EQ(at[i], 0);
		memset(at, 0xff, bytes);
		weft__free(at);
	}
	/* One that was used before is not fresh. */
	for (int round = 0; round < 3; round++) {
		unsigned char *at = weft__calloc(1, 1000);

		CHECK(at != NULL);
		for (size_t i = 0; i < 1000; i++)
			CHECK_EQ(at[i], 0);
		memset(at, 0xff, 1000);
		weft__free(at);
	}
}

TEST(what_malloc_gave_goes_back_to_malloc)
{
	char *text;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("in front of such a block is what nobody may look at");
#endif
	text = malloc(100);
	REQUIRE(text);
	memcpy(text, "text", 5);
	text = weft__heap_resize(text, 100000);
	REQUIRE(text);
	CHECK(!strcmp(text, "text"));
	weft__heap_release(text);
}

static int stop;

static void *use_on(void *data)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		weft__heap_release(weft__heap_resize(NULL, 100));
	return data;
}

TEST(a_child_of_a_fork_can_allocate)
{
	pthread_t thread;

	REQUIRE(pthread_create(&thread, NULL, use_on, NULL) == 0);
	for (int i = 0; i < FORKS; i++) {
		int status = -1;
		pid_t pid;

		weft__heap_lock();
		pid = fork();
		weft__heap_unlock();
		if (!pid)
			_exit(weft__heap_resize(NULL, 100) == NULL);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

struct item {
	uint32_t key, order;
};

static int by_key(const void *a, const void *b)
{
	uint32_t x = ((const struct item *)a)->key, y = ((const struct item *)b)->key;

	return x < y ? -1 : x > y;
}

TEST(sorted_in_order_and_what_is_equal_stays_in_order)
{
	static struct item items[5000];
	uint64_t state = 7;

	for (uint32_t n = 0; n <= 5000; n += n < 20 ? 1 : 415) {
		uint32_t wrong = 0;

		for (uint32_t i = 0; i < n; i++)
			items[i] = (struct item){(uint32_t)next_random(&state) % 100, i};
		weft__sort(items, n, sizeof(*items), by_key);
		for (uint32_t i = 1; i < n; i++)
			wrong += items[i - 1].key > items[i].key ||
				 (items[i - 1].key == items[i].key && items[i - 1].order >= items[i].order);
		CHECK_EQ(wrong, 0);
	}
}
