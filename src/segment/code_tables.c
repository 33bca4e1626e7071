/* SPDX-License-Identifier: Apache-2.0 */
/* The definitions of a segment that are about code: modules, stacks, and the names of places in them.
 *
 * Frames are in an arena that does not move, so that the tables can point to them while they grow. Symbols refer to
 * names by id, and a name may be replaced by a later block: until all blocks are read, a symbol's frame holds ids in
 * the place of its two strings, and weft__segment_sort_code puts the strings there. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "segment/format.h"
#include "segment/reader.h"

/* Room for `n` frames that stand in the rest of the record, each in `least` bytes or more. */
static void *take_frames(struct weft_segment *seg, uint64_t n, size_t bytes, size_t least, struct weft__in *in,
			 int *oom)
{
	void *frames;

	if (in->bad || n > in_left(in) / least) {
		in_fail(in);
		return NULL;
	}
	frames = weft__arena_take(&seg->frames, n * bytes);
	*oom |= !frames;
	return frames;
}

static uint32_t in_id(struct weft__in *in)
{
	uint32_t id = in_u32(in);

	return id ? id : (uint32_t)in_fail(in);
}

static void read_module(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_module module = {0};
	const uint8_t *build_id;
	struct weft_module *add;

	module.id = in_id(in);
	module.kind = in_u32(in);
	module.start = in_varint(in);
	module.end = in_varint(in);
	module.offset = in_varint(in);
	module.build_id_n = in_u32(in);
	build_id = in_bytes(in, module.build_id_n);
	module.path = weft__segment_text(seg, in, oom);
	if (!build_id || module.build_id_n > WEFT_BUILD_ID_MAX || module.end < module.start) {
		in_fail(in);
		return;
	}
	memcpy(module.build_id, build_id, module.build_id_n);
	add = weft__table_add(&seg->modules, sizeof(*add), MODULE_RECORDS_MAX, in, oom);
	if (add)
		*add = module;
}

static void read_stack(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_stack stack = {0};
	struct weft_stack *add;
	struct weft_frame *frames;
	uint64_t i, n;

	stack.id = in_id(in);
	stack.flags = in_u32(in);
	n = in_varint(in);
	if (n > STACK_FRAMES_MAX - seg->n_stack_frames)
		in_fail(in);
	frames = take_frames(seg, n, sizeof(*frames), 2, in, oom);
	if (!frames)
		return;
	seg->n_stack_frames += n;
	for (i = 0; i < n; i++) {
		frames[i].module = in_u32(in);
		frames[i].offset = in_varint(in);
	}
	stack.n_frames = (uint32_t)n;
	stack.frames = frames;
	add = weft__table_add(&seg->stacks, sizeof(*add), RECORDS_MAX, in, oom);
	if (add)
		*add = stack;
}

static void read_name(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_string_def name = {0};
	struct weft_string_def *add;

	name.id = in_id(in);
	name.text = weft__segment_text(seg, in, oom);
	add = weft__table_add(&seg->names, sizeof(*add), RECORDS_MAX, in, oom);
	if (add)
		*add = name;
}

static const char *id_as_name(uint32_t id)
{
	return (const char *)(uintptr_t)id;
}

static const char *name_of_id(const struct weft_segment *seg, const char *id)
{
	const struct weft_string_def *name = weft__table_find(&seg->names, sizeof(*name), (uint32_t)(uintptr_t)id);

	return name ? name->text : "";
}

static void read_symbol(struct weft_segment *seg, struct weft__in *in, int *oom)
{
	struct weft_symbol_def symbol = {0};
	struct weft_symbol_def *add;
	struct weft_symbol_frame *frames;
	uint64_t i, n;

	symbol.module = in_u32(in);
	symbol.offset = in_varint(in);
	n = in_varint(in);
	if (n > SYMBOL_FRAMES_MAX - seg->n_symbol_frames)
		in_fail(in);
	frames = take_frames(seg, n, sizeof(*frames), 4, in, oom);
	if (!frames)
		return;
	seg->n_symbol_frames += n;
	for (i = 0; i < n; i++) {
		frames[i].function = id_as_name(in_u32(in));
		frames[i].file = id_as_name(in_u32(in));
		frames[i].line = in_u32(in);
		frames[i].inlined = in_u32(in);
	}
	symbol.n_frames = (uint32_t)n;
	symbol.frames = frames;
	add = weft__table_add(&seg->symbols, sizeof(*add), RECORDS_MAX, in, oom);
	if (add)
		*add = symbol;
}

void weft__segment_read_code(struct weft_segment *seg, uint64_t tag, struct weft__in *in, int *oom)
{
	switch (tag) {
	case DEF_MODULE:
		read_module(seg, in, oom);
		break;
	case DEF_STACK:
		read_stack(seg, in, oom);
		break;
	case DEF_NAME:
		read_name(seg, in, oom);
		break;
	case DEF_SYMBOL:
		read_symbol(seg, in, oom);
		break;
	}
}

static int compare_symbols(const void *a, const void *b)
{
	const struct weft_symbol_def *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

int weft__segment_sort_code(struct weft_segment *seg)
{
	const struct weft_symbol_def *symbols;
	size_t i, j;

	if (weft__table_sort_ids(&seg->modules, sizeof(struct weft_module)) ||
	    weft__table_sort_ids(&seg->stacks, sizeof(struct weft_stack)) ||
	    weft__table_sort_ids(&seg->names, sizeof(struct weft_string_def)) ||
	    weft__table_sort(&seg->symbols, sizeof(struct weft_symbol_def), compare_symbols))
		return -ENOMEM;
	symbols = seg->symbols.items;
	for (i = 0; i < seg->symbols.n; i++) {
		struct weft_symbol_frame *frames = (struct weft_symbol_frame *)symbols[i].frames;

		for (j = 0; j < symbols[i].n_frames; j++) {
			frames[j].function = name_of_id(seg, frames[j].function);
			frames[j].file = name_of_id(seg, frames[j].file);
		}
	}
	return 0;
}

const struct weft_symbol_def *weft_segment_symbols(const struct weft_segment *seg, size_t *n)
{
	*n = seg->symbols.n;
	return seg->symbols.items;
}

const struct weft_symbol_def *weft_segment_symbol(const struct weft_segment *seg, uint32_t module, uint64_t offset)
{
	const struct weft_symbol_def *symbols = seg->symbols.items;
	struct weft_symbol_def key = {.module = module, .offset = offset};
	size_t low = 0, high = seg->symbols.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = compare_symbols(&symbols[mid], &key);

		if (!order)
			return &symbols[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}
