/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/name_cache.h"

#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "symbol/texts.h"

#define MODULES_MAX 1024u
#define LINES_OF_PLACE 8u         /* on average; with more it is full */
#define OFFSET_BITS 48            /* of a key; the number of the module is above */
#define TEXT_BYTES_OF_PLACE 1024u /* on average */

struct module {
	const char *path;
	uint64_t start; /* of the kernel; else 0 */
	uint8_t build_id[WEFT_BUILD_ID_MAX];
	uint32_t build_id_n;
};

struct place {
	uint32_t first, n;
};

struct weft__name_cache {
	struct weft__texts texts;
	struct weft__map by_key;
	struct module *modules;
	struct place *places;
	struct weft__cached_line *lines;
	size_t n_modules, cap_modules, n_places, cap_places, n_lines, cap_lines;
	size_t max_places, text_bytes;
};

struct weft__name_cache *weft__name_cache_open(size_t max_places)
{
	struct weft__name_cache *cache = weft__calloc(1, sizeof(*cache));

	if (cache)
		cache->max_places = max_places;
	return cache;
}

static void forget(struct weft__name_cache *cache)
{
	size_t max_places = cache->max_places;

	weft__texts_fini(&cache->texts);
	weft__map_fini(&cache->by_key);
	weft__free(cache->modules);
	weft__free(cache->places);
	weft__free(cache->lines);
	*cache = (struct weft__name_cache){.max_places = max_places};
}

void weft__name_cache_close(struct weft__name_cache *cache)
{
	if (cache)
		forget(cache);
	weft__free(cache);
}

static bool is_kept(const struct weft_module *module, uint64_t offset)
{
	return module->path[0] && offset >> OFFSET_BITS == 0 && module->build_id_n <= WEFT_BUILD_ID_MAX &&
	       (module->kind == WEFT_MODULE_FILE || module->kind == WEFT_MODULE_KERNEL);
}

/* In the file, as far as there is one: it may be mapped in several parts. */
static uint64_t offset_of(const struct weft_module *module, uint64_t offset)
{
	return module->kind == WEFT_MODULE_FILE ? offset + module->offset : offset;
}

static size_t find_module(const struct weft__name_cache *cache, const struct weft_module *of)
{
	uint64_t start = of->kind == WEFT_MODULE_KERNEL ? of->start : 0;
	size_t i;

	for (i = 0; i < cache->n_modules; i++) {
		const struct module *one = &cache->modules[i];

		if (one->start == start && one->build_id_n == of->build_id_n &&
		    memcmp(one->build_id, of->build_id, of->build_id_n) == 0 && strcmp(one->path, of->path) == 0)
			break;
	}
	return i;
}

static int add_module(struct weft__name_cache *cache, const struct weft_module *of)
{
	struct module *grown = weft__grow(cache->modules, &cache->cap_modules, cache->n_modules, sizeof(*grown));
	struct module one = {.start = of->kind == WEFT_MODULE_KERNEL ? of->start : 0, .build_id_n = of->build_id_n};

	if (!grown)
		return -1;
	cache->modules = grown;
	memcpy(one.build_id, of->build_id, of->build_id_n);
	one.path = weft__texts_add(&cache->texts, of->path);
	cache->text_bytes += strlen(of->path);
	if (!one.path)
		return -1;
	grown[cache->n_modules++] = one;
	return 0;
}

const struct weft__cached_line *weft__name_cache_get(const struct weft__name_cache *cache,
						     const struct weft_module *module, uint64_t offset, uint32_t *n)
{
	uint64_t at = offset_of(module, offset);
	size_t number = is_kept(module, at) ? find_module(cache, module) : cache->n_modules;
	uint32_t place;

	if (number == cache->n_modules)
		return NULL;
	place = weft__map_get(&cache->by_key, (uint64_t)number << OFFSET_BITS | at);
	if (place == WEFT__MAP_NONE)
		return NULL;
	*n = cache->places[place].n;
	return &cache->lines[cache->places[place].first];
}

static int add_line(struct weft__name_cache *cache, const struct weft__symbol *of, bool known)
{
	struct weft__cached_line *grown = weft__grow(cache->lines, &cache->cap_lines, cache->n_lines, sizeof(*grown));
	struct weft__cached_line one = {.line = of->line, .inlined = of->inlined, .within = of->offset};

	if (!grown)
		return -1;
	cache->lines = grown;
	if (known)
		one.function = weft__texts_add(&cache->texts, of->function);
	if (of->file)
		one.file = weft__texts_add(&cache->texts, of->file);
	if ((known && !one.function) || (of->file && !one.file))
		return -1;
	cache->text_bytes += (known ? strlen(of->function) : 0) + (of->file ? strlen(of->file) : 0);
	grown[cache->n_lines++] = one;
	return 0;
}

static int add_place(struct weft__name_cache *cache, uint64_t key, const struct weft__symbol_frames *found)
{
	struct place *grown = weft__grow(cache->places, &cache->cap_places, cache->n_places, sizeof(*grown));
	uint32_t i;

	if (!grown)
		return -1;
	cache->places = grown;
	grown[cache->n_places] = (struct place){(uint32_t)cache->n_lines, found->n};
	for (i = 0; i < found->n; i++)
		if (add_line(cache, &found->at[i], found->at[found->n - 1].raw != NULL) < 0)
			return -1;
	return weft__map_put(&cache->by_key, key, (uint32_t)cache->n_places++);
}

static bool is_full(const struct weft__name_cache *cache)
{
	return cache->n_places >= cache->max_places || cache->n_lines >= cache->max_places * LINES_OF_PLACE ||
	       cache->text_bytes >= cache->max_places * TEXT_BYTES_OF_PLACE || cache->n_modules >= MODULES_MAX;
}

/* Out of memory, everything is forgotten: nothing half-built stays. */
void weft__name_cache_put(struct weft__name_cache *cache, const struct weft_module *module, uint64_t offset,
			  const struct weft__symbol_frames *found)
{
	uint64_t at = offset_of(module, offset);
	size_t number;

	if (!is_kept(module, at) || !found->n)
		return;
	if (is_full(cache))
		forget(cache);
	number = find_module(cache, module);
	if ((number == cache->n_modules && add_module(cache, module) < 0) ||
	    add_place(cache, (uint64_t)number << OFFSET_BITS | at, found) < 0)
		forget(cache);
}
