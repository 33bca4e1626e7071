/* SPDX-License-Identifier: Apache-2.0 */
#include "record/event/queue.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "record/event/registry.h"
#include "record/found.h"
#include "record/ring/ring.h"
#include "weft/event.h"

#define EMPTY_NS UINT64_C(4000000000) /* between two looks at empty queues while the program is calm */

static struct {
	uint64_t pace_ns; /* CALLER, at open: between two looks */
	uint64_t asked_ns;
	uint32_t any; /* some runtime has a global queue to ask, as far as is known */
	int dear;     /* asking is not worth a wakeup */
	int empty;    /* all were, the last time */
} queue_asks;

static int queue_open(const struct weft_recorder_opts *opts, struct weft_error *err)
{
	(void)err;
	queue_asks.pace_ns = opts->queue_ns;
	queue_asks.asked_ns = 0;
	queue_asks.dear = 0;
	return 0;
}

static int queue_start(pthread_t collector)
{
	(void)collector;
	store_relaxed(&queue_asks.any, 1u);
	return 0;
}

/* Who is awake asks when half of the time is over, which is at each drain at least. Queues that were empty are so as
 * long as the program is calm. */
static uint64_t queue_due(const struct weft__turn *turn)
{
	if (!weft_gate_on())
		return UINT64_MAX;
	if (turn->calm && queue_asks.empty)
		return turn->awake ? queue_asks.asked_ns + EMPTY_NS : UINT64_MAX;
	if (turn->awake)
		return queue_asks.asked_ns + queue_asks.pace_ns / 2;
	return load_relaxed(&queue_asks.any) && !queue_asks.dear ? queue_asks.asked_ns + queue_asks.pace_ns
								 : UINT64_MAX;
}

/* Where depths are only counted, as those that threads report are. */
static int queue_report(const struct weft__turn *turn, uint32_t runtime, uint64_t depth)
{
	uint64_t fields[WEFT_FIELDS_OF_QUEUE] = {depth, runtime};
	uint32_t on = weft_gate_on();

	if (on & WEFT_GATE_PARKS)
		weft_queue_depth(runtime, depth);
	else if (on)
		return weft__found_add(turn->collector, FOUND_NOW,
				       &(struct weft__found){weft__clock_mono(), WEFT_KIND_QUEUE, fields, NULL, 0});
	return 0;
}

static int queue_turn(const struct weft__turn *turn)
{
	uint32_t n = load_acquire(&weft__hot.n_runtimes), asked = 0;
	uint64_t all = 0;
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++) {
		uint64_t depth = 0;

		struct weft__runtime *runtime = &weft__runtimes[i];
		weft_queue_fn *fn;

		__atomic_fetch_add(&runtime->asking, 1, __ATOMIC_SEQ_CST);
		fn = load_seq_cst(&runtime->queue);
		if (fn) {
			depth = fn(load_relaxed(&runtime->data));
			asked = 1;
		}
		__atomic_fetch_sub(&runtime->asking, 1, __ATOMIC_SEQ_CST);
		if (fn && depth != WEFT_NOT_MEASURED)
			err = queue_report(turn, i, depth);
		all |= depth;
	}
	queue_asks.asked_ns = turn->now_ns;
	queue_asks.empty = all == 0;
	store_relaxed(&queue_asks.any, asked);
	return err;
}

static void queue_spare(int dear)
{
	queue_asks.dear = dear;
}

const struct weft__source weft__queue_source = {
	.name = "queue",
	.what = "lengths of queues",
	.stage = SOURCE_EARLY,
	.open = queue_open,
	.start = queue_start,
	.due = queue_due,
	.turn = queue_turn,
	.spare = queue_spare,
};
