/* SPDX-License-Identifier: Apache-2.0 */
/* An event where it is stored: its fields are not copied. struct weft_event_view is the public one, which holds them.
 * Context: CALLER. */
#ifndef WEFT_SEGMENT_EVENT_H
#define WEFT_SEGMENT_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/segment.h"

#define RECORD_FIELDS 2

/* How struct weft_event_view begins. Of a kind with more fields than fit, `fields[0]` is the address of all of them. */
struct weft__record {
	uint64_t time_ns;
	uint32_t thread;
	uint16_t kind;
	uint16_t n_fields;
	uint64_t fields[RECORD_FIELDS];
};
_Static_assert(sizeof(struct weft__record) == offsetof(struct weft_event_view, fields[RECORD_FIELDS]), "same begin");

struct weft__event {
	uint64_t time_ns;
	uint32_t thread;
	uint16_t kind;
	uint16_t n_fields;
	const uint64_t *fields; /* n_fields of them */
};

static inline struct weft__event weft__event_of_record(const struct weft__record *record)
{
	return (struct weft__event){record->time_ns, record->thread, record->kind, record->n_fields,
				    record->n_fields > RECORD_FIELDS ? (const uint64_t *)(uintptr_t)record->fields[0]
								     : record->fields};
}

#endif
