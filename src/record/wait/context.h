/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a thread (weft/span.h): reported in its ring, published to other profilers, and read from other
 * tracers.
 *
 *     context_hot.c   setting it, reporting it, the record of OTEP 4947
 *     labels.c        endpoints and labels: their ids, and how they look in such a record
 *     otel_find.c     tracers that keep their records apart from ours
 *     otel.c          the process context of OTEP 4719, which says what the keys in records mean */
#ifndef WEFT_WAIT_CONTEXT_H
#define WEFT_WAIT_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "record/source.h"
#include "weft/span.h"

struct weft_ring;

extern const struct weft__source weft__context_source;

/* OTEP 4947. The pointer is the thread's own, and so is what it points to: others read it while the thread is
 * stopped or interrupted, so that the order in which one thread sees its own stores is order enough. */
struct weft__otel_record {
	uint8_t trace[16];
	uint8_t span[8];
	uint8_t valid; /* 1: it is */
	uint8_t flags;
	uint16_t attrs_bytes;
	uint8_t attrs[164]; /* {key, length, value}... */
};
_Static_assert(offsetof(struct weft__otel_record, attrs) == 28, "as OTEP 4947 has it");

extern WEFT_API __thread struct weft__otel_record *otel_thread_ctx_v1 __attribute__((tls_model("initial-exec"), weak));

/* Keys of attributes, by number. Those of labels follow. */
enum { OTEL_KEY_ROOT = 0, OTEL_KEY_ENDPOINT = 1, OTEL_KEY_LABELS = 2, OTEL_KEYS_MAX = 256 };
#define OTEL_ROOT_DIGITS 16

/* HOT. What a tracer says of the calling thread, reported as its context until weft__context_return; 0: nothing, and
 * then there is no return. Between the two comes what happened at that moment, as it is not known for how long it
 * holds. */
int weft__context_borrow(uint64_t tick);
void weft__context_return(uint64_t tick);

/* HOT. The attributes of an endpoint or of labels, as they are in a record; NULL: there are none. */
struct weft__otel_attrs {
	uint16_t bytes;
	uint8_t at[];
};
const struct weft__otel_attrs *weft__otel_attrs(uint32_t string);
extern struct weft__otel_attrs **weft__otel_pages[256]; /* by id of the string, in two steps */
/* HOT reads, CALLER writes. Whether the numbers of keys are ours: the process context is. */
extern uint32_t weft__otel_keys_ours;
/* Number of the key of local root spans in records of another tracer, plus 1; 0: not known. HOT asks for it then. */
extern uint32_t weft__otel_root_key, weft__otel_root_wanted;

/* otel_find.c. Such variables of tracers that are not the same as ours, by their distance from the thread pointer.
 * HOT reads. */
#define OTEL_OTHERS_MAX 4
extern int64_t weft__otel_others[OTEL_OTHERS_MAX];
extern uint32_t weft__otel_n_others;
/* The thread that compiles unwind tables, under the lock of the modules: a fork finds the loader as it should be.
 * Looks for them, if libraries came since the last time. */
void weft__otel_find(void);

/* CALLER. Names of keys: the number of one, given out if need be, or -1. Their names, as many as there are. */
int weft__otel_key(const char *name, size_t bytes);
uint32_t weft__otel_keys(const char **names, uint32_t max);
void weft__otel_lock(void);
void weft__otel_unlock(void);

/* CALLER. Reports new keys. */
void weft__otel_update(void);

#endif
