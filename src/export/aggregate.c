/* SPDX-License-Identifier: Apache-2.0 */
#include "export/aggregate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define MAX_BYTES (UINT64_C(64) << 20)
#define COMMENTS_MAX 200u

const struct weft__value_name weft__value_names[WEFT__N_VALUES] = {
#define X(NAME, what, type, unit) {type, unit, WEFT__EXPORT_##what},
	WEFT__EXPORT_TYPES(X)
#undef X
};

int weft__aggregate_comment(struct weft__aggregate *agg, const char *fmt, ...)
{
	uint32_t *grown = weft__grow(agg->comments, &agg->cap_comments, agg->n_comments, sizeof(*grown));
	char line[600];
	va_list args;

	if (!grown)
		return -ENOMEM;
	agg->comments = grown;
	if (agg->n_comments >= COMMENTS_MAX)
		return 0;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (weft__keys_text(&agg->texts, line, &grown[agg->n_comments]) < 0)
		return -ENOMEM;
	agg->n_comments++;
	return 0;
}

const char *weft__aggregate_text(const struct weft__aggregate *agg, uint32_t text)
{
	return weft__keys_at(&agg->texts, text, NULL);
}

void weft__aggregate_labels(const struct weft__aggregate *agg, uint32_t labels, struct weft__row_labels *ret)
{
	uint32_t late;

	memcpy(ret, weft__keys_at(&agg->sums.labels, labels, NULL), sizeof(*ret));
	if (ret->endpoint || !ret->root)
		return;
	late = weft__map_get(&agg->endpoint_by_root, ret->root);
	ret->endpoint = late == WEFT__MAP_NONE ? 0 : late;
}

const char *weft__labels_next(const char *at, size_t *key, const char **value, size_t *value_bytes)
{
	size_t length = strcspn(at, ",");

	*key = strcspn(at, "=,");
	*value = at + *key + (*key < length);
	*value_bytes = length - (size_t)(*value - at);
	return at + length + (at[length] == ',');
}

uint32_t weft__aggregate_values(const struct weft__aggregate *agg)
{
	uint32_t values = 0;
	size_t i;

	for (i = 0; i < WEFT__N_VALUES; i++) {
		uint32_t what = weft__value_names[i].what;
		size_t j;

		if (agg->opts->what & what)
			values |= 1u << i;
		for (j = 0; !agg->opts->what && j < WEFT__N_VALUES; j++) /* count and time go together */
			if (weft__value_names[j].what == what && agg->n_rows_of[j])
				values |= 1u << i;
	}
	/* Readers want at least one. */
	return values ? values : 1u << WEFT__VALUE_CPU_SAMPLES | 1u << WEFT__VALUE_CPU_NS;
}

bool weft__aggregate_dropped(const struct weft__aggregate *agg)
{
	return agg->sums.n_dropped > 0;
}

static bool chosen(const struct weft__recording *rec, const struct weft__export_opts *opts)
{
	const char *pid = weft__names_fact(&rec->names, "process.pid");

	return !opts->pid || (pid && strtoull(pid, NULL, 10) == opts->pid);
}

static void widen_window(struct weft__aggregate *agg)
{
	const struct weft__recording *rec = agg->rec;
	uint64_t end_ns = weft__recording_since(rec, rec->last_ns), from_ns = agg->opts->from_ns;

	if (agg->opts->to_ns && agg->opts->to_ns < end_ns)
		end_ns = agg->opts->to_ns;
	if (from_ns > end_ns)
		from_ns = end_ns;
	if (!rec->start_real_ns)
		return;
	if (!agg->start_unix_ns || rec->start_real_ns + from_ns < agg->start_unix_ns)
		agg->start_unix_ns = rec->start_real_ns + from_ns;
	if (rec->start_real_ns + end_ns > agg->end_unix_ns)
		agg->end_unix_ns = rec->start_real_ns + end_ns;
}

static int name_code(struct weft__aggregate *agg)
{
	const struct weft__symbolizer_opts symbols = {.no_debuginfod = agg->opts->no_debuginfod};
	struct weft__naming naming;
	size_t i;

	weft__recording_naming(agg->rec, agg->opts->no_symbols, &naming);
	naming.symbolizer = &symbols;
	naming.cache = agg->cache;
	for (i = 0; i < agg->rec->frames.n_stacks; i++)
		weft__frames_want(&agg->rec->frames, agg->rec->frames.stacks[i].id);
	return weft__frames_name(&agg->rec->frames, &naming);
}

static int add_recording(struct weft__aggregate *agg)
{
	const char *pid = weft__names_fact(&agg->rec->names, "process.pid");
	const struct weft__result *result;
	int rc = name_code(agg);

	if (agg->n_recordings == 0)
		weft__tags_init(&agg->tags, agg->opts, agg->rec);
	agg->pid = pid ? (uint32_t)strtoul(pid, NULL, 10) : 0;
	if (rc == 0)
		rc = weft__aggregate_main(agg);
	if (rc == 0)
		rc = weft__aggregate_read(agg, &result);
	if (rc == 0) {
		if (result->samples.period_ns > agg->period_ns)
			agg->period_ns = result->samples.period_ns;
		widen_window(agg);
		rc = weft__aggregate_notes(agg, result);
	}
	weft__analysis_close(agg->analysis);
	agg->analysis = NULL;
	weft__keys_clear(&agg->long_polls);
	agg->n_recordings++;
	return rc;
}

int weft__aggregate_init(struct weft__aggregate *agg, struct weft__recordings *list,
			 const struct weft__export_opts *opts, struct weft__name_cache *cache, struct weft_error *err)
{
	uint32_t empty;
	size_t i;
	int rc;

	*agg = (struct weft__aggregate){.opts = opts, .cache = cache};
	weft__sums_init(&agg->sums, WEFT__N_VALUES, opts->max_bytes ? opts->max_bytes : MAX_BYTES);
	agg->no_wall = opts->location || opts->endpoint || opts->label || opts->span || opts->trace_hi ||
		       opts->trace_lo || opts->min_poll_ns;
	rc = weft__keys_text(&agg->texts, "", &empty);
	for (i = 0; i < list->n && rc == 0; i++) {
		agg->rec = &list->all[i];
		agg->number = (uint32_t)i;
		if (chosen(agg->rec, opts))
			rc = add_recording(agg);
	}
	if (rc == 0 && agg->n_recordings == 0)
		rc = weft__fail(err, -ENOENT, "no recording of process %llu here", (unsigned long long)opts->pid);
	else if (rc < 0)
		weft__fail(err, rc, "cannot sum up %s: %s", agg->rec->files[0].path, weft_strerror(rc));
	if (rc < 0)
		weft__aggregate_fini(agg);
	return rc;
}

void weft__aggregate_fini(struct weft__aggregate *agg)
{
	weft__sums_fini(&agg->sums);
	weft__keys_fini(&agg->texts);
	weft__keys_fini(&agg->functions);
	weft__keys_fini(&agg->mappings_by_key);
	weft__keys_fini(&agg->places_by_key);
	weft__keys_fini(&agg->stacks_by_key);
	weft__keys_fini(&agg->long_polls);
	weft__map_fini(&agg->endpoint_by_root);
	weft__free(agg->mappings);
	weft__free(agg->places);
	weft__free(agg->lines);
	weft__free(agg->stack_of_key);
	weft__free(agg->scratch);
	weft__free(agg->comments);
	weft__analysis_close(agg->analysis);
	memset(agg, 0, sizeof(*agg));
}
