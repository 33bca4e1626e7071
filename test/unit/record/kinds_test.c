/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kinds (weft/kind.h): how events lie in slots, and what becomes of slots in flush and recovery. */
#include "record/collect/unpack.h"
#include "weft_test.h"

#define VALUE(field) (0x100u + (field))

TEST(slots_of_kinds_are_what_shared_memory_of_older_processes_has)
{
	static const uint8_t slots[] = {0, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 4, 5, 3,
					4, 3, 3, 3, 3, 3, 3, 3, 5, 3, 2, 3, 3, 2, 1, 3, 3};
	uint32_t kind;

	for (kind = 0; kind < sizeof(slots); kind++) {
		struct weft_slot slot = {UINT64_C(77) << 8 | kind, UINT64_MAX};

		CHECK_EQ(event_slots(&slot), slots[kind]);
		CHECK_EQ(weft__kind_slots(kind), slots[kind]);
	}
	CHECK_EQ(weft__kind_slots(WEFT_KIND_BUILTIN_END), 0);
	CHECK_EQ(weft__kind_slots(255), 0);
}

TEST(no_kind_takes_more_slots_than_any_event_may)
{
	for (uint32_t kind = 1; kind < WEFT_KIND_BUILTIN_END; kind++) {
		CHECK(weft__kind_slots(kind) > 0);
		CHECK(weft__kind_slots(kind) <= EVENT_SLOTS_MAX);
		CHECK(weft__kind_fields(kind) <= WEFT_FIELDS_MAX);
	}
}

TEST(stacks_and_nothing_else_are_references_to_stacks)
{
	/* clang-format off */
#define X(NAME, number, ...) { uint64_t stacks = 0;
#define Y(KIND, NAME, name, type, ...) \
	stacks |= (uint64_t)(WEFT_TYPE_##type == WEFT_TYPE_STACK) << (16 * IN_SLOT_STACK + WEFT_FIELD_##KIND##_##NAME);
#define Z(NAME) CHECK_EQ(weft__references(WEFT_KIND_##NAME) >> 16 & 0xffff, stacks >> 16); }
	WEFT_KINDS(X, Y, Z)
#undef X
#undef Y
#undef Z
	/* clang-format on */
}

/* By the words of weft/kind.h, not by its code. */
static void pack_words(uint32_t kind, uint32_t n, struct weft_slot *slots)
{
	uint64_t words[2 * EVENT_SLOTS_MAX] = {UINT64_C(77) << 8 | kind};

	for (uint32_t i = 0; i < n; i++)
		words[1 + i] = VALUE(i);
	memcpy(slots, words, sizeof(words));
}

TEST(fields_are_found_where_the_packing_says)
{
	struct weft_slot slots[EVENT_SLOTS_MAX];
	struct weft__unpacked ev;
	uint32_t kind, i;

	for (kind = 1; kind < WEFT_KIND_BUILTIN_END; kind++) {
		uint32_t n = weft__kind_fields(kind);

		pack_words(kind, n, slots);
		if (kind == WEFT_KIND_SAMPLE) {
			slots[0].w1 = VALUE(0) | (uint64_t)VALUE(1) << 32;
			slots[1] = (struct weft_slot){VALUE(2), VALUE(3) | (uint64_t)VALUE(4) << 32};
		} else if (n == 2 && weft__kind_slots(kind) == 1) {
			slots[0].w1 = VALUE(0) | (uint64_t)VALUE(1) << 48;
		}
		weft__unpack(slots, &ev);
		CHECK_EQ(ev.kind, kind);
		CHECK_EQ(ev.n_fields, n);
		for (i = 0; i < n; i++)
			CHECK_EQ(ev.fields[i], VALUE(i));
	}
}

static int fake_stack(void *who, uint64_t *field)
{
	(void)who;
	*field += 0x1000;
	return 0;
}

static int fake_worker(void *who, uint32_t runtime, uint32_t index, uint64_t *field)
{
	*field = 10 * runtime + index;
	return *(int *)who;
}

static int fake_kind(void *who, uint32_t kind, uint32_t *n_fields)
{
	(void)who;
	*n_fields = kind - WEFT_KIND_USER;
	return kind > WEFT_KIND_USER + 3;
}

static const struct weft__resolver fakes = {fake_stack, fake_worker, fake_kind};

static int resolved(struct weft_slot *slots, int error, struct weft__unpacked *ev)
{
	return weft__resolve(&fakes, &error, 42, slots, ev);
}

TEST(references_are_resolved_and_values_stay)
{
	struct weft_slot slots[EVENT_SLOTS_MAX];
	struct weft__unpacked ev;

	pack_words(WEFT_KIND_PENDING, WEFT_FIELDS_OF_PENDING, slots);
	CHECK_EQ(resolved(slots, 0, &ev), 0);
	CHECK_EQ(ev.fields[WEFT_FIELD_PENDING_AGE], VALUE(WEFT_FIELD_PENDING_AGE));
	CHECK_EQ(ev.fields[WEFT_FIELD_PENDING_STACK], 0x1000 + VALUE(WEFT_FIELD_PENDING_STACK));
	CHECK_EQ(ev.fields[WEFT_FIELD_PENDING_HOLDER_STACK], 0x1000 + VALUE(WEFT_FIELD_PENDING_HOLDER_STACK));
	slots[0] = (struct weft_slot){77 << 8 | WEFT_KIND_WORKER, UINT64_C(3) << 32 | 4};
	CHECK_EQ(resolved(slots, 0, &ev), 0);
	CHECK_EQ(ev.fields[0], 34);
	CHECK_EQ(resolved(slots, -5, &ev), -5);
	slots[0].w1 = WORKER_LEFT;
	CHECK_EQ(resolved(slots, -5, &ev), 0);
	CHECK_EQ(ev.fields[0], WEFT_WORKER_NONE);
}

TEST(a_count_of_no_thread_is_of_the_thread_whose_ring_it_is_in)
{
	static const uint32_t kinds[] = {WEFT_KIND_POLL_COUNT, WEFT_KIND_PARK_COUNT};
	struct weft_slot slots[EVENT_SLOTS_MAX];
	struct weft__unpacked ev;

	for (uint32_t i = 0; i < 2; i++) {
		pack_words(kinds[i], 4, slots);
		CHECK_EQ(resolved(slots, 0, &ev), 0);
		CHECK_EQ(ev.fields[0], VALUE(0));
		slots[0].w1 = 0;
		CHECK_EQ(resolved(slots, 0, &ev), 0);
		CHECK_EQ(ev.fields[0], 42);
		CHECK_EQ(ev.fields[1], VALUE(1));
	}
}

TEST(events_of_the_program_have_the_fields_of_their_kind)
{
	struct weft_slot slots[EVENT_SLOTS_MAX] = {{77 << 8 | WEFT_KIND_USER, UINT64_C(2) << 32 | (WEFT_KIND_USER + 3)},
						   {8, 9}};
	struct weft__unpacked ev;

	CHECK_EQ(resolved(slots, 0, &ev), 0);
	CHECK_EQ(ev.n_fields, 3);
	CHECK_EQ(ev.fields[1], 9);
	CHECK_EQ(ev.fields[2], 0);
	slots[0].w1 = UINT64_C(2) << 32 | (WEFT_KIND_USER + 1);
	CHECK_EQ(resolved(slots, 0, &ev), 0);
	CHECK_EQ(ev.n_fields, 1);
	slots[0].w1 = UINT64_C(2) << 32 | (WEFT_KIND_USER + 4);
	CHECK_EQ(resolved(slots, 0, &ev), 1);
	slots[0].w1 = UINT64_C(2) << 32 | WEFT_KIND_WAKE;
	CHECK_EQ(resolved(slots, 0, &ev), 1);
}
