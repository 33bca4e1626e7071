/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of some sizes, two between each power of two and the next, that are cut from spans and go to a list when
 * they are released; what is large is mapped by itself. A span is never given back: what weft needs it needs again. */
#include "base/heap.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/place.h"

#define SPAN_BYTES (256u << 10)
#define CLASS_LEAST 5 /* 32 bytes */
#define CLASSES 25    /* up to 128 KiB */
#define LARGE UINT32_MAX
#define HEAP_PAGE 4096u

/* A block without its mark, which is of its address so that no text before a block of malloc's can be one, is
 * malloc's: from before or after the time that weft_set_allocator() had malloc in this one's place. */
struct block {
	uint32_t mark;
	uint32_t class; /* or LARGE */
	uint64_t bytes; /* all of it */
};

struct free_block {
	struct block block;
	struct free_block *next;
};

static struct {
	pthread_mutex_t mutex;
	char *at; /* the rest of the newest span */
	size_t left;
	struct free_block *free[CLASSES];
} own_blocks FORK_DATA = {.mutex = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(sizeof(struct block) == 16, "what follows is aligned as malloc's is");

static uint32_t mark_of(const void *block)
{
	return (uint32_t)((uintptr_t)block >> 4) * 0x9e3779b1u ^ 0xc2b2ae3du;
}

static size_t class_bytes(uint32_t class)
{
	size_t power = (size_t)1 << (CLASS_LEAST + class / 2);

	return class % 2 ? power + power / 2 : power;
}

/* For a block of so many bytes, or CLASSES. */
static uint32_t class_of(size_t bytes)
{
	uint32_t class = 0;

	if (bytes > class_bytes(CLASSES - 1))
		return CLASSES;
	if (bytes > class_bytes(0)) {
		uint32_t power = 63 - (uint32_t)__builtin_clzll(bytes - 1); /* it is more than 1 << power */

		class = 2 * (power - CLASS_LEAST) + 1;
	}
	return class_bytes(class) < bytes ? class + 1 : class;
}

static void *pages_map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static struct block *large_new(size_t bytes)
{
	size_t all = (bytes + HEAP_PAGE - 1) / HEAP_PAGE * HEAP_PAGE;
	struct block *block = all >= bytes ? pages_map(all) : NULL;

	if (block)
		*block = (struct block){mark_of(block), LARGE, all};
	return block;
}

/* With the lock held. What is left of a span and too little becomes blocks of smaller sizes. */
static int span_new(void)
{
	char *at = pages_map(SPAN_BYTES);
	uint32_t class = CLASSES;

	if (!at)
		return 0;
	while (class --)
		while (own_blocks.left >= class_bytes(class)) {
			struct free_block *rest = (struct free_block *)(void *)own_blocks.at;

			*rest = (struct free_block){{mark_of(rest), class, class_bytes(class)}, own_blocks.free[class]};
			own_blocks.free[class] = rest;
			own_blocks.at += class_bytes(class);
			own_blocks.left -= class_bytes(class);
		}
	own_blocks.at = at;
	own_blocks.left = SPAN_BYTES;
	return 1;
}

static struct block *block_new(uint32_t class)
{
	struct free_block *block;

	pthread_mutex_lock(&own_blocks.mutex);
	block = own_blocks.free[class];
	if (block) {
		own_blocks.free[class] = block->next;
	} else if (own_blocks.left >= class_bytes(class) || span_new()) {
		block = (struct free_block *)(void *)own_blocks.at;
		block->block = (struct block){mark_of(block), class, class_bytes(class)};
		own_blocks.at += class_bytes(class);
		own_blocks.left -= class_bytes(class);
	}
	pthread_mutex_unlock(&own_blocks.mutex);
	return block ? &block->block : NULL;
}

static void *heap_new(size_t bytes)
{
	size_t all = bytes + sizeof(struct block);
	struct block *block;
	uint32_t class;

	if (all < bytes)
		return NULL;
	class = class_of(all);
	block = class < CLASSES ? block_new(class) : large_new(all);
	return block ? block + 1 : NULL;
}

int weft__heap_is_zero(const void *ptr)
{
	const struct block *block = (const struct block *)ptr - 1;

	return block->mark == mark_of(block) && block->class == LARGE;
}

void weft__heap_release(void *ptr)
{
	struct free_block *block;

	if (!ptr)
		return;
	block = (struct free_block *)(void *)((struct block *)ptr - 1);
	if (block->block.mark != mark_of(block)) {
		free(ptr);
		return;
	}
	if (block->block.class == LARGE) {
		munmap(block, block->block.bytes);
		return;
	}
	pthread_mutex_lock(&own_blocks.mutex);
	block->next = own_blocks.free[block->block.class];
	own_blocks.free[block->block.class] = block;
	pthread_mutex_unlock(&own_blocks.mutex);
}

static void *large_resize(struct block *block, size_t bytes)
{
	size_t all = (bytes + sizeof(*block) + HEAP_PAGE - 1) / HEAP_PAGE * HEAP_PAGE;
	void *moved = all > bytes ? mremap(block, block->bytes, all, MREMAP_MAYMOVE) : MAP_FAILED;

	if (moved == MAP_FAILED)
		return NULL;
	block = moved;
	*block = (struct block){mark_of(block), LARGE, all};
	return block + 1;
}

void *weft__heap_resize(void *ptr, size_t bytes)
{
	struct block *block;
	size_t had;
	void *moved;

	if (!ptr)
		return heap_new(bytes);
	block = (struct block *)ptr - 1;
	if (block->mark != mark_of(block))
		return realloc(ptr, bytes);
	if (block->class == LARGE && bytes > class_bytes(CLASSES - 1))
		return large_resize(block, bytes);
	had = block->bytes - sizeof(*block);
	if (bytes <= had && (bytes > had / 4 || had <= class_bytes(0)))
		return ptr;
	moved = heap_new(bytes);
	if (!moved)
		return bytes <= had ? ptr : NULL;
	memcpy(moved, ptr, bytes < had ? bytes : had);
	weft__heap_release(ptr);
	return moved;
}

void weft__heap_lock(void)
{
	pthread_mutex_lock(&own_blocks.mutex);
}

void weft__heap_unlock(void)
{
	pthread_mutex_unlock(&own_blocks.mutex);
}

void weft__heap_forked(void)
{
	pthread_mutex_init(&own_blocks.mutex, NULL);
	memset(own_blocks.free, 0, sizeof(own_blocks.free));
	own_blocks.left = 0;
}
