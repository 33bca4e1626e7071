/* SPDX-License-Identifier: Apache-2.0 */
/* All that the targets of a recorder want of a segment, of one look at it. Who sends does so for each segment of one
 * process: names of code are kept. */
#include <sys/types.h>
#include <unistd.h>

#include "analyze/name_cache.h"
#include "export/aggregate.h"

#define NAMES_KEPT 16384u /* places in code: some 4 MB with names of usual length, 16 at most */

static struct weft__name_cache *names;
static pid_t names_of; /* a child of fork may have got them in the middle of a change, and leaves them alone */

static const struct {
	void (*encode)(const struct weft__aggregate *agg, struct weft__buf *out);
	bool plain, series;
} encodings[] = {
	[WEFT__FORM_PPROF] = {weft__pprof_encode, false, false},
	[WEFT__FORM_SERIES] = {weft__pprof_encode, false, true},
	[WEFT__FORM_OTLP] = {weft__otlp_encode, true, false},
};

static int encode(struct weft__bytes *out, struct weft__aggregate *agg, enum weft__export_form form,
		  struct weft_error *err)
{
	const struct weft__export_opts *opts = agg->opts;
	struct weft__export_opts own = *opts;
	struct weft__buf buf = {0};

	own.series = encodings[form].series;
	agg->opts = &own;
	encodings[form].encode(agg, &buf);
	agg->opts = opts;
	return weft__export_pack(out, &buf, agg, encodings[form].plain, err);
}

static int encode_all(struct weft__bytes *out, uint32_t forms, struct weft__recordings *list,
		      const struct weft__export_opts *opts, struct weft_error *err)
{
	struct weft__aggregate agg;
	uint32_t i;
	int rc;

	if (names_of != getpid() || !names) {
		names_of = getpid();
		names = weft__name_cache_open(NAMES_KEPT);
	}
	rc = weft__aggregate_init(&agg, list, opts, names, err);
	if (rc < 0)
		return rc;
	for (i = 0; i < WEFT__FORM_PROVENANCE && rc == 0; i++)
		if (forms >> i & 1)
			rc = encode(&out[i], &agg, (enum weft__export_form)i, err);
	weft__aggregate_fini(&agg);
	return rc;
}

int weft__export_forms(struct weft__bytes out[WEFT__FORMS], uint32_t forms, const char *const *paths, size_t n,
		       const struct weft__export_opts *opts, struct weft_error *err)
{
	struct weft__bytes made[WEFT__FORMS] = {{0}};
	static const struct weft__export_opts defaults;
	struct weft__recordings list = {0};
	uint32_t i;
	int rc = weft__export_load(&list, paths, n, err);

	if (rc == 0 && forms & ((1u << WEFT__FORM_PROVENANCE) - 1))
		rc = encode_all(made, forms, &list, opts ? opts : &defaults, err);
	/* A profile without it is better than none. */
	if (rc == 0 && forms >> WEFT__FORM_PROVENANCE & 1 &&
	    weft__provenance_export(&made[WEFT__FORM_PROVENANCE], &list, NULL) < 0)
		made[WEFT__FORM_PROVENANCE] = (struct weft__bytes){0};
	weft__recordings_fini(&list);
	for (i = 0; i < WEFT__FORMS && rc == 0; i++)
		out[i] = made[i];
	for (i = 0; i < WEFT__FORMS && rc < 0; i++)
		weft__export_free(&made[i]);
	return rc;
}

void weft__export_forget(void)
{
	if (names_of == getpid())
		weft__name_cache_close(names);
	names = NULL;
}
