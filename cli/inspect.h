/* SPDX-License-Identifier: Apache-2.0 */
/* weft inspect: one segment at a time, whole (inspect_text.c, inspect_json.c) or event by event (inspect_events.c). */
#ifndef WEFT_CLI_INSPECT_H
#define WEFT_CLI_INSPECT_H

#include <stdio.h>

#include "analyze/json.h"
#include "weft/segment.h"

struct inspect {
	const char *path;
	struct weft_segment *seg;
	const struct weft_segment_info *info;
	uint64_t *n_kind; /* events of each kind, 65536 of them */
	uint64_t n_read;  /* events that could be read */
};

void inspect_text(const struct inspect *inspect);
void inspect_json(struct weft__json *json, const struct inspect *inspect);
void inspect_blocks(const struct inspect *inspect);

/* Each returns 0 or a negative error. */
int inspect_dump(const struct inspect *inspect, enum weft_order order);
int inspect_events(const struct inspect *inspect, enum weft_order order);

/* The name of a kind in this segment, or NULL. */
const char *inspect_kind_name(const struct weft_segment *seg, uint32_t kind);
const char *inspect_type_name(uint32_t type);

#endif
