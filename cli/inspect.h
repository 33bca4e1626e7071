/* SPDX-License-Identifier: Apache-2.0 */
/* weft inspect: one segment at a time, whole (inspect_text.c, inspect_json.c; what is about code in inspect_code.c)
 * or event by event (inspect_events.c). */
#ifndef WEFT_CLI_INSPECT_H
#define WEFT_CLI_INSPECT_H

#include <stdio.h>

#include "analyze/json.h"
#include "weft/segment.h"

#define INSPECT_ENGINES 3

struct inspect_samples {
	uint64_t n;
	uint64_t weight_ns;
	uint64_t n_kernel;                  /* with a stack of the kernel */
	uint64_t n_undefined;               /* stacks that events refer to and the segment does not define */
	uint64_t n_engine[INSPECT_ENGINES]; /* enum weft_engine; 0: one that is not known */
};

/* Events that have the stack: samples with the time that they stand for, and those of other kinds. */
enum inspect_use { INSPECT_OFFCPU, INSPECT_WAIT, INSPECT_WALL, INSPECT_STUCK, INSPECT_OTHER, INSPECT_USES };

struct inspect_per_stack {
	uint64_t n;
	uint64_t weight_ns;
	uint32_t others[INSPECT_USES];
};

struct inspect {
	const char *path;
	struct weft_segment *seg;
	const struct weft_segment_info *info;
	uint64_t *n_kind; /* events of each kind, 65536 of them */
	uint64_t n_read;  /* events that could be read */
	struct inspect_samples samples;
	struct inspect_per_stack *per_stack; /* beside the segment's stacks, or NULL: not wanted */
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

/* Modules, stacks, symbols and samples. */
void inspect_count_stacks(struct inspect *inspect, const struct weft_event_view *ev);
void inspect_text_code(const struct inspect *inspect);
void inspect_json_code(struct weft__json *json, const struct inspect *inspect);
void inspect_stacks(const struct inspect *inspect);
/* The innermost function at a place, or module and offset. */
void inspect_print_place(const struct weft_segment *seg, const struct weft_frame *frame);
const char *inspect_engine(uint64_t engine);

#endif
