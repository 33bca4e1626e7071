/* SPDX-License-Identifier: Apache-2.0 */
/* What the off-CPU intervals of a recording say, thread by thread. */
#ifndef WEFT_TEST_OFFCPU_H
#define WEFT_TEST_OFFCPU_H

#include "record/switch/switch.h"
#include "samples.h"

#define OFFCPU_THREADS 4096

#define OFFCPU_OR_SKIP(rec)                                                                                            \
	do {                                                                                                           \
		if (!weft__switch_works()) {                                                                           \
			weft_recorder_close(rec, NULL);                                                                \
			session_remove_dir();                                                                          \
			SKIP("the kernel gives no records of context switches here");                                  \
		}                                                                                                      \
	} while (0)

struct offcpu_thread {
	uint32_t tid;
	uint64_t n, ns;
	uint64_t by_reason[3], n_by_reason[3]; /* enum weft_offcpu */
	uint64_t first_ns, last_ns;            /* begin of the first, end of the last */
	uint64_t overlaps;                     /* began before the one before ended */
	uint64_t stacks, kernel, cut, complete;
};

struct offcpu {
	struct offcpu_thread threads[OFFCPU_THREADS];
	uint32_t n_threads;
	uint64_t n, ns, lost, late; /* late: its time is not that of its end */
	struct samples_function *functions;
	uint32_t n_functions;
	struct samples samples;
	char mode[16], degraded[512];
	struct tally tally;
};

/* Of these threads only what lies between two times counts. */
static struct {
	uint32_t tid;
	uint64_t from_ns, to_ns;
} offcpu_windows[8];
static uint32_t n_offcpu_windows;

static inline void offcpu_window(uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	offcpu_windows[n_offcpu_windows].tid = tid;
	offcpu_windows[n_offcpu_windows].from_ns = from_ns;
	offcpu_windows[n_offcpu_windows++].to_ns = to_ns;
}

static inline void offcpu_clip(uint32_t tid, uint64_t *begin, uint64_t *end)
{
	for (uint32_t i = 0; i < n_offcpu_windows; i++) {
		if (offcpu_windows[i].tid != tid)
			continue;
		*begin = *begin > offcpu_windows[i].from_ns ? *begin : offcpu_windows[i].from_ns;
		*end = *end < offcpu_windows[i].to_ns ? *end : offcpu_windows[i].to_ns;
	}
}

static inline struct offcpu_thread *offcpu_thread(struct offcpu *o, uint32_t tid)
{
	static struct offcpu_thread none;

	for (uint32_t i = 0; i < o->n_threads; i++)
		if (o->threads[i].tid == tid)
			return &o->threads[i];
	if (o->n_threads == OFFCPU_THREADS)
		return &none;
	o->threads[o->n_threads].tid = tid;
	return &o->threads[o->n_threads++];
}

static inline void offcpu_stack(struct offcpu *o, struct offcpu_thread *thread, const struct weft_segment *seg,
				const struct weft_event_view *ev)
{
	const struct weft_stack *user = weft_segment_stack(seg, (uint32_t)ev->fields[5]);
	const struct weft_stack *kernel = weft_segment_stack(seg, (uint32_t)ev->fields[6]);

	thread->kernel += kernel && kernel->flags & WEFT_STACK_KERNEL;
	if (!user)
		return;
	thread->stacks++;
	thread->cut += (user->flags & WEFT_STACK_CUT) != 0;
	thread->complete += (user->flags & WEFT_STACK_COMPLETE) != 0;
	samples_stack(&o->samples, seg, user, ev->fields[2]);
}

static inline void offcpu_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	uint64_t begin = ev->fields[1] ? ev->fields[1] : ev->time_ns - ev->fields[2], end = begin + ev->fields[2],
		 reason = ev->fields[3] < 3 ? ev->fields[3] : 0;
	uint64_t ns;
	struct offcpu *o = data;
	struct offcpu_thread *thread;

	if (ev->kind != WEFT_KIND_OFFCPU)
		return;
	o->late += ev->time_ns + 20000 < end || ev->time_ns > end + 20000;
	offcpu_clip((uint32_t)ev->fields[0], &begin, &end);
	if (end <= begin)
		return;
	ns = end - begin;
	thread = offcpu_thread(o, (uint32_t)ev->fields[0]);
	o->n++;
	o->ns += ns;
	thread->n++;
	thread->ns += ns;
	thread->by_reason[reason] += ns;
	thread->n_by_reason[reason]++;
	if (!thread->first_ns)
		thread->first_ns = begin;
	thread->overlaps += begin < thread->last_ns;
	thread->last_ns = end;
	offcpu_stack(o, thread, seg, ev);
}

static inline void offcpu_facts(struct offcpu *o, const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, tally_is_segment, alphasort);

	for (int i = 0; i < n; i++) {
		struct weft_segment *seg;
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		if (weft_segment_open(&seg, path, NULL) == 0) {
			const char *mode = weft_segment_fact(seg, "switch.mode");
			const char *degraded = weft_segment_fact(seg, "degraded.switch");

			snprintf(o->mode, sizeof(o->mode), "%s", mode ? mode : "");
			snprintf(o->degraded, sizeof(o->degraded), "%s", degraded ? degraded : "");
			weft_segment_close(seg);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static inline void offcpu_read(struct offcpu *o, const char *dir, struct samples_function *functions, uint32_t n)
{
	memset(o, 0, sizeof(*o));
	o->samples.functions = functions;
	o->samples.n_functions = n;
	tally_init(&o->tally, 0);
	o->tally.each = offcpu_event;
	o->tally.data = o;
	tally_dir(&o->tally, dir);
	offcpu_facts(o, dir);
	for (uint32_t i = 0; i < o->tally.n_losses; i++)
		if (o->tally.losses[i].reason == WEFT_LOSS_SWITCH)
			o->lost += o->tally.losses[i].count;
	tally_fini(&o->tally);
	n_offcpu_windows = 0;
}

/* Closes the recorder and reads what it wrote. */
static inline void offcpu_end(struct offcpu *o, struct weft_recorder *rec, struct samples_function *functions,
			      uint32_t n)
{
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	offcpu_read(o, session_dir, functions, n);
	CHECK_EQ(o->tally.damaged, 0);
	CHECK_EQ(o->tally.undefined, 0);
	session_remove_dir();
}

/* Time without CPU, of the calling thread, as it knows itself. */
struct offcpu_truth {
	uint64_t wall_ns, cpu_ns;
};

static inline struct offcpu_truth offcpu_truth(void)
{
	struct offcpu_truth now = {session_now_ns(), samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID)};

	return now;
}

/* `end_ns` is up to when: whoever lost the CPU right after that was not without it before. */
static inline uint64_t offcpu_until(const struct offcpu_truth *begin, uint64_t *end_ns)
{
	struct offcpu_truth now = offcpu_truth();

	*end_ns = now.wall_ns;
	return now.wall_ns - begin->wall_ns - (now.cpu_ns - begin->cpu_ns);
}

static inline uint64_t offcpu_since(const struct offcpu_truth *begin)
{
	uint64_t end_ns;

	return offcpu_until(begin, &end_ns);
}

/* Whether what was reported is within 2 % of what a thread measured; of what a hypervisor took meanwhile, any part may
 * be in that. */
static inline int offcpu_near(uint64_t reported, uint64_t off_ns, uint64_t stolen_ns)
{
	return (reported <= off_ns && reported + stolen_ns >= off_ns) || samples_near(reported, off_ns, 2) ||
	       (reported < off_ns && samples_near(reported + stolen_ns, off_ns, 2));
}

#endif
