/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1
#include "cache.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weft/weft.h>

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t n_bytes)
{
	const unsigned char *p = bytes;
	uint64_t hash = seed ^ UINT64_C(0xcbf29ce484222325);

	while (n_bytes--)
		hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

/* The slot of a key, or the free one where it would go. The table is never full. */
static size_t find_slot(const struct cache *cache, uint64_t hash)
{
	size_t i = hash % CACHE_SLOTS;

	while (cache->slots[i].hash && cache->slots[i].hash != hash)
		i = (i + 1) % CACHE_SLOTS;
	return i;
}

/* weft is told who has the lock, and who had to wait for it. */
static void lock(struct cache *cache)
{
	uintptr_t object = (uintptr_t)&cache->cache_lock;

	if (pthread_mutex_trylock(&cache->cache_lock)) {
		weft_wait_begin(WEFT_WAIT_LOCK, cache->lock_name, object);
		pthread_mutex_lock(&cache->cache_lock);
		weft_wait_end(WEFT_WAIT_LOCK, object);
	}
	weft_lock_held(object);
}

static void unlock(struct cache *cache)
{
	weft_lock_released((uintptr_t)&cache->cache_lock);
	pthread_mutex_unlock(&cache->cache_lock);
}

static void *janitor_main(void *arg)
{
	struct cache *cache = arg;

	pthread_setname_np(pthread_self(), "janitor");
	for (;;) {
		struct timespec hold = {0};

		sem_wait(&cache->ordered);
		if (!cache->order_us)
			return NULL;
		hold.tv_sec = cache->order_us / 1000000;
		hold.tv_nsec = (long)(cache->order_us % 1000000) * 1000;
		lock(cache);
		sem_post(&cache->begun);
		weft_wait_begin(WEFT_WAIT_CALL, cache->sleep_name, UINT64_MAX);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &hold, NULL); /* where a real one writes to a disk */
		weft_wait_end(WEFT_WAIT_CALL, UINT64_MAX);
		unlock(cache);
	}
}

int cache_init(struct cache *cache)
{
	int i;
	int err;

	memset(cache, 0, sizeof(*cache));
	cache->lock_name = weft_string("cache_lock");
	cache->begun_name = weft_string("janitor");
	cache->sleep_name = weft_string("clock_nanosleep");
	for (i = 0; i < 1000; i++) {
		char key[16];
		int n_bytes = snprintf(key, sizeof(key), "key-%d", i);
		uint64_t hash = hash_bytes(0, key, (size_t)n_bytes);
		size_t slot = find_slot(cache, hash);

		cache->slots[slot].hash = hash;
		cache->slots[slot].value = hash_bytes((uint64_t)i, key, (size_t)n_bytes);
	}
	pthread_mutex_init(&cache->cache_lock, NULL);
	pthread_mutex_init(&cache->order_lock, NULL);
	sem_init(&cache->ordered, 0, 0);
	sem_init(&cache->begun, 0, 0);
	err = pthread_create(&cache->janitor, NULL, janitor_main, cache);
	return -err;
}

void cache_fini(struct cache *cache)
{
	cache->order_us = 0;
	sem_post(&cache->ordered);
	pthread_join(cache->janitor, NULL);
	sem_destroy(&cache->ordered);
	sem_destroy(&cache->begun);
	pthread_mutex_destroy(&cache->order_lock);
	pthread_mutex_destroy(&cache->cache_lock);
}

bool cache_get(struct cache *cache, const char *key, size_t key_bytes, uint64_t *value)
{
	uint64_t hash = hash_bytes(0, key, key_bytes);
	size_t slot;
	bool found;

	lock(cache);
	slot = find_slot(cache, hash);
	found = cache->slots[slot].hash == hash;
	*value = cache->slots[slot].value;
	unlock(cache);
	return found;
}

void cache_snapshot(struct cache *cache, uint32_t us)
{
	if (!us)
		return;
	pthread_mutex_lock(&cache->order_lock);
	cache->order_us = us;
	sem_post(&cache->ordered);
	weft_wait_begin(WEFT_WAIT_SEMAPHORE, cache->begun_name, (uintptr_t)&cache->begun);
	while (sem_wait(&cache->begun))
		continue;
	weft_wait_end(WEFT_WAIT_SEMAPHORE, (uintptr_t)&cache->begun);
	pthread_mutex_unlock(&cache->order_lock);
}
