/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what is waited for, where that is a variable of a program or library. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/frames.h"
#include "base/alloc.h"
#include "symbol/data.h"
#include "weft/wait.h"

#define DATA_MAX 65536u
#define FIRST_ADDRESS 4096u /* below it there is nothing: a descriptor, or a number that a program gave */

void weft__frames_want_data(struct weft__frames *f, uint64_t address)
{
	struct weft__data_place *grown;

	if (address < FIRST_ADDRESS || f->n_data >= DATA_MAX ||
	    weft__map_get(&f->data_by_address, address) != WEFT__MAP_NONE)
		return;
	grown = weft__arena_grow(&f->arena, f->data, &f->cap_data, f->n_data, sizeof(*grown));
	if (!grown)
		return; /* it stays a number */
	f->data = grown;
	if (weft__map_put(&f->data_by_address, address, (uint32_t)f->n_data) < 0)
		return;
	grown[f->n_data++] = (struct weft__data_place){.address = address};
}

void weft__frames_want_object(struct weft__frames *f, uint32_t what, uint64_t object)
{
	if (what == WEFT_WAIT_LOCK || what == WEFT_WAIT_RWLOCK || what == WEFT_WAIT_CONDITION ||
	    what == WEFT_WAIT_SEMAPHORE)
		weft__frames_want_data(f, object);
}

static int by_address(const void *left, const void *right)
{
	const struct weft__data_place *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static int by_start(const void *left, const void *right)
{
	const struct weft_module *a = *(const struct weft_module *const *)left,
				 *b = *(const struct weft_module *const *)right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* The variables of a file lie behind its code and before that of the next. */
static int name_all(struct weft__frames *f, const struct weft__symbolizer_opts *opts,
		    const struct weft_module **modules, size_t n)
{
	size_t i, first = 0, next = 0;
	int rc = 0;

	for (i = 0; rc == 0 && i < n; i++) {
		struct weft__symbol_module at = {.path = modules[i]->path,
						 .build_id = modules[i]->build_id_n ? modules[i]->build_id : NULL,
						 .build_id_n = modules[i]->build_id_n,
						 .start = modules[i]->start,
						 .end = modules[i]->end,
						 .offset = modules[i]->offset};

		while (first < f->n_data && f->data[first].address < at.start)
			first++;
		for (next = first; next < f->n_data && (i + 1 == n || f->data[next].address < modules[i + 1]->start);)
			next++;
		if (next > first)
			rc = weft__data_name(opts, &at, f->data + first, next - first, &f->texts);
	}
	return rc;
}

static int text_of(struct weft__frames *f, struct weft__data_place *place)
{
	const char *name = place->name ? weft__texts_demangled(&f->texts, place->name) : NULL;
	char text[512];

	if (!place->name)
		return 0;
	if (!name)
		return -ENOMEM;
	snprintf(text, sizeof(text), place->offset ? "%.400s+0x%" PRIx64 : "%.400s", name, place->offset);
	place->name = weft__texts_add(&f->texts, text);
	place->offset = 0; /* it is in the text: names may be asked for again, of others */
	return place->name ? 0 : -ENOMEM;
}

int weft__frames_name_data(struct weft__frames *f, const struct weft__naming *naming)
{
	const struct weft_module **modules;
	size_t i, n = 0;
	int rc;

	if (naming->no_symbols || f->n_data == 0)
		return 0;
	modules = weft__calloc(f->n_modules + 1, sizeof(*modules));
	if (!modules)
		return -ENOMEM;
	for (i = 0; i < f->n_modules; i++)
		if (f->modules[i].def.kind == WEFT_MODULE_FILE && f->modules[i].def.path[0] == '/' &&
		    (f->modules[i].def.build_id_n || !naming->elsewhere))
			modules[n++] = &f->modules[i].def;
	if (n)
		qsort(modules, n, sizeof(*modules), by_start);
	qsort(f->data, f->n_data, sizeof(*f->data), by_address);
	rc = name_all(f, naming->symbolizer, modules, n);
	weft__free(modules);
	for (i = 0; rc == 0 && i < f->n_data; i++) {
		rc = text_of(f, &f->data[i]);
		if (rc == 0)
			rc = weft__map_put(&f->data_by_address, f->data[i].address, (uint32_t)i);
	}
	return rc;
}

const char *weft__frames_data(const struct weft__frames *f, uint64_t address)
{
	uint32_t at = weft__map_get(&f->data_by_address, address);

	return at == WEFT__MAP_NONE ? NULL : f->data[at].name;
}
