/* SPDX-License-Identifier: Apache-2.0 */
/* The chain, the modules, and the answers that were given before. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "symbol/source.h"
#include "symbol/symbol.h"

#define FRAMES_MAX ((size_t)1 << 21) /* kept; with more, all are forgotten and it begins anew */

struct answer {
	uint32_t n;
	size_t first; /* in `frames` */
	const char *source;
};

struct weft__symbolizer {
	struct weft__symbol_env env;
	struct weft__source *chain;
	struct weft__symbol_entry **modules;
	size_t n_modules;
	size_t cap_modules;
	struct answer *answers;
	size_t n_answers;
	size_t cap_answers;
	struct weft__symbol *frames;
	size_t n_frames;
	size_t cap_frames;
	struct weft__frame_list list;
};

int weft__symbolizer_open(struct weft__symbolizer **ret, const struct weft__symbolizer_opts *opts,
			  struct weft_error *err)
{
	struct weft__symbolizer *sym = weft__calloc(1, sizeof(*sym));
	struct weft__symbolizer_opts *own;
	struct weft__texts *names;

	if (!sym)
		return weft__fail(err, -ENOMEM, "symbols: out of memory");
	own = &sym->env.opts;
	names = &sym->env.texts;
	if (opts)
		*own = *opts;
	own->root = weft__texts_add(names, own->root ? own->root : "");
	own->debug_dirs = weft__texts_add(names, own->debug_dirs ? own->debug_dirs : "/usr/lib/debug");
	own->jit_dir = weft__texts_add(names, own->jit_dir ? own->jit_dir : "/tmp");
	own->kallsyms = weft__texts_add(names, own->kallsyms ? own->kallsyms : "/proc/kallsyms");
	if (!own->root || !own->debug_dirs || !own->jit_dir || !own->kallsyms ||
	    weft__source_chain.open(&sym->chain, &sym->env) < 0) {
		weft__symbolizer_close(sym);
		return weft__fail(err, -ENOMEM, "symbols: out of memory");
	}
	sym->chain->ops = &weft__source_chain;
	sym->chain->env = &sym->env;
	*ret = sym;
	return 0;
}

static void forget_answers(struct weft__symbolizer *sym)
{
	for (size_t i = 0; i < sym->n_modules; i++)
		weft__map_fini(&sym->modules[i]->answers);
	sym->n_answers = sym->n_frames = 0;
}

void weft__symbolizer_close(struct weft__symbolizer *sym)
{
	size_t i;

	if (!sym)
		return;
	if (sym->chain)
		weft__source_chain.close(sym->chain);
	forget_answers(sym);
	for (i = 0; i < sym->n_modules; i++)
		weft__free(sym->modules[i]);
	weft__free(sym->modules);
	weft__free(sym->answers);
	weft__free(sym->frames);
	weft__texts_fini(&sym->env.texts);
	weft__free(sym);
}

int weft__symbolizer_add(struct weft__symbolizer *sym, const struct weft__symbol_module *module, uint32_t *ret_id)
{
	struct weft__symbol_entry **modules, *entry;
	uint32_t n = module->build_id ? module->build_id_n : 0;

	modules = weft__grow(sym->modules, &sym->cap_modules, sym->n_modules, sizeof(struct weft__symbol_entry *));
	if (!modules)
		return -ENOMEM;
	sym->modules = modules;
	entry = weft__calloc(1, sizeof(*entry) + n);
	if (!entry)
		return -ENOMEM;
	entry->at = *module;
	entry->at.path = weft__texts_add(&sym->env.texts, module->path ? module->path : "");
	entry->at.build_id = n ? (uint8_t *)(entry + 1) : NULL;
	entry->at.build_id_n = n;
	if (n)
		memcpy(entry + 1, module->build_id, n);
	if (!entry->at.path) {
		weft__free(entry);
		return -ENOMEM;
	}
	entry->id = *ret_id = (uint32_t)sym->n_modules;
	modules[sym->n_modules++] = entry;
	return 0;
}

int weft__symbolizer_add_jitdump(struct weft__symbolizer *sym, uint32_t pid, const char *path)
{
	return weft__jit_add_dump(weft__chain_get(sym->chain, &weft__source_jit), pid, path);
}

void weft__symbolizer_refresh(struct weft__symbolizer *sym)
{
	weft__jit_refresh(weft__chain_get(sym->chain, &weft__source_jit));
}

const char *weft__symbolizer_why(const struct weft__symbolizer *sym, uint32_t module)
{
	return module < sym->n_modules && sym->modules[module]->why ? sym->modules[module]->why : "";
}

/* NULL: it was not asked for yet. */
static const struct answer *answer_of(const struct weft__symbolizer *sym, uint32_t module, uint64_t ip)
{
	uint32_t at = weft__map_get(&sym->modules[module]->answers, ip);

	return at == WEFT__MAP_NONE ? NULL : &sym->answers[at];
}

static int keep(struct weft__symbolizer *sym, uint32_t module, uint64_t ip)
{
	const struct weft__frame_list *list = &sym->list;
	struct weft__symbol *frames;
	struct answer *answers;
	uint32_t i;

	if (sym->n_frames + list->n > FRAMES_MAX)
		forget_answers(sym);
	answers = weft__grow(sym->answers, &sym->cap_answers, sym->n_answers, sizeof(*answers));
	if (!answers)
		return -ENOMEM;
	sym->answers = answers;
	for (i = 0; i < list->n; i++) {
		frames = weft__grow(sym->frames, &sym->cap_frames, sym->n_frames + i, sizeof(*frames));
		if (!frames)
			return -ENOMEM;
		sym->frames = frames;
		frames[sym->n_frames + i] = list->at[i];
	}
	if (weft__map_put(&sym->modules[module]->answers, ip, (uint32_t)sym->n_answers) < 0)
		return -ENOMEM;
	answers[sym->n_answers++] = (struct answer){list->n, sym->n_frames, weft__chain_answered(sym->chain)};
	sym->n_frames += list->n;
	return 0;
}

int weft__symbolizer_resolve(struct weft__symbolizer *sym, const struct weft__symbol_place *place,
			     struct weft__symbol_frames *ret)
{
	const struct answer *answer;
	int n;

	if (place->module >= sym->n_modules)
		return -EINVAL;
	answer = answer_of(sym, place->module, place->ip);
	if (answer) {
		*ret = (struct weft__symbol_frames){sym->frames + answer->first, answer->n, answer->source};
		return (int)answer->n;
	}
	n = sym->chain->ops->resolve(sym->chain, sym->modules[place->module], place->ip, place->time_ns, &sym->list);
	if (n < 0)
		return n;
	*ret = (struct weft__symbol_frames){sym->list.at, sym->list.n, weft__chain_answered(sym->chain)};
	/* What was at an address of a JIT depends on the time, and so does that nothing was; and its files grow. */
	if (ret->source == weft__source_jit.name ||
	    (ret->source == weft__source_unknown.name && (place->time_ns || sym->modules[place->module]->at.pid)))
		return n;
	return keep(sym, place->module, place->ip) < 0 ? -ENOMEM : n;
}

/* The indices of the places, module by module: places of one module follow each other, in their own order. */
static size_t *by_module(const struct weft__symbolizer *sym, const struct weft__symbol_place *places, size_t n)
{
	size_t *starts = weft__calloc(sym->n_modules + 1, sizeof(*starts));
	size_t *order = weft__alloc(n * sizeof(*order));
	size_t i;

	for (i = 0; starts && order && i < n; i++)
		starts[places[i].module + 1]++;
	for (i = 0; starts && order && i < sym->n_modules; i++)
		starts[i + 1] += starts[i];
	for (i = 0; starts && order && i < n; i++)
		order[starts[places[i].module]++] = i;
	if (!starts) {
		weft__free(order);
		order = NULL;
	}
	weft__free(starts);
	return order;
}

int weft__symbolizer_resolve_all(struct weft__symbolizer *sym, const struct weft__symbol_place *places, size_t n,
				 void (*done)(size_t index, const struct weft__symbol_frames *frames, void *data),
				 void *data)
{
	struct weft__symbol_frames frames;
	size_t i, *order;
	int failed = 0;

	for (i = 0; i < n; i++)
		if (places[i].module >= sym->n_modules)
			return -EINVAL;
	order = by_module(sym, places, n);
	if (!order)
		return -ENOMEM;
	for (i = 0; i < n && failed >= 0; i++) {
		failed = weft__symbolizer_resolve(sym, &places[order[i]], &frames);
		if (failed >= 0)
			done(order[i], &frames, data);
	}
	weft__free(order);
	return failed < 0 ? failed : 0;
}
