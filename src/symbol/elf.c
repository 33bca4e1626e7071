/* SPDX-License-Identifier: Apache-2.0 */
/* The source for code that is in files. Modules of the same build share what was read: a server's workers map the
 * same libraries. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "symbol/object.h"
#include "symbol/source.h"

struct shared {
	struct weft__object object;
	struct weft__symbol_entry *module; /* the first that needed it */
};

struct elf {
	struct weft__source source;
	struct weft__debuginfod servers;
	struct shared **objects;
	size_t n;
	size_t cap;
	struct shared **by_module; /* by id; NULL: not looked for yet */
	size_t n_modules;
};

static bool same(const struct weft__symbol_module *a, const struct weft__symbol_module *b)
{
	return !strcmp(a->path, b->path) && a->build_id_n == b->build_id_n &&
	       (!a->build_id_n || !memcmp(a->build_id, b->build_id, a->build_id_n));
}

static struct shared *open_shared(struct elf *elf, struct weft__symbol_entry *module)
{
	struct shared **objects, *shared;
	size_t i;

	for (i = 0; i < elf->n; i++) {
		if (!same(&elf->objects[i]->module->at, &module->at))
			continue;
		module->why = elf->objects[i]->module->why;
		return elf->objects[i];
	}
	objects = weft__grow(elf->objects, &elf->cap, elf->n, sizeof(struct shared *));
	if (!objects)
		return NULL;
	elf->objects = objects;
	shared = weft__calloc(1, sizeof(*shared));
	if (!shared)
		return NULL;
	shared->module = module;
	objects[elf->n++] = shared;
	if (weft__object_open(&shared->object, elf->source.env, module, &elf->servers) == 0)
		return shared;
	weft__object_close(&shared->object);
	weft__free(shared);
	elf->n--;
	return NULL;
}

static int make_room(struct elf *elf, uint32_t id)
{
	size_t n = elf->n_modules ? elf->n_modules : 64;
	struct shared **by_module;

	if (id < elf->n_modules)
		return 0;
	while (n <= id)
		n *= 2;
	by_module = weft__realloc(elf->by_module, n * sizeof(struct shared *));
	if (!by_module)
		return -ENOMEM;
	memset(by_module + elf->n_modules, 0, (n - elf->n_modules) * sizeof(struct shared *));
	elf->by_module = by_module;
	elf->n_modules = n;
	return 0;
}

static int elf_resolve(struct weft__source *source, struct weft__symbol_entry *module, uint64_t ip, uint64_t time_ns,
		       struct weft__frame_list *out)
{
	struct elf *elf = (struct elf *)source;
	struct shared **shared;

	(void)time_ns;
	/* What has neither a path nor a build-id cannot be found anywhere. */
	if ((module->at.path[0] != '/' && !module->at.build_id_n) || (int64_t)ip < 0)
		return 0;
	if (make_room(elf, module->id) < 0)
		return -ENOMEM;
	shared = &elf->by_module[module->id];
	if (!*shared)
		*shared = open_shared(elf, module);
	if (!*shared)
		return -ENOMEM;
	return weft__object_resolve(&(*shared)->object, source->env, &module->at, ip, out);
}

static int elf_open(struct weft__source **ret, struct weft__symbol_env *env)
{
	struct elf *elf = weft__calloc(1, sizeof(*elf));

	(void)env;
	if (!elf)
		return -ENOMEM;
	*ret = &elf->source;
	return 0;
}

static void elf_close(struct weft__source *source)
{
	struct elf *elf = (struct elf *)source;
	size_t i;

	for (i = 0; i < elf->n; i++) {
		weft__object_close(&elf->objects[i]->object);
		weft__free(elf->objects[i]);
	}
	weft__free(elf->objects);
	weft__free(elf->by_module);
	weft__debuginfod_fini(&elf->servers);
	weft__free(elf);
}

const struct weft__source_ops weft__source_elf = {"elf", elf_open, elf_resolve, elf_close};
