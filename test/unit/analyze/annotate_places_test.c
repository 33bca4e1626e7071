/* SPDX-License-Identifier: Apache-2.0 */
/* When code that a JIT made was seen: in any event that has a stack, not only in samples. */
#include "analyze/annotate_places.h"

#include "segfile.h"
#include "weft/recorder.h"
#include "weft/wait.h"

static const struct segfile_event events[] = {
	{SEGFILE_MONO + 10, 1, WEFT_KIND_SAMPLE, {1, 0, 5, 0, WEFT_ENGINE_TIMER}, 5},
	{SEGFILE_MONO + 20, 1, WEFT_KIND_WAIT, {WEFT_WAIT_LOCK, 0, 7, 5, 0, 2}, 6},
	{SEGFILE_MONO + 30, 1, WEFT_KIND_SAMPLE, {2, 0, 5, 0, WEFT_ENGINE_TIMER}, 5},
	{SEGFILE_MONO + 40, 2, WEFT_KIND_OFFCPU, {101, 1, 2, 1, 1, 3, 4}, 7},
	{SEGFILE_MONO + 50, 2, WEFT_KIND_WALL, {101, 1, 2, 1, 5}, 5},
	{SEGFILE_MONO + 60, 2, WEFT_KIND_STUCK, {101, 1, 2, 6}, 4},
};

static void define(struct weft__defs *defs, const struct segfile *file)
{
	uint32_t i;

	(void)file;
	for (i = 1; i <= 6; i++) {
		struct weft_frame frame = {0, 0x1000 * i};

		weft__defs_stack(defs, &(struct weft_stack){i, WEFT_STACK_COMPLETE, 1, &frame});
	}
}

TEST(a_stack_has_the_time_of_the_event_that_it_was_first_in)
{
	static const uint64_t expected[] = {10, 20, 40, 40, 50, 60};
	static const char *const names[] = {"0.weft", NULL};
	struct segfile file = {5, 0, "4242", events, sizeof(events) / sizeof(events[0]), NULL, 0, 0};
	struct weft__places places = {0};
	struct weft_segment *seg = NULL;
	char dir[256];
	size_t i;

	segfile_more = define;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&file, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(weft_segment_open(&seg, segfile_path(dir, "0.weft"), NULL), 0);
	CHECK(weft__places_collect(&places, seg) >= 0);
	REQUIRE(places.n == 6);
	for (i = 0; i < 6; i++) {
		CHECK_EQ(places.at[i].offset, 0x1000 * (i + 1));
		CHECK_EQ(places.at[i].time_ns - SEGFILE_MONO, expected[i]);
	}
	weft__places_fini(&places);
	weft_segment_close(seg);
	segfile_remove(dir, names);
}
