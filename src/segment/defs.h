/* SPDX-License-Identifier: Apache-2.0 */
/* Writing definition records (docs/FORMAT.md, "Definitions"). COLLECTOR and CALLER. */
#ifndef WEFT_SEGMENT_DEFS_H
#define WEFT_SEGMENT_DEFS_H

#include "base/buf.h"
#include "weft/segment.h"

struct weft__defs {
	struct weft__buf out; /* the records */
	struct weft__buf one; /* the one being made */
	uint32_t n;
};

void weft__defs_fini(struct weft__defs *defs);
void weft__defs_clear(struct weft__defs *defs);
/* True when memory ran out since the last clear. */
int weft__defs_oom(const struct weft__defs *defs);

void weft__defs_string(struct weft__defs *defs, uint32_t id, const char *text);
void weft__defs_location(struct weft__defs *defs, uint32_t id, uint32_t line, const char *name, const char *file);
void weft__defs_runtime(struct weft__defs *defs, uint32_t id, const char *name);
void weft__defs_worker(struct weft__defs *defs, uint32_t id, uint32_t runtime, uint32_t index);
void weft__defs_thread(struct weft__defs *defs, const struct weft_thread *thread);
void weft__defs_kind(struct weft__defs *defs, uint32_t id, const char *name, const struct weft_field *fields,
		     uint32_t n_fields);
void weft__defs_clock(struct weft__defs *defs, const struct weft_clock *clock);
void weft__defs_loss(struct weft__defs *defs, const struct weft_loss *loss);
void weft__defs_fact(struct weft__defs *defs, const char *key, const char *value);
void weft__defs_module(struct weft__defs *defs, const struct weft_module *module);
void weft__defs_stack(struct weft__defs *defs, const struct weft_stack *stack);
/* A text that symbols refer to by id; these ids are their own. */
void weft__defs_name(struct weft__defs *defs, uint32_t id, const char *text);
struct weft__symbol_names {
	uint32_t function; /* ids of names; 0: none */
	uint32_t file;
	uint32_t line;
	uint32_t inlined;
};
void weft__defs_symbol(struct weft__defs *defs, uint32_t module, uint64_t offset,
		       const struct weft__symbol_names *frames, uint32_t n_frames);
/* How many whole records these bytes are. */
uint32_t weft__defs_count(const uint8_t *bytes, size_t n);
/* Records that are encoded already. */
void weft__defs_raw(struct weft__defs *defs, const uint8_t *bytes, size_t n, uint32_t n_records);

/* The kinds that weft itself defines, as records. */
void weft__defs_builtin_kinds(struct weft__defs *defs);

#endif
