/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

static uint64_t hash_of(const uint8_t *key, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	while (n--)
		h = (h ^ *key++) * UINT64_C(0x100000001b3);
	return h;
}

static struct weft__intern_entry *slot_of(const struct weft__intern *set, uint64_t hash, const void *key, size_t n)
{
	uint32_t at = (uint32_t)(hash >> 32) & (set->cap - 1);

	for (;; at = (at + 1) & (set->cap - 1)) {
		struct weft__intern_entry *entry = &set->entries[at];

		if (!entry->id || (entry->hash == hash && entry->n == n && !memcmp(entry->key, key, n)))
			return entry;
	}
}

uint32_t weft__intern_get(const struct weft__intern *set, const void *key, size_t n)
{
	return set->cap ? slot_of(set, hash_of(key, n), key, n)->id : 0;
}

static int set_grow(struct weft__intern *set)
{
	struct weft__intern bigger = {.cap = set->cap ? set->cap * 2 : 64, .n = set->n};
	uint32_t i;

	bigger.entries = weft__calloc(bigger.cap, sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	for (i = 0; i < set->cap; i++) {
		const struct weft__intern_entry *entry = &set->entries[i];

		if (entry->id)
			*slot_of(&bigger, entry->hash, entry->key, entry->n) = *entry;
	}
	weft__free(set->entries);
	*set = bigger;
	return 0;
}

int weft__intern_add(struct weft__intern *set, const void *key, size_t n, uint32_t id)
{
	struct weft__intern_entry *entry;
	uint64_t hash = hash_of(key, n);
	uint8_t *copy;

	if (set->n * 2 >= set->cap && set_grow(set) < 0)
		return -ENOMEM;
	copy = weft__alloc(n);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, key, n);
	entry = slot_of(set, hash, key, n);
	*entry = (struct weft__intern_entry){hash, copy, (uint32_t)n, id};
	set->n++;
	return 0;
}

void weft__intern_fini(struct weft__intern *set)
{
	uint32_t i;

	for (i = 0; i < set->cap; i++)
		weft__free(set->entries[i].key);
	weft__free(set->entries);
	memset(set, 0, sizeof(*set));
}
