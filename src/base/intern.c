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

/* Keys with the same hash have numbers one behind the other: `*hash` becomes the one of this key, or the free one. */
static const struct weft__intern_entry *entry_of(const struct weft__intern *set, uint64_t *hash, const void *key,
						 size_t n)
{
	for (;; ++*hash) {
		uint32_t at = weft__map_get(&set->by_hash, *hash);
		const struct weft__intern_entry *entry = at == WEFT__MAP_NONE ? NULL : &set->entries[at];

		if (!entry || (entry->n == n && !memcmp(entry->key, key, n)))
			return entry;
	}
}

uint32_t weft__intern_get(const struct weft__intern *set, const void *key, size_t n)
{
	uint64_t hash = hash_of(key, n);
	const struct weft__intern_entry *entry = entry_of(set, &hash, key, n);

	return entry ? entry->id : 0;
}

int weft__intern_add(struct weft__intern *set, const void *key, size_t n, uint32_t id)
{
	struct weft__intern_entry *grown = weft__grow(set->entries, &set->cap, set->n, sizeof(*grown));
	uint64_t hash = hash_of(key, n);
	uint8_t *copy;

	if (!grown)
		return -ENOMEM;
	set->entries = grown;
	copy = weft__alloc(n);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, key, n);
	entry_of(set, &hash, key, n);
	if (weft__map_put(&set->by_hash, hash, (uint32_t)set->n) < 0) {
		weft__free(copy);
		return -ENOMEM;
	}
	grown[set->n++] = (struct weft__intern_entry){copy, (uint32_t)n, id};
	return 0;
}

void weft__intern_fini(struct weft__intern *set)
{
	for (size_t i = 0; i < set->n; i++)
		weft__free(set->entries[i].key);
	weft__free(set->entries);
	weft__map_fini(&set->by_hash);
	memset(set, 0, sizeof(*set));
}
