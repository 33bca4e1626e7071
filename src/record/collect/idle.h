/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder thread, "weft-encoder": makes blocks of batches when no other thread wants the CPU (SCHED_IDLE).
 * COLLECTOR.
 *
 * Encoding a block takes 1 to 2 ms, which is many requests of a busy server. A thread of class SCHED_IDLE gives way
 * at once to whoever wakes, and the kernel takes a CPU that runs nothing else for an idle one. On a machine that is
 * busy it may not run for seconds, and no thread may leave that class without privilege. So nobody ever waits for
 * it: it only reads a batch and writes to memory of its own, and a collector that cannot wait encodes the same batch
 * by itself and leaves the memory to the thread.
 *
 * A program whose blocks are small has no such thread. It is detached, and ends some time after it was closed. */
#ifndef WEFT_COLLECT_IDLE_H
#define WEFT_COLLECT_IDLE_H

#include "base/buf.h"
#include "segment/batch.h"

struct weft__idle;

/* A batch that is encoded. */
struct weft__encoded {
	const struct weft__buf *payload;
	uint64_t first_ns, last_ns;
	int err;
};

/* Starts the thread. -ENOMEM, or the error of pthread_create. */
int weft__idle_open(struct weft__idle **ret, int level);
/* Nothing is under way, or what was is the thread's: see weft__idle_leave. NULL is fine. */
void weft__idle_close(struct weft__idle *idle);
/* Whether it could take a batch. */
int weft__idle_free(const struct weft__idle *idle);
/* Gives it one, which stays as it is until it is taken back. */
void weft__idle_give(struct weft__idle *idle, const struct weft__batch *batch);
/* True when the batch is encoded. The result is good until weft__idle_done. */
int weft__idle_ready(const struct weft__idle *idle, struct weft__encoded *ret);
/* The result, if there is one, is no longer needed, and the batch is the caller's again. 0: the thread still reads
 * the batch. */
int weft__idle_done(struct weft__idle *idle);
/* After that answered 0: leaves the batch, which weft__alloc made, to the thread. 0: it was faster, the batch is the
 * caller's. */
int weft__idle_leave(struct weft__idle *idle, struct weft__batch *batch);
/* CPU time that it has taken so far. */
uint64_t weft__idle_cost(const struct weft__idle *idle);

#endif
