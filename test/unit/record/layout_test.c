/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts that inline functions have compiled into programs. When one of them changes, WEFT_LAYOUT (weft/version.h)
 * goes up, the names with its number in src/libweft.map follow, and then this list does. */
#include <stddef.h>

#include "weft_test.h"
#include <weft/weft.h>

#if WEFT_LAYOUT != 2
#error "write down the layouts of this version"
#endif
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "struct " #type ": see the top of this file")
#define AT(type, field, byte) _Static_assert(offsetof(struct type, field) == (byte), "struct " #type "." #field)

SIZE(weft_slot, 16);
AT(weft_slot, w0, 0);
AT(weft_slot, w1, 8);
SIZE(weft_ring, 128);
AT(weft_ring, resv, 0);
AT(weft_ring, limit, 8);
AT(weft_ring, head, 16);
AT(weft_ring, slots, 24);
AT(weft_ring, mask, 32);
AT(weft_ring, sched_due, 40);
AT(weft_ring, poll, 48);
AT(weft_ring, poll_arg, 56);
AT(weft_ring, park, 64);
AT(weft_ring, counted, 72);
AT(weft_ring, parks, 88);
AT(weft_ring, parked, 96);
AT(weft_ring, park_on, 104);
AT(weft_ring, reserved, 112);
SIZE(weft_gate, 4096);
AT(weft_gate, on, 0);
AT(weft_gate, generation, 4);
AT(weft_gate, rseq_at, 8);
AT(weft_gate, rseq_armed, 16);
AT(weft_gate, wakes_from, 24);
AT(weft_gate, ns_scale, 32);
AT(weft_gate, ms_ticks, 40);
AT(weft_gate, poll_ticks, 48);
AT(weft_gate, poll_mixed, 56);
AT(weft_gate, poll_cap, 60);
AT(weft_gate, second_ticks, 64);
AT(weft_gate, sched_ticks, 72);
AT(weft_gate, poll_slow_ns, 80);
AT(weft_gate, poll_trigger_ns, 88);
AT(weft_gate, wait_ticks, 96);
AT(weft_gate, step, 104);
AT(weft_gate, wiped, 112);
SIZE(weft_wait_slot, 32);
AT(weft_wait_slot, since, 0);
AT(weft_wait_slot, key, 8);
AT(weft_wait_slot, object, 16);
AT(weft_wait_slot, holder, 24);
SIZE(weft_wait_sum, 48);
AT(weft_wait_sum, key, 0);
AT(weft_wait_sum, count, 8);
AT(weft_wait_sum, ticks, 16);
AT(weft_wait_sum, longest, 24);
AT(weft_wait_sum, reported_count, 32);
AT(weft_wait_sum, reported_ticks, 40);
SIZE(weft_waits, 1760);
AT(weft_waits, tid, 0);
AT(weft_waits, depth, 4);
AT(weft_waits, most, 8);
AT(weft_waits, generation, 12);
AT(weft_waits, due, 16);
AT(weft_waits, stack_low, 24);
AT(weft_waits, stack_high, 32);
AT(weft_waits, recorded, 40);
AT(weft_waits, credit, 44);
AT(weft_waits, own, 48);
AT(weft_waits, sums, 176);
SIZE(weft_context, 48);
AT(weft_context, trace_hi, 0);
AT(weft_context, trace_lo, 8);
AT(weft_context, span, 16);
AT(weft_context, root, 24);
AT(weft_context, endpoint, 32);
AT(weft_context, labels, 36);
AT(weft_context, flags, 40);
AT(weft_context, reserved, 44);
_Static_assert(sizeof(weft_locks) == 32768 && sizeof(weft_lock_marks) == 32768, "tables of locks");

/* The bits of the gate are compiled in, too. */
_Static_assert(WEFT_GATE_TSC == 1 && WEFT_GATE_TICKS == 3 && WEFT_GATE_SLOW == 4 && WEFT_GATE_CAUGHT == 8 &&
		       WEFT_GATE_TIMED == 16 && WEFT_GATE_MODES == 28 && WEFT_GATE_RSEQ == 32 &&
		       WEFT_GATE_COUNTED == 64 && WEFT_GATE_PARKS == 128 && WEFT_GATE_PLAIN == 33 &&
		       WEFT_GATE_UNTIMED == 256 && WEFT_GATE_EPOCH == 512,
	       "bits of the gate");

extern struct weft_gate gate_by_name __asm__("weft_gate_v2");
extern uint64_t locks_by_name[WEFT_LOCKS] __asm__("weft_locks_v2");

TEST(the_layout_is_part_of_the_names_of_what_inline_functions_read)
{
	void *volatile gate = &weft_gate, *volatile locks = &weft_locks[0];

	CHECK(gate == (void *)&gate_by_name);
	CHECK(locks == (void *)&locks_by_name[0]);
}
