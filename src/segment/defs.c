/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/defs.h"

#include <string.h>

#include "base/bytes.h"
#include "segment/format.h"

void weft__defs_fini(struct weft__defs *defs)
{
	weft__buf_free(&defs->out);
	weft__buf_free(&defs->one);
	defs->n = 0;
}

void weft__defs_clear(struct weft__defs *defs)
{
	defs->out.n = 0;
	defs->out.oom = 0;
	defs->one.n = 0;
	defs->one.oom = 0;
	defs->n = 0;
}

int weft__defs_oom(const struct weft__defs *defs)
{
	return defs->out.oom || defs->one.oom;
}

static struct weft__buf *begin(struct weft__defs *defs)
{
	defs->one.n = 0;
	return &defs->one;
}

static void end(struct weft__defs *defs, uint32_t tag)
{
	weft__buf_varint(&defs->out, tag);
	weft__buf_varint(&defs->out, defs->one.n);
	weft__buf_put(&defs->out, defs->one.bytes, defs->one.n);
	defs->n++;
}

void weft__defs_string(struct weft__defs *defs, uint32_t id, const char *text)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_varint(buf, id);
	weft__buf_text(buf, text);
	end(defs, DEF_STRING);
}

void weft__defs_location(struct weft__defs *defs, uint32_t id, uint32_t line, const char *name, const char *file)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_varint(buf, id);
	weft__buf_varint(buf, line);
	weft__buf_text(buf, name);
	weft__buf_text(buf, file);
	end(defs, DEF_LOCATION);
}

void weft__defs_runtime(struct weft__defs *defs, uint32_t id, const char *name)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_varint(buf, id);
	weft__buf_text(buf, name);
	end(defs, DEF_RUNTIME);
}

void weft__defs_worker(struct weft__defs *defs, uint32_t id, uint32_t runtime, uint32_t index)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_varint(buf, id);
	weft__buf_varint(buf, runtime);
	weft__buf_varint(buf, index);
	end(defs, DEF_WORKER);
}

void weft__defs_thread(struct weft__defs *defs, const struct weft_thread *thread)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_varint(buf, thread->id);
	weft__buf_varint(buf, thread->tid);
	weft__buf_varint(buf, thread->worker >= 0xffff ? 0 : thread->worker + 1);
	weft__buf_varint(buf, thread->first_ns);
	weft__buf_text(buf, thread->name);
	end(defs, DEF_THREAD);
}

void weft__defs_kind(struct weft__defs *defs, uint32_t id, const char *name, const struct weft_field *fields,
		     uint32_t n_fields)
{
	struct weft__buf *buf = begin(defs);
	uint32_t i;

	weft__buf_varint(buf, id);
	weft__buf_text(buf, name);
	weft__buf_varint(buf, n_fields);
	for (i = 0; i < n_fields; i++) {
		weft__buf_text(buf, fields[i].name);
		weft__buf_varint(buf, fields[i].type);
		weft__buf_text(buf, fields[i].unit ? fields[i].unit : "");
	}
	end(defs, DEF_KIND);
}

void weft__defs_clock(struct weft__defs *defs, const struct weft_clock *clock)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_varint(buf, clock->tick);
	weft__buf_varint(buf, clock->mono_ns);
	weft__buf_varint(buf, clock->real_ns);
	end(defs, DEF_CLOCK);
}

void weft__defs_loss(struct weft__defs *defs, const struct weft_loss *loss)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_varint(buf, loss->reason);
	weft__buf_varint(buf, loss->thread);
	weft__buf_varint(buf, loss->count);
	weft__buf_varint(buf, loss->from_ns);
	weft__buf_varint(buf, loss->to_ns);
	end(defs, DEF_LOSS);
}

void weft__defs_fact(struct weft__defs *defs, const char *key, const char *value)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_text(buf, key);
	weft__buf_text(buf, value);
	end(defs, DEF_FACT);
}

void weft__defs_module(struct weft__defs *defs, const struct weft_module *module)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_varint(buf, module->id);
	weft__buf_varint(buf, module->kind);
	weft__buf_varint(buf, module->start);
	weft__buf_varint(buf, module->end);
	weft__buf_varint(buf, module->offset);
	weft__buf_varint(buf, module->build_id_n);
	weft__buf_put(buf, module->build_id, module->build_id_n);
	weft__buf_text(buf, module->path);
	end(defs, DEF_MODULE);
}

void weft__defs_stack(struct weft__defs *defs, const struct weft_stack *stack)
{
	struct weft__buf *buf = begin(defs);
	uint32_t i;

	weft__buf_varint(buf, stack->id);
	weft__buf_varint(buf, stack->flags);
	weft__buf_varint(buf, stack->n_frames);
	for (i = 0; i < stack->n_frames; i++) {
		weft__buf_varint(buf, stack->frames[i].module);
		weft__buf_varint(buf, stack->frames[i].offset);
	}
	end(defs, DEF_STACK);
}

void weft__defs_name(struct weft__defs *defs, uint32_t id, const char *text)
{
	struct weft__buf *buf = begin(defs);

	weft__buf_varint(buf, id);
	weft__buf_text(buf, text);
	end(defs, DEF_NAME);
}

void weft__defs_symbol(struct weft__defs *defs, uint32_t module, uint64_t offset,
		       const struct weft__symbol_names *frames, uint32_t n_frames)
{
	struct weft__buf *buf = begin(defs);
	uint32_t i;

	weft__buf_varint(buf, module);
	weft__buf_varint(buf, offset);
	weft__buf_varint(buf, n_frames);
	for (i = 0; i < n_frames; i++) {
		weft__buf_varint(buf, frames[i].function);
		weft__buf_varint(buf, frames[i].file);
		weft__buf_varint(buf, frames[i].line);
		weft__buf_varint(buf, frames[i].inlined);
	}
	end(defs, DEF_SYMBOL);
}

uint32_t weft__defs_count(const uint8_t *bytes, size_t n)
{
	struct weft__in in = weft__in(bytes, n);
	uint32_t count = 0;

	while (in_left(&in)) {
		in_varint(&in);
		in_bytes(&in, in_varint(&in));
		count += !in.bad;
	}
	return count;
}

void weft__defs_raw(struct weft__defs *defs, const uint8_t *bytes, size_t n, uint32_t n_records)
{
	weft__buf_put(&defs->out, bytes, n);
	defs->n += n_records;
}

void weft__defs_builtin_kinds(struct weft__defs *defs)
{
	/* clang-format off */
#define X(NAME, number, text, ...) { const char *name = text; const struct weft_field fields[] = {
#define Y(KIND, NAME, text, type, unit, ...) {text, WEFT_TYPE_##type, unit},
#define Z(NAME) {0}}; weft__defs_kind(defs, WEFT_KIND_##NAME, name, fields, WEFT_FIELDS_OF_##NAME); }
	WEFT_KINDS(X, Y, Z)
#undef X
#undef Y
#undef Z
	/* clang-format on */
}
