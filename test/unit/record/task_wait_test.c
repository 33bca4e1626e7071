/* SPDX-License-Identifier: Apache-2.0 */
/* Where tasks begin to wait: weft_task_wait. */
#include "base/atomic.h"
#include "session.h"
#include "unwind/modules.h"
#include "weft/event.h"

extern const char __start_code_task_waits[], __stop_code_task_waits[];

struct seen {
	uint64_t n, of_task;
	uint32_t frames; /* of the last stack */
	int through;     /* it goes through task_waits */
};

/* Not a tail call: the frame has to be there. */
static int __attribute__((noinline, section("code_task_waits"))) task_waits(uint64_t task)
{
	weft_task_wait(task);
	return 1;
}

static void look(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const struct weft_stack *stack;
	struct seen *seen = data;

	if (ev->kind != WEFT_KIND_TASK_WAIT)
		return;
	seen->n++;
	seen->of_task += WEFT_FIELD(ev, TASK_WAIT, TASK) == 7;
	stack = weft_segment_stack(seg, (uint32_t)WEFT_FIELD(ev, TASK_WAIT, STACK));
	seen->frames = stack ? stack->n_frames : 0;
	for (uint32_t i = 0; i < seen->frames; i++) {
		const struct weft_module *module = weft_segment_module(seg, stack->frames[i].module);
		const char *at = (const char *)(uintptr_t)(stack->frames[i].offset + (module ? module->start : 0));

		seen->through |= at >= __start_code_task_waits && at < __stop_code_task_waits;
	}
}

static int tables_are_made(void)
{
	return !weft__modules_stale();
}

TEST(the_stack_of_a_task_that_begins_to_wait_is_recorded)
{
	struct weft_recorder *rec = session_start(NULL);
	struct seen seen = {0};
	struct tally t;

	REQUIRE(rec);
	CHECK(task_waits(7)); /* asks for tables, where there are none yet */
	CHECK(WAIT_FOR(tables_are_made()));
	CHECK(task_waits(7));
	CHECK_EQ(weft_recorder_pause(rec), 0);
	CHECK(task_waits(7)); /* nothing records */
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = look;
	t.data = &seen;
	tally_dir(&t, session_dir);
	CHECK_EQ(seen.n, 2);
	CHECK_EQ(seen.of_task, 2);
	CHECK(seen.frames >= 3);
	CHECK(seen.through);
	tally_fini(&t);
	session_remove_dir();
}
