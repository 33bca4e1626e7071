/* SPDX-License-Identifier: Apache-2.0 */
/* Events and values, field by field, by name. */
#include <string.h>

#include "base/error.h"
#include "jfr/jfr.h"

#define HEADER_BYTES 68
#define FRAMES_MAX 4096u
#define DEPTH_MAX 4 /* of texts in pools of texts */

/* The value of a number in a pool. False: there is none. */
static bool find_value(const struct weft__jfr *jfr, enum weft__jfr_pool pool, uint64_t number, struct weft__in *ret)
{
	uint32_t at = weft__map_get(&jfr->pools[pool], number);

	if (at == WEFT__MAP_NONE)
		return false;
	*ret = weft__in(jfr->chunk + at, jfr->chunk_bytes - at);
	return true;
}

static const struct weft__jfr_class *class_of(const struct weft__jfr *jfr, enum weft__jfr_pool pool)
{
	return jfr->pool_class[pool] ? &jfr->classes[jfr->pool_class[pool] - 1] : NULL;
}

static bool text_value(const struct weft__jfr *jfr, struct weft__in *in, unsigned depth, struct weft__jfr_text *ret)
{
	struct weft__in value;
	uint64_t pooled;

	if (weft__jfr_read_text(in, ret, &pooled))
		return true;
	return pooled && depth < DEPTH_MAX && find_value(jfr, WEFT__JFR_POOL_STRING, pooled, &value) &&
	       text_value(jfr, &value, depth + 1, ret);
}

/* Goes to a field of a value: its bytes are next then. NULL: there is no such field. */
static const struct weft__jfr_field *go_to(const struct weft__jfr *jfr, const struct weft__jfr_class *class,
					   const char *name, struct weft__in *in)
{
	uint32_t i;

	for (i = 0; class && i < class->n && !in->bad; i++) {
		const struct weft__jfr_field *field = &jfr->fields[class->first + i];

		if (weft__jfr_same(field->name, name))
			return field;
		weft__jfr_skip_field(jfr, field, in, 0);
	}
	return NULL;
}

/* A field of a value in a pool: a number, which may be one in a pool again. 0: there is none. */
static uint64_t number_in(const struct weft__jfr *jfr, enum weft__jfr_pool pool, uint64_t number, const char *name)
{
	struct weft__in in;
	const struct weft__jfr_field *field;
	uint64_t value;

	if (!find_value(jfr, pool, number, &in))
		return 0;
	field = go_to(jfr, class_of(jfr, pool), name, &in);
	value = field && !field->array ? weft__jfr_varint(&in) : 0;
	return in.bad ? 0 : value;
}

static struct weft__jfr_text text_in(const struct weft__jfr *jfr, enum weft__jfr_pool pool, uint64_t number,
				     const char *name)
{
	struct weft__jfr_text text = {(const uint8_t *)"", 0};
	struct weft__in in;

	if (find_value(jfr, pool, number, &in) && go_to(jfr, class_of(jfr, pool), name, &in) &&
	    !text_value(jfr, &in, 0, &text))
		text = (struct weft__jfr_text){(const uint8_t *)"", 0};
	return text;
}

static struct weft__jfr_text symbol(const struct weft__jfr *jfr, uint64_t number)
{
	return text_in(jfr, WEFT__JFR_POOL_SYMBOL, number, "string");
}

static void put_method(const struct weft__jfr *jfr, uint64_t method, struct weft__buf *to)
{
	uint64_t class = number_in(jfr, WEFT__JFR_POOL_METHOD, method, "type");
	struct weft__jfr_text library = symbol(jfr, number_in(jfr, WEFT__JFR_POOL_CLASS, class, "name"));
	struct weft__jfr_text name = symbol(jfr, number_in(jfr, WEFT__JFR_POOL_METHOD, method, "name"));

	weft__buf_put(to, library.at, strnlen((const char *)library.at, library.n));
	if (library.n)
		weft__buf_u8(to, '.');
	if (name.n)
		weft__buf_put(to, name.at, strnlen((const char *)name.at, name.n));
	else
		weft__buf_put(to, "?", 1);
	weft__buf_u8(to, 0);
}

bool weft__jfr_stack(const struct weft__jfr *jfr, uint64_t stack, struct weft__buf *to)
{
	const struct weft__jfr_field *frames, *field;
	const struct weft__jfr_class *frame;
	struct weft__in in;
	uint64_t n;
	uint32_t i;

	if (!find_value(jfr, WEFT__JFR_POOL_STACK, stack, &in))
		return false;
	frames = go_to(jfr, class_of(jfr, WEFT__JFR_POOL_STACK), "frames", &in);
	frame = frames && frames->array && !frames->pooled ? weft__jfr_class(jfr, frames->type) : NULL;
	if (!frame)
		return false;
	n = weft__jfr_varint(&in);
	for (n = n < FRAMES_MAX ? n : FRAMES_MAX; n && !in.bad; n--)
		for (i = 0; i < frame->n; i++) {
			field = &jfr->fields[frame->first + i];
			if (field->pooled && !field->array && weft__jfr_same(field->name, "method"))
				put_method(jfr, weft__jfr_varint(&in), to);
			else
				weft__jfr_skip_field(jfr, field, &in, 0);
		}
	return !in.bad && !to->oom;
}

static void set_thread(const struct weft__jfr *jfr, uint64_t thread, struct weft__jfr_event *to)
{
	to->tid = (int64_t)number_in(jfr, WEFT__JFR_POOL_THREAD, thread, "osThreadId");
	to->thread_name = text_in(jfr, WEFT__JFR_POOL_THREAD, thread, "osName");
}

/* A text that stands there, or is in a pool of texts. */
static struct weft__jfr_text text_field(const struct weft__jfr *jfr, const struct weft__jfr_field *field,
					struct weft__in *in)
{
	struct weft__jfr_text text = {(const uint8_t *)"", 0};

	if (field->pooled)
		return text_in(jfr, WEFT__JFR_POOL_USER, weft__jfr_varint(in), "name");
	if (!text_value(jfr, in, 0, &text))
		text = (struct weft__jfr_text){(const uint8_t *)"", 0};
	return text;
}

static void read_field(const struct weft__jfr *jfr, const struct weft__jfr_field *field, struct weft__in *in,
		       struct weft__jfr_event *to)
{
	const struct weft__jfr_class *type = weft__jfr_class(jfr, field->type);
	struct weft__jfr_text name = field->name;
	bool text = type && weft__jfr_same(type->name, "java.lang.String");

	if (field->array) {
		weft__jfr_skip_field(jfr, field, in, 0);
	} else if (weft__jfr_same(name, "startTime")) {
		to->ticks = weft__jfr_varint(in);
		to->start_ns = weft__jfr_ns(jfr, to->ticks);
	} else if (field->pooled && (weft__jfr_same(name, "sampledThread") || weft__jfr_same(name, "eventThread"))) {
		set_thread(jfr, weft__jfr_varint(in), to);
	} else if (field->pooled && weft__jfr_same(name, "stackTrace")) {
		to->stack = weft__jfr_varint(in);
	} else if (field->pooled && weft__jfr_same(name, "state")) {
		to->sleeping = weft__jfr_same(text_in(jfr, WEFT__JFR_POOL_STATE, weft__jfr_varint(in), "name"),
					      "STATE_SLEEPING");
	} else if (weft__jfr_same(name, "samples")) {
		to->samples = weft__jfr_varint(in);
	} else if (weft__jfr_same(name, "timeSpan")) {
		to->span_ns = weft__jfr_ns(jfr, jfr->start_ticks + weft__jfr_varint(in)) - jfr->start_ns;
	} else if ((field->pooled && weft__jfr_same(name, "type")) || (text && weft__jfr_same(name, "name"))) {
		to->name = text_field(jfr, field, in);
	} else if (text && (weft__jfr_same(name, "data") || weft__jfr_same(name, "value"))) {
		to->data = text_field(jfr, field, in);
	} else {
		weft__jfr_skip_field(jfr, field, in, 0);
	}
}

static bool read_event(const struct weft__jfr *jfr, const struct weft__jfr_class *class, struct weft__in *in,
		       struct weft__jfr_event *to)
{
	uint32_t i;

	*to = (struct weft__jfr_event){.kind = (enum weft__jfr_kind)(class->event - 1), .samples = 1};
	for (i = 0; i < class->n && !in->bad; i++)
		read_field(jfr, &jfr->fields[class->first + i], in, to);
	return !in->bad;
}

int weft__jfr_events(const struct weft__jfr *jfr, int (*fn)(void *data, const struct weft__jfr_event *event),
		     void *data, struct weft_error *err)
{
	size_t at = HEADER_BYTES;
	int r = 0;

	while (at < jfr->chunk_bytes && !r) {
		struct weft__in in = weft__in(jfr->chunk + at, jfr->chunk_bytes - at);
		uint64_t size = weft__jfr_varint(&in), type = weft__jfr_varint(&in);
		const struct weft__jfr_class *class = weft__jfr_class(jfr, type);
		struct weft__jfr_event event;

		if (size == 0 || size > jfr->chunk_bytes - at)
			return weft__fail(err, -WEFT_E_FORMAT, "an event at byte %zu of its chunk is damaged", at);
		in.end = jfr->chunk + at + size;
		if (in.p > in.end)
			in.p = in.end;
		if (type > 1 && class && class->event) {
			if (!read_event(jfr, class, &in, &event))
				return weft__fail(err, -WEFT_E_FORMAT, "an event at byte %zu of its chunk is damaged",
						  at);
			r = fn(data, &event);
		}
		at += (size_t)size;
	}
	return r;
}
