/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of calls. */
#include <errno.h>
#include <string.h>

#include "analyze/profile.h"
#include "base/alloc.h"

static int node_new(struct weft__tree *tree, uint32_t parent, uint32_t function, uint32_t *ret)
{
	struct weft__node *grown = weft__grow(tree->nodes, &tree->cap, tree->n, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	tree->nodes = grown;
	if (tree->n > 0 && weft__map_put(&tree->by_call, (uint64_t)parent << 32 | function, (uint32_t)tree->n) < 0)
		return -ENOMEM;
	grown[tree->n] = (struct weft__node){.function = function, .parent = parent};
	if (tree->n > 0) {
		grown[tree->n].next = grown[parent].child;
		grown[parent].child = (uint32_t)tree->n;
	}
	*ret = (uint32_t)tree->n++;
	return 0;
}

static int step(struct weft__tree *tree, uint32_t *at, uint32_t function, struct weft__weight weight)
{
	uint32_t next = weft__map_get(&tree->by_call, (uint64_t)*at << 32 | function);

	if (next == WEFT__MAP_NONE && node_new(tree, *at, function, &next) < 0)
		return -ENOMEM;
	*at = next;
	weft__weight_add(&tree->nodes[next].total, weight.n, weight.ns);
	return 0;
}

static int add(struct weft__tree *tree, const struct weft__frames *frames, uint32_t stack, uint32_t kernel,
	       struct weft__weight weight, bool wait)
{
	const struct weft__code_stack *code = weft__frames_stack(frames, stack);
	struct weft__line_list *lines = &tree->scratch;
	uint32_t at = 0;
	size_t i, first;

	if (tree->n == 0 && node_new(tree, 0, 0, &at) < 0)
		return -ENOMEM;
	if (weft__frames_lines(frames, stack, kernel, lines) < 0)
		return -ENOMEM;
	weft__weight_add(&tree->nodes[0].total, weight.n, weight.ns);
	if (code && code->n > 0 && !(code->flags & WEFT_STACK_COMPLETE) &&
	    step(tree, &at, code->flags & WEFT_STACK_CUT ? WEFT__NODE_CUT : WEFT__NODE_LOST, weight) < 0)
		return -ENOMEM;
	for (i = lines->n, first = wait ? weft__frames_outside(frames, lines) : 0; i-- > first;)
		if (step(tree, &at, lines->at[i].function, weight) < 0)
			return -ENOMEM;
	weft__weight_add(&tree->nodes[at].self, weight.n, weight.ns);
	return 0;
}

int weft__tree_add(struct weft__tree *tree, const struct weft__frames *frames, uint32_t stack, uint32_t kernel,
		   struct weft__weight weight)
{
	return add(tree, frames, stack, kernel, weight, false);
}

int weft__tree_add_wait(struct weft__tree *tree, const struct weft__frames *frames, uint32_t stack, uint32_t kernel,
			struct weft__weight weight)
{
	return add(tree, frames, stack, kernel, weight, true);
}

int weft__tree_add_poll(struct weft__tree *tree, const struct weft__frames *frames, const struct weft__poll *poll)
{
	size_t i;

	for (i = 0; i < poll->n_stacks; i++)
		if (weft__tree_add(tree, frames, poll->stacks[i].stack, poll->stacks[i].kernel,
				   poll->stacks[i].weight) < 0)
			return -ENOMEM;
	return 0;
}

static bool heavier(const struct weft__tree *tree, uint32_t a, uint32_t b)
{
	const struct weft__node *left = &tree->nodes[a], *right = &tree->nodes[b];

	if (left->total.ns != right->total.ns)
		return left->total.ns > right->total.ns;
	return left->function < right->function;
}

/* Merges two sorted lists of siblings. */
static uint32_t merge_siblings(struct weft__tree *tree, uint32_t a, uint32_t b)
{
	uint32_t first = 0, *link = &first;

	while (a && b) {
		uint32_t *take = heavier(tree, a, b) ? &a : &b;

		*link = *take;
		link = &tree->nodes[*take].next;
		*take = *link;
	}
	*link = a ? a : b;
	return first;
}

/* Lists that are twice as long at each turn; a node has few children, but a broken file may make it many. */
static uint32_t sort_siblings(struct weft__tree *tree, uint32_t list)
{
	uint32_t sorted[32] = {0}, one, i;

	while (list) {
		one = list;
		list = tree->nodes[one].next;
		tree->nodes[one].next = 0;
		for (i = 0; sorted[i]; i++) {
			one = merge_siblings(tree, sorted[i], one);
			sorted[i] = 0;
		}
		sorted[i] = one;
	}
	for (i = 0, one = 0; i < 32; i++)
		one = merge_siblings(tree, sorted[i], one);
	return one;
}

void weft__tree_sort(struct weft__tree *tree)
{
	size_t i;

	for (i = 0; i < tree->n; i++)
		tree->nodes[i].child = sort_siblings(tree, tree->nodes[i].child);
}

uint32_t weft__tree_heart(const struct weft__tree *tree)
{
	uint32_t at = 0, child;

	while (tree->n > 0 && (child = tree->nodes[at].child) != 0 &&
	       tree->nodes[child].total.ns >= tree->nodes[0].total.ns - tree->nodes[child].total.ns)
		at = child;
	return tree->n > 0 && tree->nodes[at].function < WEFT__NODE_LOST ? at : 0;
}

void weft__tree_fini(struct weft__tree *tree)
{
	weft__map_fini(&tree->by_call);
	weft__free(tree->nodes);
	weft__free(tree->scratch.at);
	memset(tree, 0, sizeof(*tree));
}
