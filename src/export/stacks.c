/* SPDX-License-Identifier: Apache-2.0 */
#include "export/stacks.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

/* A map has room for twice its keys, and arrays double: that is in these. */
#define KEY_BYTES 96u
#define ROW_BYTES 80u

void weft__sums_init(struct weft__sums *sums, size_t n_values, uint64_t max_bytes)
{
	*sums = (struct weft__sums){.n_values = n_values, .max_bytes = max_bytes};
}

void weft__sums_fini(struct weft__sums *sums)
{
	weft__keys_fini(&sums->stacks);
	weft__keys_fini(&sums->labels);
	weft__free(sums->rows);
	weft__free(sums->values);
	weft__map_fini(&sums->row_by_key);
	memset(sums, 0, sizeof(*sums));
}

uint64_t weft__sums_bytes(const struct weft__sums *sums)
{
	return 2 * (sums->stacks.n_bytes + sums->labels.n_bytes) + KEY_BYTES * (sums->stacks.n + sums->labels.n) +
	       (ROW_BYTES + 16 * sums->n_values) * sums->n_rows;
}

static bool fits(const struct weft__sums *sums, uint64_t bytes)
{
	return weft__sums_bytes(sums) + bytes <= sums->max_bytes;
}

bool weft__sums_full(const struct weft__sums *sums)
{
	return !fits(sums, KEY_BYTES);
}

static int key_get(struct weft__sums *sums, struct weft__keys *keys, const void *bytes, size_t n, uint32_t *ret)
{
	if (fits(sums, KEY_BYTES + 2 * n))
		return weft__keys_add(keys, bytes, n, ret);
	*ret = weft__keys_find(keys, bytes, n); /* WEFT__MAP_NONE is WEFT__SUMS_NONE */
	return 0;
}

int weft__sums_stack(struct weft__sums *sums, const uint32_t *frames, size_t n, uint32_t *ret)
{
	return key_get(sums, &sums->stacks, frames, n * sizeof(*frames), ret);
}

int weft__sums_labels(struct weft__sums *sums, const void *labels, size_t bytes, uint32_t *ret)
{
	return key_get(sums, &sums->labels, labels, bytes, ret);
}

static void add_values(int64_t *to, const int64_t *values, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (__builtin_add_overflow(to[i], values[i], &to[i]))
			to[i] = values[i] < 0 ? INT64_MIN : INT64_MAX;
}

static void drop(struct weft__sums *sums, const int64_t *values)
{
	sums->n_dropped++;
	add_values(sums->dropped, values, sums->n_values);
}

/* Room for one more row; the two arrays grow alike. */
static int make_room(struct weft__sums *sums)
{
	struct weft__sums_row *rows = weft__grow(sums->rows, &sums->cap_rows, sums->n_rows, sizeof(*rows));
	int64_t *values;

	if (!rows)
		return -ENOMEM;
	sums->rows = rows;
	values = weft__grow(sums->values, &sums->cap_values, sums->n_rows, sums->n_values * sizeof(*values));
	if (!values)
		return -ENOMEM;
	sums->values = values;
	return 0;
}

int weft__sums_add(struct weft__sums *sums, uint32_t stack, uint32_t labels, const int64_t *values)
{
	uint64_t key = (uint64_t)stack << 32 | labels;
	uint32_t at;

	if (stack == WEFT__SUMS_NONE || labels == WEFT__SUMS_NONE) {
		drop(sums, values);
		return 0;
	}
	if (fits(sums, ROW_BYTES + 16 * sums->n_values)) {
		if (make_room(sums) < 0 || weft__map_claim(&sums->row_by_key, key, (uint32_t)sums->n_rows, &at) < 0)
			return -ENOMEM;
	} else {
		at = weft__map_get(&sums->row_by_key, key);
	}
	if (at == WEFT__MAP_NONE) {
		drop(sums, values);
		return 0;
	}
	if (at == sums->n_rows) {
		sums->rows[sums->n_rows++] = (struct weft__sums_row){stack, labels};
		memcpy(sums->values + at * sums->n_values, values, sums->n_values * sizeof(*sums->values));
		return 0;
	}
	add_values(sums->values + at * sums->n_values, values, sums->n_values);
	return 0;
}
