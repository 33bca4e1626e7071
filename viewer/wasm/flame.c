/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of calls for a selection, by the stacks and names of the analysis. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/profile.h"
#include "base/alloc.h"
#include "cover.h"
#include "lanes.h"

static int64_t get(const struct view_store *s, size_t column, uint32_t row)
{
	return column == SIZE_MAX ? VIEW_NULL : view_store_get(s, column, row);
}

/* Where a table has what selections ask for; SIZE_MAX: nowhere. */
struct columns {
	size_t who, time, end, duration, poll, task, location, span, root, labels, stack, kernel, weight;
};

static size_t find(enum weft__table_id table, const char *name)
{
	size_t at = view_column_find(table, name);

	return at < weft__tables[table].n_columns ? at : SIZE_MAX;
}

static struct columns columns_of(enum weft__table_id t)
{
	struct columns c = {
		.who = view_who_at(t),
		.time = find(t, t == WEFT__TABLE_OFFCPU || t == WEFT__TABLE_WAIT ? "begin_ns" : "time_ns"),
		.end = find(t, "end_ns"),
		.poll = find(t, "poll_id"),
		.task = find(t, "task"),
		.location = SIZE_MAX,
		.span = find(t, "span"),
		.root = find(t, "root_span"),
		.labels = find(t, "labels"),
		.stack = find(t, "stack_id"),
		.kernel = find(t, "kernel_stack_id"),
		.weight = find(t, t == WEFT__TABLE_OFFCPU || t == WEFT__TABLE_WAIT ? "duration_ns" : "weight_ns"),
	};
	return c;
}

static bool among(const int64_t *ids, uint32_t n, int64_t id)
{
	uint32_t i;

	for (i = 0; i < n && ids[i] != id;)
		i++;
	return i < n;
}

static bool who_holds(const struct view_store *s, const struct columns *c, uint32_t row)
{
	const struct view_selection *sel = &view_selection;
	int64_t recording = view_store_get(s, c->who, row);

	if (sel->recording >= 0 && recording != sel->recording)
		return false;
	if (sel->n_threads == 0 && sel->n_workers == 0)
		return true;
	return among(sel->ids, sel->n_threads, view_store_get(s, c->who + 1, row)) ||
	       among(sel->ids + sel->n_threads, sel->n_workers, view_store_get(s, c->who + 4, row));
}

static bool has_label(uint32_t text, const char *wanted)
{
	const char *at = view_text_at(text);
	size_t n = strlen(wanted);

	for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, wanted, n) == 0 && (at[n] == 0 || at[n] == ','))
			return true;
	return false;
}

/* The poll that a row is in says what the row itself does not. */
static bool context_holds(const struct view_store *s, const struct columns *c, uint32_t row)
{
	const struct view_selection *sel = &view_selection;
	const struct view_store *polls = &view_trace.stores[WEFT__TABLE_POLL];
	int64_t poll_id = get(s, c->poll, row);
	uint32_t poll = poll_id == VIEW_NULL ? VIEW_NONE : view_poll_row(poll_id);
	bool own = c->span != SIZE_MAX;

	if (sel->poll != VIEW_NULL && poll_id != sel->poll)
		return false;
	if ((sel->task != VIEW_NULL || sel->location != VIEW_NULL || sel->min_poll_ns) && poll == VIEW_NONE)
		return false;
	if (sel->task != VIEW_NULL && view_store_get(polls, WEFT__COL_POLL_TASK, poll) != sel->task)
		return false;
	if (sel->location != VIEW_NULL && view_store_get(polls, WEFT__COL_POLL_LOCATION_ID, poll) != sel->location)
		return false;
	if (sel->min_poll_ns && view_store_get(polls, WEFT__COL_POLL_DURATION_NS, poll) < sel->min_poll_ns)
		return false;
	if (!own && poll == VIEW_NONE && (sel->span || sel->label[0]))
		return false;
	if (sel->span && (uint64_t)(own ? get(s, c->span, row) : get(polls, WEFT__COL_POLL_SPAN, poll)) != sel->span &&
	    (uint64_t)(own ? get(s, c->root, row) : get(polls, WEFT__COL_POLL_ROOT_SPAN, poll)) != sel->span)
		return false;
	return !sel->label[0] ||
	       has_label((uint32_t)(own ? get(s, c->labels, row) : get(polls, WEFT__COL_POLL_LABELS, poll)),
			 sel->label);
}

/* How much of a row is in the selected time: a sample is a moment, the others are cut at its ends. */
static uint64_t weight_in(const struct view_store *s, const struct columns *c, uint32_t row)
{
	const struct view_selection *sel = &view_selection;
	double begin = (double)view_store_get(s, c->time, row), end = begin, cut = 1;
	int64_t weight = view_store_get(s, c->weight, row);

	if (weight == VIEW_NULL || weight < 0)
		return 0;
	if (c->end != SIZE_MAX) {
		double from, to;

		end = (double)view_store_get(s, c->end, row);
		from = sel->from_ns > begin ? sel->from_ns : begin;
		to = sel->to_ns < end ? sel->to_ns : end;
		if (to < from || (to == from && end > begin))
			return 0;
		cut = end > begin ? (to - from) / (end - begin) : 1;
		return cut >= 1 ? (uint64_t)weight : (uint64_t)((double)weight * cut + 0.5);
	}
	if ((!isnan(sel->from_ns) && begin < sel->from_ns) || (!isnan(sel->to_ns) && begin >= sel->to_ns))
		return 0;
	return (uint64_t)weight;
}

static uint32_t stack_of(const struct view_store *s, size_t column, uint32_t row)
{
	int64_t id = get(s, column, row);

	return id == VIEW_NULL ? 0 : (uint32_t)(id & ((INT64_C(1) << 44) - 1));
}

/* The merged tree, as the page gets it. Frames are known by name and module. */
struct out_node {
	int32_t parent;
	uint32_t frame, count;
	double total, self;
};
struct out_frame {
	uint32_t name, module, file, line;
};
static struct {
	struct out_node *nodes;
	size_t n, cap;
	struct out_frame *frames;
	size_t n_frames, cap_frames;
	struct weft__map by_call, by_frame;
} out;

/* Lines of one function are frames of their own: the page puts them together where it wants to. */
static uint32_t frame_get(uint32_t name, uint32_t module, uint32_t file, uint32_t line)
{
	uint64_t key = ((uint64_t)name << 32 | module) * UINT64_C(0x9e3779b97f4a7c15) ^ ((uint64_t)file << 32 | line);
	struct out_frame wanted = {name, module, file, line}, *grown;
	uint32_t at;

	for (; (at = weft__map_get(&out.by_frame, key)) != WEFT__MAP_NONE; key++)
		if (memcmp(&out.frames[at], &wanted, sizeof(wanted)) == 0)
			return at;
	grown = weft__grow(out.frames, &out.cap_frames, out.n_frames, sizeof(*grown));
	if (!grown || weft__map_put(&out.by_frame, key, (uint32_t)out.n_frames) < 0)
		return VIEW_NONE;
	out.frames = grown;
	grown[out.n_frames] = wanted;
	return (uint32_t)out.n_frames++;
}

static uint32_t node_get(uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t at = parent == VIEW_NONE ? WEFT__MAP_NONE : weft__map_get(&out.by_call, key);
	struct out_node *grown;

	if (at != WEFT__MAP_NONE)
		return at;
	grown = weft__grow(out.nodes, &out.cap, out.n, sizeof(*grown));
	if (!grown || (parent != VIEW_NONE && weft__map_put(&out.by_call, key, (uint32_t)out.n) < 0))
		return VIEW_NONE;
	out.nodes = grown;
	grown[out.n] = (struct out_node){.parent = (int32_t)parent, .frame = frame};
	return (uint32_t)out.n++;
}

static void weigh(uint32_t node, struct weft__weight weight)
{
	out.nodes[node].total += (double)weight.ns;
	out.nodes[node].count += (uint32_t)weight.n;
}

struct adding {
	const struct weft__frames *frames;
	struct weft__line_list lines;
	bool wait, invert;
};

static int step(uint32_t *at, uint32_t frame, struct weft__weight weight)
{
	uint32_t next = frame == VIEW_NONE ? VIEW_NONE : node_get(*at, frame);

	if (next == VIEW_NONE)
		return -ENOMEM;
	*at = next;
	weigh(next, weight);
	return 0;
}

static int step_line(const struct adding *adding, uint32_t *at, size_t i, struct weft__weight weight)
{
	const struct weft__line *line = &adding->lines.at[i];
	const struct weft__function *function = &adding->frames->functions[line->function];

	return step(at,
		    frame_get(view_text_kept(function->name), view_text_kept(function->module),
			      view_text_kept(line->file ? line->file : ""), line->line),
		    weight);
}

/* What is above a stack that does not reach the thread's first function, as in weft__tree_add; or instead of it. */
static const char *missing_above(const struct weft__frames *frames, uint32_t stack, size_t n_lines)
{
	const struct weft__code_stack *code = weft__frames_stack(frames, stack);

	if (n_lines == 0)
		return "(no stack)";
	if (!code || code->n == 0 || code->flags & WEFT_STACK_COMPLETE)
		return NULL;
	return code->flags & WEFT_STACK_CUT ? "(cut)" : "(lost)";
}

static int add_stack(struct adding *adding, uint32_t stack, uint32_t kernel, struct weft__weight weight)
{
	const char *above;
	uint32_t at = 0, leaf = 0, nothing = view_text(""), frame = 0;
	size_t i, first;
	int rc = weft__frames_lines(adding->frames, stack, kernel, &adding->lines);

	if (rc < 0)
		return rc;
	first = adding->wait ? weft__frames_outside(adding->frames, &adding->lines) : 0;
	above = missing_above(adding->frames, stack, adding->lines.n > first ? adding->lines.n - first : 0);
	if (above)
		frame = frame_get(view_text(above), nothing, nothing, 0);
	weigh(0, weight);
	if (above && !adding->invert)
		rc = step(&at, frame, weight);
	for (i = first; i < adding->lines.n && rc == 0; i++) {
		size_t line = adding->invert ? i : adding->lines.n - 1 - (i - first);

		rc = step_line(adding, &at, line, weight);
		leaf = adding->invert && i > first ? leaf : at;
	}
	if (above && adding->invert && rc == 0)
		rc = step(&at, frame, weight);
	if (rc == 0)
		out.nodes[adding->invert && leaf ? leaf : at].self += (double)weight.ns;
	return rc;
}

static int add_row(struct adding *adding, const struct view_store *s, const struct columns *c, uint32_t row,
		   uint64_t ns)
{
	adding->frames = &view_trace.list.all[view_store_get(s, c->who, row)].frames;
	return add_stack(adding, stack_of(s, c->stack, row), stack_of(s, c->kernel, row),
			 (struct weft__weight){.n = 1, .ns = ns});
}

static int add_table(enum weft__table_id table, bool invert)
{
	const struct view_store *s = &view_trace.stores[table];
	struct adding adding = {.wait = table == WEFT__TABLE_WAIT, .invert = invert};
	struct columns c = columns_of(table);
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->n && rc == 0; i++) {
		uint64_t ns = who_holds(s, &c, i) && context_holds(s, &c, i) ? weight_in(s, &c, i) : 0;

		rc = ns ? add_row(&adding, s, &c, i, ns) : 0;
	}
	weft__free(adding.lines.at);
	return rc;
}

/* What of a wait, from `begin_ns` on, no sample and no time off the CPU stands for; of it what is selected. */
static double wait_alone(const struct view_store *s, uint32_t row, const struct view_span *span, double begin_ns,
			 const struct view_cover *off)
{
	const struct view_selection *sel = &view_selection;
	double whole_ns = span->end_ns - span->begin_ns, on_cpu_ns = (double)get(s, WEFT__COL_WAIT_ON_CPU_NS, row);
	double most_ns = (double)get(s, WEFT__COL_WAIT_DURATION_NS, row), from_ns, to_ns, share, alone_ns;

	from_ns = sel->from_ns > begin_ns ? sel->from_ns : begin_ns;
	to_ns = sel->to_ns < span->end_ns ? sel->to_ns : span->end_ns;
	if (to_ns <= from_ns)
		return 0;
	share = (to_ns - from_ns) / whole_ns;
	alone_ns = to_ns - from_ns - view_cover_ns(off, span->thread, from_ns, to_ns);
	alone_ns -= on_cpu_ns > 0 ? on_cpu_ns * share : 0;
	return alone_ns < most_ns * share ? alone_ns : most_ns * share;
}

static int add_waits_alone(const struct view_cover *off, bool invert)
{
	const struct view_store *s = &view_trace.stores[WEFT__TABLE_WAIT];
	struct adding adding = {.wait = true, .invert = invert};
	struct columns c = columns_of(WEFT__TABLE_WAIT);
	struct view_cover waits = {0};
	double until_ns = 0;
	size_t i;
	int rc = view_cover_add(&waits, WEFT__TABLE_WAIT);

	view_cover_sort(&waits);
	for (i = 0; i < waits.n && rc == 0; i++) {
		const struct view_span *span = &waits.at[i];
		double begin_ns, ns;

		if (i == 0 || span->thread != span[-1].thread)
			until_ns = span->begin_ns;
		begin_ns = until_ns > span->begin_ns ? until_ns : span->begin_ns; /* one inside another */
		until_ns = until_ns > span->end_ns ? until_ns : span->end_ns;
		if (!who_holds(s, &c, span->row) || !context_holds(s, &c, span->row))
			continue;
		ns = wait_alone(s, span->row, span, begin_ns, off);
		if (ns >= 0.5)
			rc = add_row(&adding, s, &c, span->row, (uint64_t)(ns + 0.5));
	}
	view_cover_fini(&waits);
	weft__free(adding.lines.at);
	return rc;
}

/* A wall sample stands for the time before it. */
static int add_walls_alone(const struct view_cover *known, bool invert)
{
	const struct view_store *s = &view_trace.stores[WEFT__TABLE_WALL];
	struct adding adding = {.invert = invert};
	struct columns c = columns_of(WEFT__TABLE_WALL);
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->n && rc == 0; i++) {
		double ns = who_holds(s, &c, i) && context_holds(s, &c, i) ? (double)weight_in(s, &c, i) : 0;
		double end_ns = (double)view_store_get(s, c.time, i);

		if (ns > 0)
			ns -= view_cover_ns(known, view_thread_of(s, c.who, i), end_ns - ns, end_ns);
		if (ns >= 0.5)
			rc = add_row(&adding, s, &c, i, (uint64_t)(ns + 0.5));
	}
	weft__free(adding.lines.at);
	return rc;
}

/* On the CPU, off it, and of waits and wall samples what neither of these covers. */
static int add_wall(bool invert)
{
	struct view_cover cover = {0};
	int rc = add_table(WEFT__TABLE_SAMPLE, invert);

	if (rc == 0)
		rc = add_table(WEFT__TABLE_OFFCPU, invert);
	if (rc == 0)
		rc = view_cover_add(&cover, WEFT__TABLE_OFFCPU);
	view_cover_merge(&cover);
	if (rc == 0)
		rc = add_waits_alone(&cover, invert);
	if (rc == 0)
		rc = view_cover_add(&cover, WEFT__TABLE_WAIT);
	view_cover_merge(&cover);
	if (rc == 0)
		rc = add_walls_alone(&cover, invert);
	view_cover_fini(&cover);
	return rc;
}

static void out_clear(void)
{
	weft__map_fini(&out.by_call);
	weft__map_fini(&out.by_frame);
	out.n = out.n_frames = 0;
}

enum { WEIGHT_CPU, WEIGHT_OFFCPU, WEIGHT_WAIT, WEIGHT_WALL };

/* The tree of the selection: number of nodes, or a negative error. */
VIEW_EXPORT int view_flame(uint32_t weight, int invert)
{
	int rc = 0;

	out_clear();
	if (node_get(VIEW_NONE, 0) == VIEW_NONE)
		rc = -ENOMEM;
	if (rc == 0 && weight == WEIGHT_CPU)
		rc = add_table(WEFT__TABLE_SAMPLE, invert);
	if (rc == 0 && weight == WEIGHT_WALL)
		rc = add_wall(invert);
	if (rc == 0 && weight == WEIGHT_OFFCPU)
		rc = add_table(WEFT__TABLE_OFFCPU, invert);
	if (rc == 0 && weight == WEIGHT_WAIT)
		rc = add_table(WEFT__TABLE_WAIT, invert);
	return rc < 0 ? rc : (int)out.n;
}

/* As columns, one behind the other: total and self (double), parent, frame and count (32 bits). */
VIEW_EXPORT const void *view_flame_columns(void)
{
	size_t n = out.n, i;
	double *total = view_room(VIEW_ROOM_FLAME, n * 28 + 8), *self = total + n;
	int32_t *parent = (int32_t *)(self + n);
	uint32_t *frame = (uint32_t *)(parent + n), *count = frame + n;

	for (i = 0; total && i < n; i++) {
		total[i] = out.nodes[i].total;
		self[i] = out.nodes[i].self;
		parent[i] = i ? out.nodes[i].parent : -1;
		frame[i] = out.nodes[i].frame;
		count[i] = out.nodes[i].count;
	}
	return total;
}

VIEW_EXPORT uint32_t view_flame_frames(void)
{
	return (uint32_t)out.n_frames;
}

/* Four numbers of 32 bits for each frame: texts of name, module and file, and the line. */
VIEW_EXPORT const void *view_flame_frame_columns(void)
{
	return out.frames;
}
