/* SPDX-License-Identifier: Apache-2.0 */
/* Samples by function, as trees, and the quality of their stacks. */
#include "analyze/profile.h"

#include "base/alloc.h"
#include "code.h"

#define COMPLETE WEFT_STACK_COMPLETE

static void name_all(struct weft__frames *frames)
{
	static const struct weft__naming naming = {.no_symbols = true};
	size_t i;

	CHECK_EQ(code_add_symbols(frames), 0);
	for (i = 0; i < frames->n_stacks; i++)
		weft__frames_want(frames, frames->stacks[i].id);
	CHECK_EQ(weft__frames_name(frames, &naming), 0);
}

static struct weft__function_weight find(const struct weft__profile *profile, const struct weft__frames *frames,
					 const char *name)
{
	struct weft__function_weight none = {0};
	size_t i;

	for (i = 0; i < profile->n_functions; i++)
		if (strcmp(frames->functions[profile->functions[i].function].name, name) == 0)
			return profile->functions[i];
	return none;
}

TEST(recursion_and_inlined_calls_count_once_in_the_total)
{
	struct weft__sample_row rows[] = {
		{1, 0, 0, 0, WEFT__IN_POLL, {1, 10}},  {2, 0, 0, 0, WEFT__IN_POLL, {2, 20}},
		{3, 9, 0, 0, WEFT__IN_POLL, {3, 40}},  {4, 0, 0, 0, WEFT__IN_POLL, {1, 80}},
		{0, 0, 0, 0, WEFT__IN_POLL, {1, 160}}, /* without a stack */
	};
	struct weft__samples samples = {.rows = rows, .n_rows = 5};
	struct weft__frames frames = {0};
	struct weft__profile profile;

	CHECK_EQ(code_add_modules(&frames), 0);
	/* deflate calls itself, through longest_match */
	CODE_STACK(&frames, 1, COMPLETE, code_app(F_DEFLATE), code_app(F_MATCH), code_app(F_DEFLATE), code_app(F_MAIN));
	CODE_STACK(&frames, 2, COMPLETE, code_app(F_DEFLATE), code_app(F_DEFLATE), code_app(F_DEFLATE),
		   code_app(F_MAIN));
	CODE_STACK(&frames, 3, COMPLETE, code_app(F_CRC), code_app(F_MAIN));
	CODE_STACK(&frames, 4, COMPLETE, code_app(F_OUTER), code_app(F_MAIN));
	CODE_STACK(&frames, 9, WEFT_STACK_KERNEL, {CODE_KERNEL, 0xffffffff81000010});
	name_all(&frames);
	CHECK_EQ(weft__profile_init(&profile, &samples, &frames), 0);
	CHECK_EQ(profile.all.ns, 310);
	CHECK_EQ(profile.nameless.ns, 160);
	CHECK_EQ(profile.n_functions, 7);
	CHECK_EQ(find(&profile, &frames, "main").self.ns, 0);
	CHECK_EQ(find(&profile, &frames, "main").total.ns, 150);
	CHECK_EQ(find(&profile, &frames, "main").total.n, 7);
	CHECK_EQ(find(&profile, &frames, "deflate").self.ns, 30);
	CHECK_EQ(find(&profile, &frames, "deflate").total.ns, 30); /* once, however often it is there */
	CHECK_EQ(find(&profile, &frames, "deflate").total.n, 3);
	CHECK_EQ(find(&profile, &frames, "longest_match").self.ns, 0);
	CHECK_EQ(find(&profile, &frames, "longest_match").total.ns, 10);
	CHECK_EQ(find(&profile, &frames, "crc32").self.ns, 0); /* it was in the kernel */
	CHECK_EQ(find(&profile, &frames, "crc32").total.ns, 40);
	CHECK_EQ(find(&profile, &frames, "do_syscall_64").self.ns, 40);
	CHECK_EQ(find(&profile, &frames, "inner").self.ns, 80);
	CHECK_EQ(find(&profile, &frames, "outer").self.ns, 0);
	CHECK_EQ(find(&profile, &frames, "outer").total.ns, 80);
	CHECK_STR(frames.functions[profile.functions[0].function].name, "inner"); /* the most self */
	weft__profile_fini(&profile);
	weft__frames_fini(&frames);
}

TEST(stacks_are_counted_by_whether_they_are_complete_cut_or_lost)
{
	struct weft__sample_row rows[] = {
		{1, 0, 0, 0, WEFT__IN_POLL, {1, 1}},  {2, 0, 0, 0, WEFT__IN_POLL, {1, 2}},
		{3, 0, 0, 0, WEFT__IN_POLL, {1, 4}},  {4, 9, 0, 0, WEFT__IN_POLL, {1, 8}},
		{0, 9, 0, 0, WEFT__IN_POLL, {1, 16}}, {5, 0, 0, 0, WEFT__IN_POLL, {1, 32}},
	};
	struct weft__samples samples = {.rows = rows, .n_rows = 6};
	struct weft__frames frames = {0};
	struct weft__profile profile;

	CHECK_EQ(code_add_modules(&frames), 0);
	CODE_STACK(&frames, 1, COMPLETE, code_app(F_MAIN));
	CODE_STACK(&frames, 2, WEFT_STACK_CUT, code_app(F_CRC));
	CODE_STACK(&frames, 3, WEFT_STACK_LOST | WEFT_STACK_FP, code_app(F_CRC));
	CODE_STACK(&frames, 4, WEFT_STACK_LOST | WEFT_STACK_NO_CODE | WEFT_STACK_EARLY, {0, 0x1234});
	name_all(&frames);
	CHECK_EQ(weft__profile_init(&profile, &samples, &frames), 0);
	CHECK_EQ(profile.quality.complete.ns, 1);
	CHECK_EQ(profile.quality.cut.ns, 2);
	CHECK_EQ(profile.quality.lost.ns, 4 + 8);
	CHECK_EQ(profile.quality.none.ns, 16);
	CHECK_EQ(profile.quality.undefined.ns, 32);
	CHECK_EQ(profile.quality.fp.ns, 4);
	CHECK_EQ(profile.quality.no_code.ns, 8);
	CHECK_EQ(profile.quality.early.ns, 8);
	CHECK_EQ(profile.quality.kernel.ns, 8 + 16);
	CHECK_EQ(profile.quality.complete.n + profile.quality.cut.n + profile.quality.lost.n + profile.quality.none.n +
			 profile.quality.undefined.n,
		 6);
	weft__profile_fini(&profile);
	weft__frames_fini(&frames);
}

static const char *name_of(const struct weft__frames *frames, const struct weft__tree *tree, uint32_t node)
{
	return node ? frames->functions[tree->nodes[node].function].name : "";
}

TEST(a_tree_grows_from_the_outermost_call)
{
	struct weft__poll_stack stacks[] = {{1, 0, {3, 30}}, {2, 0, {1, 15}}, {3, 0, {1, 10}}, {4, 0, {1, 1}}};
	struct weft__poll poll = {.stacks = stacks, .n_stacks = 4};
	struct weft__frames frames = {0};
	struct weft__tree tree = {0};
	uint32_t at;

	CHECK_EQ(code_add_modules(&frames), 0);
	CODE_STACK(&frames, 1, COMPLETE, code_app(F_MATCH), code_app(F_DEFLATE), code_app(F_UPLOAD), code_app(F_MAIN));
	CODE_STACK(&frames, 2, COMPLETE, code_app(F_CRC), code_app(F_UPLOAD), code_app(F_MAIN));
	CODE_STACK(&frames, 3, COMPLETE, code_app(F_DEFLATE), code_app(F_UPLOAD), code_app(F_MAIN));
	CODE_STACK(&frames, 4, COMPLETE, code_app(F_LOOP), code_app(F_MAIN));
	name_all(&frames);
	CHECK_EQ(weft__tree_add_poll(&tree, &frames, &poll), 0);
	weft__tree_sort(&tree);
	CHECK_EQ(tree.n, 1 + 6);
	CHECK_EQ(tree.nodes[0].total.ns, 56);
	at = tree.nodes[0].child;
	CHECK_STR(name_of(&frames, &tree, at), "main");
	CHECK_EQ(tree.nodes[at].next, 0);
	CHECK_EQ(tree.nodes[at].total.n, 6);
	at = tree.nodes[at].child;
	CHECK_STR(name_of(&frames, &tree, at), "handle_upload");
	CHECK_EQ(tree.nodes[at].total.ns, 55);
	CHECK_STR(name_of(&frames, &tree, tree.nodes[at].next), "run_loop");
	at = tree.nodes[at].child;
	CHECK_STR(name_of(&frames, &tree, at), "deflate");
	CHECK_EQ(tree.nodes[at].total.ns, 40);
	CHECK_EQ(tree.nodes[at].self.ns, 10);
	CHECK_STR(name_of(&frames, &tree, tree.nodes[at].next), "crc32");
	CHECK_STR(name_of(&frames, &tree, tree.nodes[at].child), "longest_match");
	CHECK_STR(name_of(&frames, &tree, weft__tree_heart(&tree)), "longest_match"); /* 30 of 56 */
	weft__tree_fini(&tree);
	stacks[0].weight.ns = 20; /* 20 of 46 in there, 30 in deflate */
	CHECK_EQ(weft__tree_add_poll(&tree, &frames, &poll), 0);
	weft__tree_sort(&tree);
	CHECK_STR(name_of(&frames, &tree, weft__tree_heart(&tree)), "deflate");
	weft__tree_fini(&tree);
	CHECK_EQ(weft__tree_heart(&tree), 0);
	weft__frames_fini(&frames);
}

TEST(stacks_that_are_not_whole_grow_apart_from_others)
{
	struct weft__frames frames = {0};
	struct weft__tree tree = {0};
	uint32_t at;

	CHECK_EQ(code_add_modules(&frames), 0);
	CODE_STACK(&frames, 1, COMPLETE, code_app(F_CRC), code_app(F_MAIN));
	CODE_STACK(&frames, 2, WEFT_STACK_CUT, code_app(F_CRC), code_app(F_LOOP));
	CODE_STACK(&frames, 3, WEFT_STACK_LOST, code_app(F_CRC));
	name_all(&frames);
	CHECK_EQ(weft__tree_add(&tree, &frames, 1, 0, (struct weft__weight){1, 3}), 0);
	CHECK_EQ(weft__tree_add(&tree, &frames, 2, 0, (struct weft__weight){1, 9}), 0);
	CHECK_EQ(weft__tree_add(&tree, &frames, 3, 0, (struct weft__weight){1, 1}), 0);
	CHECK_EQ(weft__tree_add(&tree, &frames, 0, 0, (struct weft__weight){1, 2}), 0); /* no stack at all */
	weft__tree_sort(&tree);
	CHECK_EQ(tree.nodes[0].self.ns, 2);
	at = tree.nodes[0].child;
	CHECK_EQ(tree.nodes[at].function, WEFT__NODE_CUT);
	CHECK_STR(name_of(&frames, &tree, tree.nodes[at].child), "run_loop");
	at = tree.nodes[at].next;
	CHECK_STR(name_of(&frames, &tree, at), "main");
	at = tree.nodes[at].next;
	CHECK_EQ(tree.nodes[at].function, WEFT__NODE_LOST);
	CHECK_STR(name_of(&frames, &tree, weft__tree_heart(&tree)), "crc32");
	weft__tree_fini(&tree);
	weft__frames_fini(&frames);
}

/* Siblings in order, however many. */
TEST(calls_of_one_parent_are_sorted_by_their_time)
{
	struct weft__frames frames = {0};
	struct weft__tree tree = {0};
	uint32_t i, at, n = 0;
	uint64_t last = UINT64_MAX;

	CHECK_EQ(code_add_modules(&frames), 0);
	for (i = 1; i <= 1000; i++)
		CODE_STACK(&frames, i, COMPLETE, code_lib(i));
	name_all(&frames);
	for (i = 1; i <= 1000; i++)
		CHECK_EQ(weft__tree_add(&tree, &frames, i, 0, (struct weft__weight){1, i * 37 % 211}), 0);
	weft__tree_sort(&tree);
	for (at = tree.nodes[0].child; at; at = tree.nodes[at].next) {
		CHECK(tree.nodes[at].total.ns <= last);
		last = tree.nodes[at].total.ns;
		n++;
	}
	CHECK_EQ(n, 1000);
	weft__tree_fini(&tree);
	weft__frames_fini(&frames);
}
