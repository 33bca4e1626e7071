/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that stand for others: weft_alloc. */
#include "session.h"
#include "unwind/modules.h"
#include "weft/event.h"

struct seen {
	uint64_t n, count, bytes;
	int named, stacked;
};

static void look(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct seen *seen = data;
	const char *name;

	if (ev->kind != WEFT_KIND_ALLOC)
		return;
	name = weft_segment_string(seg, (uint32_t)WEFT_FIELD(ev, ALLOC, NAME));
	seen->n++;
	seen->count += WEFT_FIELD(ev, ALLOC, COUNT);
	seen->bytes += WEFT_FIELD(ev, ALLOC, BYTES);
	seen->named += name && strcmp(name, "String") == 0;
	seen->stacked += weft_segment_stack(seg, (uint32_t)WEFT_FIELD(ev, ALLOC, STACK)) != NULL;
}

TEST(an_allocation_is_recorded_with_its_weight_and_its_stack)
{
	struct weft_recorder *rec = session_start(NULL);
	struct seen seen = {0};
	struct tally t;

	REQUIRE(rec);
	weft_alloc(weft_string("String"), 100, 4000);
	weft_alloc(weft_string("String"), 28, 1120);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	weft_alloc(weft_string("String"), 1, 40); /* nothing records */
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = look;
	t.data = &seen;
	tally_dir(&t, session_dir);
	CHECK_EQ(seen.n, 2);
	CHECK_EQ(seen.count, 128);
	CHECK_EQ(seen.bytes, 5120);
	CHECK_EQ(seen.named, 2);
	CHECK_EQ(seen.stacked, 2);
	tally_fini(&t);
	session_remove_dir();
}
