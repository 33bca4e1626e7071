/* SPDX-License-Identifier: Apache-2.0 */
/* One target, and what waits for it in a directory. The thread that has it gives it a turn when it is due. */
#ifndef WEFT_SHIP_WORKER_H
#define WEFT_SHIP_WORKER_H

#include "ship/backoff.h"
#include "ship/ship.h"
#include "ship/spool.h"

#define WORKER_TARGETS 8

struct weft__worker_opts {
	struct weft__target_opts target;
	const char *dir;
	const char *only;            /* only the segment of that name; NULL: all */
	uint64_t age_ns;             /* older ones are left alone; 0: no limit */
	int again;                   /* also what was refused */
	int reach;                   /* whether it can be sent to is tried before there is anything to send */
	int delete;                  /* segments that all targets have are removed */
	const char *const *all_urls; /* of all targets, when delete is set; NULL-terminated */
	void (*sent)(void *data, const char *name, const struct weft__verdict *verdict); /* NULL, or called for each */
	void *data;
};

/* What has become of it so far; readers lock. */
struct weft__worker_state {
	uint64_t sent, bytes, retries, refused;
	uint64_t waiting;      /* as of the last turn */
	uint64_t sent_real_ns; /* 0: never */
	uint32_t failing;      /* the last try failed */
	uint32_t broken;       /* the circuit is open */
	uint32_t busy;         /* another process sends */
	uint32_t reached;      /* it was connected to, or has taken something */
	char why[240];
};

struct weft__worker {
	struct weft__worker_opts opts;
	struct weft__target target;
	struct weft__spool spool;
	struct weft__backoff backoff;
	struct weft__worker_state state;
	char tags[WORKER_TARGETS][9];
	uint32_t n_tags;
};

/* 0 or a negative error. The strings of `opts` stay the caller's. */
int weft__worker_open(struct weft__worker *w, const struct weft__worker_opts *opts, struct weft_error *err);
void weft__worker_close(struct weft__worker *w);
/* Sends what waits, until there is nothing, the target fails or it is to stop. Answers when it is due again
 * (CLOCK_MONOTONIC, as `now_ns`); UINT64_MAX: when there is something new. */
uint64_t weft__worker_turn(struct weft__worker *w, uint64_t now_ns);

#endif
