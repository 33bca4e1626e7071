/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of a recording to places of the profile. Places are the same when file and offset are, whichever recording
 * they come from; code that was made at run time is of its process alone. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "export/aggregate.h"

#define FRAMES_MAX 4096u /* of one stack, kernel and marks included; outer ones beyond are left out */

struct mapping_key {
	uint32_t path, build_id, kind, recording; /* recording: number + 1, of code that is not in a file */
};

struct place_key {
	uint32_t mapping, function; /* number + 1 of what a mark is called */
	uint64_t at;                /* offset in the mapping, or the address; of a mark its line */
	uint32_t recording, unused;
};

static void hex(const uint8_t *bytes, uint32_t n, char *to)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t i;

	for (i = 0; i < n; i++) {
		to[2 * i] = digits[bytes[i] >> 4];
		to[2 * i + 1] = digits[bytes[i] & 15];
	}
	to[2 * n] = 0;
}

static int mapping_get(struct weft__aggregate *agg, const struct weft_module *def, uint32_t *ret)
{
	bool code = def->kind == WEFT_MODULE_CODE || def->kind == WEFT_MODULE_NAMED || !def->path[0];
	struct mapping_key key = {.kind = def->kind, .recording = code ? agg->number + 1 : 0};
	char build_id[2 * WEFT_BUILD_ID_MAX + 1];
	struct weft__mapping *grown;

	hex(def->build_id, def->build_id_n < WEFT_BUILD_ID_MAX ? def->build_id_n : WEFT_BUILD_ID_MAX, build_id);
	if (weft__keys_text(&agg->texts, def->path, &key.path) < 0 ||
	    weft__keys_text(&agg->texts, build_id, &key.build_id) < 0 ||
	    weft__keys_add(&agg->mappings_by_key, &key, sizeof(key), ret) < 0)
		return -ENOMEM;
	if (*ret < agg->n_mappings)
		return 0;
	grown = weft__grow(agg->mappings, &agg->cap_mappings, agg->n_mappings, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	agg->mappings = grown;
	grown[agg->n_mappings++] = (struct weft__mapping){.path = key.path,
							  .build_id = key.build_id,
							  .kind = def->kind,
							  .start = def->start,
							  .end = def->end,
							  .offset = def->offset};
	return 0;
}

int weft__aggregate_main(struct weft__aggregate *agg)
{
	const struct weft__frames *frames = &agg->rec->frames;
	const char *exe = weft__names_fact(&agg->rec->names, "process.exe");
	uint32_t mapping;
	size_t i;

	for (i = 1; exe && i < frames->n_modules; i++)
		if (strcmp(frames->modules[i].def.path, exe) == 0)
			return mapping_get(agg, &frames->modules[i].def, &mapping);
	return 0;
}

static int line_add(struct weft__aggregate *agg, const char *name, const char *file, uint32_t line)
{
	struct weft__place_line *grown = weft__grow(agg->lines, &agg->cap_lines, agg->n_lines, sizeof(*grown));
	struct weft__place_function function;

	if (!grown)
		return -ENOMEM;
	agg->lines = grown;
	if (weft__keys_text(&agg->texts, name, &function.name) < 0 ||
	    weft__keys_text(&agg->texts, file, &function.file) < 0 ||
	    weft__keys_add(&agg->functions, &function, sizeof(function), &grown[agg->n_lines].function) < 0)
		return -ENOMEM;
	grown[agg->n_lines++].line = line;
	return 0;
}

/* A new place, with the lines that are added next. */
static int place_new(struct weft__aggregate *agg, uint32_t mapping, uint64_t address)
{
	struct weft__place *grown = weft__grow(agg->places, &agg->cap_places, agg->n_places, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	agg->places = grown;
	grown[agg->n_places++] =
		(struct weft__place){.mapping = mapping, .first = (uint32_t)agg->n_lines, .address = address};
	return 0;
}

int weft__aggregate_mark(struct weft__aggregate *agg, const char *name, const char *file, uint32_t line, uint32_t *ret)
{
	struct weft__place_function function;
	struct place_key key = {.at = line};
	uint32_t number;

	if (weft__keys_text(&agg->texts, name, &function.name) < 0 ||
	    weft__keys_text(&agg->texts, file, &function.file) < 0 ||
	    weft__keys_add(&agg->functions, &function, sizeof(function), &number) < 0)
		return -ENOMEM;
	key.function = number + 1;
	if (weft__keys_add(&agg->places_by_key, &key, sizeof(key), ret) < 0)
		return -ENOMEM;
	if (*ret < agg->n_places)
		return 0;
	if (place_new(agg, 0, 0) < 0 || line_add(agg, name, file, line) < 0)
		return -ENOMEM;
	agg->places[*ret].n = 1;
	return 0;
}

static int add_lines(struct weft__aggregate *agg, const struct weft__site *site, uint32_t place, uint32_t mapping)
{
	const struct weft__frames *frames = &agg->rec->frames;
	uint32_t i;

	for (i = 0; i < site->n; i++) {
		const struct weft__line *line = &frames->lines[site->first + i];
		const struct weft__function *function = &frames->functions[line->function];

		if (line_add(agg, function->name, line->file, line->line) < 0)
			return -ENOMEM;
		if (mapping) {
			agg->mappings[mapping - 1].has_functions |= function->known;
			agg->mappings[mapping - 1].has_files |= line->line != 0;
			agg->mappings[mapping - 1].has_inlined |= line->inlined;
		}
	}
	agg->places[place].n = site->n;
	return 0;
}

static int place_get(struct weft__aggregate *agg, const struct weft__site *site, uint32_t *ret)
{
	const struct weft_module *def = &agg->rec->frames.modules[site->module].def;
	struct place_key key = {.at = site->offset};
	uint32_t mapping = 0;

	if (site->module) {
		if (mapping_get(agg, def, &mapping) < 0)
			return -ENOMEM;
		key.mapping = ++mapping;
		/* A file may be mapped in more parts than one: what counts is where in the file. */
		key.at += def->offset;
	} else {
		key.recording = agg->number + 1;
	}
	if (weft__keys_add(&agg->places_by_key, &key, sizeof(key), ret) < 0)
		return -ENOMEM;
	if (*ret < agg->n_places)
		return 0;
	if (place_new(agg, mapping,
		      mapping ? agg->mappings[mapping - 1].start + key.at - agg->mappings[mapping - 1].offset
			      : site->offset) < 0)
		return -ENOMEM;
	return add_lines(agg, site, *ret, mapping);
}

static bool is_weft(const struct weft__frames *frames, const struct weft__site *site)
{
	const struct weft__line *last = site->n ? &frames->lines[site->first + site->n - 1] : NULL;

	return last && strncmp(frames->functions[last->function].name, "weft_", 5) == 0;
}

static int push(struct weft__aggregate *agg, size_t *n, uint32_t place)
{
	uint32_t *grown;

	if (*n >= FRAMES_MAX)
		return 0;
	grown = weft__grow(agg->scratch, &agg->cap_scratch, *n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	agg->scratch = grown;
	grown[(*n)++] = place;
	return 0;
}

static int push_stack(struct weft__aggregate *agg, uint32_t id, bool outside, size_t *n)
{
	const struct weft__frames *frames = &agg->rec->frames;
	const struct weft__code_stack *stack = weft__frames_stack(frames, id);
	uint32_t i = 0, place, skipped;

	for (skipped = 0; stack && outside && skipped < stack->n; skipped++)
		if (!is_weft(frames, &frames->sites[frames->refs[stack->first + skipped]]))
			break;
	if (stack && skipped < stack->n)
		i = skipped;
	for (; stack && i < stack->n; i++)
		if (place_get(agg, &frames->sites[frames->refs[stack->first + i]], &place) < 0 ||
		    push(agg, n, place) < 0)
			return -ENOMEM;
	return 0;
}

/* Where the outer frames of the program's stack are missing, that is said in their place. */
static int push_end(struct weft__aggregate *agg, uint32_t id, size_t *n)
{
	const struct weft__code_stack *stack = id ? weft__frames_stack(&agg->rec->frames, id) : NULL;
	const char *mark = !id                                                        ? NULL
			   : !stack                                                   ? "[stack not defined]"
			   : stack->flags & WEFT_STACK_CUT                            ? "[stack cut]"
			   : stack->flags & (WEFT_STACK_COMPLETE | WEFT_STACK_KERNEL) ? NULL
										      : "[stack lost]";
	uint32_t place;

	if (!mark)
		return 0;
	return weft__aggregate_mark(agg, mark, NULL, 0, &place) < 0 ? -ENOMEM : push(agg, n, place);
}

static int make_stack(struct weft__aggregate *agg, const struct weft__stack_key *key, uint32_t *ret)
{
	uint32_t none;
	size_t n = 0;

	if (key->leaf && push(agg, &n, key->leaf - 1) < 0)
		return -ENOMEM;
	if (push_stack(agg, key->kernel, false, &n) < 0 || push_stack(agg, key->stack, key->outside, &n) < 0 ||
	    push_end(agg, key->stack, &n) < 0)
		return -ENOMEM;
	if (key->root && push(agg, &n, key->root - 1) < 0)
		return -ENOMEM;
	if (n == 0 && (weft__aggregate_mark(agg, "[no stack]", NULL, 0, &none) < 0 || push(agg, &n, none) < 0))
		return -ENOMEM;
	return weft__sums_stack(&agg->sums, agg->scratch, n, ret);
}

int weft__aggregate_stack(struct weft__aggregate *agg, const struct weft__stack_key *key, uint32_t *ret)
{
	size_t before = agg->stacks_by_key.n;
	uint32_t number, *grown;

	if (weft__sums_full(&agg->sums)) {
		number = weft__keys_find(&agg->stacks_by_key, key, sizeof(*key));
		*ret = number == WEFT__MAP_NONE ? WEFT__SUMS_NONE : agg->stack_of_key[number];
		return 0;
	}
	if (weft__keys_add(&agg->stacks_by_key, key, sizeof(*key), &number) < 0)
		return -ENOMEM;
	if (number < before) {
		*ret = agg->stack_of_key[number];
		return 0;
	}
	grown = weft__grow(agg->stack_of_key, &agg->cap_stack_of_key, number, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	agg->stack_of_key = grown;
	if (make_stack(agg, key, &grown[number]) < 0)
		return -ENOMEM;
	*ret = grown[number];
	return 0;
}
