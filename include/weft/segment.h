/* SPDX-License-Identifier: Apache-2.0 */
/* Reading segments. A reader gives the definitions of a segment (threads, workers, locations, ...) and its events,
 * per thread or merged in time order. Any bytes may be given to it: it answers with an error or with the part that
 * can be read, and weft_segment_damage says what is missing.
 *
 * A segment object is used by one thread at a time. Nothing here is async-signal-safe. Pointers that calls return live
 * until weft_segment_close. */
#ifndef WEFT_SEGMENT_H
#define WEFT_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "kind.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_segment;

/* Opens the segment at `path` and reads its definitions. On success `*ret` is the caller's. Returns 0;
 * -WEFT_E_FORMAT, -WEFT_E_VERSION; -ENOMEM; or a negative errno. A damaged segment opens. */
WEFT_API int weft_segment_open(struct weft_segment **ret, const char *path, struct weft_error *err);

/* The same over memory that the caller keeps alive and unchanged. */
WEFT_API int weft_segment_open_memory(struct weft_segment **ret, const void *bytes, size_t n_bytes,
				      struct weft_error *err);

/* NULL is allowed. */
WEFT_API void weft_segment_close(struct weft_segment *seg);

struct weft_segment_info {
	uint32_t version;       /* of the format */
	uint32_t sealed;        /* 1: has its footer index */
	uint32_t recovered;     /* 1: made by weft recover from a dead process */
	uint32_t quantum_ns;    /* time resolution of its events; 0 when it has none */
	uint8_t recording[16];  /* the same in all segments of one recording */
	uint64_t sequence;      /* number of the segment in the recording, from 0 */
	uint64_t start_mono_ns; /* when it was begun (not its file), CLOCK_MONOTONIC and CLOCK_REALTIME */
	uint64_t start_real_ns;
	uint64_t first_ns; /* first and last event, CLOCK_MONOTONIC; 0 and 0 when it has none */
	uint64_t last_ns;
	uint64_t n_events;      /* counted from block headers */
	uint64_t n_bytes;       /* of the file */
	uint64_t n_event_bytes; /* of these, event blocks with their headers */
	uint32_t n_blocks;
	uint32_t n_unknown_blocks; /* of types this reader does not know: skipped */
};
/* Facts about the whole segment. Never NULL. */
WEFT_API const struct weft_segment_info *weft_segment_info(const struct weft_segment *seg);

/* What could not be read. Returns the number of damaged places. `missing_bytes` is the sum of the bytes that were
 * passed over; `text` is one line for a person ("" when all is well). Complete only once all events were read,
 * because event blocks are decoded on the way. */
struct weft_damage {
	uint32_t places;
	uint64_t missing_bytes;
	uint64_t first_offset; /* of the first damaged place */
	const char *text;
};
WEFT_API struct weft_damage weft_segment_damage(const struct weft_segment *seg);

/* Definitions. Each weft_segment_NOUNS gives the array and its length; each weft_segment_NOUN looks one up by id and
 * answers NULL when the segment does not define it. Strings are never NULL and end in a zero byte. */
struct weft_thread {
	uint32_t id;     /* of the stream of events, unique in the recording */
	uint32_t tid;    /* of the OS */
	uint32_t worker; /* last worker id it had, or WEFT_WORKER_NONE */
	const char *name;
	uint64_t first_ns; /* its first event in the recording; 0: not known */
};
struct weft_worker {
	uint32_t id;
	uint32_t runtime;
	uint32_t index;
};
struct weft_runtime_def {
	uint32_t id;
	const char *name;
};
struct weft_location_def {
	uint32_t id;
	uint32_t line;
	const char *name;
	const char *file;
};
struct weft_kind_def {
	uint32_t id;
	uint32_t n_fields;
	const char *name;
	struct weft_field fields[WEFT_FIELDS_MAX];
};
struct weft_string_def {
	uint32_t id;
	const char *text;
};
struct weft_clock {
	uint64_t tick;
	uint64_t mono_ns;
	uint64_t real_ns;
};
/* Why something is missing: X(NAME, number, "name", what the count counts, in whose time there is a gap, what it
 * means). Reports, docs/FORMAT.md and weft-report(1) are made from this list; numbers never change. Counts: EVENTS,
 * POLLS, SAMPLES, MISSED (about so many samples), THREADS, SWITCHES (records), TIME (nothing is counted). Gaps:
 * THREAD, in the thread's, if it is known; ALL, in that of all threads; NONE. */
/* clang-format off */
#define WEFT_LOSSES(X) \
	X(RING_FULL, 1, "ring full", EVENTS, THREAD, "the thread's ring was full") \
	X(NO_RING, 2, "no ring", EVENTS, THREAD, "there were more threads than max_threads, or no memory for a ring") \
	X(BAD_EVENT, 3, "bad event", EVENTS, NONE, \
	  "an event made no sense: one of the program's that was never defined") \
	X(PAUSED, 4, "paused", TIME, ALL, "the program paused the recording (weft_recorder_pause)") \
	X(DISK_FULL, 5, "disk full", TIME, ALL, "the recording was paused because the disk was full") \
	X(SAMPLE, 6, "no memory for stacks", SAMPLES, NONE, "there were more stacks than there is memory for") \
	X(UNCOVERED, 7, "thread not sampled", THREADS, NONE, "threads could not be sampled") \
	X(POLL_CAP, 8, "polls beyond the cap", POLLS, NONE, \
	  "they were counted by their length, not recorded one by one") \
	X(SWITCH, 9, "context switches", SWITCHES, NONE, \
	  "the kernel dropped records, or (0) they were held back to save CPU time") \
	X(DELETED, 10, "segment deleted", EVENTS, ALL, \
	  "the segment was deleted, or closed by the program, before it was sealed") \
	X(SIGNAL, 11, "signal taken", MISSED, NONE, "another handler had taken the signal of the samples")

enum weft_loss_reason {
#define X(NAME, number, ...) WEFT_LOSS_##NAME = number,
	WEFT_LOSSES(X)
#undef X
	WEFT_LOSS_END, /* one past the last above */
};
/* clang-format on */

struct weft_loss {
	uint32_t reason; /* enum weft_loss_reason */
	uint32_t thread; /* stream id, or 0 when it belongs to no known thread */
	uint64_t count;
	uint64_t from_ns;
	uint64_t to_ns;
};
struct weft_fact {
	const char *key; /* "host.name", "process.pid", "degraded.clock", ... */
	const char *value;
};

/* A file that is mapped as code, or code without a file. */
enum weft_module_kind {
	WEFT_MODULE_FILE = 1, /* the program or a library */
	WEFT_MODULE_VDSO = 2,
	WEFT_MODULE_KERNEL = 3, /* start is 0: offsets are addresses */
	WEFT_MODULE_CODE = 4,   /* made while the program ran: names are in perf maps and jitdumps */
	WEFT_MODULE_NAMED = 5,  /* interpreted: an offset is the id of the location that names the frame; 0: no name */
};
#define WEFT_BUILD_ID_MAX 32
struct weft_module {
	uint32_t id; /* > 0, unique in the recording; a file that is mapped elsewhere later is another module */
	uint32_t kind;
	const char *path;
	uint64_t start, end; /* addresses of its code in the process */
	uint64_t offset;     /* in the file, of start */
	uint32_t build_id_n; /* 0: it has none */
	uint8_t build_id[WEFT_BUILD_ID_MAX];
};
/* One place in code. `offset` counts from the module's start; module 0: not known, and offset is the address. It
 * lies in the instruction that runs or, in a caller, in the call. */
struct weft_frame {
	uint32_t module;
	uint64_t offset;
};
enum weft_stack_flag {
	WEFT_STACK_COMPLETE = 1, /* reached the thread's first function */
	WEFT_STACK_CUT = 2,      /* deeper than was asked for: the outer frames are missing */
	WEFT_STACK_LOST = 4,     /* ends where no rule said how to go on */
	WEFT_STACK_FP = 8,       /* some frames are from frame pointers, where there were no rules */
	WEFT_STACK_SIGNAL = 16,  /* goes through a signal handler */
	WEFT_STACK_NO_CODE = 32, /* the leaf is in no known module */
	WEFT_STACK_KERNEL = 64,  /* frames of the kernel */
	WEFT_STACK_EARLY = 128,  /* taken when some of its rules were still to be made: that may be why it is lost */
};
struct weft_stack {
	uint32_t id; /* > 0, unique in the recording */
	uint32_t flags;
	uint32_t n_frames;
	const struct weft_frame *frames; /* leaf first */
};
/* Names for one place in code: more than one when calls were inlined there, innermost first. Segments have them once
 * they were symbolized. */
struct weft_symbol_frame {
	const char *function; /* demangled */
	const char *file;     /* "" when not known */
	uint32_t line;        /* 0: not known */
	uint32_t inlined;     /* 1: into the next one */
};
struct weft_symbol_def {
	uint32_t module;
	uint32_t n_frames;
	uint64_t offset;
	const struct weft_symbol_frame *frames;
};

WEFT_API const struct weft_module *weft_segment_modules(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_stack *weft_segment_stacks(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_symbol_def *weft_segment_symbols(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_module *weft_segment_module(const struct weft_segment *seg, uint32_t id);
WEFT_API const struct weft_stack *weft_segment_stack(const struct weft_segment *seg, uint32_t id);
WEFT_API const struct weft_symbol_def *weft_segment_symbol(const struct weft_segment *seg, uint32_t module,
							   uint64_t offset);

WEFT_API const struct weft_thread *weft_segment_threads(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_worker *weft_segment_workers(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_runtime_def *weft_segment_runtimes(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_location_def *weft_segment_locations(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_kind_def *weft_segment_kinds(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_string_def *weft_segment_strings(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_clock *weft_segment_clocks(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_loss *weft_segment_losses(const struct weft_segment *seg, size_t *n);
WEFT_API const struct weft_fact *weft_segment_facts(const struct weft_segment *seg, size_t *n);

WEFT_API const struct weft_thread *weft_segment_thread(const struct weft_segment *seg, uint32_t id);
WEFT_API const struct weft_worker *weft_segment_worker(const struct weft_segment *seg, uint32_t id);
WEFT_API const struct weft_runtime_def *weft_segment_runtime(const struct weft_segment *seg, uint32_t id);
WEFT_API const struct weft_location_def *weft_segment_location(const struct weft_segment *seg, uint32_t id);
WEFT_API const struct weft_kind_def *weft_segment_kind(const struct weft_segment *seg, uint32_t id);
WEFT_API const char *weft_segment_string(const struct weft_segment *seg, uint32_t id);
/* The last one of that key, which is the one that counts; NULL: there is none. */
WEFT_API const char *weft_segment_fact(const struct weft_segment *seg, const char *key);

/* One event. `fields` are those of its kind, in order; for kinds that the segment does not describe they are there all
 * the same. */
struct weft_event_view {
	uint64_t time_ns; /* CLOCK_MONOTONIC, a multiple of the quantum */
	uint32_t thread;  /* stream id */
	uint16_t kind;
	uint16_t n_fields;
	uint64_t fields[WEFT_FIELDS_MAX];
};

struct weft_cursor;

enum weft_order {
	WEFT_ORDER_TIME = 0,   /* all threads merged; events of equal time in order of stream id */
	WEFT_ORDER_STORED = 1, /* block by block, thread by thread: the fastest; in time order within a thread */
};

/* Begins reading events with from_ns <= time < to_ns (0 and UINT64_MAX: all), seeking by the index. The cursor is the
 * caller's; close it before the segment. */
WEFT_API int weft_cursor_open(struct weft_cursor **ret, struct weft_segment *seg, enum weft_order order,
			      uint64_t from_ns, uint64_t to_ns, struct weft_error *err);

/* The next event in `*ev`. Returns 1, or 0 at the end, or -ENOMEM. Damaged blocks are passed over and counted. */
WEFT_API int weft_cursor_next(struct weft_cursor *cursor, struct weft_event_view *ev);

/* NULL is allowed. */
WEFT_API void weft_cursor_close(struct weft_cursor *cursor);

#ifdef __cplusplus
}
#endif
#endif
