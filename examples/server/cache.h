/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table under one lock, and a janitor thread that now and then holds the lock for longer than anyone likes. */
#ifndef DEMO_CACHE_H
#define DEMO_CACHE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CACHE_SLOTS = 4096 };

struct cache {
	pthread_mutex_t cache_lock;
	struct {
		uint64_t hash; /* of the key; 0: free */
		uint64_t value;
	} slots[CACHE_SLOTS]; /* under cache_lock */
	pthread_t janitor;
	pthread_mutex_t order_lock; /* one order to the janitor at a time */
	uint32_t order_us;          /* 0: end */
	sem_t ordered;
	sem_t begun;
	uint32_t lock_name, begun_name, sleep_name; /* of weft_string */
};

/* Fills the cache with the keys "key-0" to "key-999" and starts the janitor. Returns 0 or a negative errno. */
int cache_init(struct cache *cache);
void cache_fini(struct cache *cache);

/* Looks a key up. Waits for the lock. */
bool cache_get(struct cache *cache, const char *key, size_t key_bytes, uint64_t *value);

/* Has the janitor write a snapshot, which keeps the lock for `us`. Returns as soon as the janitor has the lock. */
void cache_snapshot(struct cache *cache, uint32_t us);

/* FNV-1a; never 0. */
uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t n_bytes);

#endif
