/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is registered once and referred to by number: strings, locations, kinds, runtimes, workers. It
 * lives as long as the process. Each definition is kept encoded, as a record of the segment format, in one log;
 * while a recorder is open the log is also in shared memory, so that it outlives the process with the events that
 * need it. */
#ifndef WEFT_EVENT_REGISTRY_H
#define WEFT_EVENT_REGISTRY_H

#include "base/own.h"
#include "record/ring/layout.h"
#include "segment/defs.h"
#include "weft/runtime.h"

#define RUNTIMES_MAX 64

/* HOT reads the callbacks; CALLER sets them, then raises weft__hot.n_runtimes. */
struct weft__runtime {
	weft_worker_fn *worker;
	weft_queue_fn *queue;
	void *data;
	uint32_t asking; /* threads inside the callbacks */
};
extern struct weft__runtime weft__runtimes[RUNTIMES_MAX + 1]; /* by id; the first is none */

/* Threads that said who they are, by tid, with room for WORKER_TIDS of them. A thread writes only its own entry;
 * entries are found within WORKER_PROBES places of where they belong. */
#define WORKER_TIDS 8192
#define WORKER_PROBES 64
struct weft__worker_tid {
	uint64_t tid;   /* 0: never used, TID_GONE: free again */
	uint64_t value; /* runtime << 32 | index */
};
#define TID_GONE UINT64_MAX
extern struct weft__worker_tid weft__worker_tids[WORKER_TIDS];
/* HOT. The calling thread's entry, or NULL. */
struct weft__worker_tid *weft__worker_tid(uint32_t tid);

/* CALLER. Copies the log into the shared memory of a new session, and keeps doing so; NULL ends that. 0 or -errno. */
int weft__registry_share(struct rings_head *head, char *base, const struct weft__own_file *file);
/* COLLECTOR. The id of a worker, registering it if need be; WEFT_WORKER_NONE on failure. */
uint32_t weft__registry_worker(uint32_t runtime, uint32_t index);
/* COLLECTOR. The id of a module, whose own is not looked at; 0 on failure. */
uint32_t weft__registry_module(const struct weft_module *module);
/* COLLECTOR. How many there are: another number when there is a new one. */
uint32_t weft__registry_modules(void);
/* CALLER. A fact of each segment from here on; the last one of a key counts. 0, -WEFT_E_LIMIT or -errno. */
int weft__registry_fact(const char *key, const char *value);
/* COLLECTOR. Records of the log from byte `from` on; `from` is moved to the end. */
void weft__registry_read(uint64_t *from, struct weft__defs *to);
/* COLLECTOR. How often a string, location or kind was refused because the log is full. */
uint64_t weft__registry_refused(void);
/* COLLECTOR. Number of fields of a kind of the user's, or -1 when it was never defined. */
int weft__registry_kind_fields(uint32_t kind);

/* CALLER. Makes the pthread key through which the end of a thread is heard of. */
void weft__threads_init(void);

/* Around fork: the mutex is held from prepare to parent or child. */
void weft__registry_lock(void);
void weft__registry_unlock(void);

#endif
