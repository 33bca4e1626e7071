/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles: ExportProfilesServiceRequest of opentelemetry-proto v1.10.0 and v1.11.0, package
 * opentelemetry.proto.profiles.v1development, status alpha. Field numbers may change with the next version, so they
 * are in this file only. A profile has one sample type; all share the dictionary, whose tables have their zero value
 * first. Attributes and links are numbered as samples need them, so the dictionary comes last. */
#include <stdio.h>

#include "export/aggregate.h"
#include "export/proto.h"
#include "segment/hash.h"
#include "weft/version.h"

enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES = 2 };
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2 };
enum { RESOURCE_ATTRIBUTES = 1, SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_STRING = 1, ANY_INT = 3, ANY_ARRAY = 5, ARRAY_VALUES = 1 };
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME_UNIX_NANO = 3,
	PROFILE_DURATION_NANO = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_PROFILE_ID = 7,
	PROFILE_ATTRIBUTE_INDICES = 11,
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_STACK_INDEX = 1, SAMPLE_ATTRIBUTE_INDICES = 2, SAMPLE_LINK_INDEX = 3, SAMPLE_VALUES = 4 };
enum {
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
};
enum {
	MAPPING_START = 1,
	MAPPING_LIMIT = 2,
	MAPPING_OFFSET = 3,
	MAPPING_FILENAME = 4,
	MAPPING_ATTRIBUTE_INDICES = 5,
};
enum { LOCATION_MAPPING_INDEX = 1, LOCATION_ADDRESS = 2, LOCATION_LINES = 3, LOCATION_ATTRIBUTE_INDICES = 4 };
enum { LINE_FUNCTION_INDEX = 1, LINE_LINE = 2 };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME = 2, FUNCTION_FILENAME = 3 };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2 };
enum { STACK_LOCATION_INDICES = 1 };

enum attribute_kind { ATTRIBUTE_TEXT, ATTRIBUTE_INT, ATTRIBUTE_NOTES };

/* Attributes and links are compared by their bytes, so there is no padding. */
struct attribute {
	uint32_t key, kind;
	uint64_t value; /* a text's number, or itself */
};
struct link {
	uint64_t trace_hi, trace_lo, span;
};

#define SAMPLE_ATTRIBUTES_MAX 64u

struct otlp {
	const struct weft__aggregate *agg;
	struct weft__buf *out;
	struct weft__keys more; /* texts that the aggregate does not have, numbered behind its own */
	struct weft__keys attributes, links;
	uint32_t indices[SAMPLE_ATTRIBUTES_MAX];
	size_t n_indices;
	bool oom;
};

static uint32_t text(struct otlp *o, const char *of, size_t n)
{
	char copy[512];
	uint32_t at;

	if (n >= sizeof(copy))
		n = sizeof(copy) - 1;
	memcpy(copy, of, n);
	copy[n] = 0;
	at = weft__keys_find(&o->agg->texts, copy, n + 1);
	if (at != WEFT__MAP_NONE)
		return at;
	if (weft__keys_add(&o->more, copy, n + 1, &at) < 0) {
		o->oom = true;
		return 0;
	}
	return (uint32_t)o->agg->texts.n + at;
}

static uint32_t name(struct otlp *o, const char *of)
{
	return text(o, of, strlen(of));
}

static const char *text_of(const struct otlp *o, uint32_t number)
{
	if (number < o->agg->texts.n)
		return weft__aggregate_text(o->agg, number);
	return weft__keys_at(&o->more, number - (uint32_t)o->agg->texts.n, NULL);
}

/* Number in the table, where 0 is the zero value. */
static uint32_t attribute(struct otlp *o, uint32_t key, enum attribute_kind kind, uint64_t value)
{
	struct attribute of = {key, kind, value};
	uint32_t number = 0;

	if (weft__keys_add(&o->attributes, &of, sizeof(of), &number) < 0)
		o->oom = true;
	return number + 1;
}

static void index_add(struct otlp *o, uint32_t number)
{
	if (o->n_indices < SAMPLE_ATTRIBUTES_MAX)
		o->indices[o->n_indices++] = number;
}

static void add_text(struct otlp *o, const char *key, uint32_t value)
{
	if (value)
		index_add(o, attribute(o, name(o, key), ATTRIBUTE_TEXT, value));
}

static void add_number(struct otlp *o, const char *key, uint64_t value)
{
	if (value)
		index_add(o, attribute(o, name(o, key), ATTRIBUTE_INT, value));
}

/* Writes and forgets those that were added. */
static void put_indices(struct otlp *o, uint32_t field)
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

static void add_own(struct otlp *o, uint32_t labels)
{
	const char *at = weft__aggregate_text(o->agg, labels);

	while (*at) {
		const char *key = at, *value;
		size_t key_bytes, value_bytes;

		at = weft__labels_next(at, &key_bytes, &value, &value_bytes);
		if (key_bytes && value_bytes)
			index_add(o,
				  attribute(o, text(o, key, key_bytes), ATTRIBUTE_TEXT, text(o, value, value_bytes)));
	}
}

static uint32_t link_of(struct otlp *o, const struct weft__row_labels *labels)
{
	struct link of = {labels->trace_hi, labels->trace_lo, labels->span};
	uint32_t number = 0;

	if (!of.trace_hi && !of.trace_lo && !of.span)
		return 0;
	if (weft__keys_add(&o->links, &of, sizeof(of), &number) < 0)
		o->oom = true;
	return number + 1;
}

static void sample_labels(struct otlp *o, const struct weft__row_labels *labels)
{
	char root[24];

	add_number(o, "thread.id", labels->tid);
	add_text(o, "thread.name", labels->thread);
	add_text(o, "weft.worker", labels->worker);
	add_text(o, "weft.state", labels->state);
	add_text(o, "weft.where", labels->where);
	add_text(o, "weft.location", labels->location);
	add_text(o, "weft.wait", labels->wait);
	add_text(o, "weft.wait_for", labels->wait_for);
	if (labels->root) {
		snprintf(root, sizeof(root), "%016llx", (unsigned long long)labels->root);
		add_text(o, "local_root_span_id", name(o, root));
	}
	add_text(o, "trace.endpoint", labels->endpoint);
	add_own(o, labels->labels);
	if (o->agg->n_recordings > 1)
		add_number(o, "process.pid", labels->pid);
	put_indices(o, SAMPLE_ATTRIBUTE_INDICES);
}

static void sample_value(struct otlp *o, int64_t value)
{
	size_t begin = proto_begin(o->out, SAMPLE_VALUES);

	weft__buf_varint(o->out, (uint64_t)value);
	proto_end(o->out, begin);
}

static void samples(struct otlp *o, size_t type)
{
	const struct weft__sums *sums = &o->agg->sums;
	size_t i, begin;

	for (i = 0; i < sums->n_rows; i++) {
		int64_t value = sums->values[i * sums->n_values + type];
		struct weft__row_labels labels;

		if (!value)
			continue;
		begin = proto_begin(o->out, PROFILE_SAMPLES);
		weft__aggregate_labels(o->agg, sums->rows[i].labels, &labels);
		proto_u64(o->out, SAMPLE_STACK_INDEX, (uint64_t)sums->rows[i].stack + 1);
		sample_labels(o, &labels);
		proto_u64(o->out, SAMPLE_LINK_INDEX, link_of(o, &labels));
		sample_value(o, value);
		proto_end(o->out, begin);
	}
	if (sums->dropped[type]) {
		begin = proto_begin(o->out, PROFILE_SAMPLES);
		proto_u64(o->out, SAMPLE_STACK_INDEX, sums->stacks.n + 1);
		sample_value(o, sums->dropped[type]);
		proto_end(o->out, begin);
	}
}

static void value_type(struct otlp *o, uint32_t field, const char *type, const char *unit)
{
	size_t begin = proto_begin(o->out, field);

	proto_u64(o->out, VALUE_TYPE_TYPE, name(o, type));
	proto_u64(o->out, VALUE_TYPE_UNIT, name(o, unit));
	proto_end(o->out, begin);
}

/* The same profile has the same id when it is sent again. */
static void profile_id(struct otlp *o, size_t type)
{
	uint64_t of[4] = {o->agg->start_unix_ns, o->agg->end_unix_ns, type, o->agg->totals[type]}, id[2];

	id[0] = weft__hash(of, sizeof(of));
	id[1] = weft__hash2(o->agg->sums.labels.bytes, o->agg->sums.labels.n_bytes, id, sizeof(id[0]));
	proto_put_bytes(o->out, PROFILE_PROFILE_ID, id, sizeof(id));
}

static void profile(struct otlp *o, size_t type)
{
	const struct weft__value_name *of = &weft__value_names[type];
	size_t begin = proto_begin(o->out, SCOPE_PROFILES_PROFILES);

	value_type(o, PROFILE_SAMPLE_TYPE, of->type, of->unit);
	samples(o, type);
	proto_fixed64(o->out, PROFILE_TIME_UNIX_NANO, o->agg->start_unix_ns);
	proto_u64(o->out, PROFILE_DURATION_NANO, o->agg->end_unix_ns - o->agg->start_unix_ns);
	if (of->what == WEFT__EXPORT_CPU && o->agg->period_ns) {
		value_type(o, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		proto_u64(o->out, PROFILE_PERIOD, o->agg->period_ns);
	}
	profile_id(o, type);
	if (o->agg->n_comments) {
		index_add(o, attribute(o, name(o, "weft.notes"), ATTRIBUTE_NOTES, 0));
		put_indices(o, PROFILE_ATTRIBUTE_INDICES);
	}
	proto_end(o->out, begin);
}

static void resource_text(struct otlp *o, const char *key, const char *value)
{
	size_t pair = proto_begin(o->out, RESOURCE_ATTRIBUTES), any;

	proto_text(o->out, KEY_VALUE_KEY, key);
	any = proto_begin(o->out, KEY_VALUE_VALUE);
	proto_put_bytes(o->out, ANY_STRING, value, strlen(value));
	proto_end(o->out, any);
	proto_end(o->out, pair);
}

static const char *resource_key(const char *key)
{
	static const struct {
		const char *tag, *key;
	} names[] = {{"service", "service.name"},
		     {"env", "deployment.environment.name"},
		     {"version", "service.version"},
		     {"host", "host.name"},
		     {"runtime-id", "service.instance.id"}};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].tag, key) == 0)
			return names[i].key;
	return key;
}

static void resource(struct otlp *o)
{
	const struct weft__tags *tags = &o->agg->tags;
	size_t begin = proto_begin(o->out, RESOURCE_PROFILES_RESOURCE), pair, any, i;

	for (i = 0; i < tags->n; i++)
		resource_text(o, resource_key(tags->at[i].key), tags->at[i].value);
	if (o->agg->n_recordings == 1 && o->agg->pid) {
		pair = proto_begin(o->out, RESOURCE_ATTRIBUTES);
		proto_text(o->out, KEY_VALUE_KEY, "process.pid");
		any = proto_begin(o->out, KEY_VALUE_VALUE);
		proto_u64(o->out, ANY_INT, o->agg->pid);
		proto_end(o->out, any);
		proto_end(o->out, pair);
	}
	proto_end(o->out, begin);
}

static void resource_profiles(struct otlp *o)
{
	size_t begin = proto_begin(o->out, REQUEST_RESOURCE_PROFILES), scoped, scope, i;
	uint32_t values = weft__aggregate_values(o->agg);

	resource(o);
	scoped = proto_begin(o->out, RESOURCE_PROFILES_SCOPE_PROFILES);
	scope = proto_begin(o->out, SCOPE_PROFILES_SCOPE);
	proto_text(o->out, SCOPE_NAME, "weft");
	proto_text(o->out, SCOPE_VERSION, WEFT_VERSION_STRING);
	proto_end(o->out, scope);
	for (i = 0; i < WEFT__N_VALUES; i++)
		if (values >> i & 1)
			profile(o, i);
	proto_end(o->out, scoped);
	proto_end(o->out, begin);
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
		add_text(o, "process.executable.build_id.gnu", m->build_id);
		put_indices(o, MAPPING_ATTRIBUTE_INDICES);
		proto_end(o->out, begin);
	}
}

static const char *frame_type(const struct otlp *o, const struct weft__mapping *mapping)
{
	if (mapping->kind == WEFT_MODULE_NAMED && !strcmp(text_of(o, mapping->path), "[ruby]"))
		return "ruby";
	return mapping->kind == WEFT_MODULE_KERNEL ? "kernel" : "native";
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
	if (place->mapping)
		add_text(o, "profile.frame.type", name(o, frame_type(o, &o->agg->mappings[place->mapping - 1])));
	put_indices(o, LOCATION_ATTRIBUTE_INDICES);
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
		function(o, name(o, "[dropped: too many stacks]"), 0);
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

static void strings(struct otlp *o, const struct weft__keys *keys)
{
	uint32_t i;

	for (i = 0; i < keys->n; i++) {
		size_t n;
		const char *of = weft__keys_at(keys, i, &n);

		proto_put_bytes(o->out, DICTIONARY_STRING, of, n - 1);
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
			proto_text(o->out, ANY_STRING, text_of(o, (uint32_t)of.value));
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

void weft__otlp_encode(const struct weft__aggregate *agg, struct weft__buf *out)
{
	struct otlp o = {.agg = agg, .out = out};
	size_t begin;

	resource_profiles(&o);
	begin = proto_begin(out, REQUEST_DICTIONARY);
	mappings(&o);
	locations(&o);
	functions(&o);
	links(&o);
	strings(&o, &agg->texts);
	strings(&o, &o.more);
	attributes(&o);
	stacks(&o);
	proto_end(out, begin);
	out->oom |= o.oom;
	weft__keys_fini(&o.more);
	weft__keys_fini(&o.attributes);
	weft__keys_fini(&o.links);
}
