/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a segment, summed up and encoded in every format. What went in comes out. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/aggregate.h"

#define HOLDS(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			abort();                                                                                       \
	} while (0)

static void check_sums(const struct weft__aggregate *agg)
{
	const struct weft__sums *sums = &agg->sums;
	size_t i, n, k;

	HOLDS(weft__sums_bytes(sums) <= sums->max_bytes);
	HOLDS(agg->n_places == agg->places_by_key.n && agg->n_mappings == agg->mappings_by_key.n);
	for (i = 0; i < sums->n_rows; i++) {
		const uint32_t *frames;

		HOLDS(sums->rows[i].stack < sums->stacks.n && sums->rows[i].labels < sums->labels.n);
		frames = weft__sums_frames(sums, sums->rows[i].stack, &n);
		HOLDS(n > 0);
		for (k = 0; k < n; k++)
			HOLDS(frames[k] < agg->n_places);
	}
	for (i = 0; i < agg->n_places; i++)
		HOLDS((size_t)agg->places[i].first + agg->places[i].n <= agg->n_lines &&
		      agg->places[i].mapping <= agg->n_mappings);
}

static void export_all(struct weft__recordings *list, const struct weft__export_opts *opts)
{
	struct weft__aggregate agg;
	struct weft__buf out = {0};

	if (weft__aggregate_init(&agg, list, opts, NULL, NULL) < 0)
		return;
	check_sums(&agg);
	weft__pprof_encode(&agg, &out);
	weft__otlp_encode(&agg, &out);
	weft__folded_encode(&agg, &out);
	HOLDS(!out.oom);
	weft__buf_free(&out);
	weft__aggregate_fini(&agg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct weft__export_opts few = {.no_symbols = true, .max_bytes = 4096, .min_poll_ns = 1000};
	static const struct weft__export_opts all = {.no_symbols = true, .max_bytes = 1 << 20};
	struct weft__recordings list = {0};
	char path[64];
	int fd;

	fd = memfd_create("export", MFD_CLOEXEC);
	HOLDS(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (weft__recordings_add(&list, path, NULL) == 0) {
		weft__recordings_settle(&list);
		if (list.n) {
			export_all(&list, &all);
			export_all(&list, &few);
		}
	}
	weft__recordings_fini(&list);
	close(fd);
	return 0;
}
