/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's round through the sources: who is due has a turn, and what they have to say goes to staging. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record/collect/collector.h"
#include "record/event/registry.h"
#include "record/source.h"

/* What one of them did, and did again for as long as it had more than staging holds. */
static int round_one(struct weft__collector *c, int (*op)(const struct weft__turn *), const struct weft__turn *turn)
{
	int want = op(turn);

	while (want > 0 && want & SOURCE_MORE) {
		int err = weft__flush_room(c);

		want = err ? err : op(turn);
	}
	return want;
}

static int round_wants(struct weft__collector *c, int want)
{
	int err = want & SOURCE_MODULES ? weft__stack_ids_modules(c) : 0;

	if (!err && want & SOURCE_SOON) {
		err = weft__drain(c);
		if (!err)
			err = weft__flush(c);
	}
	return err;
}

int weft__round_sources(struct weft__collector *c, enum weft__source_stage stage, uint64_t now_ns, int err)
{
	struct weft__turn turn = {
		.collector = c, .timeline = &c->timeline, .now_ns = now_ns, .awake = 1, .calm = c->calm.on, .err = err};
	const struct weft__source *s;
	uint32_t i = 0;
	int want = 0;

	while ((!err || stage == SOURCE_LATE) && (s = weft__source_next(&i))) {
		int one;

		if (s->stage != stage || !s->turn || (s->due && s->due(&turn) > now_ns))
			continue;
		one = round_one(c, s->turn, &turn);
		if (one > 0)
			want |= one;
		else if (!err)
			turn.err = err = one;
	}
	return err ? err : round_wants(c, want);
}

int weft__round_finish_sources(struct weft__collector *c, int late, uint64_t now_ns, int err, int last)
{
	struct weft__turn turn = {
		.collector = c, .timeline = &c->timeline, .now_ns = now_ns, .awake = 1, .err = err, .last = last};
	const struct weft__source *s;
	uint32_t i = 0;

	while ((!err || late) && (s = weft__source_next(&i)))
		if (s->finish && (s->stage == SOURCE_LATE) == late) {
			int one = round_one(c, s->finish, &turn);

			err = one < 0 && !err ? one : err;
		}
	return err;
}

/* What is true of sources since they had to do without something; behind the facts of open, of which it takes the
 * place. */
static int round_facts(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	uint32_t version = weft__sources_version();
	int err;

	if (version == c->facts_seen)
		return 0;
	weft__sources_facts(&c->news, 1);
	if (!weft__defs_oom(&c->news) && c->facts.out.n + c->news.out.n <= FACTS_BYTES) {
		memcpy(c->region->base + head->facts_at + c->facts.out.n, c->news.out.bytes, c->news.out.n);
		head->facts_count = c->facts.n + c->news.n;
		head->facts_used = c->facts.out.n + c->news.out.n;
	}
	err = weft__stage_news(c);
	if (err != -ENOMEM)
		c->facts_seen = version;
	return err;
}

int weft__round_refused(struct weft__collector *c, int all)
{
	uint64_t n = weft__registry_refused();
	char text[120];

	if (n == c->refused_seen || (c->refused_seen && !all))
		return 0;
	snprintf(text, sizeof(text), "the table of definitions is full: %llu names or kinds were refused",
		 (unsigned long long)n);
	weft__defs_fact(&c->news, "degraded.definitions", text);
	c->refused_seen = n;
	return weft__stage_news(c);
}

int weft__round_news(struct weft__collector *c, uint64_t now_ns)
{
	int err = round_facts(c);
	const struct weft__source *s;
	uint32_t i = 0;

	while ((s = weft__source_next(&i))) {
		enum weft__source_loss lost;
		struct weft_loss loss;

		if (s->stats)
			s->stats(&c->stats);
		while (!err && s->loss && (lost = s->loss(&loss, now_ns)) != SOURCE_NO_LOSS) {
			weft__defs_loss(&c->news, &loss);
			c->stats.lost += lost == SOURCE_LOST_EVENTS ? loss.count : 0;
		}
	}
	if (!err)
		err = weft__stage_news(c);
	return err ? err : weft__round_refused(c, 0);
}
