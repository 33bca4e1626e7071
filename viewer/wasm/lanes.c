/* SPDX-License-Identifier: Apache-2.0 */
/* Which lanes there are: one for each worker, and one for each other thread that anything is known of. */
#include "lanes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "picture.h"

enum who { WHO_RECORDING, WHO_THREAD_ID, WHO_TID, WHO_THREAD, WHO_WORKER_ID, WHO_WORKER };

static const enum weft__table_id shown[] = {
	WEFT__TABLE_POLL,   WEFT__TABLE_SLICE, WEFT__TABLE_PARK,  WEFT__TABLE_OFFCPU,  WEFT__TABLE_WAIT,
	WEFT__TABLE_SAMPLE, WEFT__TABLE_EVENT, WEFT__TABLE_STUCK, WEFT__TABLE_CONTEXT, WEFT__TABLE_WALL,
};
#define N_SHOWN (sizeof(shown) / sizeof(shown[0]))

static struct {
	struct view_lane *at;
	size_t n, cap;
	struct weft__map by_key;
	struct {
		int64_t key;
		uint32_t lane;
	} near[8]; /* those that were asked for last */
	struct view_by_lane rows[WEFT__N_TABLES];
} lanes;

size_t view_who_at(enum weft__table_id table)
{
	size_t at = view_column_find(table, "recording"), n = weft__tables[table].n_columns;

	return at + WHO_WORKER < n && strcmp(weft__tables[table].columns[at + WHO_WORKER].name, "worker") == 0
		       ? at
		       : SIZE_MAX;
}

int64_t view_lane_key(int64_t worker, int64_t thread)
{
	return worker != VIEW_NULL ? worker | INT64_C(1) << 61 : thread != VIEW_NULL ? thread : -1;
}

static int64_t key_of(const struct view_store *store, size_t who, uint32_t row)
{
	int64_t id = view_lane_key(view_store_get(store, who + WHO_WORKER_ID, row),
				   view_store_get(store, who + WHO_THREAD_ID, row));

	if (id != -1)
		return id;
	id = view_store_get(store, who + WHO_TID, row);
	return id == VIEW_NULL ? -1 : view_store_get(store, who + WHO_RECORDING, row) << 44 | id | INT64_C(1) << 62;
}

static int lane_put(const struct view_lane *lane)
{
	struct view_lane *grown;

	if (weft__map_get(&lanes.by_key, (uint64_t)lane->key) != WEFT__MAP_NONE)
		return 0;
	grown = weft__grow(lanes.at, &lanes.cap, lanes.n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	lanes.at = grown;
	if (weft__map_put(&lanes.by_key, (uint64_t)lane->key, (uint32_t)lanes.n) < 0)
		return -ENOMEM;
	grown[lanes.n++] = *lane;
	return 0;
}

static int lane_add(const struct view_store *store, size_t who, uint32_t row, int64_t key)
{
	int64_t tid = view_store_get(store, who + WHO_TID, row);
	bool worker = view_store_get(store, who + WHO_WORKER_ID, row) != VIEW_NULL;
	int64_t name = view_store_get(store, who + (worker ? WHO_WORKER : WHO_THREAD), row);
	struct view_lane lane = {
		.key = key,
		.recording = (uint32_t)view_store_get(store, who + WHO_RECORDING, row),
		.tid = tid == VIEW_NULL ? 0 : (uint32_t)tid,
		.thread = view_store_get(store, who + WHO_THREAD_ID, row),
		.worker = view_store_get(store, who + WHO_WORKER_ID, row),
		.name = name == VIEW_NULL ? VIEW_NONE : (uint32_t)name,
	};

	return lane_put(&lane);
}

static int find_in(const struct view_store *store)
{
	size_t who = view_who_at(store->table);
	int64_t last = -2;
	uint32_t i;

	for (i = 0; i < store->n; i++) {
		int64_t key = key_of(store, who, i);

		if (key == last || key == -1)
			continue;
		last = key;
		if (weft__map_get(&lanes.by_key, (uint64_t)key) == WEFT__MAP_NONE && lane_add(store, who, i, key) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* "demo/10" comes behind "demo/9". */
static int by_name(const char *a, const char *b)
{
	while (*a && *b) {
		if (*a >= '0' && *a <= '9' && *b >= '0' && *b <= '9') {
			unsigned long x = 0, y = 0;

			for (; *a >= '0' && *a <= '9'; a++)
				x = x * 10 + (unsigned long)(*a - '0');
			for (; *b >= '0' && *b <= '9'; b++)
				y = y * 10 + (unsigned long)(*b - '0');
			if (x != y)
				return x < y ? -1 : 1;
			continue;
		}
		if (*a != *b)
			return *a < *b ? -1 : 1;
		a++;
		b++;
	}
	return *a ? 1 : *b ? -1 : 0;
}

static int lane_order(const void *left, const void *right)
{
	const struct view_lane *a = &lanes.at[*(const uint32_t *)left], *b = &lanes.at[*(const uint32_t *)right];
	const char *a_name = view_text_at(a->name), *b_name = view_text_at(b->name);
	int order;

	if (a->recording != b->recording)
		return a->recording < b->recording ? -1 : 1;
	if ((a->worker == VIEW_NULL) != (b->worker == VIEW_NULL))
		return a->worker == VIEW_NULL ? 1 : -1;
	order = by_name(a_name ? a_name : "~", b_name ? b_name : "~");
	if (order)
		return order;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static void forget(void)
{
	size_t i;

	for (i = 0; i < WEFT__N_TABLES; i++) {
		weft__free(lanes.rows[i].rows);
		weft__free(lanes.rows[i].first);
	}
	weft__free(lanes.at);
	weft__map_fini(&lanes.by_key);
	memset(&lanes, 0, sizeof(lanes));
}

static int order_lanes(void)
{
	uint32_t *order = weft__alloc((lanes.n + 1) * sizeof(*order));
	struct view_lane *sorted = weft__alloc((lanes.n + 1) * sizeof(*sorted));
	uint32_t i;
	int rc = order && sorted ? 0 : -ENOMEM;

	for (i = 0; rc == 0 && i < lanes.n; i++)
		order[i] = i;
	if (rc == 0)
		weft__sort(order, lanes.n, sizeof(*order), lane_order);
	for (i = 0; rc == 0 && i < lanes.n; i++) {
		sorted[i] = lanes.at[order[i]];
		rc = weft__map_put(&lanes.by_key, (uint64_t)sorted[i].key, i);
	}
	weft__free(order);
	if (rc < 0) {
		weft__free(sorted);
		return rc;
	}
	weft__free(lanes.at);
	lanes.at = sorted;
	return 0;
}

/* The lane of the one worker that a thread is, or NULL: what is known of the thread alone is shown there. */
static const struct view_lane *lane_of_worker(int64_t thread)
{
	const struct view_lane *found = NULL;
	size_t i;

	for (i = 0; i < lanes.n; i++) {
		if (lanes.at[i].worker == VIEW_NULL || lanes.at[i].thread != thread)
			continue;
		if (found)
			return NULL;
		found = &lanes.at[i];
	}
	return found;
}

/* The one other lane of a thread of which only its number was known at first, or NULL. */
static const struct view_lane *lane_of_tid(const struct view_lane *lane)
{
	const struct view_lane *found = NULL, *worker;
	size_t i;

	for (i = 0; i < lanes.n; i++) {
		const struct view_lane *other = &lanes.at[i];

		if (other->thread == VIEW_NULL || other->tid != lane->tid || other->recording != lane->recording)
			continue;
		if (found && found->thread != other->thread)
			return NULL;
		found = other;
	}
	worker = found ? lane_of_worker(found->thread) : NULL;
	return worker ? worker : found;
}

static bool kept_lane(int64_t (*joined)[2], size_t n, int64_t key)
{
	size_t i;

	for (i = 0; i < n && joined[i][0] != key;)
		i++;
	return i == n;
}

/* Rows of the thread of a worker that name no worker have no lane of their own, nor those that only have a number. */
static int join_threads(void)
{
	int64_t(*joined)[2] = weft__alloc((lanes.n + 1) * sizeof(*joined)); /* key of the thread, and of the worker */
	size_t i, kept = 0, n = 0;
	int rc = joined ? 0 : -ENOMEM;

	for (i = 0; rc == 0 && i < lanes.n; i++) {
		const struct view_lane *lane = &lanes.at[i], *worker = NULL;

		if (lane->worker == VIEW_NULL && lane->thread != VIEW_NULL)
			worker = lane_of_worker(lane->thread);
		else if (lane->worker == VIEW_NULL && lane->tid)
			worker = lane_of_tid(lane);
		if (worker) {
			joined[n][0] = lane->key;
			joined[n++][1] = worker->key;
		}
	}
	for (i = 0; rc == 0 && i < lanes.n; i++)
		if (kept_lane(joined, n, lanes.at[i].key))
			lanes.at[kept++] = lanes.at[i];
	if (rc == 0) {
		lanes.n = kept;
		rc = order_lanes();
	}
	for (i = 0; rc == 0 && i < n; i++)
		rc = weft__map_put(&lanes.by_key, (uint64_t)joined[i][0],
				   weft__map_get(&lanes.by_key, (uint64_t)joined[i][1]));
	weft__free(joined);
	return rc;
}

/* Finds the lanes of the trace that is loaded. Their number, or -ENOMEM. */
VIEW_EXPORT int view_lanes(void)
{
	size_t i;
	int rc;

	forget();
	rc = view_picture_lanes(lane_put);
	for (i = 0; i < N_SHOWN && rc == 0; i++)
		rc = find_in(&view_trace.stores[shown[i]]);
	if (rc == 0)
		rc = join_threads();
	for (i = 0; i < sizeof(lanes.near) / sizeof(lanes.near[0]); i++)
		lanes.near[i].key = -1;
	return rc < 0 ? rc : (int)lanes.n;
}

const struct view_lane *view_lane_at(uint32_t lane)
{
	return lane < lanes.n ? &lanes.at[lane] : NULL;
}

/* A fact of a lane by number: recording, thread, worker (-1: none), tid, index of the name's text. */
VIEW_EXPORT double view_lane(uint32_t lane, uint32_t what)
{
	const struct view_lane *at = view_lane_at(lane);

	if (!at)
		return -1;
	switch (what) {
	case 0:
		return at->recording;
	case 1:
		return at->thread == VIEW_NULL ? -1 : (double)at->thread;
	case 2:
		return at->worker == VIEW_NULL ? -1 : (double)at->worker;
	case 3:
		return at->tid;
	default:
		return at->name;
	}
}

uint32_t view_lane_by_key(int64_t key)
{
	return key == -1 ? VIEW_NONE : weft__map_get(&lanes.by_key, (uint64_t)key);
}

uint32_t view_lane_of(const struct view_store *store, size_t who, uint32_t row)
{
	int64_t key = key_of(store, who, row);

	if (key == -1)
		return VIEW_NONE;
	if (key != lanes.near[key & 7].key) {
		lanes.near[key & 7].key = key;
		lanes.near[key & 7].lane = weft__map_get(&lanes.by_key, (uint64_t)key);
	}
	return lanes.near[key & 7].lane;
}

const struct view_by_lane *view_by_lane(enum weft__table_id table)
{
	const struct view_store *store = &view_trace.stores[table];
	struct view_by_lane *of = &lanes.rows[table];
	size_t who = view_who_at(table);
	uint32_t *lane, i, k, sum = 0;

	if (of->rows)
		return of;
	of->rows = weft__alloc(((size_t)store->n + 1) * sizeof(*of->rows));
	of->first = weft__calloc(lanes.n + 2, sizeof(*of->first));
	lane = weft__alloc(((size_t)store->n + 1) * sizeof(*lane));
	if (!of->rows || !of->first || !lane) {
		weft__free(of->rows);
		weft__free(of->first);
		weft__free(lane);
		memset(of, 0, sizeof(*of));
		return NULL;
	}
	for (i = 0; i < store->n; i++) {
		lane[i] = view_lane_of(store, who, i);
		if (lane[i] != VIEW_NONE)
			of->first[lane[i] + 1]++;
	}
	for (k = 0; k <= lanes.n; k++) {
		sum += of->first[k];
		of->first[k] = sum;
	}
	for (i = 0; i < store->n; i++)
		if (lane[i] != VIEW_NONE)
			of->rows[of->first[lane[i]]++] = i;
	for (k = (uint32_t)lanes.n; k > 0; k--)
		of->first[k] = of->first[k - 1];
	of->first[0] = 0;
	weft__free(lane);
	return of;
}

/* The rows by lane are not needed once the page has its layers. */
VIEW_EXPORT void view_by_lane_forget(void)
{
	size_t i;

	for (i = 0; i < WEFT__N_TABLES; i++) {
		weft__free(lanes.rows[i].rows);
		weft__free(lanes.rows[i].first);
		memset(&lanes.rows[i], 0, sizeof(lanes.rows[i]));
	}
}
