/* SPDX-License-Identifier: Apache-2.0 */
/* Clock alignment: samples of a function lie in the times in which that function ran, as another clock saw them. */
/* serial: samples are few, and on a busy machine fewer */
#include "session.h"

#define WINDOWS 12
#define WINDOW_NS (25 * MS)
#define SLACK_NS 50000 /* between the tick's clock, converted, and CLOCK_MONOTONIC */

/* A section of its own reports which addresses are the function's. */
extern const char __start_window_code[], __stop_window_code[];

static uint64_t window[WINDOWS][2];
static volatile uint64_t sink;

static uint64_t __attribute__((noinline, section("window_code"), no_sanitize("address", "thread", "undefined")))
burn_in_window(uint64_t rounds)
{
	uint64_t x = rounds;

	while (rounds--)
		x = x * 6364136223846793005u + 1;
	return x;
}

static uint64_t __attribute__((noinline)) burn_outside(uint64_t rounds)
{
	uint64_t x = rounds;

	while (rounds--)
		x = x * 2862933555777941757u + 3;
	return x;
}

static void burn(uint64_t (*fn)(uint64_t), uint64_t ns, uint64_t at[2])
{
	at[0] = session_now_ns();
	do {
		sink += fn(20000);
		at[1] = session_now_ns();
	} while (at[1] - at[0] < ns);
}

struct found {
	uint64_t inside, astray, outside;
};

static void look(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct found *found = data;
	const struct weft_stack *stack;
	const struct weft_module *module;
	uint64_t leaf;
	int i;

	if (ev->kind != WEFT_KIND_SAMPLE)
		return;
	stack = weft_segment_stack(seg, (uint32_t)ev->fields[0]);
	if (!stack || !stack->n_frames)
		return;
	module = weft_segment_module(seg, stack->frames[0].module);
	leaf = stack->frames[0].offset + (module ? module->start : 0);
	if (leaf < (uintptr_t)__start_window_code || leaf >= (uintptr_t)__stop_window_code) {
		found->outside++;
		return;
	}
	for (i = 0; i < WINDOWS; i++) {
		if (ev->time_ns + SLACK_NS >= window[i][0] && ev->time_ns <= window[i][1] + SLACK_NS) {
			found->inside++;
			return;
		}
	}
	found->astray++;
}

TEST(samples_lie_in_the_windows_in_which_their_function_ran)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.sample_hz = 200});
	struct found found = {0};
	uint64_t other[2];
	struct tally t;
	int i;

	REQUIRE(rec);
	for (i = 0; i < WINDOWS; i++) {
		burn(burn_in_window, WINDOW_NS, window[i]);
		burn(burn_outside, WINDOW_NS, other);
	}
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 1);
	t.each = look;
	t.data = &found;
	tally_dir(&t, session_dir);
	/* A busy machine gives less CPU time, not other times. */
	CHECK(found.inside >= WINDOWS / 4);
	CHECK(found.outside >= WINDOWS / 4);
	CHECK_EQ(found.astray, 0);
	tally_fini(&t);
	session_remove_dir();
}
