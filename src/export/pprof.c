/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of google/pprof (profile.proto), which go tool pprof, Pyroscope, Parca and Datadog read. Ids are from 1
 * on; texts are numbers in a table whose first is "". Labels have the names that Datadog and Pyroscope look for. */
#include <stdio.h>

#include "export/aggregate.h"
#include "export/proto.h"
#include "export/string_table.h"

/* message Profile */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3 };
enum {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	MAPPING_HAS_INLINE_FRAMES = 10,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION_ID = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILENAME = 4 };

/* Names of labels: looked up once, since each sample has several. */
#define KEYS(X)                                                                                                        \
	X(THREAD_ID, "thread id")                                                                                      \
	X(THREAD_NAME, "thread name")                                                                                  \
	X(WORKER, "worker")                                                                                            \
	X(STATE, "state")                                                                                              \
	X(WHERE, "where")                                                                                              \
	X(LOCATION, "location")                                                                                        \
	X(WAIT, "wait")                                                                                                \
	X(WAIT_FOR, "wait for")                                                                                        \
	X(SPAN, "span id")                                                                                             \
	X(ROOT, "local root span id")                                                                                  \
	X(SPAN_HEX, "span_id")                                                                                         \
	X(TRACE, "trace id")                                                                                           \
	X(ENDPOINT, "trace endpoint")                                                                                  \
	X(PROCESS, "process_id")
enum key {
#define X(NAME, text) KEY_##NAME,
	KEYS(X)
#undef X
		N_KEYS
};

struct pprof {
	const struct weft__aggregate *agg;
	struct weft__buf *out;
	struct weft__strings strings;
	uint32_t values;
	uint64_t keys[N_KEYS]; /* texts */
};

static void value_type(struct pprof *p, uint32_t field, const char *type, const char *unit)
{
	size_t begin = proto_begin(p->out, field);

	proto_u64(p->out, VALUE_TYPE_TYPE, weft__string_name(&p->strings, type));
	proto_u64(p->out, VALUE_TYPE_UNIT, weft__string_name(&p->strings, unit));
	proto_end(p->out, begin);
}

static void label_text(struct pprof *p, enum key key, uint64_t value)
{
	size_t begin;

	if (!value)
		return;
	begin = proto_begin(p->out, SAMPLE_LABEL);
	proto_u64(p->out, LABEL_KEY, p->keys[key]);
	proto_u64(p->out, LABEL_STR, value);
	proto_end(p->out, begin);
}

static void label_number(struct pprof *p, enum key key, uint64_t value)
{
	size_t begin;

	if (!value)
		return;
	begin = proto_begin(p->out, SAMPLE_LABEL);
	proto_u64(p->out, LABEL_KEY, p->keys[key]);
	proto_u64(p->out, LABEL_NUM, value);
	proto_end(p->out, begin);
}

/* Ids as Datadog wants them, a number, and as Pyroscope does, 16 hex digits. */
static void label_ids(struct pprof *p, const struct weft__row_labels *labels)
{
	bool series = p->agg->opts->series;
	char hex[40];

	label_number(p, KEY_SPAN, series ? 0 : labels->span);
	label_number(p, KEY_ROOT, series ? 0 : labels->root);
	if (labels->span) {
		snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)labels->span);
		label_text(p, KEY_SPAN_HEX, weft__string_name(&p->strings, hex));
	}
	if (!series && (labels->trace_hi || labels->trace_lo)) {
		snprintf(hex, sizeof(hex), "%016llx%016llx", (unsigned long long)labels->trace_hi,
			 (unsigned long long)labels->trace_lo);
		label_text(p, KEY_TRACE, weft__string_name(&p->strings, hex));
	}
}

/* The name of a label, as the store takes it. */
static uint64_t key_text(struct pprof *p, const char *key, size_t n)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	char name[256];
	size_t i;

	if (!p->agg->opts->series || n >= sizeof(name))
		return weft__string_add(&p->strings, key, n);
	for (i = 0; i < n; i++)
		name[i] = key[i] && strchr(allowed, key[i]) ? key[i] : '_';
	return weft__string_add(&p->strings, name, n);
}

static void label_own(struct pprof *p, uint32_t labels)
{
	const char *at = weft__aggregate_text(p->agg, labels);

	while (*at) {
		const char *key = at, *value;
		size_t key_bytes, value_bytes, begin;

		at = weft__labels_next(at, &key_bytes, &value, &value_bytes);
		if (!key_bytes || !value_bytes)
			continue;
		begin = proto_begin(p->out, SAMPLE_LABEL);
		proto_u64(p->out, LABEL_KEY, key_text(p, key, key_bytes));
		proto_u64(p->out, LABEL_STR, weft__string_add(&p->strings, value, value_bytes));
		proto_end(p->out, begin);
	}
}

static void sample_labels(struct pprof *p, uint32_t set)
{
	struct weft__row_labels labels;

	weft__aggregate_labels(p->agg, set, &labels);
	label_number(p, KEY_THREAD_ID, labels.tid);
	label_text(p, KEY_THREAD_NAME, labels.thread);
	label_text(p, KEY_WORKER, labels.worker);
	label_text(p, KEY_STATE, labels.state);
	label_text(p, KEY_WHERE, labels.where);
	label_text(p, KEY_LOCATION, labels.location);
	label_text(p, KEY_WAIT, labels.wait);
	label_text(p, KEY_WAIT_FOR, labels.wait_for);
	label_ids(p, &labels);
	label_text(p, KEY_ENDPOINT, labels.endpoint);
	label_own(p, labels.labels);
	if (p->agg->n_recordings > 1)
		label_number(p, KEY_PROCESS, labels.pid);
}

static void sample_values(struct pprof *p, const int64_t *values)
{
	size_t begin = proto_begin(p->out, SAMPLE_VALUE), i;

	for (i = 0; i < WEFT__N_VALUES; i++)
		if (p->values >> i & 1)
			weft__buf_varint(p->out, (uint64_t)values[i]);
	proto_end(p->out, begin);
}

static void sample(struct pprof *p, size_t row)
{
	const struct weft__sums *sums = &p->agg->sums;
	size_t begin = proto_begin(p->out, PROFILE_SAMPLE), ids = proto_begin(p->out, SAMPLE_LOCATION_ID), n, i;
	const uint32_t *frames = weft__sums_frames(sums, sums->rows[row].stack, &n);

	for (i = 0; i < n; i++)
		weft__buf_varint(p->out, (uint64_t)frames[i] + 1);
	proto_end(p->out, ids);
	sample_values(p, sums->values + row * sums->n_values);
	sample_labels(p, sums->rows[row].labels);
	proto_end(p->out, begin);
}

/* A sample, a place and a function that stand for what did not fit: their ids are behind all others. */
static void dropped(struct pprof *p)
{
	size_t begin = proto_begin(p->out, PROFILE_SAMPLE), line;

	proto_u64(p->out, SAMPLE_LOCATION_ID, p->agg->n_places + 1);
	sample_values(p, p->agg->sums.dropped);
	proto_end(p->out, begin);
	begin = proto_begin(p->out, PROFILE_LOCATION);
	proto_u64(p->out, LOCATION_ID, p->agg->n_places + 1);
	line = proto_begin(p->out, LOCATION_LINE);
	proto_u64(p->out, LINE_FUNCTION_ID, p->agg->functions.n + 1);
	proto_end(p->out, line);
	proto_end(p->out, begin);
	begin = proto_begin(p->out, PROFILE_FUNCTION);
	proto_u64(p->out, FUNCTION_ID, p->agg->functions.n + 1);
	proto_u64(p->out, FUNCTION_NAME, weft__string_name(&p->strings, "[dropped: too many stacks]"));
	proto_u64(p->out, FUNCTION_SYSTEM_NAME, weft__string_name(&p->strings, "[dropped: too many stacks]"));
	proto_end(p->out, begin);
}

static void mapping(struct pprof *p, size_t i)
{
	const struct weft__mapping *m = &p->agg->mappings[i];
	size_t begin = proto_begin(p->out, PROFILE_MAPPING);

	proto_u64(p->out, MAPPING_ID, i + 1);
	proto_u64(p->out, MAPPING_START, m->start);
	proto_u64(p->out, MAPPING_LIMIT, m->end);
	proto_u64(p->out, MAPPING_OFFSET, m->offset);
	proto_u64(p->out, MAPPING_FILENAME, m->path);
	proto_u64(p->out, MAPPING_BUILD_ID, m->build_id);
	proto_u64(p->out, MAPPING_HAS_FUNCTIONS, m->has_functions);
	proto_u64(p->out, MAPPING_HAS_FILENAMES, m->has_files);
	proto_u64(p->out, MAPPING_HAS_LINE_NUMBERS, m->has_files);
	proto_u64(p->out, MAPPING_HAS_INLINE_FRAMES, m->has_inlined);
	proto_end(p->out, begin);
}

static void location(struct pprof *p, size_t i)
{
	const struct weft__place *place = &p->agg->places[i];
	size_t begin = proto_begin(p->out, PROFILE_LOCATION), line;
	uint32_t j;

	proto_u64(p->out, LOCATION_ID, i + 1);
	proto_u64(p->out, LOCATION_MAPPING_ID, place->mapping);
	proto_u64(p->out, LOCATION_ADDRESS, place->address);
	for (j = 0; j < place->n; j++) {
		line = proto_begin(p->out, LOCATION_LINE);
		proto_u64(p->out, LINE_FUNCTION_ID, (uint64_t)p->agg->lines[place->first + j].function + 1);
		proto_u64(p->out, LINE_LINE, p->agg->lines[place->first + j].line);
		proto_end(p->out, line);
	}
	proto_end(p->out, begin);
}

static void function(struct pprof *p, uint32_t i)
{
	struct weft__place_function of;
	size_t begin = proto_begin(p->out, PROFILE_FUNCTION);

	memcpy(&of, weft__keys_at(&p->agg->functions, i, NULL), sizeof(of));
	proto_u64(p->out, FUNCTION_ID, (uint64_t)i + 1);
	proto_u64(p->out, FUNCTION_NAME, of.name);
	proto_u64(p->out, FUNCTION_SYSTEM_NAME, of.name);
	proto_u64(p->out, FUNCTION_FILENAME, of.file);
	proto_end(p->out, begin);
}

static void comments(struct pprof *p)
{
	const struct weft__tags *tags = &p->agg->tags;
	char line[400];
	size_t i;

	for (i = 0; i < tags->n; i++) {
		snprintf(line, sizeof(line), "tag %.100s: %.250s", tags->at[i].key, tags->at[i].value);
		proto_put_u64(p->out, PROFILE_COMMENT, weft__string_name(&p->strings, line));
	}
	for (i = 0; i < p->agg->n_comments; i++)
		proto_put_u64(p->out, PROFILE_COMMENT, p->agg->comments[i]);
	if (weft__aggregate_dropped(p->agg))
		proto_put_u64(p->out, PROFILE_COMMENT,
			      weft__string_name(
				      &p->strings,
				      "dropped: there were more stacks than fit; the frame [dropped: too many stacks] "
				      "has what they weigh"));
}

static void head(struct pprof *p)
{
	size_t i, first = WEFT__N_VALUES;

	for (i = 0; i < WEFT__N_VALUES; i++)
		if (p->values >> i & 1) {
			value_type(p, PROFILE_SAMPLE_TYPE, weft__value_names[i].type, weft__value_names[i].unit);
			if (first == WEFT__N_VALUES || i == WEFT__VALUE_CPU_NS)
				first = i;
		}
	proto_u64(p->out, PROFILE_TIME_NANOS, p->agg->start_unix_ns);
	proto_u64(p->out, PROFILE_DURATION_NANOS, p->agg->end_unix_ns - p->agg->start_unix_ns);
	if (p->agg->period_ns) {
		value_type(p, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		proto_u64(p->out, PROFILE_PERIOD, p->agg->period_ns);
	}
	if (first < WEFT__N_VALUES)
		proto_u64(p->out, PROFILE_DEFAULT_SAMPLE_TYPE,
			  weft__string_name(&p->strings, weft__value_names[first].type));
}

void weft__pprof_encode(const struct weft__aggregate *agg, struct weft__buf *out)
{
	struct pprof p = {
		.agg = agg, .out = out, .strings = {.known = &agg->texts}, .values = weft__aggregate_values(agg)};
	static const char *const names[N_KEYS] = {
#define X(NAME, text) text,
		KEYS(X)
#undef X
	};
	size_t i;

	for (i = 0; i < N_KEYS; i++)
		p.keys[i] = key_text(&p, names[i], strlen(names[i]));
	head(&p);
	for (i = 0; i < agg->sums.n_rows; i++)
		sample(&p, i);
	for (i = 0; i < agg->n_mappings; i++)
		mapping(&p, i);
	for (i = 0; i < agg->n_places; i++)
		location(&p, i);
	for (i = 0; i < agg->functions.n; i++)
		function(&p, (uint32_t)i);
	if (weft__aggregate_dropped(agg))
		dropped(&p);
	comments(&p);
	weft__strings_write(&p.strings, out, PROFILE_STRING_TABLE);
	out->oom |= p.strings.oom;
	weft__keys_fini(&p.strings.more);
}
