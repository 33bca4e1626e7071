/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "record/collect/unpack.h"
#include "record/event/wide.h"
#include "record/found.h"

#define FOUND_BYTES (sizeof(struct staged_run) + EVENT_SLOTS_MAX * sizeof(struct weft_slot))
#define FOUND_DEF_BYTES 256 /* the definition of a lane's stream takes less */

void weft__staging_publish(struct weft__collector *c, size_t bytes)
{
	struct rings_head *head = c->region->head;
	uint64_t *used = &head->staging_used[head->staging_now];

	store_release(used, *used + bytes);
	if (!c->staged_ns)
		c->staged_ns = weft__clock_mono();
}

int weft__staging_need(struct weft__collector *c, size_t bytes)
{
	int err = weft__staging_room(c) < bytes ? weft__flush_room(c) : 0;

	return err ? err : weft__staging_room(c) < bytes ? -ENOSPC : 0;
}

void weft__staging_emptied(struct weft__collector *c, uint32_t half)
{
	if (half == c->found.half)
		c->found.end = 0;
}

int weft__stage_news(struct weft__collector *c)
{
	struct staged_run run = {.type = RUN_DEFS};
	int err;

	if (!c->news.n)
		return 0;
	if (weft__defs_oom(&c->news)) {
		weft__defs_clear(&c->news);
		return -ENOMEM;
	}
	err = weft__staging_need(c, weft__run_bytes(c->news.out.n));
	if (err)
		return err;
	run.n = (uint32_t)c->news.out.n;
	run.stream = c->news.n;
	memcpy(weft__staging_end(c), &run, sizeof(run));
	memcpy(weft__staging_end(c) + sizeof(run), c->news.out.bytes, run.n);
	weft__staging_publish(c, weft__run_bytes(run.n));
	weft__defs_clear(&c->news);
	return 0;
}

void weft__staging_comm(uint32_t tid, char name[16])
{
	char path[64], text[32];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return;
	text[n] = 0;
	text[strcspn(text, "\n")] = 0;
	snprintf(name, 16, "%.15s", text);
}

void weft__found_begin(struct weft__collector *c)
{
	c->found.tid = (uint32_t)syscall(SYS_gettid);
	for (uint32_t i = 0; i < FOUND_LANES; i++)
		c->found.lanes[i].stream = 0;
}

static void lane_define(struct weft__collector *c, enum weft__found_lane lane, struct weft__defs *to)
{
	const struct weft__found_stream *stream = &c->found.lanes[lane];
	struct weft__ring_note *note = &c->notes[FOUND_RING(c->region->head, lane)];
	struct weft_thread thread = {
		.id = stream->stream,
		.tid = c->found.tid,
		.worker = WEFT_WORKER_NONE,
		.name = "weft-collector",
		.first_ns = stream->first_ns,
	};

	weft__defs_thread(to, &thread);
	note->stream = thread.id;
	note->segment = c->segments.sequence + 1;
}

void weft__found_define_again(struct weft__collector *c)
{
	for (uint32_t i = 0; i < FOUND_OTHER; i++)
		if (c->found.lanes[i].stream)
			lane_define(c, i, &c->defs);
}

/* The stream of a lane, which the active segment knows after this. */
static int lane_begin(struct weft__collector *c, enum weft__found_lane lane, uint64_t ns)
{
	struct weft__found_stream *stream = &c->found.lanes[lane];
	const struct weft__ring_note *note = &c->notes[FOUND_RING(c->region->head, lane)];

	if (!c->found.tid)
		weft__found_begin(c);
	if (!stream->stream) {
		stream->stream = c->region->head->next_stream++;
		stream->first_ns = ns;
	}
	if (note->stream != stream->stream || note->segment != c->segments.sequence + 1)
		lane_define(c, lane, &c->news);
	return weft__stage_news(c);
}

/* The last run in staging when it is one of this lane and stream, which then grows; else NULL. */
static struct staged_run *run_that_grows(struct weft__collector *c, uint32_t ring, uint32_t stream)
{
	const struct rings_head *head = c->region->head;
	struct staged_run *run = (void *)(staging_half(c->region->base, head, head->staging_now) + c->found.run);

	return c->found.end && c->found.half == head->staging_now &&
			       c->found.end == head->staging_used[head->staging_now] && run->ring == ring &&
			       run->stream == stream
		       ? run
		       : NULL;
}

/* There is room. The run says how long it is before staging says that it is there: recovery cuts one that is longer
 * than staging (salvage.c). */
static void lane_stage(struct weft__collector *c, enum weft__found_lane lane, const struct weft__found *event)
{
	struct rings_head *head = c->region->head;
	struct weft__found_stream *stream = &c->found.lanes[lane];
	uint32_t n = weft__kind_slots(event->kind);
	uint32_t ring = FOUND_RING(head, lane);
	struct staged_run *grows = run_that_grows(c, ring, stream->stream);
	struct staged_run run = {RUN_FOUND, n, ring, stream->stream, stream->next};
	size_t bytes = n * sizeof(struct weft_slot) + (grows ? 0 : sizeof(run));
	char *to = weft__staging_end(c);

	if (!grows) {
		c->found.run = head->staging_used[head->staging_now];
		c->found.half = head->staging_now;
		memcpy(to, &run, sizeof(run));
		to += sizeof(run);
	}
	weft__pack((struct weft_slot *)(void *)to, event->kind, event->ns, event->fields);
	if (grows)
		store_release(&grows->n, grows->n + n);
	weft__staging_publish(c, bytes);
	c->found.end = head->staging_used[head->staging_now];
	stream->next += n;
	c->drained += n;
}

static void lane_lose(struct weft__collector *c, enum weft__found_lane lane, uint64_t ns)
{
	struct weft_loss *lost = &c->found.lanes[lane].lost;

	if (!lost->count)
		*lost = (struct weft_loss){.reason = WEFT_LOSS_RING_FULL, .from_ns = ns, .to_ns = ns};
	lost->to_ns = ns > lost->to_ns ? ns : lost->to_ns;
	lost->count++;
}

int weft__found_losses(struct weft__collector *c)
{
	for (uint32_t i = 0; i < FOUND_LANES; i++) {
		struct weft__found_stream *stream = &c->found.lanes[i];

		if (!stream->lost.count)
			continue;
		stream->lost.thread = i == FOUND_OTHER ? 0 : stream->stream;
		weft__defs_loss(&c->news, &stream->lost);
		c->stats.lost += stream->lost.count;
		stream->lost.count = 0;
	}
	return weft__stage_news(c);
}

int weft__found_room(const struct weft__collector *c)
{
	return weft__staging_room(c) >= FOUND_BYTES + FOUND_DEF_BYTES;
}

int weft__found_need(struct weft__collector *c)
{
	int err = weft__stage_news(c);

	return err ? err : weft__staging_need(c, FOUND_BYTES + FOUND_DEF_BYTES);
}

static int lane_add(struct weft__collector *c, enum weft__found_lane lane, const struct weft__found *event)
{
	uint64_t tick = event->n_stacks ? weft__timeline_tick(&c->timeline, event->ns) : 0;
	struct stacks *used;
	int err = weft__staging_need(c, FOUND_BYTES);

	if (err)
		return err;
	used = weft__wide_refer(tick, event->fields, event->stacks, event->n_stacks);
	lane_stage(c, lane, event);
	weft__wide_referred(used);
	return 0;
}

int weft__found_add(struct weft__collector *c, enum weft__found_lane lane, const struct weft__found *event)
{
	int err = lane_begin(c, lane, event->ns);

	if (!err)
		err = lane_add(c, lane, event);
	if (err)
		lane_lose(c, lane, event->ns);
	return err;
}

int weft__found_of(struct weft__collector *c, uint32_t tid, uint64_t ns, const struct weft__found *event)
{
	struct weft__found_stream *stream = &c->found.lanes[FOUND_OTHER];
	char name[16] = "";
	struct weft_thread thread = {.tid = tid, .worker = WEFT_WORKER_NONE, .name = name, .first_ns = ns};
	int err;

	weft__staging_comm(tid, name);
	thread.id = stream->stream = c->region->head->next_stream++;
	weft__defs_thread(&c->news, &thread);
	err = weft__stage_news(c);
	if (!err && event)
		err = lane_add(c, FOUND_OTHER, event);
	if (err && event)
		lane_lose(c, FOUND_OTHER, ns);
	return err;
}
