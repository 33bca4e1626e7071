/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table in memory, for joins that wall sample them up and for tables that are scanned again and again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli.h"
#include "query.h"

#define CACHE_BYTES ((size_t)1 << 30)

void query_cache_clear(struct query_cache *cache)
{
	size_t i;

	for (i = 0; i < cache->n; i++)
		free(query_cached(cache, i)->own);
	weft__free(cache->rows);
	for (i = 0; i < WEFT__COLUMNS_MAX; i++) {
		weft__map_fini(&cache->index[i].first);
		weft__free(cache->index[i].next);
	}
	memset(cache, 0, sizeof(*cache));
}

void query_progress(void *data, uint64_t n_events, uint64_t total)
{
	(void)data;
	cli_progress(n_events, total);
}

static int cache_add(const struct weft__table *table, struct query_cache *cache, const struct weft__row *row)
{
	char *grown = weft__grow(cache->rows, &cache->cap, cache->n, cache->stride);
	struct weft__row *to;
	size_t i;

	if (!grown)
		return -ENOMEM;
	cache->rows = grown;
	to = query_cached(cache, cache->n);
	memcpy(to, row, cache->stride);
	to->own = row->own ? strdup(row->own) : NULL;
	if (row->own && !to->own)
		return -ENOMEM;
	for (i = 0; i < table->n_columns && row->own; i++)
		if (weft__row_has(row, i) && table->columns[i].type == WEFT__TEXT && row->at[i].text == row->own)
			to->at[i].text = to->own;
	cache->n++;
	return 0;
}

/* All rows, with these columns at least, and all that plans ask for: other cursors of the statement may be in the
 * cache, too. -E2BIG: they are too many. */
int query_cache_load(struct query_of *of, uint64_t columns)
{
	const struct weft__table *table = &weft__tables[of->table];
	struct query_cache *cache = &of->cache;
	struct weft__scan_opts opts = {.table = of->table,
				       .columns = columns | of->planned,
				       .progress = of->query->quiet ? NULL : query_progress};
	const struct weft__row *row;
	struct weft__scan *scan;
	int rc;

	if (cache->columns && !(columns & ~cache->columns))
		return 0;
	query_cache_clear(cache);
	cache->stride = sizeof(*row) + table->n_columns * sizeof(row->at[0]);
	rc = weft__scan_open(&scan, &of->query->set, &opts);
	if (rc < 0)
		return rc;
	while ((rc = weft__scan_next(scan, &row)) > 0) {
		rc = cache->n * cache->stride < CACHE_BYTES ? cache_add(table, cache, row) : -E2BIG;
		if (rc < 0)
			break;
	}
	cli_progress_end();
	weft__scan_close(scan);
	if (rc < 0)
		query_cache_clear(cache);
	else
		cache->columns = opts.columns ? opts.columns : 1;
	return rc;
}

int query_index_make(struct query_cache *cache, size_t column)
{
	struct query_index *index = &cache->index[column];
	size_t i;

	if (index->made)
		return 0;
	index->next = weft__calloc(cache->n + 1, sizeof(*index->next));
	if (!index->next)
		return -ENOMEM;
	for (i = cache->n; i-- > 0;) { /* so that the first comes first */
		if (!weft__row_has(query_cached(cache, i), column))
			continue;
		index->next[i] = weft__map_get(&index->first, (uint64_t)query_cached(cache, i)->at[column].i);
		if (weft__map_put(&index->first, (uint64_t)query_cached(cache, i)->at[column].i, (uint32_t)i) < 0)
			return -ENOMEM;
	}
	index->made = true;
	return 0;
}
