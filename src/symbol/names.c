/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/names.h"

#include <string.h>

#include "base/alloc.h"
#include "symbol/demangle.h"

#define CHUNK_BYTES ((size_t)256 * 1024)

struct weft__name {
	const char *demangled; /* NULL: not asked for yet */
	uint32_t hash;
	uint32_t n;
	char text[];
};

struct weft__name_chunk {
	struct weft__name_chunk *next;
	size_t used;
	size_t cap;
	max_align_t bytes[];
};

static uint32_t hash_of(const char *text, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	while (n--)
		h = (h ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
	return (uint32_t)(h >> 32);
}

static struct weft__name **slot_of(const struct weft__names *names, uint32_t hash, const char *text, size_t n)
{
	uint32_t at = hash & (names->cap - 1);

	for (;; at = (at + 1) & (names->cap - 1)) {
		struct weft__name *name = names->slots[at];

		if (!name || (name->hash == hash && name->n == n && !memcmp(name->text, text, n)))
			return &names->slots[at];
	}
}

static int grow(struct weft__names *names)
{
	struct weft__names bigger = {.cap = names->cap ? names->cap * 2 : 1024};
	uint32_t i;

	bigger.slots = weft__calloc(bigger.cap, sizeof(struct weft__name *));
	if (!bigger.slots)
		return -1;
	for (i = 0; i < names->cap; i++) {
		struct weft__name *name = names->slots[i];

		if (name)
			*slot_of(&bigger, name->hash, name->text, name->n) = name;
	}
	weft__free(names->slots);
	names->slots = bigger.slots;
	names->cap = bigger.cap;
	return 0;
}

static void *room(struct weft__names *names, size_t bytes)
{
	struct weft__name_chunk *chunk = names->chunks;
	size_t cap = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

	bytes = (bytes + 7) & ~(size_t)7;
	if (!chunk || chunk->cap - chunk->used < bytes) {
		chunk = weft__alloc(sizeof(*chunk) + cap);
		if (!chunk)
			return NULL;
		chunk->next = names->chunks;
		chunk->used = 0;
		chunk->cap = cap;
		names->chunks = chunk;
	}
	chunk->used += bytes;
	return (char *)chunk->bytes + chunk->used - bytes;
}

const char *weft__names_add_n(struct weft__names *names, const char *text, size_t n)
{
	struct weft__name **slot, *name;
	uint32_t hash;

	if (n > WEFT__NAME_MAX)
		n = WEFT__NAME_MAX;
	if (names->n * 2 >= names->cap && grow(names) < 0)
		return NULL;
	hash = hash_of(text, n);
	slot = slot_of(names, hash, text, n);
	if (*slot)
		return (*slot)->text;
	name = room(names, sizeof(*name) + n + 1);
	if (!name)
		return NULL;
	name->demangled = NULL;
	name->hash = hash;
	name->n = (uint32_t)n;
	memcpy(name->text, text, n);
	name->text[n] = 0;
	names->n++;
	*slot = name;
	return name->text;
}

const char *weft__names_add(struct weft__names *names, const char *text)
{
	return weft__names_add_n(names, text, strnlen(text, WEFT__NAME_MAX));
}

const char *weft__names_demangled(struct weft__names *names, const char *raw)
{
	struct weft__name *name = (struct weft__name *)(raw - offsetof(struct weft__name, text));
	char *text;

	if (name->demangled)
		return name->demangled;
	text = weft__demangle(raw);
	name->demangled = text ? weft__names_add(names, text) : raw;
	weft__free(text);
	return name->demangled;
}

void weft__names_fini(struct weft__names *names)
{
	struct weft__name_chunk *chunk, *next;

	for (chunk = names->chunks; chunk; chunk = next) {
		next = chunk->next;
		weft__free(chunk);
	}
	weft__free(names->slots);
	memset(names, 0, sizeof(*names));
}
