/* SPDX-License-Identifier: Apache-2.0 */
/* Samples the whole way, from segment files to functions: a poll that crosses a border, stacks that both segments
 * define, no memory. */
#include <errno.h>
#include <stdlib.h>

#include "analyze/profile.h"
#include "analyze/recording.h"
#include "code.h"
#include "segfile.h"
#include "stingy.h"
#include "weft/hooks.h"
#include "weft/recorder.h"

#define SAMPLE_OF(stack, ns) stack, 9, ns, 0, WEFT_ENGINE_PERF

static const struct segfile_event before[] = {
	EV(1001000, 1, SPAWN, 1, 1),
	EV(1002000, 1, POLL_BEGIN, 1, 0),
	EV(1002500, 1, SAMPLE, SAMPLE_OF(1, 10)),
	EV(1003500, 2, SAMPLE, SAMPLE_OF(2, 20)),
};
static const struct segfile_event after[] = {
	EV(1003000, 1, SAMPLE, SAMPLE_OF(1, 40)),
	EV(1004000, 1, SAMPLE, SAMPLE_OF(3, 80)),
	EV(1005000, 1, POLL_END),
	EV(1006000, 1, SAMPLE, SAMPLE_OF(1, 160)),
};
static const struct segfile first = {7, 0, "42", before, 4, NULL, 0, 0};
static const struct segfile second = {7, 1, "42", after, 4, NULL, 0, 1};
static const char *const names[] = {"0.weft", "1.weft.active", NULL};

static char dir[256];

static void define_code(struct weft__defs *defs, const struct segfile *file)
{
	code_define(defs);
	CODE_DEFINE_STACK(defs, 1, WEFT_STACK_COMPLETE, code_app(F_DEFLATE), code_app(F_MAIN));
	CODE_DEFINE_STACK(defs, 9, WEFT_STACK_KERNEL, {CODE_KERNEL, 0xffffffff81000010});
	if (file->sequence == 0)
		CODE_DEFINE_STACK(defs, 2, WEFT_STACK_COMPLETE, code_app(F_CRC), code_app(F_MAIN));
	else
		CODE_DEFINE_STACK(defs, 3, WEFT_STACK_COMPLETE, code_lib(0x100), code_app(F_MAIN));
}

static void setup(void)
{
	segfile_dir(dir, sizeof(dir));
	segfile_more = define_code;
	segfile_write(&first, segfile_path(dir, "0.weft"));
	segfile_write(&second, segfile_path(dir, "1.weft.active"));
	segfile_more = NULL;
}

struct way {
	struct weft__recordings list;
	struct weft__analysis *analysis;
	const struct weft__result *result;
	struct weft__profile profile;
	struct weft__tree tree;
};

static int push(void *data, const struct weft__event *ev)
{
	return weft__analysis_push(data, ev);
}

static int go(struct way *way)
{
	struct weft__symbolizer_opts symbolizer = {
		.root = "/nowhere", .debug_dirs = "/nowhere", .kallsyms = "/nowhere/kallsyms", .no_debuginfod = true};
	struct weft__naming naming = {.pid = 42, .symbolizer = &symbolizer};
	struct weft__analysis_opts opts = {.period_ns = 100};
	struct weft__events_ops ops = {.event = push};
	struct weft__recording *rec;
	int rc = weft__recordings_add(&way->list, dir, NULL);

	if (rc < 0)
		return rc;
	weft__recordings_settle(&way->list);
	if (way->list.n != 1)
		return -ENOENT;
	rec = &way->list.all[0];
	opts.names = &rec->names;
	rc = weft__analysis_open(&way->analysis, &opts);
	ops.data = way->analysis;
	if (rc == 0)
		rc = weft__recording_events(rec, 0, UINT64_MAX, &ops);
	if (rc == 0)
		rc = weft__analysis_finish(way->analysis, rec->last_ns, &way->result);
	if (rc < 0)
		return rc;
	weft__profile_want(way->result, &rec->frames);
	rc = weft__frames_name(&rec->frames, &naming);
	if (rc == 0)
		rc = weft__profile_init(&way->profile, &way->result->samples, &rec->frames);
	return rc < 0 ? rc : weft__tree_add_poll(&way->tree, &rec->frames, &way->result->poll.longest[0]);
}

static void done(struct way *way)
{
	weft__tree_fini(&way->tree);
	weft__profile_fini(&way->profile);
	weft__analysis_close(way->analysis);
	weft__recordings_fini(&way->list);
}

TEST(a_poll_across_a_border_has_the_samples_of_both_sides)
{
	struct way way = {0};
	const struct weft__frames *frames;

	setup();
	REQUIRE(CHECK_EQ(go(&way), 0));
	frames = &way.list.all[0].frames;
	CHECK_EQ(frames->n_stacks, 4);
	CHECK_EQ(frames->n_modules, 1 + 3);
	REQUIRE(way.result->poll.n_longest == 1);
	CHECK_EQ(way.result->poll.longest[0].rank_ns, 3000);
	CHECK_EQ(way.result->poll.longest[0].sampled.ns, 130);
	REQUIRE(way.result->poll.longest[0].n_stacks == 2);
	CHECK_EQ(way.result->poll.longest[0].stacks[0].stack, 3);
	CHECK_EQ(way.result->poll.longest[0].stacks[1].stack, 1);
	CHECK_EQ(way.result->poll.longest[0].stacks[1].kernel, 9);
	CHECK_EQ(way.result->poll.longest[0].stacks[1].weight.ns, 50);
	CHECK_EQ(way.result->samples.all.ns, 310);
	CHECK_EQ(way.result->samples.engines[WEFT_ENGINE_PERF].n, 5);
	REQUIRE(way.profile.n_functions == 5);
	CHECK_STR(frames->functions[way.profile.functions[0].function].name, "[kernel] 0xffffffff81000010");
	CHECK_EQ(way.profile.functions[0].self.ns, 310);
	CHECK_EQ(way.profile.quality.complete.ns, 310);
	done(&way);
	segfile_remove(dir, names);
}

TEST(no_memory_at_any_allocation_is_an_error)
{
	struct stingy stingy = {0};
	struct weft_allocator allocator = {stingy_resize, stingy_release, &stingy};
	long granted;
	int rc = -ENOMEM;

	setup();
	weft_set_allocator(&allocator);
	for (granted = 0; rc < 0 && granted < 5000; granted++) {
		struct way way = {0};

		stingy.left = granted;
		rc = go(&way);
		if (rc < 0 && !CHECK_EQ(rc, -ENOMEM))
			break;
		done(&way);
		if (!CHECK_EQ(stingy.live, 0))
			break;
	}
	weft_set_allocator(NULL);
	CHECK_EQ(rc, 0);
	CHECK(granted > 100);
	segfile_remove(dir, names);
}
