/* SPDX-License-Identifier: Apache-2.0 */
/* A source made of sources, asked in turn. */
#include <errno.h>

#include "base/alloc.h"
#include "symbol/source.h"

static const struct weft__source_ops *const order[] = {
	&weft__source_kernel, &weft__source_vdso, &weft__source_jit, &weft__source_elf, &weft__source_unknown,
};

#define N_SOURCES (sizeof(order) / sizeof(order[0]))

struct chain {
	struct weft__source source;
	struct weft__source *at[N_SOURCES];
	const char *answered;
};

static void chain_close(struct weft__source *source)
{
	struct chain *chain = (struct chain *)source;
	size_t i;

	for (i = 0; i < N_SOURCES; i++)
		if (chain->at[i])
			chain->at[i]->ops->close(chain->at[i]);
	weft__free(chain);
}

static int chain_open(struct weft__source **ret, struct weft__symbol_env *env)
{
	struct chain *chain = weft__calloc(1, sizeof(*chain));
	size_t i;

	if (!chain)
		return -ENOMEM;
	for (i = 0; i < N_SOURCES; i++) {
		int failed = order[i]->open(&chain->at[i], env);

		if (failed) {
			chain_close(&chain->source);
			return failed;
		}
		chain->at[i]->ops = order[i];
		chain->at[i]->env = env;
	}
	*ret = &chain->source;
	return 0;
}

static int chain_resolve(struct weft__source *source, struct weft__symbol_entry *module, uint64_t ip, uint64_t time_ns,
			 struct weft__frame_list *out)
{
	struct chain *chain = (struct chain *)source;
	size_t i;

	out->within = 0;
	for (i = 0; i < N_SOURCES; i++) {
		int n;

		out->n = 0;
		n = chain->at[i]->ops->resolve(chain->at[i], module, ip, time_ns, out);
		if (n) {
			chain->answered = order[i]->name;
			return n < 0 ? n : (int)out->n;
		}
	}
	return 0;
}

const char *weft__chain_answered(const struct weft__source *source)
{
	return ((const struct chain *)source)->answered;
}

struct weft__source *weft__chain_get(struct weft__source *source, const struct weft__source_ops *ops)
{
	struct chain *chain = (struct chain *)source;
	size_t i;

	for (i = 0; i < N_SOURCES; i++)
		if (order[i] == ops)
			return chain->at[i];
	return NULL;
}

const struct weft__source_ops weft__source_chain = {"chain", chain_open, chain_resolve, chain_close};
