/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/stack_ids.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "record/collect/collector.h"
#include "record/event/registry.h"
#include "record/ring/stacks.h"
#include "record/tables/frames.h"
#include "unwind/modules.h"

#define INTERNED_MAX (32u << 20) /* bytes of keys, beyond which all are forgotten with the segment */

void weft__stack_ids_fini(struct weft__stack_ids *ids)
{
	weft__code_fini(&ids->code);
	weft__intern_fini(&ids->ids);
	weft__free(ids->defined);
	weft__free(ids->fresh);
	memset(ids, 0, sizeof(*ids));
}

static int add_module(struct weft__stack_ids *ids, const struct weft__module *from)
{
	struct weft_module module = {
		.kind = from->kind == WEFT__MODULE_VDSO ? WEFT_MODULE_VDSO : WEFT_MODULE_FILE,
		.path = from->path,
		.start = from->text_start,
		.end = from->text_end,
		.offset = from->text_offset,
		.build_id_n = from->build_id_n,
	};
	struct weft__code_range range = {module.start, module.end, 0, from->id};

	if (module.end <= module.start)
		return 0;
	memcpy(module.build_id, from->build_id, sizeof(module.build_id));
	range.module = weft__registry_module(&module);
	return range.module ? weft__code_add(&ids->code, &range) : 0;
}

int weft__stack_ids_modules(struct weft__collector *c)
{
	struct weft__stack_ids *ids = &c->stacks;
	const struct weft__modules *set;
	uint32_t visit, i, newest = ids->module_seen;
	int err = 0;

	if (!c->region->head->has_stacks)
		return 0;
	set = weft__modules_enter(&visit);
	for (i = 0; set && i < set->n && !err; i++) {
		if (set->module[i]->id <= ids->module_seen)
			continue;
		err = add_module(ids, set->module[i]);
		newest = set->module[i]->id > newest ? set->module[i]->id : newest;
	}
	if (set && !err) {
		ids->turn |= ids->n_modules && (newest != ids->module_seen || set->n != ids->n_modules);
		ids->module_seen = newest;
		ids->n_modules = set->n;
	}
	weft__modules_leave(visit);
	return err;
}

static uint32_t kernel_module(void)
{
	struct weft_module module = {.kind = WEFT_MODULE_KERNEL, .path = "[kernel]", .end = UINT64_MAX};

	return weft__registry_module(&module);
}

static uint32_t named_module(struct weft__stack_ids *ids)
{
	struct weft_module module = {.kind = WEFT_MODULE_NAMED, .start = WEFT_FRAME_BASE, .end = WEFT_FRAME_LATER};
	char path[64];

	if (!ids->named) {
		snprintf(path, sizeof(path), "[%s]", weft__frames_runtime());
		module.path = path;
		ids->named = weft__registry_module(&module);
	}
	return ids->named;
}

/* Frames that a binding put there, whose names are locations. */
static void resolve_named(struct weft__stack_ids *ids, const uint64_t *addresses, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (weft__frame_is_named(addresses[i]))
			ids->frames[i] = (struct weft_frame){named_module(ids), weft__frame_location(addresses[i])};
}

/* Frames of the stack into ids->frames, and the key that says which stack it is; answers the key's length in bytes. */
static size_t resolve(struct weft__stack_ids *ids, const uint64_t *words, struct weft_stack *stack)
{
	uint32_t n = (uint32_t)words[STACK_SIZE];
	uint32_t i;

	stack->flags = (uint32_t)(words[STACK_SIZE] >> 32);
	if (n > STACK_DEPTH_MAX) {
		n = STACK_DEPTH_MAX;
		stack->flags |= WEFT_STACK_CUT;
	}
	stack->n_frames = n;
	stack->frames = ids->frames;
	if (stack->flags & WEFT_STACK_KERNEL && !ids->code.kernel)
		ids->code.kernel = kernel_module();
	weft__code_frames(&ids->code, &words[STACK_ADDRESSES], n, (stack->flags & WEFT_STACK_KERNEL) != 0, ids->frames);
	resolve_named(ids, &words[STACK_ADDRESSES], n);
	ids->key[0] = stack->flags;
	for (i = 0; i < n; i++) {
		ids->key[1 + 2 * i] = ids->frames[i].module;
		ids->key[2 + 2 * i] = ids->frames[i].offset;
	}
	return (1 + 2 * (size_t)n) * sizeof(ids->key[0]);
}

/* Room in `defined` for an id. */
static int defined_room(struct weft__stack_ids *ids, uint32_t id)
{
	while (ids->n_defined <= id - ids->first_id) {
		uint64_t *grown = weft__grow(ids->defined, &ids->defined_cap, ids->n_defined, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		ids->defined = grown;
		grown[ids->n_defined++] = 0;
	}
	return 0;
}

static int identify(struct weft__collector *c, size_t key_bytes, uint32_t *ret)
{
	struct weft__stack_ids *ids = &c->stacks;
	uint32_t id = weft__intern_get(&ids->ids, ids->key, key_bytes);
	int err;

	if (!id) {
		id = c->region->head->next_stack;
		err = weft__intern_add(&ids->ids, ids->key, key_bytes, id);
		if (err)
			return err;
		c->region->head->next_stack = id + 1;
		ids->interned_bytes += key_bytes;
	}
	*ret = id;
	return 0;
}

static int define(struct weft__collector *c, const struct weft_stack *stack)
{
	struct weft__stack_ids *ids = &c->stacks;
	uint32_t *fresh = weft__grow(ids->fresh, &ids->fresh_cap, ids->n_fresh, sizeof(*fresh));

	if (!fresh)
		return -ENOMEM;
	ids->fresh = fresh;
	ids->fresh[ids->n_fresh++] = stack->id;
	ids->defined[stack->id - ids->first_id] = c->segments.sequence + 1;
	ids->n_frames += stack->n_frames;
	weft__defs_stack(&c->defs, stack);
	return 0;
}

int weft__stack_ids_get(struct weft__collector *c, uint32_t ref, uint64_t *ret_id)
{
	struct weft__stack_ids *ids = &c->stacks;
	struct stacks *stacks;
	struct weft_stack stack = {0};
	const uint64_t *words;
	size_t key_bytes;
	int err;

	*ret_id = 0;
	words = ref ? weft__stacks_get(c->region->base, c->region->head, ref) : NULL;
	if (!words)
		return 0;
	if (!ids->first_id)
		ids->first_id = c->region->head->next_stack;
	stack.id = (uint32_t)words[STACK_ID];
	if (stack.id >= ids->first_id && stack.id - ids->first_id < ids->n_defined &&
	    ids->defined[stack.id - ids->first_id] == c->segments.sequence + 1) {
		*ret_id = stack.id;
		return 0;
	}
	key_bytes = resolve(ids, words, &stack);
	err = identify(c, key_bytes, &stack.id);
	if (!err)
		err = defined_room(ids, stack.id);
	if (!err && ids->defined[stack.id - ids->first_id] != c->segments.sequence + 1)
		err = define(c, &stack);
	if (err)
		return err;
	stacks = stacks_at(c->region->base, c->region->head, STACK_GENERATION(ref));
	stacks->words[STACK_WORD(ref) + STACK_ID] = stack.id;
	*ret_id = stack.id;
	return 0;
}

void weft__stack_ids_settle(struct weft__collector *c, int written)
{
	struct weft__stack_ids *ids = &c->stacks;
	size_t i;

	for (i = 0; i < ids->n_fresh && !written; i++)
		ids->defined[ids->fresh[i] - ids->first_id] = 0;
	ids->n_fresh = 0;
}

void weft__stack_ids_begin_segment(struct weft__collector *c)
{
	struct weft__stack_ids *ids = &c->stacks;

	ids->n_frames = 0;
	if (ids->interned_bytes < INTERNED_MAX)
		return;
	weft__intern_fini(&ids->ids);
	memset(&ids->ids, 0, sizeof(ids->ids));
	ids->interned_bytes = 0;
	ids->n_defined = 0;
	ids->first_id = c->region->head->next_stack;
}

int weft__stack_ids_full(const struct weft__collector *c)
{
	return c->segments.fd >= 0 && c->stacks.n_frames > STACK_FRAMES_MAX / 2;
}

/* Whether some thread has taken slots that are not published: a handler may have put a reference there that nobody
 * can see. */
static int emit_under_way(const struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	uint32_t i, n = load_acquire(&head->n_rings);

	for (i = 0; i < n; i++) {
		const struct ring_page *ring = ring_page_at(c->region->map, i);
		uint64_t published = load_acquire(&ring->hot.head);

		if (load_acquire(&ring->hot.resv) != published)
			return 1;
	}
	return 0;
}

static void empty(struct stacks *stacks)
{
	memset(stacks->table, 0, sizeof(stacks->table));
	store_release(&stacks->used, 0u);
}

static int filling(const struct weft__collector *c)
{
	const struct rings_head *head = c->region->head;

	return head->has_stacks && weft__stacks_filling(stacks_at(c->region->base, head, head->stacks_now));
}

int weft__stack_ids_pressing(const struct weft__collector *c)
{
	return c->stacks.retiring == RETIRING_NONE && filling(c);
}

int weft__stack_ids_crowded(const struct weft__collector *c)
{
	return c->stacks.retiring != RETIRING_NONE && filling(c);
}

void weft__stack_ids_step(struct weft__collector *c)
{
	struct weft__stack_ids *ids = &c->stacks;
	struct rings_head *head = c->region->head;
	struct stacks *before;

	if (!head->has_stacks)
		return;
	before = stacks_at(c->region->base, head, head->stacks_now ^ 1);
	switch (ids->retiring) {
	case RETIRING_NONE:
		if (!ids->turn && !filling(c))
			return;
		ids->turn = 0;
		store_seq_cst(&head->stacks_now, head->stacks_now ^ 1);
		ids->retiring = RETIRING_USED;
		return;
	case RETIRING_USED:
		if (load_seq_cst(&before->users) || emit_under_way(c))
			return;
		ids->drains = c->stats.drains;
		ids->retiring = RETIRING_IN_RINGS;
		return;
	case RETIRING_IN_RINGS:
		if (c->stats.drains <= ids->drains)
			return;
		ids->retiring = RETIRING_STAGED;
		return;
	case RETIRING_STAGED:
		if (staging_any(head))
			return;
		empty(before);
		ids->retiring = RETIRING_NONE;
	}
}
