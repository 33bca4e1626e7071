/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder: wires ring memory, registry and collector together, and sees them through fork and exit. CALLER.
 *
 * There is one at a time, because the gate and the thread's ring pointer are one per process. Its mutex is taken by every call
 * here and held across fork. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "record/collect/collector.h"
#include "record/engine/engine.h"
#include "record/event/registry.h"
#include "record/host/facts.h"
#include "record/options.h"
#include "record/ring/ring.h"
#include "weft/event.h"

#define SCHED_NS 10000000.0 /* between two readings of a thread's CPU time */

struct weft_recorder {
	struct weft__options options;
	struct weft__region region;
	struct weft__collector collector;
	enum weft_recorder_state state;
	uint32_t source; /* value of the gate when recording */
	uint64_t recovered;
	pid_t pid;  /* whose it is */
	int orphan; /* of a fork: nothing to stop or remove */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct weft_recorder *the_recorder;

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
	weft__engine_facts(facts);
	for (i = 0; o->labels[i]; i++) {
		size_t n = strcspn(o->labels[i], "=");
		char key[256];

		snprintf(key, sizeof(key), "label.%.*s", (int)(n < 200 ? n : 200), o->labels[i]);
		weft__defs_fact(facts, key, o->labels[i] + n + 1);
	}
}

static int setup_collector(struct weft_recorder *rec, const uint8_t *id, const char *stem, const char *why_clock)
{
	const struct weft_recorder_opts *o = &rec->options.o;
	struct weft__collector *c = &rec->collector;
	int err;

	c->region = &rec->region;
	c->drain_ns = o->drain_ns;
	c->flush_ns = o->flush_ns;
	c->queue_ns = o->queue_ns;
	c->segments.fd = -1;
	c->segments.dir = o->dir;
	snprintf(c->segments.stem, sizeof(c->segments.stem), "%s", stem);
	memcpy(c->segments.recording, id, sizeof(c->segments.recording));
	c->segments.segment_bytes = o->segment_bytes;
	c->segments.segment_ns = o->segment_ns;
	c->segments.keep_bytes = o->keep_bytes;
	c->segments.keep_ns = o->keep_ns;
	c->segments.sync = (int)o->sync;
	err = weft__collector_init(c);
	if (!err)
		err = weft__encoder_open(&c->encoder, (int)o->level);
	if (err)
		return err;
	weft__timeline_init(&c->timeline, (enum weft__tick_source)rec->source);
	rec->region.head->clocks[0] = c->timeline.before;
	rec->region.head->clocks[1] = c->timeline.last;
	rec->region.head->clock_at = 1;
	weft_gate.sched_ticks = (uint64_t)(SCHED_NS / c->timeline.ns_per_tick);
	add_facts(rec, why_clock);
	if (weft__defs_oom(&c->facts))
		return -ENOMEM;
	if (c->facts.out.n <= FACTS_BYTES) { /* else a recovered segment does without */
		memcpy(rec->region.base + rec->region.head->facts_at, c->facts.out.bytes, c->facts.out.n);
		rec->region.head->facts_count = c->facts.n;
		rec->region.head->facts_used = c->facts.out.n;
	}
	return 0;
}

static void teardown(struct weft_recorder *rec)
{
	weft__registry_share(NULL, NULL, -1);
	weft__engine_close();
	weft__collector_fini(&rec->collector);
	weft__region_close(&rec->region);
}

/* Everything but the options, which are there. Used by open, and by a forked child that begins again. */
static int setup(struct weft_recorder *rec, struct weft_error *err)
{
	const struct weft_recorder_opts *o = &rec->options.o;
	struct weft__region_want want = {
		.place = o->ring_place,
		.dir = o->dir,
		.service = o->name,
		.ring_slots = o->ring_bytes / (uint32_t)sizeof(struct weft_slot),
		.stacks = o->sample_hz != WEFT_SAMPLE_OFF,
		.max_rings = o->max_threads,
		.quantum_ns = o->quantum_ns,
	};
	const char *why_clock;
	uint8_t id[16];
	char stem[128];
	int r;

	memset(&rec->collector, 0, sizeof(rec->collector));
	r = weft__engine_open(o, err);
	if (r)
		return r;
	make_id(id);
	make_stem(stem, sizeof(stem), o->name, id);
	want.stem = stem;
	want.recording = id;
	rec->source = (uint32_t)weft__clock_source(&why_clock);
	want.source = (enum weft__tick_source)rec->source;
	r = weft__region_open(&rec->region, &want, err);
	if (r)
		return r;
	r = setup_collector(rec, id, stem, why_clock);
	if (!r)
		r = weft__registry_share(rec->region.head, rec->region.base, rec->region.fd);
	if (r) {
		weft__region_remove(&rec->region);
		teardown(rec);
		return weft__fail(err, r, "cannot open the recorder: %s", weft_strerror(r));
	}
	weft__region_use(&rec->region);
	rec->pid = getpid();
	rec->state = WEFT_STATE_IDLE;
	return 0;
}

/* The clock that the thread library names has the thread's id in it. */
static uint32_t tid_of(pthread_t thread)
{
	clockid_t clock;

	return pthread_getcpuclockid(thread, &clock) == 0 ? (uint32_t)~(clock >> 3) : 0;
}

/* A recorder that cannot sample records all the same. */
static void start_engine(struct weft_recorder *rec)
{
	int r = weft__engine_start(tid_of(rec->collector.thread));

	if (r)
		weft__log(WEFT_LOG_WARN, "no CPU samples: %s", weft_strerror(r));
}

static int start_locked(struct weft_recorder *rec, struct weft_error *err)
{
	int r;

	if (rec->state == WEFT_STATE_RECORDING || rec->orphan)
		return rec->orphan ? weft__fail(err, -WEFT_E_STATE, "this recorder belongs to the parent process") : 0;
	if (!rec->collector.running) {
		r = weft__collector_start(&rec->collector);
		if (r)
			return weft__fail(err, r, "cannot start the collector thread: %s", weft_strerror(r));
	}
	start_engine(rec);
	weft_gate.generation++;
	weft__collector_gate(&rec->collector, rec->source, 0);
	rec->state = WEFT_STATE_RECORDING;
	return 0;
}

static int stop_locked(struct weft_recorder *rec)
{
	int err = 0;

	if (rec->orphan)
		return 0;
	weft__collector_gate(&rec->collector, 0, 0);
	weft__engine_stop();
	if (rec->collector.running)
		err = weft__collector_ask(&rec->collector, ASK_STOP, NULL, 0);
	rec->state = WEFT_STATE_IDLE;
	return err;
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&mutex);
	weft__registry_lock();
}

static void fork_parent(void)
{
	weft__registry_unlock();
	pthread_mutex_unlock(&mutex);
}

/* The child has the memory of the parent, and none of its threads. */
static void make_orphan(struct weft_recorder *rec)
{
	store_seq_cst(&weft_gate.on, 0u);
	weft__engine_forked();
	weft_ring_self = &weft__ring_none.hot;
	rec->orphan = 1;
	rec->state = WEFT_STATE_CLOSED;
	weft__registry_share(NULL, NULL, -1);
	weft__segments_drop(&rec->collector.segments);
	weft__region_forsake(&rec->region);
	/* The collector may have been in the middle of anything: its memory is left alone for good. */
	memset(&rec->collector, 0, sizeof(rec->collector));
	rec->collector.segments.fd = -1;
}

static void begin_anew(struct weft_recorder *rec, int was_on)
{
	rec->orphan = setup(rec, NULL) < 0;
	if (rec->orphan) {
		memset(&rec->collector, 0, sizeof(rec->collector));
		rec->collector.segments.fd = -1;
	} else if (was_on) {
		start_locked(rec, NULL);
	}
}

static void fork_child(void)
{
	struct weft_recorder *rec = the_recorder;

	weft_ring_self = &weft__ring_none.hot;
	weft__registry_unlock();
	if (rec && !rec->orphan) {
		int was_on = rec->state == WEFT_STATE_RECORDING;

		make_orphan(rec);
		if (rec->options.o.on_fork == WEFT_FORK_RESTART)
			begin_anew(rec, was_on);
	}
	pthread_mutex_unlock(&mutex);
}

/* A child that was made behind the fork handlers' back finds out here. */
static void lock(void)
{
	pthread_mutex_lock(&mutex);
	if (the_recorder && !the_recorder->orphan && the_recorder->pid != getpid())
		make_orphan(the_recorder);
}

static void unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

/* A program that just returns from main loses nothing. */
static void at_exit(void)
{
	lock();
	if (the_recorder && the_recorder->state != WEFT_STATE_CLOSED) {
		int err = stop_locked(the_recorder);

		if (!err)
			weft__region_remove(&the_recorder->region);
	}
	unlock();
}

static void once_per_process(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	/* Children that fork handlers do not reach (clone, vfork's kin) find the gate shut all the same. */
	madvise(&weft_gate, sizeof(weft_gate), MADV_WIPEONFORK);
	atexit(at_exit);
	weft__threads_init();
}

static int open_locked(struct weft_recorder **ret, const struct weft_recorder_opts *opts, struct weft_error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct weft_recorder *rec;
	int r;

	if (the_recorder)
		return weft__fail(err, -WEFT_E_STATE, "a recorder is open already; a process has one at a time");
	rec = weft__calloc(1, sizeof(*rec));
	if (!rec)
		return weft__fail(err, -ENOMEM, "out of memory");
	r = weft__options_init(&rec->options, opts, err);
	if (!r && rec->options.o.dir)
		r = weft__options_dir(&rec->options, err);
	if (!r && rec->options.o.dir && !rec->options.o.no_recover) {
		int n = weft_recover(rec->options.o.dir, NULL, NULL, NULL);

		rec->recovered = n > 0 ? (uint64_t)n : 0;
	}
	if (!r) {
		pthread_once(&once, once_per_process);
		r = setup(rec, err);
	}
	if (r) {
		weft__options_fini(&rec->options);
		weft__free(rec);
		return r;
	}
	the_recorder = rec;
	*ret = rec;
	return 0;
}

int weft_recorder_open(struct weft_recorder **ret, const struct weft_recorder_opts *opts, struct weft_error *err)
{
	int r;

	lock();
	r = open_locked(ret, opts, err);
	unlock();
	return r;
}

int weft_recorder_open_env(struct weft_recorder **ret, const struct weft_recorder_opts *given, struct weft_error *err)
{
	struct weft__options labels = {0};
	const char *off = getenv("WEFT_OFF");
	struct weft_recorder_opts opts;
	int r;

	*ret = NULL;
	if (off && !strcmp(off, "1"))
		return 1;
	r = weft__options_take(&opts, given, err);
	if (!r)
		r = weft__options_env(&opts, &labels, err);
	if (!r)
		r = opts.dir && *opts.dir ? weft_recorder_open(ret, &opts, err) : 1;
	weft__options_fini(&labels);
	return r;
}

int weft_recorder_start(struct weft_recorder *rec, struct weft_error *err)
{
	int r;

	if (!rec)
		return 0;
	lock();
	r = start_locked(rec, err);
	unlock();
	return r;
}

int weft_recorder_pause(struct weft_recorder *rec)
{
	if (!rec)
		return 0;
	lock();
	if (rec->state == WEFT_STATE_RECORDING) {
		weft__collector_gate(&rec->collector, 0, 1);
		rec->state = WEFT_STATE_PAUSED;
	}
	unlock();
	return 0;
}

int weft_recorder_stop(struct weft_recorder *rec)
{
	int err;

	if (!rec)
		return 0;
	lock();
	err = stop_locked(rec);
	unlock();
	return err;
}

int weft_recorder_close(struct weft_recorder *rec)
{
	int err;

	if (!rec)
		return 0;
	lock();
	err = stop_locked(rec);
	if (!rec->orphan) {
		weft__region_leave(&rec->region);
		/* What could not be written stays where recovery finds it. */
		if (!err)
			weft__region_remove(&rec->region);
	}
	teardown(rec);
	weft__options_fini(&rec->options);
	if (the_recorder == rec)
		the_recorder = NULL;
	weft__free(rec);
	unlock();
	return err;
}

int weft_recorder_rotate(struct weft_recorder *rec, char *path, size_t path_bytes)
{
	int err = -WEFT_E_STATE;

	if (path && path_bytes)
		path[0] = 0;
	if (!rec)
		return 0;
	lock();
	if (rec->collector.running)
		err = weft__collector_ask(&rec->collector, ASK_ROTATE, path, path_bytes);
	unlock();
	return err;
}

int weft_recorder_save(struct weft_recorder *rec, const char *dir, struct weft_error *err)
{
	int r = 0;

	if (!rec)
		return 0;
	lock();
	if (rec->options.o.dir)
		r = weft__fail(err, -WEFT_E_STATE, "the recorder writes to %s already", rec->options.o.dir);
	if (!r && rec->collector.running)
		r = weft__collector_ask(&rec->collector, ASK_ROTATE, NULL, 0);
	if (r >= 0)
		r = weft__segments_save(&rec->collector.segments, dir, err);
	unlock();
	return r;
}

int weft_recorder_stats(struct weft_recorder *rec, struct weft_recorder_stats *stats)
{
	struct weft_recorder_stats full;
	size_t size = stats ? stats->size : 0;

	if (size < sizeof(size_t) + sizeof(uint32_t))
		return -EINVAL;
	memset(&full, 0, sizeof(full));
	lock();
	if (rec && !rec->orphan) {
		struct weft__collector *c = &rec->collector;

		pthread_mutex_lock(&c->mutex);
		full = c->shown;
		full.state = c->stuck_ns ? WEFT_STATE_DISK_FULL : rec->state;
		pthread_mutex_unlock(&c->mutex);
		full.threads = load_relaxed(&weft__hot.threads_now);
		full.rings = load_relaxed(&rec->region.head->n_rings);
		full.ring_bytes = rec->region.head->ring_stride;
		full.recovered = rec->recovered;
	}
	unlock();
	memset(stats, 0, size);
	memcpy(stats, &full, size < sizeof(full) ? size : sizeof(full));
	stats->size = size;
	return 0;
}
