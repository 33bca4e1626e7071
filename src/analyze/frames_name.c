/* SPDX-License-Identifier: Apache-2.0 */
/* Names for places that segments do not name: from the files that were mapped, if they are still here and the same,
 * and from their debug info. What nothing names is shown as the place itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/frames.h"
#include "analyze/name_cache.h"
#include "base/alloc.h"

struct naming {
	struct weft__frames *frames;
	struct weft__symbolizer *symbolizer;
	struct weft__name_cache *cache;
	struct weft__symbol_place *places;
	uint32_t *sites; /* of the places */
	size_t n, cap;
	int rc;
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The offset in the file, which is what other tools take, and the address where there is no file. Where it is known
 * that the function began `within` bytes before, that place stands for all of it. */
static int name_by_place(struct weft__frames *f, uint32_t at, uint64_t within)
{
	const struct weft__site *site = &f->sites[at];
	const struct weft_module *module = &f->modules[site->module].def;
	const char *base = base_of(module->path);
	char text[512];

	if (module->kind == WEFT_MODULE_KERNEL)
		snprintf(text, sizeof(text), "[kernel] 0x%" PRIx64, module->start + site->offset);
	else if (base[0])
		snprintf(text, sizeof(text), "%.400s+0x%" PRIx64, base, site->offset + module->offset - within);
	else if (site->module && module->kind == 0)
		snprintf(text, sizeof(text), "[module %u]+0x%" PRIx64, module->id, site->offset);
	else
		snprintf(text, sizeof(text), "[unknown] 0x%" PRIx64, module->start + site->offset);
	f->unnamed++;
	f->modules[site->module].unnamed++;
	return weft__frames_set_line(f, at, text, false, NULL, 0, false);
}

static int add_module(struct naming *n, struct weft__code_module *module, uint32_t pid)
{
	const struct weft_module *def = &module->def;
	struct weft__symbol_module at = {
		.path = def->path,
		.build_id = def->build_id_n ? def->build_id : NULL,
		.build_id_n = def->build_id_n,
		.pid = pid,
		.start = def->start,
		.end = module == n->frames->modules ? UINT64_MAX : def->end, /* in no module: code made at run time */
		.offset = def->offset,
	};

	if (module->added)
		return 0;
	if (weft__symbolizer_add(n->symbolizer, &at, &module->symbol_module) < 0)
		return -ENOMEM;
	module->added = true;
	return 0;
}

static int add_place(struct naming *n, uint32_t at, uint32_t pid)
{
	const struct weft__site *site = &n->frames->sites[at];
	struct weft__code_module *module = &n->frames->modules[site->module];

	if (add_module(n, module, pid) < 0)
		return -ENOMEM;
	n->places[n->n] = (struct weft__symbol_place){module->symbol_module, module->def.start + site->offset, 0};
	n->sites[n->n++] = at;
	return 0;
}

static void resolved(size_t index, const struct weft__symbol_frames *found, void *data)
{
	struct naming *n = data;
	uint32_t site = n->sites[index], i;

	if (n->rc < 0)
		return;
	if (n->cache)
		weft__name_cache_put(n->cache, &n->frames->modules[n->frames->sites[site].module].def,
				     n->frames->sites[site].offset, found);
	if (found->n == 0 || !found->at[found->n - 1].raw) {
		n->rc = name_by_place(n->frames, site, found->n ? found->at[found->n - 1].offset : 0);
		return;
	}
	for (i = 0; i < found->n && n->rc == 0; i++)
		n->rc = weft__frames_set_line(n->frames, site, found->at[i].function, true, found->at[i].file,
					      found->at[i].line, found->at[i].inlined);
}

static bool is_open(const struct weft__site *site)
{
	return site->wanted && site->n == 0;
}

/* Who makes code at run time may report it, by the process. A module that nothing defines has nobody to ask. */
static bool can_ask(const struct weft__frames *f, const struct weft__site *site, const struct weft__naming *naming)
{
	uint8_t kind = f->modules[site->module].def.kind;

	if (site->module == 0 || kind == WEFT_MODULE_CODE)
		return naming->pid && !naming->elsewhere;
	return kind != 0 && kind != WEFT_MODULE_NAMED && !(kind == WEFT_MODULE_KERNEL && naming->elsewhere);
}

/* What is known of earlier recordings. */
static int recall(struct naming *n)
{
	struct weft__frames *f = n->frames;
	size_t i;
	int rc = 0;

	for (i = 0; i < f->n_sites && rc == 0; i++) {
		const struct weft__cached_line *line;
		uint32_t lines = 0, j;

		if (!is_open(&f->sites[i]))
			continue;
		line = weft__name_cache_get(n->cache, &f->modules[f->sites[i].module].def, f->sites[i].offset, &lines);
		if (line && !line[lines - 1].function)
			rc = name_by_place(f, (uint32_t)i, line[lines - 1].within);
		for (j = 0; line && line[lines - 1].function && j < lines && rc == 0; j++)
			rc = weft__frames_set_line(f, (uint32_t)i, line[j].function, true, line[j].file, line[j].line,
						   line[j].inlined);
	}
	return rc;
}

static int keep_reasons(struct naming *n)
{
	struct weft__frames *f = n->frames;
	size_t i;

	for (i = 0; i < f->n_modules; i++) {
		const char *why =
			f->modules[i].added ? weft__symbolizer_why(n->symbolizer, f->modules[i].symbol_module) : "";

		if (!why[0])
			continue;
		f->modules[i].why = weft__texts_add(&f->texts, why);
		if (!f->modules[i].why)
			return -ENOMEM;
	}
	return 0;
}

static int ask(struct naming *n, const struct weft__naming *naming)
{
	struct weft__frames *f = n->frames;
	size_t i, most = 0;
	int rc;

	for (i = 0; i < f->n_sites; i++)
		most += is_open(&f->sites[i]) && can_ask(f, &f->sites[i], naming);
	if (most == 0)
		return 0;
	n->places = weft__calloc(most, sizeof(*n->places));
	n->sites = weft__calloc(most, sizeof(*n->sites));
	if (!n->places || !n->sites || weft__symbolizer_open(&n->symbolizer, naming->symbolizer, NULL) < 0)
		return -ENOMEM;
	for (i = 0; i < f->n_modules; i++)
		f->modules[i].added = false;
	for (i = 0; i < f->n_sites; i++)
		if (is_open(&f->sites[i]) && can_ask(f, &f->sites[i], naming) &&
		    add_place(n, (uint32_t)i, naming->pid) < 0)
			return -ENOMEM;
	rc = weft__symbolizer_resolve_all(n->symbolizer, n->places, n->n, resolved, n);
	if (rc == 0)
		rc = n->rc;
	return rc < 0 ? rc : keep_reasons(n);
}

int weft__frames_name(struct weft__frames *f, const struct weft__naming *naming)
{
	struct naming n = {.frames = f, .cache = naming->elsewhere || naming->no_symbols ? NULL : naming->cache};
	size_t i;
	int rc = n.cache ? recall(&n) : 0;

	if (rc == 0 && !naming->no_symbols)
		rc = ask(&n, naming);
	weft__symbolizer_close(n.symbolizer);
	weft__free(n.places);
	weft__free(n.sites);
	for (i = 0; rc == 0 && i < f->n_sites; i++)
		if (is_open(&f->sites[i]))
			rc = name_by_place(f, (uint32_t)i, 0);
	return rc;
}
