/* SPDX-License-Identifier: Apache-2.0 */
#include "export/packages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "export/provenance.h"
#include "segment/defs.h"
#include "weft/segment.h"

struct weft__package_cache {
	struct weft__keys paths;
	struct weft__keys texts;
	uint32_t *text_of; /* of each path */
	size_t cap_text_of;
};

struct weft__package_cache *weft__packages_open(void)
{
	return weft__calloc(1, sizeof(struct weft__package_cache));
}

void weft__packages_close(struct weft__package_cache *cache)
{
	if (!cache)
		return;
	weft__keys_fini(&cache->paths);
	weft__keys_fini(&cache->texts);
	weft__free(cache->text_of);
	weft__free(cache);
}

static bool is_file(const struct weft_module *module)
{
	return module->kind == WEFT_MODULE_FILE && module->path[0];
}

static uint32_t find(const struct weft__package_cache *cache, const char *path)
{
	return weft__keys_find(&cache->paths, path, strlen(path) + 1);
}

static int keep(struct weft__package_cache *cache, const struct weft__provenance *p, uint32_t number)
{
	const struct weft__package *package = &p->packages[p->package_of_path[number]];
	struct weft__package_found of = {.origin = package->origin, .manager = package->manager};
	char text[PACKAGE_FACT_BYTES];
	uint32_t path, *grown;

	weft__package_name(&of, weft__provenance_text(p, package->name),
			   strlen(weft__provenance_text(p, package->name)));
	weft__package_version(&of, weft__provenance_text(p, package->version),
			      strlen(weft__provenance_text(p, package->version)));
	weft__package_fact(&of, text, sizeof(text));
	if (weft__keys_text(&cache->paths, weft__keys_at(&p->paths, number, NULL), &path) < 0)
		return -ENOMEM;
	grown = weft__grow(cache->text_of, &cache->cap_text_of, path, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	cache->text_of = grown;
	return weft__keys_text(&cache->texts, text, &grown[path]);
}

/* As much of a recording as says where its code is from, with the files that are not known yet. How many these are, or
 * -ENOMEM. */
static int describe(const struct weft__package_cache *cache, const struct weft_segment *segment,
		    struct weft__recording *to)
{
	size_t n, i;
	const struct weft_module *modules = weft_segment_modules(segment, &n);
	const struct weft_fact *facts;
	int found = 0;

	for (i = 0; i < n; i++) {
		if (!is_file(&modules[i]) || find(cache, modules[i].path) != WEFT__MAP_NONE)
			continue;
		if (weft__frames_add_module(&to->frames, &modules[i]) < 0)
			return -ENOMEM;
		found++;
	}
	facts = weft_segment_facts(segment, &n);
	for (i = 0; i < n && found; i++)
		if (weft__names_add_fact(&to->names, &facts[i]) < 0)
			return -ENOMEM;
	return found;
}

/* Looks up what is not known yet. */
static int learn(struct weft__package_cache *cache, const struct weft_segment *segment)
{
	struct weft__recording rec = {0};
	struct weft__provenance p = {0};
	int rc = describe(cache, segment, &rec);
	uint32_t i;

	if (rc > 0) {
		rc = weft__provenance_init(&p, &rec, NULL);
		if (rc == 0 && !p.elsewhere)
			rc = weft__provenance_modules(&p);
		for (i = 0; i < p.paths.n && rc == 0; i++)
			rc = keep(cache, &p, i);
		weft__provenance_fini(&p);
	}
	weft__names_fini(&rec.names);
	weft__frames_fini(&rec.frames);
	return rc;
}

int weft__packages_add(void *data, const struct weft_segment *segment, struct weft__defs *defs)
{
	struct weft__package_cache *cache = data;
	int rc = learn(cache, segment);
	size_t n, i, k;
	const struct weft_module *modules = weft_segment_modules(segment, &n);

	for (i = 0; i < n && rc == 0; i++) {
		uint32_t at = is_file(&modules[i]) ? find(cache, modules[i].path) : WEFT__MAP_NONE;
		char key[4200];

		for (k = 0; k < i && strcmp(modules[k].path, modules[i].path) != 0; k++)
			;
		if (at == WEFT__MAP_NONE || k < i)
			continue;
		if (snprintf(key, sizeof(key), PACKAGE_FACT "%s", modules[i].path) < (int)sizeof(key) &&
		    !weft_segment_fact(segment, key))
			weft__defs_fact(defs, key, weft__keys_at(&cache->texts, cache->text_of[at], NULL));
	}
	return rc;
}
