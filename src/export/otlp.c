/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp.h"

#include <stdio.h>

#include "segment/hash.h"
#include "weft/version.h"

static void add_own(struct otlp *o, uint32_t labels)
{
	const char *at = weft__aggregate_text(o->agg, labels);

	while (*at) {
		const char *key = at, *value;
		size_t key_bytes, value_bytes;

		at = weft__labels_next(at, &key_bytes, &value, &value_bytes);
		if (key_bytes && value_bytes)
			weft__otlp_attribute(o, weft__string_add(&o->strings, key, key_bytes), ATTRIBUTE_TEXT,
					     weft__string_add(&o->strings, value, value_bytes));
	}
}

static void sample_labels(struct otlp *o, const struct weft__row_labels *labels)
{
	char root[24];

	weft__otlp_number(o, "thread.id", labels->tid);
	weft__otlp_text(o, "thread.name", labels->thread);
	weft__otlp_text(o, "weft.worker", labels->worker);
	weft__otlp_text(o, "weft.state", labels->state);
	weft__otlp_text(o, "weft.where", labels->where);
	weft__otlp_text(o, "weft.location", labels->location);
	weft__otlp_text(o, "weft.wait", labels->wait);
	weft__otlp_text(o, "weft.wait_for", labels->wait_for);
	if (labels->root) {
		snprintf(root, sizeof(root), "%016llx", (unsigned long long)labels->root);
		weft__otlp_text(o, "local_root_span_id", weft__string_name(&o->strings, root));
	}
	weft__otlp_text(o, "trace.endpoint", labels->endpoint);
	add_own(o, labels->labels);
	if (o->agg->n_recordings > 1)
		weft__otlp_number(o, "process.pid", labels->pid);
	weft__otlp_indices(o, SAMPLE_ATTRIBUTE_INDICES);
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
		proto_u64(o->out, SAMPLE_LINK_INDEX, weft__otlp_link(o, &labels));
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

	proto_u64(o->out, VALUE_TYPE_TYPE, weft__string_name(&o->strings, type));
	proto_u64(o->out, VALUE_TYPE_UNIT, weft__string_name(&o->strings, unit));
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
		weft__otlp_attribute(o, weft__string_name(&o->strings, "weft.notes"), ATTRIBUTE_NOTES, 0);
		weft__otlp_indices(o, PROFILE_ATTRIBUTE_INDICES);
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

void weft__otlp_encode(const struct weft__aggregate *agg, struct weft__buf *out)
{
	struct otlp o = {.agg = agg, .out = out, .strings = {.known = &agg->texts}};

	resource_profiles(&o);
	weft__otlp_dictionary(&o);
	out->oom |= o.oom | o.strings.oom;
	weft__keys_fini(&o.strings.more);
	weft__keys_fini(&o.attributes);
	weft__keys_fini(&o.links);
}
