/* SPDX-License-Identifier: Apache-2.0 */
/* A load generator for the demo server: one thread, many connections, bounded in time and in requests.
 *
 * Closed loop (no rate): every connection keeps `pipeline` requests under way; the server's speed is the pace.
 * Open loop (a rate): requests are due at fixed instants whatever the server does, and their latency counts from the
 * instant at which they were due, so a stall of the server is seen by all who would have come meanwhile. */
#ifndef LOAD_LOAD_H
#define LOAD_LOAD_H

#include "hist.h"
#include "traffic.h"

enum {
	WINDOW_NS = 10000000, /* of the log */
	CONNECTIONS_MAX = 1000,
	UNDER_WAY_MAX = 64, /* requests of one connection that are not answered yet */
	OUT_BYTES = UNDER_WAY_MAX * REQUEST_MAX_BYTES,
};

struct client {
	int fd;
	bool dirty;          /* has requests to send */
	uint32_t line_bytes; /* of the answer that is being received, so far */
	char line_start[4];
	uint32_t out_begin;
	uint32_t out_end;
	uint64_t n_sent; /* requests written to `out` */
	uint64_t n_answered;
	uint64_t since_ns[UNDER_WAY_MAX]; /* from when request n counts, at n % UNDER_WAY_MAX */
	char out[OUT_BYTES];
};

struct load {
	uint32_t port;
	uint32_t n_connections;
	uint32_t pipeline;
	uint64_t rate; /* requests per second; 0: closed loop */
	uint64_t max_requests;
	uint64_t max_ns;
	struct traffic traffic;
	FILE *log; /* of latencies by time, or NULL */

	int epoll_fd;
	uint32_t next_client; /* of an open loop, that sends next */
	uint32_t n_open;
	uint32_t n_dirty;
	struct client *clients;
	struct client *dirty[CONNECTIONS_MAX];
	uint64_t begin_ns;
	uint64_t end_ns;

	uint64_t n_answered;
	uint64_t n_errors; /* answers that say ERR */
	uint64_t n_lost;   /* requests that were never answered */
	struct hist latency;
	struct hist window; /* of these, since window_ns */
	uint64_t window_ns;
};

/* Connects, sends and waits for the answers. Returns 0, or a negative errno when the server cannot be reached. */
int load_run(struct load *load);

#endif
