/* SPDX-License-Identifier: Apache-2.0 */
/* The code of one recording, gathered from all its segments: modules, stacks, and the names of the places that
 * stacks go through. Each place is kept once, whatever number of stacks and segments it is in, and so is each
 * function. Everything is copied, so segments may be closed.
 *
 *     weft__frames_add_segment(&frames, seg);          each segment
 *     weft__frames_want(&frames, stack);               each stack of which names are wanted
 *     weft__frames_name(&frames, &naming);             once: asks files and debug info about what segments do not say
 *     weft__frames_lines(&frames, stack, kernel, &l);  the frames of a sample, as people see them
 *
 * Ids of modules and stacks are those of the recording. Context: CALLER. */
#ifndef WEFT_ANALYZE_FRAMES_H
#define WEFT_ANALYZE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "symbol/symbol.h"
#include "symbol/texts.h"
#include "weft/segment.h"

struct weft__data_place;
struct weft__name_cache;

struct weft__code_module {
	struct weft_module def; /* kind 0: nothing defines it */
	struct weft__map sites; /* by offset */
	uint64_t unnamed;       /* places in it that were asked for and that nothing names */
	const char *why;        /* it has fewer names than it could, for people; NULL: not known */
	uint32_t symbol_module; /* of the symbolizer that is at work */
	bool added;             /* ... which knows it */
};

/* One place in code. */
struct weft__site {
	uint64_t offset;
	uint32_t module; /* index of it; 0: not known, and offset is the address */
	uint32_t first;  /* of its lines */
	uint32_t n;      /* lines; 0: not named yet */
	bool wanted;
};

struct weft__function {
	/* Whole and demangled, as all who show it say it; of unknown ones the place: "libz.so.1+0x4f20" or "[unknown]
	 * 0x7f..." */
	const char *name;
	const char *module; /* path; "" when not known */
	bool kernel;
	bool interpreted; /* a binding named it: the program's own code, as what is in its file is */
	bool known;
	uint32_t next; /* of the same name, elsewhere */
};

/* A frame as people see it: a place has more than one where calls were inlined. */
struct weft__line {
	uint32_t function; /* index */
	uint32_t line;     /* 0: not known */
	const char *file;  /* "": not known */
	bool inlined;      /* into the next */
};

struct weft__code_stack {
	uint32_t id;
	uint32_t flags; /* enum weft_stack_flag */
	uint32_t first; /* of its sites, leaf first */
	uint32_t n;
};

struct weft__frames {
	struct weft__arena arena;
	struct weft__code_module *modules; /* [0] is the unknown one */
	size_t n_modules, cap_modules;
	struct weft__map module_by_id;
	struct weft__site *sites;
	size_t n_sites, cap_sites;
	uint32_t *refs; /* indices of sites: the stacks */
	size_t n_refs, cap_refs;
	struct weft__code_stack *stacks;
	size_t n_stacks, cap_stacks;
	struct weft__map stack_by_id;
	struct weft__line *lines;
	size_t n_lines, cap_lines;
	struct weft__function *functions;
	size_t n_functions, cap_functions;
	struct weft__map function_by_name; /* address of the kept text to the first of that name */
	struct weft__texts texts;
	struct weft__data_place *data; /* variables that are wanted */
	size_t n_data, cap_data;
	struct weft__map data_by_address;

	uint64_t stacks_beyond; /* more frames than are kept: their stacks are as if not defined */
	uint64_t unnamed;       /* addresses that were asked for and that nothing names */
};

struct weft__line_list {
	struct weft__line *at;
	size_t n, cap;
};

struct weft__naming {
	bool no_symbols; /* only what segments say */
	bool elsewhere;  /* not in this boot of this machine: what is here is about other kernels and processes */
	uint32_t pid;    /* of the recorded process, for JIT maps; 0: not known */
	const struct weft__symbolizer_opts *symbolizer; /* NULL: defaults */
	struct weft__name_cache *cache;                 /* of earlier recordings (name_cache.h); NULL: none */
};

/* {0} is ready for use. Each returns 0 or -ENOMEM. A stack that repeats an id replaces the earlier one; the first
 * names of a place stay. */
int weft__frames_add_segment(struct weft__frames *frames, const struct weft_segment *seg);
int weft__frames_add_module(struct weft__frames *frames, const struct weft_module *module);
int weft__frames_add_stack(struct weft__frames *frames, const struct weft_stack *stack);
int weft__frames_add_symbol(struct weft__frames *frames, const struct weft_symbol_def *symbol);
void weft__frames_fini(struct weft__frames *frames);

/* NULL when no segment defines it. */
const struct weft__code_stack *weft__frames_stack(const struct weft__frames *frames, uint32_t id);

/* Marks the places of a stack as wanted. */
void weft__frames_want(struct weft__frames *frames, uint32_t stack);

/* Names every place that is wanted and has no name. Returns 0 or -ENOMEM. */
int weft__frames_name(struct weft__frames *frames, const struct weft__naming *naming);

/* The same for variables (frames_data.c). Their names are only in the files, never in segments. An object is wanted
 * when waits of that kind (enum weft_wait) have the address of a variable. */
void weft__frames_want_data(struct weft__frames *frames, uint64_t address);
void weft__frames_want_object(struct weft__frames *frames, uint32_t what, uint64_t object);
int weft__frames_name_data(struct weft__frames *frames, const struct weft__naming *naming);
const char *weft__frames_data(const struct weft__frames *frames, uint64_t address); /* NULL: not known */

/* All frames of a sample, leaf first: those of the kernel, then those of the program. Ids that are 0 or not defined
 * give none. `list` is the caller's, {0} at first, to be freed with weft__free(list->at). Returns 0 or -ENOMEM. */
int weft__frames_lines(const struct weft__frames *frames, uint32_t stack, uint32_t kernel,
		       struct weft__line_list *list);

/* The stack of a wait is taken when it ends, in weft: the first line that is not, as index; 0 when all are. */
size_t weft__frames_outside(const struct weft__frames *frames, const struct weft__line_list *list);

/* Inside: the lines of one place, whose texts are copied; for frames_name.c. */
int weft__frames_set_line(struct weft__frames *frames, uint32_t site, const char *function, bool known,
			  const char *file, uint32_t line, bool inlined);

#endif
