/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "marks.h"

#define PIECE_LEAST 64u
#define PIECE_MOST 16384u
#define SERIALS 4096u
#define NEAR 16u

enum { OF_POLLS, OF_PARKS, N_OF };

/* What is drawn of a lane, in the order in which it came. Pieces stay where they are: there are millions of things. */
struct piece {
	struct piece *next;
	uint32_t n, cap;
	double *begin, *end;
	float *queue, *delay; /* of polls; NaN: none */
	uint8_t *kind, *depth;
};
struct drawn {
	struct piece *first, *last;
	size_t n;
};
struct pen {
	int64_t key, thread, worker;
	uint32_t recording;
	struct drawn of[N_OF];
};
struct serials {
	double begin[SERIALS];
	uint8_t depth[SERIALS];
};
struct recording {
	struct serials **at; /* NULL: none of these is known */
	size_t n;
};

static struct {
	bool on;
	struct pen *pens;
	size_t n, cap;
	struct weft__map by_key;
	uint32_t near[NEAR]; /* index of a pen, that which was asked for last with such a key */
	struct recording *polls;
	size_t n_polls;
} picture;

static const uint64_t serial_mask = (UINT64_C(1) << 44) - 1;

static void pieces_free(struct piece *piece)
{
	while (piece) {
		struct piece *next = piece->next;

		weft__free(piece);
		piece = next;
	}
}

void view_picture_end(void)
{
	size_t i, k;

	for (i = 0; i < picture.n; i++)
		for (k = 0; k < N_OF; k++)
			pieces_free(picture.pens[i].of[k].first);
	for (i = 0; i < picture.n_polls; i++) {
		for (k = 0; k < picture.polls[i].n; k++)
			weft__free(picture.polls[i].at[k]);
		weft__free(picture.polls[i].at);
	}
	weft__free(picture.polls);
	weft__free(picture.pens);
	weft__map_fini(&picture.by_key);
	memset(&picture, 0, sizeof(picture));
}

void view_picture_begin(void)
{
	view_picture_end();
	picture.on = true;
}

bool view_picture_on(void)
{
	return picture.on;
}

static int64_t cell(const struct weft__row *row, size_t column)
{
	return weft__row_has(row, column) ? row->at[column].i : VIEW_NULL;
}

static struct pen *pen_new(int64_t key, int64_t thread, int64_t worker)
{
	struct pen *grown = weft__grow(picture.pens, &picture.cap, picture.n, sizeof(*grown));

	if (!grown)
		return NULL;
	picture.pens = grown;
	if (weft__map_put(&picture.by_key, (uint64_t)key, (uint32_t)picture.n) < 0)
		return NULL;
	grown[picture.n] = (struct pen){.key = key, .thread = thread, .worker = worker};
	return &grown[picture.n++];
}

static struct pen *pen_of(const struct weft__row *row, size_t who)
{
	int64_t thread = cell(row, who + VIEW_WHO_THREAD_ID), worker = cell(row, who + VIEW_WHO_WORKER_ID);
	int64_t key = view_lane_key(worker, thread);
	uint32_t *near = &picture.near[(uint64_t)key % NEAR];
	struct pen *pen;
	uint32_t at;

	if (*near < picture.n && picture.pens[*near].key == key)
		return &picture.pens[*near];
	at = weft__map_get(&picture.by_key, (uint64_t)key);
	pen = at == WEFT__MAP_NONE ? pen_new(key, thread, worker) : &picture.pens[at];
	if (!pen)
		return NULL;
	pen->recording = (uint32_t)row->at[who].i;
	*near = (uint32_t)(pen - picture.pens);
	return pen;
}

static struct piece *piece_new(struct drawn *of, bool polls)
{
	uint32_t cap = !of->last ? PIECE_LEAST : of->last->cap < PIECE_MOST ? 2 * of->last->cap : PIECE_MOST;
	size_t each = polls ? 2 * sizeof(double) + 2 * sizeof(float) + 2 : 2 * sizeof(double);
	struct piece *piece = weft__alloc(sizeof(*piece) + cap * each);

	if (!piece)
		return NULL;
	*piece = (struct piece){.cap = cap, .begin = (double *)(piece + 1), .end = (double *)(piece + 1) + cap};
	if (polls) {
		piece->queue = (float *)(piece->end + cap);
		piece->delay = piece->queue + cap;
		piece->kind = (uint8_t *)(piece->delay + cap);
		piece->depth = piece->kind + cap;
	}
	if (of->last)
		of->last->next = piece;
	else
		of->first = piece;
	of->last = piece;
	return piece;
}

static struct piece *room(struct drawn *of, bool polls)
{
	return of->last && of->last->n < of->last->cap ? of->last : piece_new(of, polls);
}

static struct recording *recording_of(size_t number)
{
	if (!picture.polls) {
		picture.polls = weft__calloc(view_trace.list.n, sizeof(*picture.polls));
		picture.n_polls = picture.polls ? view_trace.list.n : 0;
	}
	return number < picture.n_polls ? &picture.polls[number] : NULL;
}

static struct serials *serials_new(struct recording *of, size_t at)
{
	struct serials **grown = of->at, *made;
	size_t i;

	if (at >= of->n) {
		grown = weft__realloc(of->at, (at + at / 2 + 1) * sizeof(struct serials *));
		if (!grown)
			return NULL;
		memset(grown + of->n, 0, (at + at / 2 + 1 - of->n) * sizeof(struct serials *));
		of->at = grown;
		of->n = at + at / 2 + 1;
	}
	made = weft__calloc(1, sizeof(*made));
	for (i = 0; made && i < SERIALS; i++)
		made->begin[i] = NAN;
	return grown[at] = made;
}

static int remember(int64_t id, const struct view_mark *mark)
{
	struct recording *of = recording_of((size_t)((uint64_t)id >> 44));
	size_t serial = (size_t)((uint64_t)id & serial_mask), at = serial / SERIALS;
	struct serials *some;

	if (!of)
		return -ENOMEM;
	some = at < of->n && of->at[at] ? of->at[at] : serials_new(of, at);
	if (!some)
		return -ENOMEM;
	some->begin[serial % SERIALS] = mark->begin_ns;
	some->depth[serial % SERIALS] = mark->depth;
	return 0;
}

static const struct serials *known(int64_t id)
{
	size_t number = (size_t)((uint64_t)id >> 44), at = (size_t)((uint64_t)id & serial_mask) / SERIALS;

	if (id == VIEW_NULL || number >= picture.n_polls || at >= picture.polls[number].n)
		return NULL;
	return picture.polls[number].at[at];
}

double view_picture_poll_ns(int64_t id)
{
	const struct serials *of = known(id);

	return of ? of->begin[(uint64_t)id % SERIALS] : NAN;
}

uint8_t view_picture_poll_depth(int64_t id)
{
	const struct serials *of = known(id);

	return of ? of->depth[(uint64_t)id % SERIALS] : 0;
}

static float value_of(int64_t cell)
{
	return cell == VIEW_NULL ? NAN : (float)cell;
}

static int add_poll(const struct weft__row *row, int64_t shift_ns)
{
	struct pen *pen = pen_of(row, WEFT__COL_POLL_RECORDING);
	struct piece *to = pen ? room(&pen->of[OF_POLLS], true) : NULL;
	int64_t at[VIEW_POLL_COLUMNS];
	struct view_mark mark;
	size_t i;

	if (!to)
		return -ENOMEM;
	for (i = 0; i < VIEW_POLL_LOCATION; i++)
		at[i] = cell(row, view_poll_columns[i]);
	at[VIEW_POLL_LOCATION] = VIEW_NULL;
	view_poll_mark(at, &mark);
	mark.begin_ns += (double)shift_ns;
	to->begin[to->n] = mark.begin_ns;
	to->end[to->n] = mark.end_ns + (double)shift_ns;
	to->kind[to->n] = mark.kind;
	to->depth[to->n] = mark.depth;
	to->queue[to->n] = value_of(cell(row, WEFT__COL_POLL_QUEUE_DEPTH));
	to->delay[to->n++] = value_of(cell(row, WEFT__COL_POLL_WAKE_DELAY_NS));
	pen->of[OF_POLLS].n++;
	return remember(cell(row, WEFT__COL_POLL_ID), &mark);
}

static int add_park(const struct weft__row *row, int64_t shift_ns)
{
	struct pen *pen = pen_of(row, WEFT__COL_PARK_RECORDING);
	struct piece *to = pen ? room(&pen->of[OF_PARKS], false) : NULL;

	if (!to)
		return -ENOMEM;
	if (!weft__row_has(row, WEFT__COL_PARK_BEGIN_NS))
		return 0;
	to->begin[to->n] = (double)(row->at[WEFT__COL_PARK_BEGIN_NS].i + shift_ns);
	to->end[to->n++] = (double)(row->at[WEFT__COL_PARK_END_NS].i + shift_ns);
	pen->of[OF_PARKS].n++;
	return 0;
}

int view_picture_add(enum weft__table_id table, const struct weft__row *row, int64_t shift_ns)
{
	return table == WEFT__TABLE_POLL ? add_poll(row, shift_ns) : add_park(row, shift_ns);
}

int view_picture_lanes(int (*add)(const struct view_lane *lane))
{
	size_t i;
	int rc = 0;

	for (i = 0; i < picture.n && rc == 0; i++) {
		const struct pen *pen = &picture.pens[i];
		int64_t tid = view_derive(0, pen->thread, pen->worker);
		int64_t name = view_derive(pen->worker == VIEW_NULL ? 1 : 2, pen->thread, pen->worker);
		struct view_lane lane = {
			.key = pen->key,
			.recording = pen->recording,
			.tid = tid == VIEW_NULL ? 0 : (uint32_t)tid,
			.thread = pen->thread,
			.worker = pen->worker,
			.name = name == VIEW_NULL ? VIEW_NONE : (uint32_t)name,
		};

		if (pen->key != -1)
			rc = add(&lane);
	}
	return rc;
}

/* The next one that is shown in a lane: a worker has what is known of its thread alone. */
static const struct drawn *next_of(uint32_t lane, size_t what, size_t *at)
{
	while (*at < picture.n) {
		const struct pen *pen = &picture.pens[(*at)++];

		if (pen->of[what].n && view_lane_by_key(pen->key) == lane)
			return &pen->of[what];
	}
	return NULL;
}

static bool sorted(const double *begin, size_t n)
{
	size_t i;

	for (i = 1; i < n && begin[i - 1] <= begin[i];)
		i++;
	return i >= n;
}

static void copy(const struct piece *from)
{
	size_t n = view_marks.n;

	memcpy(view_marks.begin + n, from->begin, from->n * sizeof(*from->begin));
	memcpy(view_marks.end + n, from->end, from->n * sizeof(*from->end));
	if (from->kind) {
		memcpy(view_marks.kind + n, from->kind, from->n);
		memcpy(view_marks.depth + n, from->depth, from->n);
	} else {
		memset(view_marks.kind + n, 0, from->n);
		memset(view_marks.depth + n, 0, from->n);
	}
	view_marks.n += from->n;
}

int view_picture_layer(enum weft__table_id table, uint32_t lane)
{
	size_t what = table == WEFT__TABLE_POLL ? OF_POLLS : OF_PARKS, at = 0;
	const struct piece *piece;
	const struct drawn *of;

	while ((of = next_of(lane, what, &at))) {
		if (view_marks_reserve(view_marks.n + of->n, false) < 0)
			return -ENOMEM;
		for (piece = of->first; piece; piece = piece->next)
			copy(piece);
	}
	view_marks.unsorted = !sorted(view_marks.begin, view_marks.n);
	return 0;
}

/* How many have a number. */
static size_t count_set(const struct drawn *of, bool delays)
{
	const struct piece *piece;
	size_t i, n = 0;

	for (piece = of->first; piece; piece = piece->next)
		for (i = 0; i < piece->n; i++)
			n += !isnan((delays ? piece->delay : piece->queue)[i]);
	return n;
}

static int add_points(const struct drawn *of, bool delays, bool each)
{
	const struct piece *piece;
	size_t i;
	int rc = 0;

	for (piece = of->first; piece; piece = piece->next)
		for (i = 0; i < piece->n && rc == 0; i++) {
			double value = (double)(delays ? piece->delay : piece->queue)[i];

			rc = each ? view_point_add(piece->begin[i], value) : view_point(piece->begin[i], value);
		}
	return rc;
}

int view_picture_points(uint32_t lane, bool delays)
{
	size_t at = 0, n = 0, n_set = 0;
	const struct drawn *of;
	int rc = 0;

	while ((of = next_of(lane, OF_POLLS, &at))) {
		n_set += count_set(of, delays);
		n += of->n;
	}
	if (n_set && view_marks_reserve(n_set > n / 2 ? n : n_set, true) < 0)
		return -ENOMEM;
	for (at = 0; n_set && rc == 0 && (of = next_of(lane, OF_POLLS, &at));)
		rc = add_points(of, delays, n_set > n / 2);
	return rc;
}
