/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording reports threads that waited, and of polls that did not end: by thread, with the functions that
 * were on their stacks. */
#ifndef WEFT_TEST_WALLS_H
#define WEFT_TEST_WALLS_H

#include "record/wall/wall.h"
#include "samples.h"
#include "unwind/modules.h"

#define WALLS_FUNCTIONS 16

struct walls_thread {
	uint32_t tid;
	uint64_t n, ns, count;
	uint64_t complete, guessed, lost, cut, no_stack;
	uint64_t call; /* of the last one */
	uint64_t through[WALLS_FUNCTIONS];
	uint64_t in_order; /* ns: all functions are there, each called by the one before it in the list */
	uint64_t stuck, stuck_age, stuck_task, stuck_in_order, stuck_no_stack;
};

#define WALLS_THREADS 8192
struct walls {
	struct samples_function *functions; /* outermost first */
	uint32_t n_functions;
	struct walls_thread threads[WALLS_THREADS];
	uint32_t n_threads;
	uint64_t n, samples, samples_ns;
	struct tally tally;
};

static inline struct walls_thread *walls_thread(struct walls *s, uint32_t tid)
{
	for (uint32_t i = 0; i < s->n_threads; i++)
		if (s->threads[i].tid == tid)
			return &s->threads[i];
	if (s->n_threads == WALLS_THREADS)
		return &s->threads[0];
	memset(&s->threads[s->n_threads], 0, sizeof(s->threads[0]));
	s->threads[s->n_threads].tid = tid;
	return &s->threads[s->n_threads++];
}

/* Marks in `seen` the functions that the stack goes through; 1 when these are all, in their order, with nothing of
 * ours between. */
static inline int walls_stack(struct walls *s, const struct weft_segment *seg, const struct weft_stack *stack,
			      uint64_t *seen)
{
	uint32_t next = s->n_functions;
	int last = -1;

	for (uint32_t i = 0; i < stack->n_frames; i++) {
		const struct weft_module *module = weft_segment_module(seg, stack->frames[i].module);
		uint64_t at = stack->frames[i].offset + (module ? module->start : 0);

		for (uint32_t f = 0; f < s->n_functions; f++) {
			if (at < (uint64_t)(uintptr_t)s->functions[f].start ||
			    at >= (uint64_t)(uintptr_t)s->functions[f].stop)
				continue;
			*seen |= UINT64_C(1) << f;
			if (f + 1 == next && (last < 0 || (uint32_t)last + 1 == i)) {
				next = f;
				last = (int)i;
			}
		}
	}
	return s->n_functions && next == 0;
}

static inline void walls_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct walls *s = data;
	struct walls_thread *t;
	const struct weft_stack *stack;
	uint64_t seen = 0;
	int in_order;

	if (ev->kind == WEFT_KIND_SAMPLE) {
		s->samples++;
		s->samples_ns += ev->fields[2];
	}
	if (ev->kind != WEFT_KIND_WALL && ev->kind != WEFT_KIND_STUCK)
		return;
	t = walls_thread(s, (uint32_t)ev->fields[0]);
	stack = weft_segment_stack(seg, (uint32_t)ev->fields[ev->kind == WEFT_KIND_WALL ? 4 : 3]);
	in_order = stack && walls_stack(s, seg, stack, &seen);
	if (ev->kind == WEFT_KIND_STUCK) {
		t->stuck++;
		t->stuck_task = ev->fields[1];
		t->stuck_age = ev->fields[2];
		t->stuck_in_order += in_order != 0;
		t->stuck_no_stack += !stack;
		return;
	}
	s->n++;
	t->n++;
	t->ns += ev->fields[1];
	t->count += ev->fields[2];
	t->call = ev->fields[3];
	t->no_stack += !stack;
	t->complete += stack && stack->flags & WEFT_STACK_COMPLETE;
	t->guessed += stack && stack->flags & WEFT_STACK_FP;
	t->lost += stack && stack->flags & WEFT_STACK_LOST;
	t->cut += stack && stack->flags & WEFT_STACK_CUT;
	t->in_order += in_order ? ev->fields[1] : 0;
	for (uint32_t f = 0; f < s->n_functions; f++)
		t->through[f] += seen >> f & 1 ? ev->fields[1] : 0;
}

static inline int walls_is_active(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 7 && !strcmp(entry->d_name + n - 7, ".active");
}

static inline void walls_init(struct walls *s, struct samples_function *functions, uint32_t n)
{
	s->functions = functions;
	s->n_functions = n;
	s->n_threads = 0;
	s->n = s->samples = s->samples_ns = 0;
	tally_init(&s->tally, 0);
	s->tally.each = walls_event;
	s->tally.data = s;
}

/* The sealed segments of `dir`. */
static inline void walls_read(struct walls *s, const char *dir, struct samples_function *functions, uint32_t n)
{
	walls_init(s, functions, n);
	tally_dir(&s->tally, dir);
	tally_fini(&s->tally);
}

/* The one that is being written. */
static inline void walls_read_active(struct walls *s, const char *dir, struct samples_function *functions, uint32_t n)
{
	struct dirent **entries;
	int found = scandir(dir, &entries, walls_is_active, alphasort);

	walls_init(s, functions, n);
	for (int i = 0; i < found; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		tally_file(&s->tally, path);
		free(entries[i]);
	}
	if (found >= 0)
		free(entries);
	tally_fini(&s->tally);
}

/* Whether all unwind tables are made: large libraries have none at first. */
static inline int walls_tables(void)
{
	uint32_t visit;
	const struct weft__modules *modules = weft__modules_enter(&visit);
	int ready = modules != NULL;

	for (uint32_t i = 0; modules && i < modules->n; i++)
		ready &= !__atomic_load_n(&modules->module[i]->pending, __ATOMIC_ACQUIRE);
	weft__modules_leave(visit);
	return ready;
}

/* Closes the recorder and reads what it wrote. */
static inline void walls_end(struct walls *s, struct weft_recorder *rec, struct samples_function *functions, uint32_t n)
{
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	walls_read(s, session_dir, functions, n);
	CHECK_EQ(s->tally.damaged, 0);
	CHECK_EQ(s->tally.undefined, 0);
	session_remove_dir();
}

static inline void walls_print(const struct walls_thread *t, const char *what)
{
	printf("\t%s: %llu events, %.1f ms in %llu looks, in order %.1f ms; complete %llu guessed %llu lost %llu "
	       "none %llu; call %lld\n",
	       what, (unsigned long long)t->n, (double)t->ns / 1e6, (unsigned long long)t->count,
	       (double)t->in_order / 1e6, (unsigned long long)t->complete, (unsigned long long)t->guessed,
	       (unsigned long long)t->lost, (unsigned long long)t->no_stack, (long long)t->call - 1);
}

/* So long, or longer when the collector has no time to look: until it has looked that often. */
static inline void walls_watch(uint64_t ns, uint32_t n)
{
	uint64_t from = session_now_ns(), cost = weft__wall_cost();

	while (session_now_ns() < from + ns || (n && session_now_ns() < from + 10000 * MS)) {
		session_sleep_ns(MS);
		n -= n && weft__wall_cost() != cost;
		cost = weft__wall_cost();
	}
	CHECK_EQ(n, 0);
}

#endif
