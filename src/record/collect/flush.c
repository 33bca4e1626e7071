/* SPDX-License-Identifier: Apache-2.0 */
/* Staging to the segment file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "record/collect/collector.h"
#include "record/collect/staging.h"
#include "record/event/registry.h"
#include "record/ring/ring.h"
#include "segment/format.h"

#define IDLE_BYTES 32768 /* staged; blocks of less are encoded within 50 us */

_Static_assert(sizeof(((struct rings_head *)0)->active) == NAME_BYTES, "names of segments fit the head");

/* What stands in front of every segment. */
static int begin_segment(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	int err = c->segments.early ? 0 : weft__segments_begin(&c->segments);

	if (err)
		return err;
	c->segments.early = 0;
	weft__region_relink(c->region);
	head->sequence = c->segments.sequence;
	if (!c->flight.draft.of) /* else its name is there */
		memcpy(head->active, c->segments.active, sizeof(head->active));
	c->registry_at = 0;
	weft__stack_ids_begin_segment(c);
	weft__defs_clear(&c->defs);
	weft__defs_raw(&c->defs, c->facts.out.bytes, c->facts.out.n, c->facts.n);
	if (c->facts_seen != c->facts_open)
		weft__sources_facts(&c->defs, 1);
	weft__costs_facts(c, &c->defs);
	weft__throttle_facts(&c->throttle, &c->defs);
	weft__defs_clock(&c->defs, &c->timeline.before);
	return 0;
}

static int write_blocks(struct weft__collector *c, const struct weft__encoded *block)
{
	struct weft__writer *w = &c->segments.writer;
	uint64_t mark = w->offset;
	size_t mark_index = w->index.n;
	uint32_t mark_blocks = w->n_blocks;
	int err = block->err;

	weft__registry_read(&c->registry_at, &c->defs);
	weft__defs_clock(&c->defs, &c->timeline.last);
	if (!err && weft__defs_oom(&c->defs))
		err = -ENOMEM;
	if (!err)
		err = weft__writer_defs(w, c->encoder, &c->defs);
	if (!err && c->batch->n)
		err = weft__writer_block(w, BLOCK_EVENTS, 0, (uint32_t)c->batch->n, block->first_ns, block->last_ns,
					 block->payload);
	if (err &&
	    w->offset != mark) { /* definitions without their events: the losses among them would be reported twice */
		(void)!ftruncate(w->fd, (off_t)mark);
		w->offset = mark;
		w->index.n = mark_index;
		w->n_blocks = mark_blocks;
	}
	weft__segments_sync(&c->segments);
	return err;
}

/* The directory was deleted under us, or a file in memory closed: what was in the file is gone with it, recording
 * goes on in a new one. */
static void forget_deleted(struct weft__collector *c)
{
	weft__log(WEFT_LOG_WARN, "%s: the active segment was deleted%s; beginning a new one",
		  c->segments.dir ? c->segments.dir : "memory", c->segments.fd < 0 ? ", or its file closed" : "");
	if (!c->segments.gone.count)
		c->segments.gone = (struct weft_loss){.reason = WEFT_LOSS_DELETED, .from_ns = c->segments.begin_ns};
	c->segments.gone.to_ns = c->flushed_ns;
	c->segments.gone.count += c->segments.writer.n_events;
	weft__segments_drop(&c->segments);
	c->segments.sequence++;
}

/* Staging still holds everything: the next try begins again. A segment without its opening definitions is no use. */
static int flush_failed(struct weft__collector *c, uint64_t registry_mark, int err)
{
	weft__stack_ids_settle(c, 0);
	weft__contexts_settle(c, 0);
	weft__costs_settle(c, 0);
	c->registry_at = registry_mark;
	if (c->segments.fd >= 0 && !c->segments.writer.n_blocks)
		weft__segments_abandon(&c->segments);
	return err;
}

int weft__flush_init(struct weft__collector *c)
{
	c->batch = weft__alloc(sizeof(*c->batch));
	if (c->batch)
		weft__batch_init(c->batch, c->region->head->quantum_ns);
	return c->batch != NULL;
}

/* What is in a half of staging, gathered into the batch, with the definitions that it needs. */
static int flush_begin(struct weft__collector *c, uint32_t half)
{
	const struct rings_head *head = c->region->head;
	struct weft__half staged = {staging_half(c->region->base, head, half), head->staging_used[half]};
	uint64_t registry_mark = c->registry_at;
	int gone = weft__segments_gone(&c->segments);
	int err = 0;

	if (!c->batch && !weft__flush_init(c))
		return -ENOMEM;
	weft__region_reopen(c->region);
	if (gone && c->segments.early) {
		weft__segments_drop(&c->segments);
		gone = 0;
	}
	if (gone)
		forget_deleted(c);
	if (c->segments.fd < 0 || c->segments.early) {
		err = begin_segment(c);
		registry_mark = 0;
		if (!err && gone)
			weft__drain_define_again(c);
	} else {
		weft__defs_clear(&c->defs);
	}
	if (!err)
		err = weft__stack_ids_modules(c);
	if (c->segments.gone.count)
		weft__defs_loss(&c->defs, &c->segments.gone);
	if (!err)
		err = weft__gather(c, &staged);
	return err ? flush_failed(c, registry_mark, err) : 0;
}

static void encode_here(struct weft__collector *c, struct weft__encoded *block)
{
	*block = (struct weft__encoded){.payload = &c->payload};
	if (c->batch->n)
		block->err = weft__encoder_events(c->encoder, c->batch, &c->payload, &block->first_ns, &block->last_ns);
}

/* The half is in the file, and free. */
static int flush_end(struct weft__collector *c, uint32_t half, const struct weft__encoded *block)
{
	uint64_t registry_mark = c->registry_at;
	uint64_t n = c->batch->n;
	int err = write_blocks(c, block);

	if (err)
		return flush_failed(c, registry_mark, err);
	weft__stack_ids_settle(c, 1);
	weft__contexts_settle(c, 1);
	weft__costs_settle(c, 1);
	c->stats.events += n;
	c->stats.lost += c->n_bad + c->segments.gone.count;
	c->segments.gone.count = 0;
	store_release(&c->region->head->staging_used[half], 0);
	weft__staging_emptied(c, half);
	if (half == c->region->head->staging_now)
		c->staged_ns = 0;
	c->flushed_ns = weft__clock_mono();
	weft__flight_follow(c, c->flushed_ns);
	return 0;
}

static int flush_half(struct weft__collector *c, uint32_t half)
{
	struct weft__encoded block;
	int err = flush_begin(c, half);

	if (err)
		return err;
	encode_here(c, &block);
	return flush_end(c, half, &block);
}

/* The block that was given to the encoder thread, which is not waited for. */
static int flush_pending(struct weft__collector *c)
{
	struct weft__encoded block;
	int err;

	if (!weft__idle_ready(c->idle, &block)) {
		weft__idle_done(c->idle); /* it has not begun: it need not */
		encode_here(c, &block);
	}
	err = flush_end(c, c->region->head->staging_now ^ 1, &block);
	if (!weft__idle_done(c->idle) && !weft__idle_free(c->idle) && weft__idle_leave(c->idle, c->batch))
		c->batch = NULL;
	c->pending_ns = 0;
	return err;
}

/* Everything but what is in the half that is being filled. */
static int flush_older(struct weft__collector *c)
{
	uint32_t older = c->region->head->staging_now ^ 1;

	if (c->pending_ns)
		return flush_pending(c);
	return c->region->head->staging_used[older] ? flush_half(c, older) : 0;
}

/* The encoder thread and the memory that is needed to go on meanwhile, when they are first needed. */
static int has_idle(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	uint64_t at = head->staging_at + (uint64_t)(head->staging_now ^ 1) * STAGING_BYTES;

	if (!c->has_idle) {
		c->has_idle = 1;
		if (weft__ring_back(&c->region->file, c->region->base + at, at, STAGING_BYTES) &&
		    weft__idle_open(&c->idle, c->level) < 0)
			c->idle = NULL;
	}
	return c->idle && weft__idle_free(c->idle);
}

static int flush_later(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	int err;

	if (head->staging_used[head->staging_now] < IDLE_BYTES || !has_idle(c))
		return flush_half(c, head->staging_now);
	err = flush_begin(c, head->staging_now);
	if (err)
		return err;
	weft__idle_give(c->idle, c->batch);
	c->pending_ns = weft__clock_mono();
	c->staged_ns = 0;
	store_release(&head->staging_now, head->staging_now ^ 1);
	return 0;
}

int weft__flush(struct weft__collector *c)
{
	int err = flush_older(c);

	return err ? err : flush_half(c, c->region->head->staging_now);
}

int weft__flush_room(struct weft__collector *c)
{
	int err = flush_older(c);

	return err ? err : flush_later(c);
}

int weft__flush_soon(struct weft__collector *c)
{
	return c->pending_ns ? 0 : weft__flush_room(c);
}

int weft__flush_turn(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__encoded block;

	return weft__idle_ready(c->idle, &block) || now_ns >= c->pending_ns + c->flush_ns ? flush_pending(c) : 0;
}

void weft__flush_fini(struct weft__collector *c)
{
	if (c->pending_ns && !weft__idle_done(c->idle) && weft__idle_leave(c->idle, c->batch))
		c->batch = NULL;
	if (c->batch)
		weft__batch_fini(c->batch);
	weft__free(c->batch);
	weft__free(c->runs);
	weft__idle_close(c->idle);
	c->batch = NULL;
	c->runs = NULL;
	c->idle = NULL;
}

int weft__flush_seal(struct weft__collector *c)
{
	int err = weft__flush(c);

	if (!err)
		err = weft__segments_seal(&c->segments);
	if (!err) {
		c->stats.segments = c->segments.n_sealed;
		if (c->timeline.last.mono_ns > c->segments.from.mono_ns)
			c->segments.from = c->timeline.last; /* rings were drained after it was read */
	}
	return err;
}
