/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/texts.h"

#include <string.h>

#include "base/alloc.h"
#include "symbol/demangle.h"

#define CHUNK_BYTES ((size_t)256 * 1024)

struct weft__texts_entry {
	const char *demangled; /* NULL: not asked for yet */
	uint32_t n;
	char text[];
};

struct weft__texts_chunk {
	struct weft__texts_chunk *next;
	size_t used;
	size_t cap;
	max_align_t bytes[];
};

static uint64_t hash_of(const char *text, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	while (n--)
		h = (h ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
	return h;
}

/* Texts with the same hash have numbers one behind the other: `*hash` becomes the one of this text, or the free one. */
static struct weft__texts_entry *entry_of(const struct weft__texts *texts, uint64_t *hash, const char *text, size_t n)
{
	for (;; ++*hash) {
		uint32_t at = weft__map_get(&texts->by_hash, *hash);
		struct weft__texts_entry *entry = at == WEFT__MAP_NONE ? NULL : texts->entries[at];

		if (!entry || (entry->n == n && !memcmp(entry->text, text, n)))
			return entry;
	}
}

static void *room(struct weft__texts *texts, size_t bytes)
{
	struct weft__texts_chunk *chunk = texts->chunks;
	size_t cap = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

	bytes = (bytes + 7) & ~(size_t)7;
	if (!chunk || chunk->cap - chunk->used < bytes) {
		chunk = weft__alloc(sizeof(*chunk) + cap);
		if (!chunk)
			return NULL;
		chunk->next = texts->chunks;
		chunk->used = 0;
		chunk->cap = cap;
		texts->chunks = chunk;
	}
	chunk->used += bytes;
	return (char *)chunk->bytes + chunk->used - bytes;
}

const char *weft__texts_add_n(struct weft__texts *texts, const char *text, size_t n)
{
	struct weft__texts_entry *entry, **grown;
	uint64_t hash;

	if (n > WEFT__TEXT_MAX)
		n = WEFT__TEXT_MAX;
	hash = hash_of(text, n);
	entry = entry_of(texts, &hash, text, n);
	if (entry)
		return entry->text;
	grown = weft__grow(texts->entries, &texts->cap, texts->n, sizeof(struct weft__texts_entry *));
	if (!grown)
		return NULL;
	texts->entries = grown;
	entry = room(texts, sizeof(*entry) + n + 1);
	if (!entry || weft__map_put(&texts->by_hash, hash, (uint32_t)texts->n) < 0)
		return NULL;
	entry->demangled = NULL;
	entry->n = (uint32_t)n;
	memcpy(entry->text, text, n);
	entry->text[n] = 0;
	grown[texts->n++] = entry;
	return entry->text;
}

const char *weft__texts_add(struct weft__texts *texts, const char *text)
{
	return weft__texts_add_n(texts, text, strnlen(text, WEFT__TEXT_MAX));
}

const char *weft__texts_demangled(struct weft__texts *texts, const char *raw)
{
	struct weft__texts_entry *entry = (struct weft__texts_entry *)(raw - offsetof(struct weft__texts_entry, text));
	char *text;

	if (entry->demangled)
		return entry->demangled;
	text = weft__demangle(raw);
	entry->demangled = text ? weft__texts_add(texts, text) : raw;
	weft__free(text);
	return entry->demangled;
}

void weft__texts_fini(struct weft__texts *texts)
{
	struct weft__texts_chunk *chunk, *next;

	for (chunk = texts->chunks; chunk; chunk = next) {
		next = chunk->next;
		weft__free(chunk);
	}
	weft__free(texts->entries);
	weft__map_fini(&texts->by_hash);
	memset(texts, 0, sizeof(*texts));
}
