/* SPDX-License-Identifier: Apache-2.0 */
/* What the load asks for: request number n is the same in every run with the same options. */
#ifndef LOAD_TRAFFIC_H
#define LOAD_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REQUEST_MAX_BYTES = 96 };

struct traffic {
	bool light;           /* PING and ECHO only: no tasks but those of the connections */
	bool faults;          /* now and then a request that holds a worker up */
	uint32_t fault_every; /* requests from one fault to the next, about */
	uint64_t state;       /* of the random numbers that place the faults */
	uint64_t next_fault;  /* number of the request that is the next one */
	uint64_t n_requests;  /* made so far */
	uint64_t n_faults;    /* of these */
};

void traffic_init(struct traffic *traffic, uint64_t seed);

/* Writes the next request, newline included. Returns its length, at most REQUEST_MAX_BYTES. */
size_t traffic_next(struct traffic *traffic, char *request);

#endif
