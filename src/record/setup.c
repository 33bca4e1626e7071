/* SPDX-License-Identifier: Apache-2.0 */
#include "record/setup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/late.h"
#include "base/private_fds.h"
#include "record/event/account.h"
#include "record/event/registry.h"
#include "record/event/wakes.h"
#include "record/host/facts.h"
#include "record/ring/ring.h"
#include "record/source.h"

#define SLACK_SHARE 100     /* the part of the time between two drains that a timed wake may be late */
#define SCHED_NS 10000000.0 /* between two readings of a thread's CPU time */
#define POLL_NEARLY                                                                                                    \
	0.99 /* of a threshold: from there on it is looked at in ns, since how long a tick is gets known ever better */

/* File names of a recording begin with the service and end in what no other recording has. */
static void make_stem(char *stem, size_t bytes, const char *service, const uint8_t *recording)
{
	char safe[64];
	size_t i;

	snprintf(safe, sizeof(safe), "%s", service);
	for (i = 0; safe[i]; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", safe[i]))
			safe[i] = '_';
	snprintf(stem, bytes, "%s-%d-%02x%02x%02x%02x", safe, (int)getpid(), recording[0], recording[1], recording[2],
		 recording[3]);
}

static void make_id(uint8_t *id)
{
	uint64_t words[2] = {weft__clock_real(), (uint64_t)getpid() << 32 ^ weft__clock_mono()};

	memcpy(id, words, 16);
	(void)!getrandom(id, 16, GRND_NONBLOCK);
}

/* Mode auto begins with all of them, too. */
static int all_polls(const struct weft_recorder_opts *o)
{
	return o->poll_mode == WEFT_POLLS_ALL || o->poll_mode == WEFT_POLLS_AUTO;
}

static void add_poll_facts(const struct weft_recorder_opts *o, struct weft__defs *facts)
{
	static const char *const modes[] = {"all", "slow", "caught", "all"};
	char text[32];

	weft__defs_fact(facts, "poll.mode", modes[o->poll_mode]);
	if (all_polls(o))
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)o->poll_slow_ns);
	weft__defs_fact(facts, "poll.slow_ns", text);
	snprintf(text, sizeof(text), "%u", o->poll_cap);
	weft__defs_fact(facts, "poll.cap", text);
}

/* What of the process is not in the recording. */
static void add_start_facts(struct weft__defs *facts)
{
	char text[32];

	if (!weft__late_start_ns)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)weft__late_start_ns);
	weft__defs_fact(facts, "start.after_ns", text);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)weft__late_start_cpu_ns);
	weft__defs_fact(facts, "start.cpu_ns", text);
}

static void add_facts(struct weft_recorder *rec, const char *why_clock)
{
	struct weft__defs *facts = &rec->collector.facts;
	static const char *const places[] = {"shm", "dir", "memory"};
	const struct weft_recorder_opts *o = &rec->options.o;
	char text[64];
	size_t i;

	weft__facts_host(facts);
	weft__defs_fact(facts, "service.name", o->name);
	weft__defs_fact(facts, "clock.source", weft__clock_source_name((enum weft__tick_source)rec->source));
	snprintf(text, sizeof(text), "%.0f", 1e9 / rec->collector.timeline.ns_per_tick);
	weft__defs_fact(facts, "clock.hz", text);
	weft__defs_fact(facts, "ring.place", places[rec->region.place]);
	snprintf(text, sizeof(text), "%u", rec->region.head->ring_slots);
	weft__defs_fact(facts, "ring.slots", text);
	if (*why_clock)
		weft__defs_fact(facts, "degraded.clock", why_clock);
	if (rec->region.degraded[0])
		weft__defs_fact(facts, "degraded.ring", rec->region.degraded);
	rec->collector.facts_open = rec->collector.facts_seen = weft__sources_version();
	weft__sources_facts(facts, 0);
	add_poll_facts(o, facts);
	add_start_facts(facts);
	weft__costs_init(&rec->collector.costs, o->budget_ppm, facts);
	weft__symbolize_facts(rec->collector.segments.symbolize, facts);
	if (o->symbolize && !o->dir)
		weft__defs_fact(facts, "degraded.symbolize",
				"segments in memory are not symbolized: use weft symbolize");
	for (i = 0; o->labels[i]; i++) {
		size_t n = strcspn(o->labels[i], "=");
		char key[256];

		snprintf(key, sizeof(key), "label.%.*s", (int)(n < 200 ? n : 200), o->labels[i]);
		weft__defs_fact(facts, key, o->labels[i] + n + 1);
	}
}

/* What the emit path has to know of how polls are recorded. */
static void setup_polls(struct weft_recorder *rec)
{
	const struct weft_recorder_opts *o = &rec->options.o;
	uint64_t trigger = o->trigger_poll_ns ? o->trigger_poll_ns : UINT64_MAX;
	uint64_t look = UINT64_C(1) << POLLS_OCTAVES;

	rec->gate = rec->source;
	if (!all_polls(o))
		rec->gate |= o->poll_mode == WEFT_POLLS_SLOW ? WEFT_GATE_SLOW : WEFT_GATE_CAUGHT;
	else if (o->trigger_poll_ns)
		rec->gate |= WEFT_GATE_TIMED;
	if ((o->poll_mode == WEFT_POLLS_SLOW || o->poll_mode == WEFT_POLLS_AUTO) && o->poll_slow_ns < look)
		look = o->poll_slow_ns;
	if (trigger < look)
		look = trigger;
	store_relaxed(&weft_gate.poll_ticks,
		      (uint64_t)((double)look * POLL_NEARLY / rec->collector.timeline.ns_per_tick));
	store_relaxed(&weft_gate.poll_slow_ns, o->poll_slow_ns);
	store_relaxed(&weft_gate.poll_trigger_ns, trigger);
	store_relaxed(&weft_gate.second_ticks, (uint64_t)(1e9 / rec->collector.timeline.ns_per_tick));
	store_relaxed(&weft_gate.poll_cap, o->poll_cap);
	store_relaxed(&weft_gate.poll_mixed, 0u);
}

/* How it is known whether a thread was off the CPU. */
static void setup_detector(struct weft_recorder *rec, struct weft__defs *facts)
{
	uint64_t at, armed;
	const char *why = weft__rseq_find(&at, &armed);

	weft__defs_fact(facts, "detector", why ? "none" : "rseq");
	if (why) {
		weft__defs_fact(facts, "degraded.detector", why);
		return;
	}
	store_relaxed(&weft_gate.rseq_at, at);
	store_relaxed(&weft_gate.rseq_armed, armed);
	rec->gate |= WEFT_GATE_RSEQ;
}

static int setup_collector(struct weft_recorder *rec, const uint8_t *id, const char *stem, const char *why_clock)
{
	const struct weft_recorder_opts *o = &rec->options.o;
	struct weft__collector *c = &rec->collector;
	int err;

	c->region = &rec->region;
	c->drain_ns = o->drain_ns;
	c->flush_ns = o->flush_ns;
	c->slack_ns = o->drain_ns / SLACK_SHARE < o->queue_ns / 4 ? o->drain_ns / SLACK_SHARE : o->queue_ns / 4;
	c->counts_polls = !all_polls(o);
	weft__coarse_init(&c->coarse, o);
	c->segments.fd = -1;
	c->segments.dir = o->dir;
	snprintf(c->segments.stem, sizeof(c->segments.stem), "%s", stem);
	memcpy(c->segments.recording, id, sizeof(c->segments.recording));
	c->segments.segment_bytes = o->segment_bytes;
	c->segments.segment_ns = o->segment_ns;
	c->segments.keep_bytes = o->keep_bytes;
	c->segments.keep_ns = o->keep_ns;
	c->segments.sync = (int)o->sync;
	c->segments.mode = o->file_mode;
	err = weft__collector_init(c);
	if (!err)
		err = weft__encoder_open(&c->encoder, (int)o->level);
	c->level = (int)o->level;
	if (err)
		return err;
	weft__timeline_init(&c->timeline, (enum weft__tick_source)rec->source);
	weft__sources_setup(c, &c->timeline, o);
	rec->region.head->clocks[0] = c->timeline.before;
	rec->region.head->clocks[1] = c->timeline.last;
	rec->region.head->clock_at = 1;
	/* A thread may be in an emit of an earlier recording still. */
	store_relaxed(&weft_gate.sched_ticks, (uint64_t)(SCHED_NS / c->timeline.ns_per_tick));
	store_relaxed(&weft_gate.ms_ticks, (uint64_t)(1e6 / c->timeline.ns_per_tick));
	store_relaxed(&weft_gate.ns_scale, weft__timeline_scale(&c->timeline));
	setup_polls(rec);
	if (o->symbolize && o->dir) {
		err = weft__symbolize_open(&c->segments.symbolize, NULL);
		if (err)
			return err;
	}
	err = weft__ship_open(&c->segments.ship, o);
	if (err)
		return err;
	/* Segments in memory are saved by callers, and the names of functions are found by libraries that may do
	 * anything. */
	c->private_fds = weft__private_fds_wanted && o->dir && !c->segments.symbolize && !weft__sources_share_files();
	add_facts(rec, why_clock);
	setup_detector(rec, &c->facts);
	if (weft__defs_oom(&c->facts))
		return -ENOMEM;
	if (c->facts.out.n <= FACTS_BYTES) { /* else a recovered segment does without */
		memcpy(rec->region.base + rec->region.head->facts_at, c->facts.out.bytes, c->facts.out.n);
		rec->region.head->facts_count = c->facts.n;
		rec->region.head->facts_used = c->facts.out.n;
	}
	return 0;
}

void weft__recorder_teardown(struct weft_recorder *rec)
{
	weft__registry_share(NULL, NULL, NULL);
	weft__sources_close(&rec->collector);
	weft__symbolize_close(rec->collector.segments.symbolize);
	weft__ship_close(rec->collector.segments.ship);
	weft__collector_fini(&rec->collector);
	weft__region_close(&rec->region);
}

int weft__recorder_setup(struct weft_recorder *rec, struct weft_error *err)
{
	const struct weft_recorder_opts *o = &rec->options.o;
	struct weft__region_want want = {
		.place = o->ring_place,
		.dir = o->dir,
		.service = o->name,
		.ring_slots = o->ring_bytes / (uint32_t)sizeof(struct weft_slot),
		.stacks = 1, /* of samples, of waits, and of polls that do not end */
		.max_rings = o->max_threads,
		.quantum_ns = o->quantum_ns,
	};
	const char *why_clock;
	uint8_t id[16];
	char stem[128];
	int r;

	memset(&rec->collector, 0, sizeof(rec->collector));
	r = weft__sources_open(o, err);
	if (r)
		return r;
	make_id(id);
	make_stem(stem, sizeof(stem), o->name, id);
	want.stem = stem;
	want.recording = id;
	rec->source = (uint32_t)weft__clock_source(&why_clock);
	want.source = (enum weft__tick_source)rec->source;
	r = weft__region_open(&rec->region, &want, err);
	if (r) {
		weft__sources_close(NULL);
		return r;
	}
	r = setup_collector(rec, id, stem, why_clock);
	if (!r)
		r = weft__registry_share(rec->region.head, rec->region.base, &rec->region.file);
	if (r) {
		weft__region_remove(&rec->region);
		weft__recorder_teardown(rec);
		return weft__fail(err, r, "cannot open the recorder: %s", weft_strerror(r));
	}
	weft__wakes_reset();
	weft__region_use(&rec->region);
	rec->pid = getpid();
	rec->state = WEFT_STATE_IDLE;
	return 0;
}
