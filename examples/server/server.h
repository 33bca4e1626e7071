/* SPDX-License-Identifier: Apache-2.0 */
/* The demo server: a line protocol over TCP on 127.0.0.1. A request is a line, an answer is a line, in the same order.
 *
 *     PING text    PONG text
 *     ECHO text    text
 *     GET key      VALUE hex | NONE      handle_cache: a lookup under a lock
 *     COMPUTE us   SUM hex               handle_upload: checksums data for that long
 *     SLEEP us     SLEPT us              handle_report: blocks in read(2) for that long
 *     LOCK us      VALUE hex | NONE      handle_cache: a lookup that finds the lock held for that long
 *
 * Anything else is answered with "ERR why". PING and ECHO are answered by the connection's task; the others run as a
 * task of their own, mostly on another worker, which wakes the connection's task when it is done. The last three take a
 * time so that they can be good citizens (20 us) or the faults that weft is there to find (50 ms). */
#ifndef DEMO_SERVER_H
#define DEMO_SERVER_H

#include <stddef.h>

#include "cache.h"
#include "runtime.h"

enum route { ROUTE_GET, ROUTE_COMPUTE, ROUTE_SLEEP, ROUTE_LOCK };

enum {
	LINE_MAX_BYTES = 1024, /* of a request, without its newline */
	ANSWER_MAX_BYTES = LINE_MAX_BYTES + 16,
	KEY_MAX_BYTES = 64,
	STALL_MAX_US = 1000000, /* the longest time that COMPUTE, SLEEP and LOCK take */
};

struct server {
	struct runtime runtime;
	struct cache cache;
	uint32_t max_connections;
	uint32_t port;
	uint32_t event_kind;     /* of weft_event_define, or 0: slow requests make no events of their own */
	uint32_t route_names[4]; /* of weft_string, for these events */
	uint64_t trace;          /* first half of the trace ids of jobs; 0: they have no context */
	uint32_t endpoints[4];   /* of weft_endpoint, for these contexts */
	uint32_t read_name;      /* of weft_string */
	atomic_uint connections; /* open now */
	atomic_uint_least64_t accepted;
};

/* Listens on 127.0.0.1 (port 0: one is chosen; server->port tells which) and spawns the task that accepts.
 * Returns 0 or a negative errno. */
int listener_open(struct server *server, uint32_t port);

/* Spawns the task that serves `fd`, which it owns from now on. Returns 0 or -ENOMEM (fd is the caller's). */
int connection_open(struct server *server, int fd, struct worker *home);

/* A request that has a task of its own. */
struct job {
	struct task task;
	struct server *server;
	struct task *parent; /* the connection's task, woken when it is done */
	enum route route;
	uint32_t us;
	uint32_t n_bytes; /* of the request */
	uint32_t key_bytes;
	char key[KEY_MAX_BYTES];
	uint64_t begin_ns;
	uint64_t value; /* the answer; to be read once `done` */
	bool ok;
	atomic_bool done;
};

/* Starts a job for `parent`, the connection's task that `worker` runs. `arg` is what follows the command. Returns the
 * job, to be given to task_unref; or NULL, with `*why` saying what is wrong. */
struct job *job_start(struct server *server, struct task *parent, struct worker *worker, enum route route,
		      const char *arg, size_t arg_bytes, const char **why);

/* Writes the answer of a job that is done. Returns its length, at most ANSWER_MAX_BYTES. */
size_t job_answer(const struct job *job, char *answer);

#endif
