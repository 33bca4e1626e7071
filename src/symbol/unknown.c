/* SPDX-License-Identifier: Apache-2.0 */
/* The last source: it always answers, with what is known of the address itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "symbol/source.h"

static int unknown_resolve(struct weft__source *source, struct weft__symbol_entry *module, uint64_t ip,
			   uint64_t time_ns, struct weft__frame_list *out)
{
	const struct weft__symbol_module *at = &module->at;
	const char *slash = strrchr(at->path, '/'), *base = slash ? slash + 1 : at->path, *name;
	char text[512];

	(void)time_ns;
	if (base[0])
		snprintf(text, sizeof(text), "%.400s+0x%" PRIx64, base, ip - at->start + at->offset);
	else
		snprintf(text, sizeof(text), "0x%" PRIx64, ip);
	name = weft__texts_add(&source->env->texts, text);
	if (!name)
		return -ENOMEM;
	out->at[0] = (struct weft__symbol){.function = name, .offset = out->within};
	out->n = 1;
	return 1;
}

static int unknown_open(struct weft__source **ret, struct weft__symbol_env *env)
{
	struct weft__source *source = weft__calloc(1, sizeof(*source));

	(void)env;
	if (!source)
		return -ENOMEM;
	*ret = source;
	return 0;
}

static void unknown_close(struct weft__source *source)
{
	weft__free(source);
}

const struct weft__source_ops weft__source_unknown = {"unknown", unknown_open, unknown_resolve, unknown_close};
