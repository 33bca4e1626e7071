/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's thread: how it is scheduled, whose files it has, and how callers ask something of it. CALLER, but
 * for what runs on the thread. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/ours.h"
#include "base/private_fds.h"
#include "base/thread.h"
#include "record/collect/collector.h"
#include "record/ring/ring.h"
#include "record/source.h"

#define SLICE_NS 200000 /* of CPU, so that the scheduler runs the collector soon when it wakes */
#define ATTACH_WAIT_NS UINT64_C(100000000)

/* What started the collector may have had a priority, which is for what the program does. */
static void collector_be_modest(struct weft__collector *c)
{
	if (getpriority(PRIO_PROCESS, 0) < 0) /* of this thread, in Linux */
		(void)!setpriority(PRIO_PROCESS, 0, 0);
	weft__collector_soon(c, 0);
}

/* The collector takes the CPU from nobody: a thread of class SCHED_BATCH does not preempt who runs when it wakes,
 * and has its fair share of a busy machine all the same. Where rings fill so fast that events would be lost
 * meanwhile it asks for a short slice: the scheduler then runs it soon, and gives it no more CPU than any other. */
void weft__collector_soon(struct weft__collector *c, int soon)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr;

	c->is_soon = soon;
	memset(&attr, 0, sizeof(attr));
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 || attr.policy == SCHED_IDLE)
		return;
	attr.size = sizeof(attr);
	attr.policy = soon ? SCHED_OTHER : SCHED_BATCH;
	attr.flags = attr.priority = 0;
	attr.runtime = soon ? SLICE_NS : 0;
	attr.deadline = attr.period = 0;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* The interrupt of a timer may take as long as draining a ring, above all below a hypervisor. Within the slack the
 * kernel lets a timer wait for an interrupt that comes anyway, such as its tick. */
static void ask_for_slack(const struct weft__collector *c)
{
	prctl(PR_SET_TIMERSLACK, (unsigned long)c->slack_ns, 0, 0, 0);
}

/* Who starts it waits until the files of the program are the program's alone. */
static void collector_settle(struct weft__collector *c)
{
	int is_private = c->private_fds && weft__private_fds_begin(c->region->file.fd) == 0;

	if (is_private) {
		weft__region_reopen(c->region); /* after a stop the program's table does not have it any more */
		weft__segments_early(&c->segments);
	}
	pthread_mutex_lock(&c->mutex);
	c->private_fds = is_private;
	c->settled = 1;
	pthread_cond_broadcast(&c->done);
	pthread_mutex_unlock(&c->mutex);
}

static void *collector_main(void *data)
{
	struct weft__collector *c = data;

	weft__ours_begin();
	if (c->private_fds)
		collector_settle(c);
	pthread_setname_np(pthread_self(), "weft-collector");
	collector_be_modest(c);
	ask_for_slack(c);
	weft__collector_run(c);
	weft__private_fds_end();
	return NULL;
}

int weft__collector_start(struct weft__collector *c)
{
	int err;

	c->ask = ASK_NOTHING;
	c->settled = !c->private_fds;
	if (!weft__ours_is_self()) { /* else there are some already */
		weft__thread_spares();
		weft__thread_spares_end();
	}
	err = weft__thread_make(&c->thread, 0, collector_main, c);
	if (err)
		return err;
	pthread_setname_np(c->thread, "weft-collector"); /* a ring is made in its name, perhaps before it runs */
	pthread_mutex_lock(&c->mutex);
	while (!c->settled)
		pthread_cond_wait(&c->done, &c->mutex);
	pthread_mutex_unlock(&c->mutex);
	c->running = 1;
	if (c->private_fds) /* it has the rings' file: nobody who lists or closes descriptors comes upon it */
		weft__own_close(&c->region->file.own, c->region->file.fd);
	return 0;
}

/* With the mutex held, when nobody else asks. */
static void ask_begin(struct weft__collector *c, enum weft__ask what)
{
	while (c->ask != ASK_NOTHING)
		pthread_cond_wait(&c->done, &c->mutex);
	store_release(&c->ask, what);
	weft__collector_wake();
}

int weft__collector_ask(struct weft__collector *c, enum weft__ask what, char *path, size_t path_bytes)
{
	int err;

	pthread_mutex_lock(&c->mutex);
	ask_begin(c, what);
	while (c->ask != ASK_NOTHING)
		pthread_cond_wait(&c->done, &c->mutex);
	err = c->answer;
	if (path && path_bytes)
		snprintf(path, path_bytes, "%s", c->answer_path);
	pthread_mutex_unlock(&c->mutex);
	if (what == ASK_STOP) {
		pthread_join(c->thread, NULL);
		c->running = 0;
	}
	return err;
}

/* Not for ever: the loader's lock may be held by who waits here, in a constructor, and the collector wait for it. */
static void attach_soon(struct weft__collector *c)
{
	uint64_t now = weft__clock_mono(), end = now + ATTACH_WAIT_NS;
	struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};

	pthread_mutex_lock(&c->mutex);
	c->asked_ns = now;
	ask_begin(c, ASK_ATTACH);
	while (c->ask != ASK_NOTHING && pthread_cond_timedwait(&c->done, &c->mutex, &until) == 0)
		;
	pthread_mutex_unlock(&c->mutex);
}

void weft__collector_attach(struct weft__collector *c, int on)
{
	if (c->private_fds && c->running && on)
		attach_soon(c);
	else if (c->private_fds && c->running)
		weft__collector_ask(c, ASK_DETACH, NULL, 0);
	else if (on)
		weft__sources_attach(c->thread);
	else
		weft__sources_detach();
}

void weft__collector_attach_here(struct weft__collector *c, enum weft__ask what)
{
	uint64_t now;

	if (what == ASK_DETACH) {
		weft__sources_detach();
		return;
	}
	weft__sources_attach(c->thread);
	now = weft__clock_mono();
	if (now > c->asked_ns + ATTACH_WAIT_NS)
		weft__sources_late(c->asked_ns, now); /* who asked did not wait */
}
