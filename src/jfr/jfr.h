/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Flight Recorder files, as async-profiler and the JDK write them: samples with their stacks, and events of the
 * user's. Any bytes may be given: what is wrong ends the reading with an error.
 *
 * A file is chunks, each whole by itself:
 *
 *     header (68 bytes, big-endian) | events, with two special ones among them:
 *         metadata: the classes of events and values, as a tree of elements
 *         constant pools, a chain from the last one back: for each class, numbers and values
 *
 * So nothing about events is known beforehand but the names of classes and fields: chunk.c reads the header and the
 * classes, pools.c finds where the values are, and events.c reads fields by their names. All of it is in numbers of
 * seven bits a byte. Context: CALLER. */
#ifndef WEFT_JFR_JFR_H
#define WEFT_JFR_JFR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/map.h"
#include "weft/error.h"

/* A text of the file, not ended by a zero byte. */
struct weft__jfr_text {
	const uint8_t *at;
	size_t n;
};

struct weft__jfr_field {
	struct weft__jfr_text name;
	uint64_t type; /* number of a class */
	bool pooled;   /* the value is a number in the pool of that class */
	bool array;
};

struct weft__jfr_class {
	uint64_t number;
	struct weft__jfr_text name;
	uint32_t first, n; /* fields */
	uint8_t plain;     /* enum of chunk.c: a number or text; 0: it has fields */
	uint8_t pool;      /* enum weft__jfr_pool + 1; 0: not kept */
	uint8_t event;     /* enum weft__jfr_kind + 1; 0: not read */
};

/* Pools that samples need: X(NAME, class). */
#define WEFT__JFR_POOLS(X)                                                                                             \
	X(STACK, "jdk.types.StackTrace")                                                                               \
	X(METHOD, "jdk.types.Method")                                                                                  \
	X(CLASS, "java.lang.Class")                                                                                    \
	X(SYMBOL, "jdk.types.Symbol")                                                                                  \
	X(STRING, "java.lang.String")                                                                                  \
	X(THREAD, "java.lang.Thread")                                                                                  \
	X(STATE, "jdk.types.ThreadState")                                                                              \
	X(USER, "profiler.types.UserEventType")
enum weft__jfr_pool {
#define X(NAME, class) WEFT__JFR_POOL_##NAME,
	WEFT__JFR_POOLS(X)
#undef X
		WEFT__JFR_N_POOLS
};

/* Events that are read: X(NAME, class). */
#define WEFT__JFR_EVENTS(X)                                                                                            \
	X(CPU_SAMPLE, "jdk.ExecutionSample")                                                                           \
	X(WALL_SAMPLE, "profiler.WallClockSample")                                                                     \
	X(USER, "profiler.UserEvent")                                                                                  \
	X(SETTING, "jdk.ActiveSetting")
enum weft__jfr_kind {
#define X(NAME, class) WEFT__JFR_##NAME,
	WEFT__JFR_EVENTS(X)
#undef X
		WEFT__JFR_N_KINDS
};

struct weft__jfr_event {
	enum weft__jfr_kind kind;
	uint64_t start_ns; /* CLOCK_REALTIME, by the chunk's clock */
	uint64_t ticks;    /* as the file has it */
	int64_t tid;       /* of the OS; 0: not known */
	uint64_t stack;    /* number in the pool; 0: none */
	uint64_t samples;  /* of wall samples: so many in one; else 1 */
	uint64_t span_ns;  /* from the first of these to the last */
	bool sleeping;
	struct weft__jfr_text name;        /* of the user's event, or of a setting */
	struct weft__jfr_text data;        /* of the user's event, or the setting's value */
	struct weft__jfr_text thread_name; /* empty: not known */
};

struct weft__jfr {
	const uint8_t *bytes;
	size_t n;
	size_t at; /* of the next chunk */

	/* Of the chunk. */
	const uint8_t *chunk;
	size_t chunk_bytes;
	uint64_t pools_at, metadata_at;
	uint64_t start_ns, duration_ns, start_ticks, ticks_per_s;
	struct weft__jfr_text *strings;
	size_t n_strings, cap_strings;
	struct weft__jfr_class *classes;
	size_t n_classes, cap_classes;
	struct weft__jfr_field *fields;
	size_t n_fields, cap_fields;
	struct weft__map class_by_number;
	uint32_t pool_class[WEFT__JFR_N_POOLS];    /* index + 1; 0: no such class */
	struct weft__map pools[WEFT__JFR_N_POOLS]; /* number to offset in the chunk */
};

/* Memory that stays the caller's. {0} fini is allowed. */
void weft__jfr_init(struct weft__jfr *jfr, const void *bytes, size_t n);
void weft__jfr_fini(struct weft__jfr *jfr);
bool weft__jfr_is(const void *bytes, size_t n);

/* chunk.c. The next chunk, with its classes and pools. 1; 0 at the end; -WEFT_E_FORMAT with what is wrong; -ENOMEM. */
int weft__jfr_chunk(struct weft__jfr *jfr, struct weft_error *err);
/* events.c. Calls `fn` for each event of the chunk that is one of the kinds above, until it answers another than 0.
 * 0, what it answered, or -WEFT_E_FORMAT. */
int weft__jfr_events(const struct weft__jfr *jfr, int (*fn)(void *data, const struct weft__jfr_event *event),
		     void *data, struct weft_error *err);
/* events.c. The frames of a stack as texts "library.function", leaf first, each with a zero byte. False: there is no
 * such stack, or a part of it cannot be read. */
bool weft__jfr_stack(const struct weft__jfr *jfr, uint64_t stack, struct weft__buf *to);
/* Ticks of the chunk as ns. */
uint64_t weft__jfr_ns(const struct weft__jfr *jfr, uint64_t ticks);
bool weft__jfr_same(struct weft__jfr_text text, const char *other);

/* Inside. Numbers of seven bits a byte; the ninth has eight. */
uint64_t weft__jfr_varint(struct weft__in *in);
/* A text, as a value: false when it is none (or a number in the pool, which goes to `*pooled`). */
bool weft__jfr_read_text(struct weft__in *in, struct weft__jfr_text *ret, uint64_t *pooled);
/* Passes over a value of a class, or of a field of one. */
void weft__jfr_skip(const struct weft__jfr *jfr, uint64_t type, struct weft__in *in, unsigned depth);
void weft__jfr_skip_field(const struct weft__jfr *jfr, const struct weft__jfr_field *field, struct weft__in *in,
			  unsigned depth);
const struct weft__jfr_class *weft__jfr_class(const struct weft__jfr *jfr, uint64_t number);
/* pools.c. 0, -WEFT_E_FORMAT or -ENOMEM. */
int weft__jfr_pools(struct weft__jfr *jfr, struct weft_error *err);

#endif
