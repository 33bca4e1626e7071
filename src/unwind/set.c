/* SPDX-License-Identifier: Apache-2.0 */
/* A set of modules, of this process or another one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "unwind/modules.h"

struct weft__module *weft__module_new(const char *path)
{
	struct weft__module *module = weft__calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->refs = 1;
	module->path = weft__strdup(path);
	if (module->path)
		return module;
	weft__free(module);
	return NULL;
}

void weft__module_free(struct weft__module *module)
{
	if (!module || --module->refs)
		return;
	weft__unwind_table_free(module->table);
	weft__free(module->path);
	weft__free(module);
}

static int by_start(const void *a, const void *b)
{
	const struct weft__module *x = *(struct weft__module *const *)a, *y = *(struct weft__module *const *)b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int weft__modules_new(struct weft__modules **ret, struct weft__module **module, uint32_t n)
{
	size_t cache = ((size_t)1 << WEFT__UNWIND_CACHE_BITS) * sizeof(struct weft__unwind_slot);
	struct weft__modules *set = weft__calloc(1, sizeof(*set) + n * (sizeof(void *) + sizeof(uint64_t)));
	struct weft__unwind_slot *slots = set ? weft__calloc(1, cache) : NULL;
	uint64_t *start;

	if (!slots) {
		weft__free(set);
		for (uint32_t i = 0; i < n; i++)
			weft__module_free(module[i]);
		return -ENOMEM;
	}
	set->n = n;
	set->cache = slots;
	slots[0].check = 1; /* an address of another slot: zeroes would be a rule for address 0 */
	set->module = (void *)(set + 1);
	start = (void *)(set->module + n);
	set->start = start;
	set->memory_bytes = sizeof(*set) + n * (sizeof(void *) + sizeof(uint64_t)) + cache;
	if (n)
		memcpy(set->module, module, n * sizeof(void *));
	weft__sort(set->module, n, sizeof(void *), by_start);
	for (uint32_t i = 0; i < n; i++) {
		start[i] = set->module[i]->start;
		if (set->module[i]->table)
			set->memory_bytes += set->module[i]->table->memory_bytes;
	}
	*ret = set;
	return 0;
}

void weft__modules_free(struct weft__modules *set)
{
	if (!set)
		return;
	for (uint32_t i = 0; i < set->n; i++)
		weft__module_free(set->module[i]);
	weft__free(set->cache);
	weft__free(set);
}
