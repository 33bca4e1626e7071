/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/frames.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

#define REFS_MAX ((size_t)1 << 26) /* frames of all stacks together: 256 MiB */

static int module_row(struct weft__frames *f, const struct weft_module *def, uint32_t *ret)
{
	struct weft__code_module *grown =
		weft__arena_grow(&f->arena, f->modules, &f->cap_modules, f->n_modules, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	f->modules = grown;
	if (f->n_modules > 0 && weft__map_put(&f->module_by_id, def->id, (uint32_t)f->n_modules) < 0)
		return -ENOMEM;
	memset(&grown[f->n_modules], 0, sizeof(*grown));
	grown[f->n_modules].def = *def;
	*ret = (uint32_t)f->n_modules++;
	return 0;
}

/* The row of a module, made when it is new. */
static int module_get(struct weft__frames *f, uint32_t id, uint32_t *ret)
{
	static const struct weft_module unknown = {.path = ""};
	struct weft_module fresh = {.id = id, .path = ""};
	int rc = f->n_modules == 0 ? module_row(f, &unknown, ret) : 0;

	if (rc < 0)
		return rc;
	*ret = id == 0 ? 0 : weft__map_get(&f->module_by_id, id);
	return *ret == WEFT__MAP_NONE ? module_row(f, &fresh, ret) : 0;
}

int weft__frames_add_module(struct weft__frames *f, const struct weft_module *module)
{
	const char *path = weft__texts_add(&f->texts, module->path);
	uint32_t at;

	if (!path || module_get(f, module->id, &at) < 0)
		return -ENOMEM;
	if (at == 0)
		return 0;
	f->modules[at].def = *module;
	f->modules[at].def.path = path;
	return 0;
}

static int site_get(struct weft__frames *f, uint32_t module_id, uint64_t offset, uint32_t *ret)
{
	struct weft__site *grown;
	uint32_t module;

	if (module_get(f, module_id, &module) < 0)
		return -ENOMEM;
	*ret = weft__map_get(&f->modules[module].sites, offset);
	if (*ret != WEFT__MAP_NONE)
		return 0;
	grown = weft__arena_grow(&f->arena, f->sites, &f->cap_sites, f->n_sites, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	f->sites = grown;
	if (weft__map_put(&f->modules[module].sites, offset, (uint32_t)f->n_sites) < 0)
		return -ENOMEM;
	grown[f->n_sites] = (struct weft__site){.offset = offset, .module = module};
	*ret = (uint32_t)f->n_sites++;
	return 0;
}

/* Whether the stack is there already: segments repeat those that they need. */
static bool same_stack(const struct weft__frames *f, const struct weft__code_stack *old, const struct weft_stack *stack)
{
	uint32_t i;

	if (old->n != stack->n_frames || old->flags != stack->flags)
		return false;
	for (i = 0; i < old->n; i++) {
		const struct weft__site *site = &f->sites[f->refs[old->first + i]];

		if (site->offset != stack->frames[i].offset ||
		    f->modules[site->module].def.id != stack->frames[i].module)
			return false;
	}
	return true;
}

/* NULL: out of memory. */
static struct weft__code_stack *stack_row(struct weft__frames *f, uint32_t id)
{
	uint32_t at = weft__map_get(&f->stack_by_id, id);
	struct weft__code_stack *grown;

	if (at != WEFT__MAP_NONE)
		return &f->stacks[at];
	grown = weft__arena_grow(&f->arena, f->stacks, &f->cap_stacks, f->n_stacks, sizeof(*grown));
	if (!grown)
		return NULL;
	f->stacks = grown;
	if (weft__map_put(&f->stack_by_id, id, (uint32_t)f->n_stacks) < 0)
		return NULL;
	grown[f->n_stacks] = (struct weft__code_stack){.id = id};
	return &grown[f->n_stacks++];
}

int weft__frames_add_stack(struct weft__frames *f, const struct weft_stack *stack)
{
	const struct weft__code_stack *old = weft__frames_stack(f, stack->id);
	struct weft__code_stack *row;
	size_t first = f->n_refs;
	uint32_t i, *grown;

	if (old && same_stack(f, old, stack))
		return 0;
	if (stack->n_frames > REFS_MAX - f->n_refs) {
		f->stacks_beyond++;
		return 0;
	}
	for (i = 0; i < stack->n_frames; i++) {
		grown = weft__arena_grow(&f->arena, f->refs, &f->cap_refs, f->n_refs, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		f->refs = grown;
		if (site_get(f, stack->frames[i].module, stack->frames[i].offset, &grown[f->n_refs]) < 0)
			return -ENOMEM;
		f->n_refs++;
	}
	row = stack_row(f, stack->id);
	if (!row)
		return -ENOMEM;
	row->flags = stack->flags;
	row->first = (uint32_t)first;
	row->n = stack->n_frames;
	return 0;
}

static int function_get(struct weft__frames *f, const char *name, const struct weft_module *module, bool known,
			uint32_t *ret)
{
	const char *kept = weft__texts_add(&f->texts, name);
	uint32_t first, at;
	struct weft__function *grown;

	if (!kept)
		return -ENOMEM;
	first = weft__map_get(&f->function_by_name, (uint64_t)(uintptr_t)kept);
	for (at = first; at != WEFT__MAP_NONE; at = f->functions[at].next)
		if (strcmp(f->functions[at].module, module->path) == 0) {
			*ret = at;
			return 0;
		}
	grown = weft__arena_grow(&f->arena, f->functions, &f->cap_functions, f->n_functions, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	f->functions = grown;
	if (weft__map_put(&f->function_by_name, (uint64_t)(uintptr_t)kept, (uint32_t)f->n_functions) < 0)
		return -ENOMEM;
	grown[f->n_functions] = (struct weft__function){
		.name = kept,
		.module = module->path,
		.kernel = module->kind == WEFT_MODULE_KERNEL,
		.interpreted = module->kind == WEFT_MODULE_NAMED,
		.known = known,
		.next = first,
	};
	*ret = (uint32_t)f->n_functions++;
	return 0;
}

/* Inside of itself libc has other names for its calls: __GI___libc_send is send. */
static const char *plain_name(const char *name, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	if (strncmp(base, "libc.so", 7) != 0 && strncmp(base, "libc-2.", 7) != 0)
		return name;
	name += strncmp(name, "__GI_", 5) == 0 && name[5] ? 5 : 0;
	name += strncmp(name, "__libc_", 7) == 0 && name[7] && strncmp(name, "__libc_start", 12) != 0 ? 7 : 0;
	return name;
}

int weft__frames_set_line(struct weft__frames *f, uint32_t site, const char *function, bool known, const char *file,
			  uint32_t line, bool inlined)
{
	struct weft__line *grown = weft__arena_grow(&f->arena, f->lines, &f->cap_lines, f->n_lines, sizeof(*grown)),
			  *to;
	struct weft__site *s = &f->sites[site];
	const struct weft_module *module = &f->modules[s->module].def;

	if (!grown)
		return -ENOMEM;
	f->lines = grown;
	to = &grown[f->n_lines];
	to->line = line;
	to->inlined = inlined;
	to->file = weft__texts_add(&f->texts, file ? file : "");
	if (!to->file ||
	    function_get(f, known ? plain_name(function, module->path) : function, module, known, &to->function) < 0)
		return -ENOMEM;
	if (s->n == 0)
		s->first = (uint32_t)f->n_lines;
	s->n++;
	f->n_lines++;
	return 0;
}

int weft__frames_add_symbol(struct weft__frames *f, const struct weft_symbol_def *symbol)
{
	uint32_t site, i;

	if (site_get(f, symbol->module, symbol->offset, &site) < 0)
		return -ENOMEM;
	if (f->sites[site].n > 0 || symbol->n_frames == 0)
		return 0;
	for (i = 0; i < symbol->n_frames; i++)
		if (symbol->frames[i].function[0] == 0)
			return 0;
	for (i = 0; i < symbol->n_frames; i++) {
		const struct weft_symbol_frame *frame = &symbol->frames[i];

		if (weft__frames_set_line(f, site, frame->function, true, frame->file, frame->line,
					  frame->inlined && i + 1 < symbol->n_frames) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Interpreted code: an offset is the id of a location. */
static int name_by_locations(struct weft__frames *f, const struct weft_segment *seg, uint32_t module_id)
{
	size_t n, i;
	const struct weft_location_def *locations = weft_segment_locations(seg, &n);
	uint32_t module;

	if (module_get(f, module_id, &module) < 0)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		uint32_t site = weft__map_get(&f->modules[module].sites, locations[i].id);

		if (site != WEFT__MAP_NONE && f->sites[site].n == 0 &&
		    weft__frames_set_line(f, site, locations[i].name, true, locations[i].file, locations[i].line,
					  false) < 0)
			return -ENOMEM;
	}
	return 0;
}

int weft__frames_add_segment(struct weft__frames *f, const struct weft_segment *seg)
{
	const struct weft_symbol_def *symbols;
	const struct weft_module *modules;
	const struct weft_stack *stacks;
	size_t n, i;

	modules = weft_segment_modules(seg, &n);
	for (i = 0; i < n; i++)
		if (weft__frames_add_module(f, &modules[i]) < 0)
			return -ENOMEM;
	stacks = weft_segment_stacks(seg, &n);
	for (i = 0; i < n; i++)
		if (weft__frames_add_stack(f, &stacks[i]) < 0)
			return -ENOMEM;
	symbols = weft_segment_symbols(seg, &n);
	for (i = 0; i < n; i++)
		if (weft__frames_add_symbol(f, &symbols[i]) < 0)
			return -ENOMEM;
	modules = weft_segment_modules(seg, &n);
	for (i = 0; i < n; i++)
		if (modules[i].kind == WEFT_MODULE_NAMED && name_by_locations(f, seg, modules[i].id) < 0)
			return -ENOMEM;
	return 0;
}

const struct weft__code_stack *weft__frames_stack(const struct weft__frames *f, uint32_t id)
{
	uint32_t at = weft__map_get(&f->stack_by_id, id);

	return at == WEFT__MAP_NONE ? NULL : &f->stacks[at];
}

void weft__frames_want(struct weft__frames *f, uint32_t stack)
{
	const struct weft__code_stack *s = weft__frames_stack(f, stack);
	uint32_t i;

	for (i = 0; s && i < s->n; i++)
		f->sites[f->refs[s->first + i]].wanted = true;
}

static int add_lines(const struct weft__frames *f, uint32_t stack, struct weft__line_list *list)
{
	const struct weft__code_stack *s = weft__frames_stack(f, stack);
	uint32_t i, j;

	for (i = 0; s && i < s->n; i++) {
		const struct weft__site *site = &f->sites[f->refs[s->first + i]];

		for (j = 0; j < site->n; j++) {
			struct weft__line *grown = weft__grow(list->at, &list->cap, list->n, sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			list->at = grown;
			grown[list->n++] = f->lines[site->first + j];
		}
	}
	return 0;
}

int weft__frames_lines(const struct weft__frames *f, uint32_t stack, uint32_t kernel, struct weft__line_list *list)
{
	int rc;

	list->n = 0;
	rc = add_lines(f, kernel, list);
	return rc < 0 ? rc : add_lines(f, stack, list);
}

void weft__frames_fini(struct weft__frames *f)
{
	size_t i;

	for (i = 0; i < f->n_modules; i++)
		weft__map_fini(&f->modules[i].sites);
	weft__arena_fini(&f->arena);
	weft__map_fini(&f->data_by_address);
	weft__map_fini(&f->module_by_id);
	weft__map_fini(&f->stack_by_id);
	weft__map_fini(&f->function_by_name);
	weft__texts_fini(&f->texts);
	memset(f, 0, sizeof(*f));
}

/* A function of the library, or a guard of weft.hpp. */
static bool is_weft(const char *name)
{
	return strncmp(name, "weft_", 5) == 0 || strncmp(name, "weft::", 6) == 0;
}

size_t weft__frames_outside(const struct weft__frames *frames, const struct weft__line_list *list)
{
	size_t i = 0;

	while (i < list->n && is_weft(frames->functions[list->at[i].function].name))
		i++;
	return i < list->n ? i : 0;
}
