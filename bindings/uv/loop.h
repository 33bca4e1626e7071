/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that are attached. Everything here is CALLER, on the loop's thread, but for what says otherwise.
 *
 * The time of a loop's thread is cut into polls and parks, one after the other: none is inside another.
 *
 *     epoll returns             callback begins    it ends             epoll is called
 *     | callbacks not wrapped   | on_read          | not wrapped ...   | parked
 *
 * A loop is a worker, and the thread that runs it becomes that worker when it first does so. */
#ifndef WEFT_UV_LOOP_H
#define WEFT_UV_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>
#include <weft/uv.h>

#include "map.h"

#define WEFT__UV_NAME 64
#define WEFT__UV_RECORDINGS 0x7fffffffu /* of which an entry knows the number */

struct weft__uv_loop {
	/* What each callback reads: one line of the cache. */
	_Alignas(64) uv_loop_t *loop; /* NULL: not in use */
	struct weft__uv_map callbacks;
	uint64_t task;
	uint32_t flags;
	uint32_t recording; /* times that recording began, as far as it was looked at */
	bool attached;
	bool bracket;     /* parks by the handles */
	bool in_poll;     /* one is open on the loop's thread */
	bool in_callback; /* and it is that of a wrapped callback */
	bool parked;      /* with bracket */
	bool recorded;    /* when it was last looked at */
	bool keeps;       /* writes have their callbacks themselves (keep.h) */
	int fd;           /* that it waits on */
	uint32_t place;   /* location, + 1, of the last request: its task is in the recording. 0: none is */

	struct weft__uv_loop *next; /* of all, and never freed: a thread may still have it as its own */
	uint32_t runtime, index;
	uint32_t said; /* the last recording in which the loop's event was recorded */
	int open_handles;
	uint64_t turns, said_ms;
	struct weft__uv_map places; /* tasks of requests, by location */
	uv_prepare_t prepare;
	uv_check_t check;
	char name[WEFT__UV_NAME];
};
_Static_assert(offsetof(struct weft__uv_loop, next) <= 64, "what callbacks read is one line");

/* A callback that runs: what was given to libuv, and whether it is a poll. */
struct weft__uv_call {
	struct weft__uv_loop *in; /* NULL: not recorded */
	void (*cb)(void);
	uint64_t task;
};

/* The loop that the thread runs, or has run last. */
extern __thread struct weft__uv_loop *weft__uv_current;

/* That of a loop which is attached, or was and has callbacks that are wrapped; NULL: none. Any thread. */
struct weft__uv_loop *weft__uv_find_other(uv_loop_t *loop);
static inline struct weft__uv_loop *weft__uv_find(uv_loop_t *loop)
{
	struct weft__uv_loop *in = weft__uv_current;

	return in && in->loop == loop && in->attached ? in : weft__uv_find_other(loop);
}

/* The calling thread runs this loop now. False: it runs inside a callback of another one. */
bool weft__uv_take_other(struct weft__uv_loop *in);
static inline bool weft__uv_take(struct weft__uv_loop *in)
{
	return weft__uv_current == in || weft__uv_take_other(in);
}

/* A callback begins, and ends. */
void weft__uv_enter(struct weft__uv_loop *in, uint64_t task);
void weft__uv_leave(struct weft__uv_loop *in);

/* Which recording this is, by number; 0: nothing records. Spawns are recorded again in each. */
static inline uint32_t weft__uv_recording(struct weft__uv_loop *in)
{
	bool on = weft_recording();

	if (on != in->recorded) {
		in->recording = (in->recording + on) & WEFT__UV_RECORDINGS;
		in->recorded = on;
		in->place = 0;
	}
	return on ? in->recording : 0;
}

/* With bracket: the park ends, if one is open. */
void weft__uv_unpark(struct weft__uv_loop *in, uint64_t tick);

/* Between turns: nothing of it is open any more. */
void weft__uv_close_turn(struct weft__uv_loop *in, uint64_t tick);

/* Notes that loops are measured by epoll calls if it works. Once, at the first attach. */
bool weft__uv_epoll_seen(void);

/* The calling thread's loop is about to wait in epoll, and has waited. False: the descriptor is not its own. */
bool weft__uv_wait_begin(int fd, int timeout);
void weft__uv_wait_end(int timeout);

/* A loop that is no longer attached may be forgotten with its last callback. */
void weft__uv_recycle_now(struct weft__uv_loop *in);
static inline void weft__uv_recycle(struct weft__uv_loop *in)
{
	if (!in->attached)
		weft__uv_recycle_now(in);
}

/* The event of a timer that was late. */
void weft__uv_say_late(uint64_t task, uint32_t location, uint64_t late_ns);

/* The event of a loop: what it is, and how it is measured. */
void weft__uv_say_loop(struct weft__uv_loop *in);

#endif
