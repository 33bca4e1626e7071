/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions: strings, spawn locations and event types that events refer to by number. Each is registered once, is
 * valid for the life of the process, and is repeated in every segment. Registering takes a mutex: do it at start-up or
 * behind the macros below, which do it once per line of code. Any thread; not async-signal-safe.
 *
 * Ids. Every call of weft that gives an id (here, in runtime.h and in span.h) returns a number above 0, or 0 when
 * there is none. 0 may be used in place of an id everywhere: it stands for "not known". */
#ifndef WEFT_DEFINE_H
#define WEFT_DEFINE_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Interns a string. The same text gives the same id. Returns an id > 0, or 0 when the limit (65,535 strings
 * or 2 MiB of definitions) is reached; events then show "(string table full)". */
WEFT_API uint32_t weft_string(const char *text);

/* Interns a place in the program that spawns tasks. `name` is what people read ("handle_upload"). Equal arguments
 * give the same id. Returns an id > 0 (1..65535), or 0 when the limit is reached: shown as "(unknown)". */
WEFT_API uint32_t weft_location(const char *name, const char *file, uint32_t line);

/* The location of this line, registered the first time it is reached (a GNU statement expression: gcc and clang). */
#define WEFT_HERE(name)                                                                                                \
	(__extension__({                                                                                               \
		static uint32_t weft_here_;                                                                            \
		uint32_t weft_id_ = __atomic_load_n(&weft_here_, __ATOMIC_RELAXED);                                    \
		if (__builtin_expect(weft_id_ == 0, 0)) {                                                              \
			weft_id_ = weft_location((name), __FILE__, __LINE__);                                          \
			__atomic_store_n(&weft_here_, weft_id_, __ATOMIC_RELAXED);                                     \
		}                                                                                                      \
		weft_id_;                                                                                              \
	}))

/* Types of a field. Every field is one 64-bit word in the event. */
enum weft_type {
	WEFT_TYPE_U64 = 1,
	WEFT_TYPE_I64 = 2,
	WEFT_TYPE_F64 = 3, /* the bits of a double */
	WEFT_TYPE_BOOL = 4,
	WEFT_TYPE_STRING = 5, /* an id of weft_string */
	WEFT_TYPE_TASK = 6,   /* a task id */
	WEFT_TYPE_WORKER = 7, /* a worker id */
	WEFT_TYPE_LOCATION = 8,
	WEFT_TYPE_STACK = 9, /* an id of a stack; 0: none. Not for events of the program's own */
};

#define WEFT_FIELDS_MAX 14

struct weft_field {
	const char *name; /* "bytes_in" */
	uint32_t type;    /* enum weft_type */
	const char *unit; /* UCUM-like: "By", "ns", "us", "ms", "1", "%"; NULL: none */
};

/* Registers an event type of the program's own. The same name with the same fields gives the same id. Returns an
 * id >= WEFT_KIND_USER for weft_event, or 0 and why in `err`, which may be NULL: -EINVAL (no name, more than
 * WEFT_FIELDS_MAX fields, unknown type), -EEXIST (name taken with other fields), -WEFT_E_LIMIT, -ENOMEM. */
WEFT_API uint32_t weft_event_define(const char *name, const struct weft_field *fields, size_t n_fields,
				    struct weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
