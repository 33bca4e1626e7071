/* SPDX-License-Identifier: Apache-2.0 */
/* Staged slots to the columns of a batch. */
#include <errno.h>

#include "base/alloc.h"
#include "record/collect/collector.h"
#include "record/collect/unpack.h"
#include "record/event/registry.h"

#define LANES 32

static struct staged_run *run_at(const struct weft__half *half, uint64_t at)
{
	return (struct staged_run *)(void *)(half->base + at);
}

static uint64_t run_end(const struct staged_run *run, uint64_t at)
{
	size_t payload = run->type == RUN_DEFS ? run->n : run->n * sizeof(struct weft_slot);

	return at + sizeof(*run) + (payload + 7) / 8 * 8;
}

static void write_bad(struct weft__collector *c)
{
	if (c->bad.count)
		weft__defs_loss(&c->defs, &c->bad);
	c->bad.count = 0;
}

/* One record for all that come one after the other in a thread: a program may emit many of a kind that it could not
 * define. */
static void report_bad(struct weft__collector *c, uint64_t when)
{
	uint32_t stream = c->batch->chunks[c->batch->n_chunks - 1].stream;

	if (c->bad.thread != stream)
		write_bad(c);
	if (!c->bad.count)
		c->bad = (struct weft_loss){WEFT_LOSS_BAD_EVENT, stream, 0, when, when};
	c->bad.count++;
	c->bad.to_ns = when > c->bad.to_ns ? when : c->bad.to_ns;
	c->n_bad++;
}

static int live_stack(void *who, uint64_t *field)
{
	return weft__stack_ids_get(who, (uint32_t)*field, field);
}

static int live_worker(void *who, uint32_t runtime, uint32_t index, uint64_t *field)
{
	(void)who;
	*field = weft__registry_worker(runtime, index);
	return 0;
}

static int live_kind(void *who, uint32_t kind, uint32_t *n_fields)
{
	int n = weft__registry_kind_fields(kind);

	(void)who;
	*n_fields = n < 0 ? 0 : (uint32_t)n;
	return n < 0;
}

static const struct weft__resolver by_process = {live_stack, live_worker, live_kind};

/* One event into the batch. What makes no sense is counted, not kept. */
static int add_event(struct weft__collector *c, const struct weft_slot *slots, uint64_t ns)
{
	struct weft__unpacked ev;
	int err = weft__resolve(&by_process, c, c->batch->chunks[c->batch->n_chunks - 1].stream, slots, &ev);

	if (err < 0)
		return err;
	if (!err && ev.kind == WEFT_KIND_CONTEXT)
		weft__contexts_saw(c, ev.fields);
	if (!err)
		err = weft__batch_add(c->batch, ns, ev.kind, ev.fields, ev.n_fields);
	if (err == 1 || err == -EOVERFLOW) {
		report_bad(c, ns);
		err = 0;
	}
	return err;
}

/* The kinds of which a trace is full have one slot and at most two fields, which are bits of its second word. Where
 * events of such a kind go, laid out so that it takes no branch to put one there: which kind comes next cannot be
 * foreseen. */
struct lane {
	struct weft__kind_rows *rows; /* NULL: this kind takes the detour */
	uint64_t *field[2];           /* of `rows`, or one word for what is no field */
	uint64_t used[2];             /* all ones, or 0 when it is no field */
	uint64_t low;                 /* the bits of field 0 */
	uint8_t index;                /* of `rows` */
};

struct lanes {
	struct lane of[LANES];
	uint64_t waste;
	uint64_t moves; /* of the batch, when they were opened */
	int open;
};

/* The kinds that come often, from the list. */
#define LOW_WORDS UINT64_MAX
#define LOW_PAIR WEFT_TASK_MASK
#define LANE_RARE(NAME, packing)
#define LANE_OFTEN(NAME, packing) {WEFT_KIND_##NAME, WEFT_FIELDS_OF_##NAME, LOW_##packing},
#define FITS_RARE(NAME, packing) 1
#define FITS_OFTEN(NAME, packing) (WEFT_KIND_##NAME < LANES && SLOTS_##packing(WEFT_FIELDS_OF_##NAME) == 1)

static const struct {
	uint32_t kind, n_fields;
	uint64_t low;
} lane_kinds[] = {
#define X(NAME, number, name, packing, how, ...) LANE_##how(NAME, packing)
	WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
};

#define X(NAME, number, name, packing, how, ...) _Static_assert(FITS_##how(NAME, packing), name " has no lane");
WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X

static void open_lane(struct weft__batch *batch, struct lanes *lanes, uint32_t kind, uint32_t n_fields, uint64_t low,
		      size_t n)
{
	struct lane *lane = &lanes->of[kind];
	uint32_t f;

	lane->rows = weft__batch_rows(batch, kind, n_fields, n);
	if (!lane->rows)
		return;
	for (f = 0; f < 2; f++) {
		lane->field[f] = f < n_fields ? lane->rows->field[f] : &lanes->waste;
		lane->used[f] = f < n_fields ? UINT64_MAX : 0;
	}
	lane->low = low;
	lane->index = (uint8_t)(lane->rows - batch->rows);
}

/* They stay open for `n` events, until an array of the batch moves. */
static void open_lanes(struct weft__batch *batch, struct lanes *lanes, size_t n)
{
	uint32_t i;

	for (i = 0; i < LANES; i++)
		lanes->of[i].rows = NULL;
	lanes->open = weft__batch_room(batch, n);
	if (!lanes->open)
		return;
	for (i = 0; i < sizeof(lane_kinds) / sizeof(lane_kinds[0]); i++)
		open_lane(batch, lanes, lane_kinds[i].kind, lane_kinds[i].n_fields, lane_kinds[i].low, n);
	lanes->moves = batch->moves;
}

/* Adds events up to the first that takes the detour and answers how many. */
static uint32_t add_quick(struct weft__collector *c, struct lanes *lanes, const struct weft_slot *slots, uint32_t n)
{
	struct weft__batch *batch = c->batch;
	const struct weft__timeline *line = &c->timeline;
	uint64_t *q = batch->q + batch->n;
	uint8_t *kinds = batch->kind + batch->n;
	uint64_t last_q = batch->last_q, base = line->last.mono_ns;
	int64_t scale = line->scale;
	uint32_t shift = batch->shift;
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint64_t w0 = slots[i].w0, w1 = slots[i].w1, now;
		struct lane *lane = &lanes->of[w0 & (LANES - 1)];
		size_t at;

		if ((w0 & 0xff) >= LANES || !lane->rows || w0 <= 0xff)
			break;
		at = lane->rows->n++;
		lane->field[0][at & lane->used[0]] = w1 & lane->low;
		lane->field[1][at & lane->used[1]] = w1 >> WEFT_TASK_BITS;
		now = (base + (uint64_t)weft__ticks_ns(weft__timeline_ticks(line, w0 >> 8), scale)) >> shift;
		last_q = now > last_q ? now : last_q;
		q[i] = last_q;
		kinds[i] = lane->index;
	}
	weft__batch_added(batch, i, last_q);
	return i;
}

static int add_run(struct weft__collector *c, const struct staged_run *run)
{
	const struct weft_slot *slots = (const struct weft_slot *)(const void *)(run + 1);
	struct lanes lanes;
	uint32_t i = 0;
	int err = 0;

	lanes.open = 0;
	while (i < run->n && !err) {
		if (c->timeline.scale) {
			if (!lanes.open || lanes.moves != c->batch->moves)
				open_lanes(c->batch, &lanes, run->n - i);
			i += add_quick(c, &lanes, &slots[i], run->n - i);
			if (i == run->n)
				break;
		}
		err = add_event(c, &slots[i], weft__slot_ns(&c->timeline, &slots[i]));
		i += event_slots(&slots[i]);
	}
	return err;
}

static int add_found(struct weft__collector *c, const struct staged_run *run)
{
	const struct weft_slot *slots = (const struct weft_slot *)(const void *)(run + 1);
	int err = 0;

	for (uint32_t i = 0; i < run->n && !err; i += event_slots(&slots[i]))
		err = add_event(c, &slots[i], weft__found_ns(&c->timeline, &slots[i]));
	return err;
}

/* Runs of events in the order in which they were staged, those of one ring linked. With very many threads a block
 * has thousands. */
static int link_runs(struct weft__collector *c, const struct weft__half *half)
{
	uint64_t at = 0;

	c->n_runs = 0;
	c->gathers++;
	while (at < half->used) {
		const struct staged_run *run = run_at(half, at);
		struct weft__run *grown;
		struct weft__ring_note *note;

		at = run_end(run, at);
		if (run->type == RUN_DEFS)
			continue;
		grown = weft__grow(c->runs, &c->runs_cap, c->n_runs, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		c->runs = grown;
		note = &c->notes[run->ring];
		if (note->run_gather == c->gathers)
			c->runs[note->run].next = (uint32_t)c->n_runs;
		note->run_gather = c->gathers;
		note->run = (uint32_t)c->n_runs;
		c->runs[c->n_runs++] = (struct weft__run){.staged = run, .next = UINT32_MAX};
	}
	return 0;
}

/* The run and all later ones of its ring that go on where it ends become one chunk; they are marked as done. */
static int add_chunk(struct weft__collector *c, uint32_t i)
{
	const struct staged_run *run = c->runs[i].staged;
	struct weft__ring_note *note = &c->notes[run->ring];
	uint64_t not_before = note->last_stream == run->stream ? note->last_ns : 0;
	uint64_t next = run->first_slot;
	uint64_t slots = 0;
	uint32_t stream = run->stream;
	int err = weft__batch_begin(c->batch, stream, run->ring, run->first_slot, not_before);

	if (err)
		return err;
	if (run->type == RUN_EVENTS)
		err = weft__contexts_begin(c, (const struct weft_slot *)(const void *)(run + 1));
	for (; i != UINT32_MAX && !err; i = c->runs[i].next) {
		run = c->runs[i].staged;
		if (run->stream != stream || run->first_slot != next)
			break; /* the ring was handed on: a chunk of its own */
		err = run->type == RUN_FOUND ? add_found(c, run) : add_run(c, run);
		next += run->n;
		slots += run->n;
		c->runs[i].taken = 1;
	}
	note->last_stream = stream;
	note->last_ns = weft__batch_last_ns(c->batch);
	weft__batch_end(c->batch, slots);
	return err;
}

static void add_defs(struct weft__collector *c, const struct weft__half *half)
{
	uint64_t at = 0;

	while (at < half->used) {
		const struct staged_run *run = run_at(half, at);

		if (run->type == RUN_DEFS)
			weft__defs_raw(&c->defs, (const uint8_t *)(run + 1), run->n, run->stream);
		at = run_end(run, at);
	}
}

int weft__gather(struct weft__collector *c, const struct weft__half *half)
{
	int err = link_runs(c, half);

	weft__batch_clear(c->batch);
	c->n_bad = 0;
	c->bad.count = 0;
	if (!err)
		add_defs(c, half);
	for (uint32_t i = 0; i < c->n_runs && !err; i++)
		if (!c->runs[i].taken)
			err = add_chunk(c, i);
	write_bad(c);
	return err ? err : weft__costs_gather(c);
}
