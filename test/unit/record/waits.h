/* SPDX-License-Identifier: Apache-2.0 */
/* What the waits of a recording say. */
#ifndef WEFT_TEST_WAITS_H
#define WEFT_TEST_WAITS_H

#include <sys/syscall.h>

#include "session.h"

#define WAITS_LONG 4096

struct waits_long {
	uint32_t tid, what, holder, n_frames;
	char name[32];
	uint64_t object, duration_ns, end_ns;
	int through; /* its stack goes through waits_through */
};

/* One thread and name, short and long ones together. */
struct waits_sum {
	uint64_t n_long, long_ns;
	uint64_t n_short, short_ns, longest_ns;
};

struct waits {
	struct waits_long reported[WAITS_LONG];
	uint32_t n_defined;
	uint64_t n_sched;
	uint32_t only_tid; /* 0: of all threads */
	const char *only_name;
	const char *start, *stop; /* code that stacks are looked at for */
	struct waits_sum sum;     /* of those above */
	uint64_t others;          /* waits that had no place in the table of sums */
	struct tally tally;
};

static inline void waits_stack(struct waits *w, const struct weft_segment *seg, uint32_t id, struct waits_long *to)
{
	const struct weft_stack *stack = weft_segment_stack(seg, id);

	to->n_frames = stack ? stack->n_frames : 0;
	for (uint32_t i = 0; i < to->n_frames; i++) {
		const struct weft_module *module = weft_segment_module(seg, stack->frames[i].module);
		uint64_t at = stack->frames[i].offset + (module ? module->start : 0);

		to->through |= at >= (uint64_t)(uintptr_t)w->start && at < (uint64_t)(uintptr_t)w->stop;
	}
}

static inline void waits_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct waits *w = data;
	uint32_t tid = weft_segment_thread(seg, ev->thread) ? weft_segment_thread(seg, ev->thread)->tid : 0;
	const char *name;

	w->n_sched += ev->kind == WEFT_KIND_SCHED && (!w->only_tid || w->only_tid == tid);
	if (ev->kind != WEFT_KIND_WAIT && ev->kind != WEFT_KIND_WAIT_SUM)
		return;
	if (w->only_tid && w->only_tid != tid)
		return;
	name = ev->fields[1] ? weft_segment_string(seg, (uint32_t)ev->fields[1]) : "";
	if (ev->kind == WEFT_KIND_WAIT_SUM && !ev->fields[0])
		w->others += ev->fields[2];
	if (w->only_name && strcmp(name, w->only_name) != 0)
		return;
	if (ev->kind == WEFT_KIND_WAIT_SUM) {
		w->sum.n_short += ev->fields[2];
		w->sum.short_ns += ev->fields[3];
		if (ev->fields[4] > w->sum.longest_ns)
			w->sum.longest_ns = ev->fields[4];
		return;
	}
	w->sum.n_long++;
	w->sum.long_ns += ev->fields[3];
	if (w->n_defined < WAITS_LONG) {
		struct waits_long *to = &w->reported[w->n_defined++];

		*to = (struct waits_long){.tid = tid,
					  .what = (uint32_t)ev->fields[0],
					  .object = ev->fields[2],
					  .duration_ns = ev->fields[3],
					  .holder = (uint32_t)ev->fields[4],
					  .end_ns = ev->time_ns};
		snprintf(to->name, sizeof(to->name), "%s", name);
		waits_stack(w, seg, (uint32_t)ev->fields[5], to);
	}
}

/* Reads what is in session_dir; `only_name` and `only_tid` may be NULL and 0. */
static inline void waits_read(struct waits *w, const char *only_name, uint32_t only_tid)
{
	const char *start = w->start, *stop = w->stop;

	memset(w, 0, sizeof(*w));
	w->only_name = only_name;
	w->only_tid = only_tid;
	w->start = start;
	w->stop = stop;
	tally_init(&w->tally, 0);
	w->tally.each = waits_event;
	w->tally.data = w;
	tally_dir(&w->tally, session_dir);
	CHECK_EQ(w->tally.damaged, 0);
	CHECK_EQ(w->tally.undefined, 0);
	CHECK_EQ(w->tally.backwards, 0);
	for (uint32_t i = 0; i < w->tally.n_losses; i++)
		if (!CHECK(w->tally.losses[i].reason > WEFT_LOSS_NO_RING))
			printf("reason %u\n", w->tally.losses[i].reason);
	tally_fini(&w->tally);
}

static inline uint32_t waits_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* Whether a is within `percent` of b, or a hundred microseconds. */
static inline int waits_near(uint64_t a, uint64_t b, uint64_t percent)
{
	uint64_t d = a > b ? a - b : b - a;

	if (d * 100 <= b * percent || d < MS / 10)
		return 1;
	printf("\t%llu is not within %llu %% of %llu\n", (unsigned long long)a, (unsigned long long)percent,
	       (unsigned long long)b);
	return 0;
}

#endif
