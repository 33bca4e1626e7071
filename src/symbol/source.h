/* SPDX-License-Identifier: Apache-2.0 */
/* What a source of names is. CALLER. The chain of sources is itself one (chain.c). */
#ifndef WEFT_SYMBOL_SOURCE_H
#define WEFT_SYMBOL_SOURCE_H

#include "base/map.h"
#include "symbol/symbol.h"
#include "symbol/texts.h"

#define WEFT__FRAMES_MAX 64 /* of one address; deeper inlining loses the frames in the middle */

/* What the symbolizer knows of a module: its copy of the description. */
struct weft__symbol_entry {
	struct weft__symbol_module at;
	struct weft__map answers; /* addresses that were asked for, to numbers of answers (symbolizer.c) */
	uint32_t id;
	const char *why; /* NULL or a text of `texts` */
};

/* What all sources share. */
struct weft__symbol_env {
	struct weft__symbolizer_opts opts; /* nothing in it is NULL */
	struct weft__texts texts;
};

struct weft__frame_list {
	struct weft__symbol at[WEFT__FRAMES_MAX];
	uint32_t n;
	uint64_t within; /* nobody knows the function, but that it began so far before; 0: nor that */
};

struct weft__source {
	const struct weft__source_ops *ops;
	struct weft__symbol_env *env;
};

struct weft__source_ops {
	const char *name;
	int (*open)(struct weft__source **ret, struct weft__symbol_env *env);
	/* The number of frames put into `out`; 0 when it does not know; -ENOMEM. */
	int (*resolve)(struct weft__source *source, struct weft__symbol_entry *module, uint64_t ip, uint64_t time_ns,
		       struct weft__frame_list *out);
	/* Takes half-opened ones. */
	void (*close)(struct weft__source *source);
};

extern const struct weft__source_ops weft__source_kernel, weft__source_vdso, weft__source_jit, weft__source_elf,
	weft__source_unknown, weft__source_chain;

/* The source of the chain that gave the last answer. */
const char *weft__chain_answered(const struct weft__source *chain);
struct weft__source *weft__chain_get(struct weft__source *chain, const struct weft__source_ops *ops);
int weft__jit_add_dump(struct weft__source *jit, uint32_t pid, const char *path);
void weft__jit_refresh(struct weft__source *jit);

/* Adds a frame whose function is `raw`, demangled. 1 or -ENOMEM. A full list loses its last but one. */
int weft__frame_add(struct weft__symbol_env *env, struct weft__frame_list *out, const char *raw, const char *file,
		    uint32_t line, uint64_t offset);
/* Sets `why` of the module, once: the first reason is the one to mend. */
void weft__symbol_why(struct weft__symbol_env *env, struct weft__symbol_entry *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
