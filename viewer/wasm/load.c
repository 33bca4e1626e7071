/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a trace and filling the stores, with one reading of the events. */
#include <errno.h>
#include <string.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "names.h"
#include "picture.h"
#include "trace/summary.h"
#include "view.h"

#define SLICES_MIN_NS UINT64_C(100000)

struct view_trace view_trace;

/* Of a trace of more events, slices of short polls are not kept: they are read when they are asked for. */
static double slices_events = 2000000;
VIEW_EXPORT void view_slices_up_to(double n_events)
{
	slices_events = n_events;
}

/* Of polls only what their lanes show, for a picture that does not have to wait for all else; and only of some of the
 * time, in ns from the first event of all files. */
static struct {
	bool on;
	double from_ns, to_ns;
} picture;
VIEW_EXPORT void view_layers_only(uint32_t only, double from_ns, double to_ns)
{
	picture.on = only != 0;
	picture.from_ns = from_ns;
	picture.to_ns = to_ns;
}

/* Kept in memory from the start. Others are read when they are asked for. */
static const enum weft__table_id kept[] = {
	WEFT__TABLE_POLL, WEFT__TABLE_SLICE, WEFT__TABLE_WAIT,     WEFT__TABLE_SAMPLE,     WEFT__TABLE_OFFCPU,
	WEFT__TABLE_PARK, WEFT__TABLE_QUEUE, WEFT__TABLE_STUCK,    WEFT__TABLE_EVENT,      WEFT__TABLE_CONTEXT,
	WEFT__TABLE_WALL, WEFT__TABLE_COST,  WEFT__TABLE_WAIT_SUM, WEFT__TABLE_PARK_COUNT, WEFT__TABLE_POLL_COUNT,
};
#define N_KEPT (sizeof(kept) / sizeof(kept[0]))

/* Imported: how far the load is. */
__attribute__((import_module("weft"), import_name("progress"))) void view_progress(double n_events, double total);

static struct {
	uint32_t *row_of;
	uint32_t n;
} poll_rows;                 /* of all recordings, one behind the other */
static uint32_t *poll_first; /* for each recording, and the end */

VIEW_EXPORT void *view_alloc(uint32_t bytes)
{
	return view_room(VIEW_ROOM_IN, bytes);
}

static void forget(void)
{
	size_t i;

	view_picture_end();
	for (i = 0; i < WEFT__N_TABLES; i++)
		view_store_fini(&view_trace.stores[i]);
	weft__free(poll_rows.row_of);
	weft__free(poll_first);
	memset(&poll_rows, 0, sizeof(poll_rows));
	poll_first = NULL;
	weft__set_fini(&view_trace.set);
	weft__recordings_fini(&view_trace.list);
	weft__free(view_trace.shift_ns);
	for (i = 0; i < view_trace.n_paths; i++)
		weft__free(view_trace.paths[i]);
	weft__free(view_trace.paths);
	weft__free(view_trace.names);
	view_texts_moved();
	memset(&view_trace, 0, sizeof(view_trace));
}

VIEW_EXPORT void view_close(void)
{
	forget();
}

/* Recordings of one boot have one clock; else the wall clocks have to do. */
static int find_shifts(void)
{
	const struct weft__recordings *list = &view_trace.list;
	const char *boot = list->n ? weft__names_fact(&list->all[0].names, "host.boot_id") : NULL;
	bool one_boot = boot != NULL;
	uint64_t least = UINT64_MAX;
	size_t i;

	view_trace.shift_ns = weft__calloc(list->n + 1, sizeof(*view_trace.shift_ns));
	if (!view_trace.shift_ns)
		return -ENOMEM;
	for (i = 0; i < list->n; i++) {
		const char *other = weft__names_fact(&list->all[i].names, "host.boot_id");

		one_boot = one_boot && other && strcmp(boot, other) == 0;
	}
	for (i = 0; i < list->n; i++) {
		uint64_t at = one_boot ? list->all[i].start_ns : list->all[i].start_real_ns;

		least = at < least ? at : least;
	}
	for (i = 0; i < list->n; i++)
		view_trace.shift_ns[i] =
			(int64_t)((one_boot ? list->all[i].start_ns : list->all[i].start_real_ns) - least);
	return 0;
}

/* One path at a time; files that are no segments are problems. 0 or a negative error. */
VIEW_EXPORT int view_add(const char *path)
{
	char **grown = weft__grow(view_trace.paths, &view_trace.cap_paths, view_trace.n_paths, sizeof(*grown));
	struct weft_error err = {0};

	if (!grown)
		return -ENOMEM;
	view_trace.paths = grown;
	grown[view_trace.n_paths] = weft__strdup(path);
	if (!grown[view_trace.n_paths])
		return -ENOMEM;
	view_trace.n_paths++;
	return weft__recordings_add(&view_trace.list, path, &err);
}

/* After all paths are added. */
VIEW_EXPORT int view_open(void)
{
	int rc;

	weft__recordings_settle(&view_trace.list);
	rc = weft__set_init(&view_trace.set, &view_trace.list, true);
	if (rc == 0)
		rc = find_shifts();
	view_trace.open = rc == 0;
	return rc;
}

static uint64_t drawn_columns(void)
{
	static const uint8_t drawn[] = {
		WEFT__COL_POLL_ID,          WEFT__COL_POLL_BEGIN_NS,     WEFT__COL_POLL_END_NS,
		WEFT__COL_POLL_DURATION_NS, WEFT__COL_POLL_ON_CPU_NS,    WEFT__COL_POLL_BLOCKED_NS,
		WEFT__COL_POLL_WAITING_NS,  WEFT__COL_POLL_PREEMPTED_NS, WEFT__COL_POLL_NOT_MEASURED_NS,
		WEFT__COL_POLL_NESTED_IN,   WEFT__COL_POLL_QUEUE_DEPTH,  WEFT__COL_POLL_WAKE_DELAY_NS,
		WEFT__COL_POLL_RECORDING,   WEFT__COL_POLL_THREAD_ID,    WEFT__COL_POLL_WORKER_ID};
	uint64_t columns = 0;
	size_t i;

	for (i = 0; i < sizeof(drawn); i++)
		columns |= UINT64_C(1) << drawn[i];
	return columns;
}

static uint64_t kept_columns(enum weft__table_id id)
{
	const struct weft__table *table = &weft__tables[id];
	uint64_t columns = 0;
	size_t i;

	if (picture.on && id == WEFT__TABLE_POLL)
		return drawn_columns();
	for (i = 0; i < table->n_columns; i++) /* ids of traces and fields of events are texts of one row each */
		if (table->columns[i].type != WEFT__TRACE && !(id == WEFT__TABLE_EVENT && i == WEFT__COL_EVENT_FIELDS))
			columns |= UINT64_C(1) << i;
	return columns;
}

/* What follows from the ids of thread and worker, in tables that have many rows. */
static uint64_t derived_columns(enum weft__table_id id)
{
	size_t who = view_column_find(id, "recording");

	if (id != WEFT__TABLE_POLL && id != WEFT__TABLE_SLICE && id != WEFT__TABLE_PARK && id != WEFT__TABLE_CONTEXT)
		return 0;
	return UINT64_C(1) << (who + VIEW_WHO_TID) | UINT64_C(1) << (who + VIEW_WHO_THREAD) |
	       UINT64_C(1) << (who + VIEW_WHO_WORKER);
}

int64_t view_derive(int what, int64_t thread, int64_t worker)
{
	const uint64_t mask = (UINT64_C(1) << 44) - 1;
	int64_t id = what == 2 ? worker : thread;
	const struct weft__names *names;
	const struct weft_thread *def;
	char label[WEFT__LABEL_BYTES];
	uint32_t text;

	if (id == VIEW_NULL || (uint64_t)id >> 44 >= view_trace.list.n)
		return VIEW_NULL;
	names = &view_trace.list.all[(uint64_t)id >> 44].names;
	if (what == 2) {
		weft__label_lane(names, (uint32_t)((uint64_t)id & mask), 0, label, sizeof(label));
		text = view_text(label);
		return text == VIEW_NONE ? VIEW_NULL : text;
	}
	def = weft__names_thread(names, (uint32_t)((uint64_t)id & mask));
	if (!def || (what == 0 && !def->tid) || (what == 1 && !def->name[0]))
		return VIEW_NULL;
	return what == 0 ? def->tid : view_text_kept(def->name);
}

struct load {
	struct weft__scan *scans[N_KEPT];
	uint64_t total;
};

static int64_t shift_of(const struct view_store *store, const struct weft__row *row)
{
	size_t at = view_column_find(store->table, "recording");
	uint64_t number = at < store->n_columns && weft__row_has(row, at) ? (uint64_t)row->at[at].i : 0;

	return number < view_trace.list.n ? view_trace.shift_ns[number] : 0;
}

static int add_row(void *data, size_t scan, const struct weft__row *row)
{
	static size_t recording_at[N_KEPT];
	struct view_store *store = &view_trace.stores[kept[scan]];
	int64_t shift_ns = 0;

	(void)data;
	if (view_trace.list.n > 1) {
		if (!recording_at[scan])
			recording_at[scan] = view_column_find(kept[scan], "recording") + 1;
		shift_ns = view_trace.shift_ns[row->at[recording_at[scan] - 1].i];
	}
	if (view_picture_on() && view_picture_takes(kept[scan]))
		return view_picture_add(kept[scan], row, shift_ns);
	return view_store_add(store, row, shift_ns);
}

static void progress(void *data, uint64_t n_events)
{
	const struct load *load = data;

	view_progress((double)n_events, (double)load->total);
}

static void bound(struct weft__together *together)
{
	const struct weft__recordings *list = &view_trace.list;
	uint64_t first_ns = UINT64_MAX;
	size_t i;

	for (i = 0; i < list->n; i++)
		if (list->all[i].first_ns && list->all[i].first_ns < first_ns)
			first_ns = list->all[i].first_ns;
	if (first_ns == UINT64_MAX)
		return;
	together->from_ns = picture.from_ns > 0 ? first_ns + (uint64_t)picture.from_ns : 0;
	together->to_ns = picture.to_ns > 0 && picture.to_ns < 1e18 ? first_ns + (uint64_t)picture.to_ns : 0;
}

static int load_kept(struct load *load)
{
	struct weft__together together = {.scans = load->scans, .row = add_row, .progress = progress, .data = load};
	size_t i;
	int rc = 0;

	if (picture.on)
		bound(&together);
	for (i = 0; i < N_KEPT && rc == 0; i++) {
		uint64_t derived = derived_columns(kept[i]);
		struct weft__scan_opts opts = {.table = kept[i], .columns = kept_columns(kept[i]) & ~derived};
		struct view_store *store = &view_trace.stores[kept[i]];

		if (kept[i] == WEFT__TABLE_SLICE && view_trace.min_slice_ns)
			opts.filters[opts.n_filters++] = (struct weft__filter){
				WEFT__COL_SLICE_DURATION_NS, WEFT__GE, {.i = (int64_t)view_trace.min_slice_ns}};
		rc = view_store_init(store, kept[i], opts.columns);
		store->derived = derived;
		store->who = view_column_find(kept[i], "recording");
		if (rc == 0)
			rc = weft__scan_open(&load->scans[i], &view_trace.set, &opts);
		together.n += rc == 0;
	}
	if (rc == 0)
		rc = weft__scan_together(&together);
	for (i = 0; i < N_KEPT && rc == 0; i++)
		rc = view_store_end(&view_trace.stores[kept[i]]);
	for (i = 0; i < N_KEPT; i++)
		weft__scan_close(load->scans[i]);
	return rc;
}

/* Reads all events. 0 or -ENOMEM. */
VIEW_EXPORT int view_load(void)
{
	struct load load = {0};
	size_t i;

	for (i = 0; i < view_trace.list.n; i++)
		load.total += view_trace.list.all[i].n_events;
	view_trace.n_events = load.total;
	if (picture.on)
		view_picture_begin();
	view_trace.min_slice_ns = (double)load.total > slices_events ? SLICES_MIN_NS : 0;
	return view_trace.list.n ? load_kept(&load) : 0;
}

static bool is_kept(enum weft__table_id table)
{
	size_t i;

	for (i = 0; i < N_KEPT && kept[i] != table;)
		i++;
	return i < N_KEPT;
}

static int scan_into(struct view_store *store, struct weft__scan_opts *opts)
{
	const struct weft__row *row;
	struct weft__scan *scan = NULL;
	int rc = weft__scan_open(&scan, &view_trace.set, opts);

	while (rc == 0 && (rc = weft__scan_next(scan, &row)) > 0)
		rc = view_store_add(store, row, shift_of(store, row));
	weft__scan_close(scan);
	return rc < 0 ? rc : view_store_end(store);
}

struct view_store *view_table(enum weft__table_id table, uint64_t columns)
{
	struct weft__scan_opts none = {.n_filters = 0};

	return view_table_where(table, columns, &none);
}

/* All that is asked for is kept. Slices are complete only where none was left out. */
static bool is_there(const struct view_store *store, uint64_t columns, size_t n_filters)
{
	return store->n_columns && ((store->columns | store->derived) & columns) == columns &&
	       (store->table != WEFT__TABLE_SLICE || !view_trace.min_slice_ns || n_filters == 0);
}

struct view_store *view_table_where(enum weft__table_id table, uint64_t columns, const struct weft__scan_opts *where)
{
	static struct view_store some; /* rows that are not all there are */
	struct view_store *store = &view_trace.stores[table];
	struct weft__scan_opts opts = *where;
	size_t at = view_column_find(table, "recording"), n = weft__tables[table].n_columns;

	columns &= n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
	if (is_there(store, columns, where->n_filters))
		return store;
	if (is_kept(table) || where->n_filters) {
		view_store_fini(&some);
		store = &some;
	} else {
		view_store_fini(store);
	}
	opts.table = table;
	opts.columns = columns ? columns : 1;
	if (at < n)
		opts.columns |= UINT64_C(1) << at;
	if (view_store_init(store, table, opts.columns) < 0 || scan_into(store, &opts) < 0) {
		view_store_fini(store);
		return NULL;
	}
	return store;
}

static uint64_t serial_of(int64_t id)
{
	return (uint64_t)id & ((UINT64_C(1) << 44) - 1);
}

/* A number for each poll of a recording, counted up as they begin. */
static int index_polls(void)
{
	const struct view_store *polls = &view_trace.stores[WEFT__TABLE_POLL];
	uint64_t *most = weft__calloc(view_trace.list.n + 1, sizeof(*most));
	uint32_t i, total = 0;
	size_t k;

	poll_first = weft__calloc(view_trace.list.n + 2, sizeof(*poll_first));
	for (i = 0; most && i < polls->n; i++) {
		int64_t id = view_store_get(polls, WEFT__COL_POLL_ID, i);

		if (most[id >> 44] <= serial_of(id))
			most[id >> 44] = serial_of(id) + 1;
	}
	for (k = 0; most && poll_first && k < view_trace.list.n; k++) {
		poll_first[k] = total;
		total += (uint32_t)most[k];
	}
	weft__free(most);
	poll_rows.row_of = poll_first && most ? weft__alloc(((size_t)total + 1) * sizeof(uint32_t)) : NULL;
	if (!poll_rows.row_of)
		return -ENOMEM;
	poll_first[view_trace.list.n] = poll_rows.n = total;
	memset(poll_rows.row_of, 0xff, (size_t)total * sizeof(uint32_t));
	for (i = 0; i < polls->n; i++) {
		int64_t id = view_store_get(polls, WEFT__COL_POLL_ID, i);

		poll_rows.row_of[poll_first[id >> 44] + serial_of(id)] = i;
	}
	return 0;
}

uint32_t view_poll_row(int64_t id)
{
	if (id == VIEW_NULL || id < 0 || (uint64_t)(id >> 44) >= view_trace.list.n)
		return VIEW_NONE;
	if (!poll_rows.row_of && index_polls() < 0)
		return VIEW_NONE;
	if (serial_of(id) >= poll_first[(id >> 44) + 1] - poll_first[id >> 44])
		return VIEW_NONE;
	return poll_rows.row_of[poll_first[id >> 44] + serial_of(id)];
}

static int read_names(struct weft__recordings *list)
{
	char *text = view_trace.names ? weft__strdup(view_trace.names) : NULL;
	int rc = text ? view_names_read(list, text) : view_trace.names ? -ENOMEM : 0;

	weft__free(text);
	return rc;
}

/* Names beside the segments (names.c), between view_open and view_load. */
VIEW_EXPORT int view_names(const char *text)
{
	view_trace.names = weft__strdup(text);
	return view_trace.names ? read_names(&view_trace.list) : -ENOMEM;
}

int view_reopen(struct weft__recordings *list)
{
	struct weft_error err = {0};
	size_t i;

	for (i = 0; i < view_trace.n_paths; i++)
		if (weft__recordings_add(list, view_trace.paths[i], &err) == -ENOMEM)
			return -ENOMEM;
	weft__recordings_settle(list);
	return read_names(list);
}
