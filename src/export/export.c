/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include <errno.h>
#include <libdeflate.h>

#include "base/alloc.h"
#include "base/error.h"
#include "export/aggregate.h"

#define GZIP_LEVEL 6

/* `buf` becomes what it is compressed. */
static int compress(struct weft__buf *buf)
{
	struct libdeflate_compressor *gzip = libdeflate_alloc_compressor(GZIP_LEVEL);
	struct weft__buf packed = {0};
	size_t most = gzip ? libdeflate_gzip_compress_bound(gzip, buf->n) : 0;
	uint8_t *room = gzip ? weft__buf_room(&packed, most) : NULL;

	if (room)
		packed.n = libdeflate_gzip_compress(gzip, buf->bytes, buf->n, room, most);
	libdeflate_free_compressor(gzip);
	if (packed.n == 0) {
		weft__buf_free(&packed);
		return -ENOMEM;
	}
	weft__buf_free(buf);
	*buf = packed;
	return 0;
}

int weft__export_pack(struct weft__bytes *out, struct weft__buf *buf, const struct weft__aggregate *agg, bool plain,
		      struct weft_error *err)
{
	if (buf->oom || (!plain && compress(buf) < 0)) {
		weft__buf_free(buf);
		return weft__fail(err, -ENOMEM, "out of memory while encoding a profile");
	}
	*out = (struct weft__bytes){buf->bytes,
				    buf->n,
				    agg->start_unix_ns,
				    agg->end_unix_ns,
				    agg->sums.n_rows + weft__aggregate_dropped(agg),
				    agg->sums.n_dropped};
	return 0;
}

int weft__export_recordings(struct weft__bytes *out, struct weft__recordings *list,
			    void (*encode)(const struct weft__aggregate *agg, struct weft__buf *out),
			    const struct weft__export_opts *opts, struct weft_error *err)
{
	static const struct weft__export_opts defaults;
	bool plain = encode == weft__folded_encode || (opts && opts->plain);
	struct weft__buf buf = {0};
	struct weft__aggregate agg;
	int rc = weft__aggregate_init(&agg, list, opts ? opts : &defaults, NULL, err);

	if (rc < 0)
		return rc;
	encode(&agg, &buf);
	rc = weft__export_pack(out, &buf, &agg, plain, err);
	weft__aggregate_fini(&agg);
	return rc;
}

int weft__export_load(struct weft__recordings *list, const char *const *paths, size_t n, struct weft_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++)
		rc = weft__recordings_add(list, paths[i], err);
	if (rc == 0 && list->n == 0)
		rc = list->n_refused ? weft__fail(err, list->refused[0].status, "%s: %s", list->refused[0].path,
						  list->refused[0].why)
				     : weft__fail(err, -ENOENT, "no segments in %s", n ? paths[0] : "an empty list");
	weft__recordings_settle(list);
	return rc;
}

static int export_paths(struct weft__bytes *out, const char *const *paths, size_t n,
			void (*encode)(const struct weft__aggregate *agg, struct weft__buf *out),
			const struct weft__export_opts *opts, struct weft_error *err)
{
	struct weft__recordings list = {0};
	int rc = weft__export_load(&list, paths, n, err);

	if (rc == 0)
		rc = weft__export_recordings(out, &list, encode, opts, err);
	weft__recordings_fini(&list);
	return rc;
}

int weft__export_pprof(struct weft__bytes *out, const char *const *paths, size_t n,
		       const struct weft__export_opts *opts, struct weft_error *err)
{
	return export_paths(out, paths, n, weft__pprof_encode, opts, err);
}

int weft__export_otlp(struct weft__bytes *out, const char *const *paths, size_t n, const struct weft__export_opts *opts,
		      struct weft_error *err)
{
	return export_paths(out, paths, n, weft__otlp_encode, opts, err);
}

int weft__export_folded(struct weft__bytes *out, const char *const *paths, size_t n,
			const struct weft__export_opts *opts, struct weft_error *err)
{
	return export_paths(out, paths, n, weft__folded_encode, opts, err);
}

void weft__export_free(struct weft__bytes *bytes)
{
	if (!bytes)
		return;
	weft__free(bytes->at);
	*bytes = (struct weft__bytes){0};
}
