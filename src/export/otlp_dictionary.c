/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp.h"

/* Attributes and links are compared by their bytes, so there is no padding. */
struct attribute {
	uint32_t key, kind;
	uint64_t value; /* a text's number, or itself */
};
struct link {
	uint64_t trace_hi, trace_lo, span;
};

/* Number in a table, where 0 is the zero value. */
static uint32_t number_of(struct otlp *o, struct weft__keys *keys, const void *of, size_t bytes)
{
	uint32_t number = 0;

	if (weft__keys_add(keys, of, bytes, &number) < 0)
		o->oom = true;
	return number + 1;
}

void weft__otlp_attribute(struct otlp *o, uint32_t key, enum attribute_kind kind, uint64_t value)
{
	struct attribute of = {key, kind, value};

	if (o->n_indices < SAMPLE_ATTRIBUTES_MAX)
		o->indices[o->n_indices++] = number_of(o, &o->attributes, &of, sizeof(of));
}

void weft__otlp_text(struct otlp *o, const char *key, uint32_t value)
{
	if (value)
		weft__otlp_attribute(o, weft__string_name(&o->strings, key), ATTRIBUTE_TEXT, value);
}

void weft__otlp_number(struct otlp *o, const char *key, uint64_t value)
{
	if (value)
		weft__otlp_attribute(o, weft__string_name(&o->strings, key), ATTRIBUTE_INT, value);
}

void weft__otlp_indices(struct otlp *o, uint32_t field)
{
	size_t begin, i;

	if (!o->n_indices)
		return;
	begin = proto_begin(o->out, field);
	for (i = 0; i < o->n_indices; i++)
		weft__buf_varint(o->out, o->indices[i]);
	proto_end(o->out, begin);
	o->n_indices = 0;
}

uint32_t weft__otlp_link(struct otlp *o, const struct weft__row_labels *labels)
{
	struct link of = {labels->trace_hi, labels->trace_lo, labels->span};

	if (!of.trace_hi && !of.trace_lo && !of.span)
		return 0;
	return number_of(o, &o->links, &of, sizeof(of));
}

static void mappings(struct otlp *o)
{
	size_t begin, i;

	proto_put_bytes(o->out, DICTIONARY_MAPPING, "", 0);
	for (i = 0; i < o->agg->n_mappings; i++) {
		const struct weft__mapping *m = &o->agg->mappings[i];

		begin = proto_begin(o->out, DICTIONARY_MAPPING);
		proto_u64(o->out, MAPPING_START, m->start);
		proto_u64(o->out, MAPPING_LIMIT, m->end);
		proto_u64(o->out, MAPPING_OFFSET, m->offset);
		proto_u64(o->out, MAPPING_FILENAME, m->path);
		weft__otlp_text(o, "process.executable.build_id.gnu", m->build_id);
		weft__otlp_indices(o, MAPPING_ATTRIBUTE_INDICES);
		proto_end(o->out, begin);
	}
}

static void location(struct otlp *o, const struct weft__place *place)
{
	size_t begin = proto_begin(o->out, DICTIONARY_LOCATION), line;
	uint32_t i;

	proto_u64(o->out, LOCATION_MAPPING_INDEX, place->mapping);
	proto_u64(o->out, LOCATION_ADDRESS, place->address);
	for (i = 0; i < place->n; i++) {
		line = proto_begin(o->out, LOCATION_LINES);
		proto_u64(o->out, LINE_FUNCTION_INDEX, (uint64_t)o->agg->lines[place->first + i].function + 1);
		proto_u64(o->out, LINE_LINE, o->agg->lines[place->first + i].line);
		proto_end(o->out, line);
	}
	if (place->mapping) {
		bool kernel = o->agg->mappings[place->mapping - 1].kind == WEFT_MODULE_KERNEL;

		weft__otlp_text(o, "profile.frame.type", weft__string_name(&o->strings, kernel ? "kernel" : "native"));
	}
	weft__otlp_indices(o, LOCATION_ATTRIBUTE_INDICES);
	proto_end(o->out, begin);
}

static void locations(struct otlp *o)
{
	size_t begin, line, i;

	proto_put_bytes(o->out, DICTIONARY_LOCATION, "", 0);
	for (i = 0; i < o->agg->n_places; i++)
		location(o, &o->agg->places[i]);
	if (!weft__aggregate_dropped(o->agg))
		return;
	begin = proto_begin(o->out, DICTIONARY_LOCATION);
	line = proto_begin(o->out, LOCATION_LINES);
	proto_u64(o->out, LINE_FUNCTION_INDEX, o->agg->functions.n + 1);
	proto_end(o->out, line);
	proto_end(o->out, begin);
}

static void function(struct otlp *o, uint32_t of, uint32_t file)
{
	size_t begin = proto_begin(o->out, DICTIONARY_FUNCTION);

	proto_u64(o->out, FUNCTION_NAME, of);
	proto_u64(o->out, FUNCTION_SYSTEM_NAME, of);
	proto_u64(o->out, FUNCTION_FILENAME, file);
	proto_end(o->out, begin);
}

static void functions(struct otlp *o)
{
	uint32_t i;

	proto_put_bytes(o->out, DICTIONARY_FUNCTION, "", 0);
	for (i = 0; i < o->agg->functions.n; i++) {
		struct weft__place_function of;

		memcpy(&of, weft__keys_at(&o->agg->functions, i, NULL), sizeof(of));
		function(o, of.name, of.file);
	}
	if (weft__aggregate_dropped(o->agg))
		function(o, weft__string_name(&o->strings, "[dropped: too many stacks]"), 0);
}

static void put_big_endian(uint8_t *to, uint64_t v)
{
	v = __builtin_bswap64(v);
	put_u64(to, v);
}

static void put_link(struct otlp *o, const struct link *of)
{
	size_t begin = proto_begin(o->out, DICTIONARY_LINK);
	uint8_t trace[16], span[8];

	put_big_endian(trace, of->trace_hi);
	put_big_endian(trace + 8, of->trace_lo);
	put_big_endian(span, of->span);
	proto_put_bytes(o->out, LINK_TRACE_ID, trace, sizeof(trace));
	proto_put_bytes(o->out, LINK_SPAN_ID, span, sizeof(span));
	proto_end(o->out, begin);
}

static void links(struct otlp *o)
{
	struct link of = {0};
	uint32_t i;

	put_link(o, &of);
	for (i = 0; i < o->links.n; i++) {
		memcpy(&of, weft__keys_at(&o->links, i, NULL), sizeof(of));
		put_link(o, &of);
	}
}

static void notes(struct otlp *o)
{
	size_t array = proto_begin(o->out, ANY_ARRAY), any, i;

	for (i = 0; i < o->agg->n_comments; i++) {
		any = proto_begin(o->out, ARRAY_VALUES);
		proto_text(o->out, ANY_STRING, weft__aggregate_text(o->agg, o->agg->comments[i]));
		proto_end(o->out, any);
	}
	proto_end(o->out, array);
}

static void attributes(struct otlp *o)
{
	size_t begin, any;
	uint32_t i;

	proto_put_bytes(o->out, DICTIONARY_ATTRIBUTE, "", 0);
	for (i = 0; i < o->attributes.n; i++) {
		struct attribute of;

		memcpy(&of, weft__keys_at(&o->attributes, i, NULL), sizeof(of));
		begin = proto_begin(o->out, DICTIONARY_ATTRIBUTE);
		proto_u64(o->out, ATTRIBUTE_KEY, of.key);
		any = proto_begin(o->out, ATTRIBUTE_VALUE);
		if (of.kind == ATTRIBUTE_NOTES)
			notes(o);
		else if (of.kind == ATTRIBUTE_INT)
			proto_put_u64(o->out, ANY_INT, of.value);
		else
			proto_text(o->out, ANY_STRING, weft__string_at(&o->strings, (uint32_t)of.value));
		proto_end(o->out, any);
		proto_end(o->out, begin);
	}
}

static void stack(struct otlp *o, const uint32_t *frames, size_t n)
{
	size_t begin = proto_begin(o->out, DICTIONARY_STACK), indices = proto_begin(o->out, STACK_LOCATION_INDICES), i;

	for (i = 0; i < n; i++)
		weft__buf_varint(o->out, (uint64_t)frames[i] + 1);
	proto_end(o->out, indices);
	proto_end(o->out, begin);
}

static void stacks(struct otlp *o)
{
	uint32_t i, last = (uint32_t)o->agg->n_places;

	proto_put_bytes(o->out, DICTIONARY_STACK, "", 0);
	for (i = 0; i < o->agg->sums.stacks.n; i++) {
		size_t n;
		const uint32_t *frames = weft__sums_frames(&o->agg->sums, i, &n);

		stack(o, frames, n);
	}
	if (weft__aggregate_dropped(o->agg))
		stack(o, &last, 1);
}

void weft__otlp_dictionary(struct otlp *o)
{
	size_t begin = proto_begin(o->out, REQUEST_DICTIONARY);

	mappings(o);
	locations(o);
	functions(o);
	links(o);
	weft__strings_write(&o->strings, o->out, DICTIONARY_STRING);
	attributes(o);
	stacks(o);
	proto_end(o->out, begin);
}
