/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that live: where they were spawned, who woke them, when they were polled. Context: CALLER. */
#ifndef WEFT_ANALYZE_TASK_H
#define WEFT_ANALYZE_TASK_H

#include "analyze/analysis.h"
#include "base/arena.h"
#include "base/map.h"

struct weft__analysis;
struct weft__threads;
struct weft__lanes;
struct weft__gaps;
struct weft__event;
struct weft__thread;

struct weft__task {
	uint64_t id;
	uint32_t location;
	bool seen;              /* spawned or polled, not only woken */
	bool spawned;           /* the spawn was seen */
	bool live;              /* the slot is in use */
	bool unwoken;           /* no wake came before its last poll */
	bool first;             /* ... which was its first */
	uint32_t poll_thread;   /* where its last poll began, */
	uint64_t poll_ns;       /* and when; 0: not polled yet */
	struct weft__wake wake; /* the first since its last poll began */
	struct weft__wake last; /* the last of all */
	uint64_t base_ns;       /* when it was spawned, or its last poll that is here began; 0: neither was seen */
	uint32_t n_wakes;       /* since then */
	uint32_t wait_stack;    /* where it last began to wait; 0: not recorded */
	uint32_t next_free;
};

/* A task that has ended: the poll in which it did may be reported later. */
struct weft__ended {
	uint64_t id;
	uint32_t location;
	struct weft__wake last;
	bool single; /* there was no other since the task's last poll that is here */
	uint64_t base_ns;
};
#define ENDED_TASKS 4096u

struct weft__tasks {
	const struct weft__analysis_opts *opts;
	struct weft__task_result *result;
	const struct weft__detail *detail; /* what is recorded of wakes */
	struct weft__arena arena;
	struct weft__task *at;
	size_t n, cap;
	uint32_t free;
	struct weft__map by_id;
	struct weft__ended *ended; /* a ring of the last ones, where polls are reported at their end */
	uint64_t n_ended;
	struct weft__map ended_by_id;
};

int weft__task_spawn(struct weft__tasks *tasks, struct weft__threads *threads, struct weft__lanes *lanes,
		     const struct weft__event *ev);
int weft__task_end(struct weft__tasks *tasks, struct weft__lanes *lanes, const struct weft__event *ev);
int weft__task_wake(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev);
/* A poll of the task begins: its location and its wake, which is used up, are filled in. */
int weft__task_poll(struct weft__tasks *tasks, struct weft__poll *poll);
/* The same for a poll that is reported at its end, while others of the task were not. */
int weft__task_reported(struct weft__tasks *tasks, struct weft__threads *threads, struct weft__gaps *gaps,
			struct weft__thread *s, struct weft__poll *poll);
/* The task begins to wait, with a stack. And, as the recording ends: those that wait, into the result. */
int weft__task_waits(struct weft__tasks *tasks, const struct weft__event *ev);
int weft__waiting_find(struct weft__tasks *tasks, struct weft__threads *threads, bool all, uint64_t end_ns);
uint32_t weft__task_location(const struct weft__tasks *tasks, uint64_t task);
void weft__tasks_fini(struct weft__tasks *tasks);

#endif
