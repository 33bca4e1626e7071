/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder: wires ring memory, registry and collector together, and sees them through fork and exit. CALLER.
 *
 * There is one at a time, because the gate and the thread's ring pointer are one per process. Its mutex is taken by
 * every call here and held across fork. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/late.h"
#include "base/ours.h"
#include "base/place.h"
#include "record/event/registry.h"
#include "record/last.h"
#include "record/off.h"
#include "record/ring/ring.h"
#include "record/setup.h"
#include "record/source.h"
#include "record/trigger.h"
#include "weft/event.h"

static pthread_mutex_t mutex FORK_DATA = PTHREAD_MUTEX_INITIALIZER;
static struct weft_recorder *the_recorder;

static void pause_locked(struct weft_recorder *rec)
{
	weft__collector_attach(&rec->collector, 0);
	weft__collector_gate(&rec->collector, 0, 1);
	weft__sources_stop(SOURCE_PAUSE); /* no signals either */
	rec->state = WEFT_STATE_PAUSED;
}

static int start_locked(struct weft_recorder *rec, struct weft_error *err)
{
	int r;

	if (rec->state == WEFT_STATE_RECORDING || rec->orphan)
		return rec->orphan ? weft__fail(err, -WEFT_E_STATE, "this recorder belongs to the parent process") : 0;
	r = weft__trigger_listen((int)rec->options.o.trigger_signal);
	if (r)
		weft__log(WEFT_LOG_WARN, "trigger_signal %u: %s", rec->options.o.trigger_signal, weft_strerror(r));
	if (!rec->collector.running) {
		if (!rec->stop_err) /* else there is something that is not written yet */
			rec->collector.segments.from = weft__clock_read(rec->collector.timeline.source);
		r = weft__collector_start(&rec->collector);
		if (r)
			return weft__fail(err, r, "cannot start the collector thread: %s", weft_strerror(r));
	}
	weft__ship_start(rec->collector.segments.ship);
	weft__sources_start(rec->collector.thread);
	add_relaxed(&weft_gate.generation, 1u);
	weft__collector_gate(&rec->collector, rec->gate, 0);
	weft__collector_attach(&rec->collector, 1);
	rec->state = WEFT_STATE_RECORDING;
	if (weft__off_start(rec, &rec->options.o))
		pause_locked(rec);
	return 0;
}

static int stop_locked(struct weft_recorder *rec)
{
	int err = 0;

	if (rec->orphan)
		return 0;
	weft__collector_attach(&rec->collector, 0);
	weft__sources_leave();
	weft__trigger_deafen();
	weft__collector_gate(&rec->collector, 0, 0);
	weft__sources_stop(SOURCE_STOP);
	/* What an earlier stop could not write may be written now. */
	if (!rec->collector.running && rec->stop_err && weft__collector_start(&rec->collector) < 0)
		err = rec->stop_err;
	if (rec->collector.running)
		err = weft__collector_ask(&rec->collector, ASK_STOP, NULL, 0);
	rec->stop_err = err;
	rec->state = WEFT_STATE_IDLE;
	return err;
}

/* Where there never was a recorder and is no thread that could be making one, there is nothing to hold still: forks
 * of small programs are spared pages that would be copied. */
static bool ever_opened FORK_DATA, fork_is_nothing FORK_DATA;
/* The process whose thread holds all locks for a fork. In the child of a program that weft run runs that is the
 * parent, until weft__recorder_settle(): what is to be done there takes longer than most children live. */
static pid_t fork_pid FORK_DATA;
static __thread bool fork_here; /* in the child: in a namespace of its own it may have the number of the parent */

FORK_CODE int weft__recorder_unsettled(void)
{
	return fork_pid && (fork_here || fork_pid != getpid());
}

FORK_CODE static void fork_prepare(void)
{
	bool nothing = (!ever_opened && __libc_single_threaded) || weft__recorder_unsettled();

	if (fork_is_nothing != nothing) /* each page that is written to has been shared by the last fork */
		fork_is_nothing = nothing;
	if (nothing)
		return;
	pthread_mutex_lock(&mutex);
	weft__registry_lock();
	weft__sources_fork(SOURCE_LOCK, NULL);
	weft__heap_lock(); /* the last: all others allocate while they have theirs */
	fork_pid = getpid();
}

static void fork_unlock(void)
{
	fork_pid = 0;
	weft__heap_unlock();
	weft__sources_fork(SOURCE_UNLOCK, NULL);
	weft__registry_unlock();
}

FORK_CODE static void fork_parent(void)
{
	if (fork_is_nothing)
		return;
	fork_unlock();
	pthread_mutex_unlock(&mutex);
}

/* The child has the memory of the parent, and none of its threads. */
static void make_orphan(struct weft_recorder *rec)
{
	store_seq_cst(&weft_gate.on, 0u);
	weft__trigger_deafen();
	weft__sources_fork(SOURCE_CHILD, &rec->collector);
	weft__ours_forked();
	weft__last_forked();
	weft_ring_self = &weft__ring_none.hot;
	rec->orphan = 1;
	rec->stop_err = 0;
	rec->state = WEFT_STATE_CLOSED;
	weft__registry_share(NULL, NULL, NULL);
	weft__segments_drop(&rec->collector.segments);
	weft__symbolize_forked(rec->collector.segments.symbolize);
	weft__ship_forked(rec->collector.segments.ship);
	weft__off_forked();
	weft__region_forsake(&rec->region);
	/* The collector may have been in the middle of anything: its memory is left alone for good. */
	memset(&rec->collector, 0, sizeof(rec->collector));
	rec->collector.segments.fd = -1;
}

static void begin_anew(struct weft_recorder *rec, int was_on)
{
	rec->orphan = weft__recorder_setup(rec, NULL) < 0;
	if (rec->orphan) {
		memset(&rec->collector, 0, sizeof(rec->collector));
		rec->collector.segments.fd = -1;
	} else if (was_on) {
		start_locked(rec, NULL);
	}
}

static void fork_settle(void)
{
	struct weft_recorder *rec = the_recorder;

	fork_here = false;
	fork_unlock();
	if (!rec || rec->orphan)
		weft__sources_fork(SOURCE_CHILD, NULL);
	if (rec && !rec->orphan) {
		int was_on = rec->state == WEFT_STATE_RECORDING;

		make_orphan(rec);
		if (rec->options.o.on_fork == WEFT_FORK_RESTART && !weft__late_restarts)
			begin_anew(rec, was_on);
	}
	pthread_mutex_unlock(&mutex);
}

void weft__recorder_settle(void)
{
	if (weft__recorder_unsettled())
		fork_settle();
}

FORK_CODE static void fork_child(void)
{
	if (fork_is_nothing)
		return;
	weft_ring_self = &weft__ring_none.hot;
	fork_here = true;
	if (!weft__late_restarts)
		weft__recorder_settle();
}

/* A child that was made behind the fork handlers' back finds out here. */
void weft__recorder_lock(void)
{
	weft__recorder_settle();
	pthread_mutex_lock(&mutex);
	if (the_recorder && !the_recorder->orphan && the_recorder->pid != getpid()) {
		weft__heap_forked();
		make_orphan(the_recorder);
	}
}

void weft__recorder_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

/* With the mutex, which is let go meanwhile: names and targets may take long, and whoever forks in another thread waits
 * for the mutex. The recorder may be another's afterwards. `targets`: waits for these, too, as long as the options
 * allow. */
static void await_the_rest(struct weft_recorder *rec, int targets)
{
	struct weft__symbolize *symbolize = rec->collector.segments.symbolize;
	struct weft__ship *ship = targets ? rec->collector.segments.ship : NULL;

	if (!symbolize && !ship)
		return;
	if (symbolize)
		weft__symbolize_hold(symbolize);
	weft__ship_hold(ship);
	weft__recorder_unlock();
	if (symbolize) {
		weft__symbolize_drain(symbolize);
		weft__symbolize_let(symbolize);
	}
	weft__ship_drain(ship);
	weft__ship_let(ship);
	weft__recorder_lock();
}

/* A program that just returns from main loses nothing. What targets do not have yet they get from the next process. */
static void at_exit(void)
{
	struct weft_recorder *rec;

	if (weft__recorder_unsettled() || !__atomic_load_n(&ever_opened, __ATOMIC_RELAXED))
		return;
	weft__recorder_lock();
	rec = the_recorder;
	if (rec && rec->state != WEFT_STATE_CLOSED) {
		int err = stop_locked(rec);

		await_the_rest(rec, 0);
		if (!err && the_recorder == rec && rec->state == WEFT_STATE_IDLE)
			weft__region_remove(&rec->region);
		if (the_recorder == rec)
			weft__ship_quit(rec->collector.segments.ship);
	}
	weft__recorder_unlock();
}

static void once_per_process(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	atexit(at_exit);
	weft__threads_init();
}

void weft__recorder_prepare(void)
{
	static pthread_once_t once FORK_DATA = PTHREAD_ONCE_INIT;

	pthread_once(&once, once_per_process);
}

static int open_locked(struct weft_recorder **ret, const struct weft_recorder_opts *opts, struct weft_error *err)
{
	struct weft_recorder *rec;
	int r;

	if (the_recorder)
		return weft__fail(err, -WEFT_E_STATE, "a recorder is open already; a process has one at a time");
	__atomic_store_n(&ever_opened, true, __ATOMIC_RELAXED);
	/* Children that fork handlers do not reach (clone, vfork's kin) find the gate shut all the same. It is one
	 * mapping more for each fork. */
	madvise(&weft_gate, sizeof(weft_gate), MADV_WIPEONFORK);
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
		weft__recorder_prepare();
		r = weft__recorder_setup(rec, err);
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

	weft__recorder_lock();
	r = open_locked(ret, opts, err);
	weft__recorder_unlock();
	return r;
}

int weft_recorder_start(struct weft_recorder *rec, struct weft_error *err)
{
	int r;

	if (!rec)
		return 0;
	weft__recorder_lock();
	r = start_locked(rec, err);
	weft__recorder_unlock();
	return r;
}

int weft__recorder_restart(struct weft_recorder *rec)
{
	int err;

	weft__recorder_lock();
	if (rec->orphan)
		begin_anew(rec, 1);
	err = rec->orphan ? -WEFT_E_STATE : 0;
	weft__recorder_unlock();
	return err;
}

int weft_recorder_pause(struct weft_recorder *rec)
{
	if (!rec)
		return 0;
	weft__recorder_lock();
	if (rec->state == WEFT_STATE_RECORDING)
		pause_locked(rec);
	weft__recorder_unlock();
	return 0;
}

/* What kept the last segment from being sealed. */
static int not_sealed(const struct weft_recorder *rec, int r, struct weft_error *err)
{
	const char *dir = rec->options.o.dir;

	if (!r)
		return 0;
	if (!dir)
		return weft__fail(err, r, "cannot seal the last segment: %s", weft_strerror(r));
	return weft__fail(err, r,
			  "%s: cannot seal the last segment: %s; when that is mended, weft recover %s brings it back",
			  dir, weft_strerror(r), dir);
}

int weft_recorder_stop(struct weft_recorder *rec, struct weft_error *err)
{
	int r;

	if (!rec)
		return 0;
	weft__recorder_lock();
	r = not_sealed(rec, stop_locked(rec), err);
	await_the_rest(rec, 1);
	weft__recorder_unlock();
	return r;
}

int weft_recorder_close(struct weft_recorder *rec, struct weft_error *err)
{
	int r;

	if (!rec)
		return 0;
	weft__off_stop();
	weft__recorder_lock();
	r = stop_locked(rec);
	await_the_rest(rec, 1);
	if (rec->state != WEFT_STATE_IDLE) /* somebody started it meanwhile */
		r = stop_locked(rec);
	not_sealed(rec, r, err);
	if (!rec->orphan) {
		weft__region_leave(&rec->region);
		/* What could not be written stays where recovery finds it. */
		if (!r)
			weft__region_remove(&rec->region);
	}
	weft__recorder_teardown(rec);
	weft__options_fini(&rec->options);
	if (the_recorder == rec)
		the_recorder = NULL;
	weft__free(rec);
	weft__recorder_unlock();
	return r;
}

int weft_recorder_rotate(struct weft_recorder *rec, char *path, size_t path_bytes, struct weft_error *err)
{
	int r = -WEFT_E_STATE;

	if (path && path_bytes)
		path[0] = 0;
	if (!rec)
		return 0;
	weft__recorder_lock();
	if (rec->collector.running)
		r = weft__collector_ask(&rec->collector, ASK_ROTATE, path, path_bytes);
	weft__recorder_unlock();
	if (r == -WEFT_E_STATE)
		return weft__fail(err, r, "nothing is being recorded: start the recorder first");
	if (r)
		return weft__fail(err, r, "cannot seal the segment: %s", weft_strerror(r));
	return 0;
}

int weft_recorder_save(struct weft_recorder *rec, const char *dir, struct weft_error *err)
{
	int r = 0;

	if (!rec)
		return 0;
	weft__recorder_lock();
	if (rec->options.o.dir)
		r = weft__fail(err, -WEFT_E_STATE, "the recorder writes to %s already", rec->options.o.dir);
	if (!r && rec->collector.running)
		r = weft__collector_ask(&rec->collector, ASK_ROTATE, NULL, 0);
	if (r >= 0)
		r = weft__segments_save(&rec->collector.segments, dir, err);
	weft__recorder_unlock();
	return r;
}

int weft_recorder_dump(struct weft_recorder *rec, uint64_t back_ns, uint64_t forward_ns, char *path, size_t path_bytes,
		       struct weft_error *err)
{
	struct weft__dump dump = {.why = "call"};
	int r;

	if (path && path_bytes)
		path[0] = 0;
	if (!rec)
		return 0;
	weft__recorder_lock();
	if (rec->orphan || !rec->collector.flight.dir)
		r = -WEFT_E_STATE;
	else
		r = weft__flight_ask(&rec->collector, &dump, back_ns, forward_ns);
	weft__recorder_unlock();
	if (r > 0) /* a dump may take its time: others must not wait for it */
		r = weft__flight_wait(&rec->collector, &dump);
	if (r == -WEFT_E_STATE)
		return weft__fail(err, r, "there is no flight recorder; open one with flight_ns");
	if (r)
		return weft__fail(err, r, "cannot write the dump: %s", weft_strerror(r));
	if (path && path_bytes)
		snprintf(path, path_bytes, "%s", dump.path);
	return 0;
}
