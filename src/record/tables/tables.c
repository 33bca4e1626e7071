/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that compiles unwind tables, "weft-tables". It is there only while there is something to do: at start, and
 * when the collector notices that libraries came or went. Who starts waits for it a moment, so that a small program has
 * whole stacks from its first sample on; a large library is compiled beside the program that runs, and frames in it are
 * found by frame pointers until then. CALLER and COLLECTOR, one at a time under the engine's lock, but for the thread
 * itself. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/late.h"
#include "base/ours.h"
#include "base/place.h"
#include "base/private_fds.h"
#include "base/thread.h"
#include "record/source.h"
#include "record/tables/tables.h"
#include "record/thread/thread.h"
#include "unwind/modules.h"

#define TABLES_WAIT_NS UINT64_C(10000000)
/* A tenth of a CPU beside a program that keeps them all busy; at 19 it would be a hundredth, and the tables minutes
 * late. */
#define NICENESS 10

static pthread_mutex_t tables_lock FORK_DATA = PTHREAD_MUTEX_INITIALIZER;
static struct {
	/* under the lock */
	pthread_t thread;
	int joinable;
	int asked; /* to look again */

	/* anybody */
	uint32_t running; /* futex */
	uint32_t stop;
	uint32_t waiting; /* somebody waits: no time to be modest */
	uint64_t cost_ns; /* CPU time of all threads so far */
	int refused;      /* why there was no thread, the last time that there was none; negative */

	/* the thread */
	uint64_t counted_ns; /* of its CPU time */
	uint32_t let_now;
	int modest;
} tables_thread;

void weft__tables_open(void)
{
	store_relaxed(&tables_thread.refused, 0);
	store_relaxed(&weft__unwinding.wanted, 0u);
}

int weft__tables_refused(void)
{
	return load_relaxed(&tables_thread.refused);
}

/* What the net catches in this thread is to stay here: else the kernel would wake another thread for it. */
void weft__tables_let(int signal)
{
	store_relaxed(&weft__thread_let, (uint32_t)signal);
}

int weft__tables_lets(void)
{
	return (int)load_relaxed(&weft__thread_let);
}

static void mask_set(uint32_t let)
{
	sigset_t all;

	sigfillset(&all);
	if (let)
		sigdelset(&all, (int)let);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	tables_thread.let_now = let;
}

/* The application comes first; but not before it goes on. */
static void be_modest(void)
{
	struct sched_param none = {0};

	if (tables_thread.modest || load_relaxed(&tables_thread.waiting))
		return;
	tables_thread.modest = 1;
	(void)!setpriority(PRIO_PROCESS, 0, NICENESS); /* of this thread, in Linux */
	(void)!sched_setscheduler(0, SCHED_BATCH, &none);
}

static void count_cpu(void)
{
	struct timespec ts = {0, 0};
	uint64_t now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	add_relaxed(&tables_thread.cost_ns, now - tables_thread.counted_ns);
	tables_thread.counted_ns = now;
}

/* Asked now and then while a table is made. */
static int tables_halt(void)
{
	uint32_t let = load_relaxed(&weft__thread_let);

	count_cpu();
	if (let != tables_thread.let_now)
		mask_set(let);
	be_modest();
	return load_relaxed(&tables_thread.stop) != 0;
}

static void compile_all(void)
{
	int made;

	do {
		made = 0;
		if (tables_halt() || weft__modules_look() < 0)
			return; /* the next look may find memory again */
		while (!tables_halt() && (made = weft__modules_compile(tables_halt)) > 0)
			;
	} while (!tables_halt() && made == -EAGAIN);
}

/* Libraries came: a tracer may be among them. */
static void find_tracers(void)
{
	weft__modules_lock();
	if (weft__unwinding.looked)
		weft__unwinding.looked();
	weft__modules_unlock();
}

static int asked_again(void)
{
	int asked;

	pthread_mutex_lock(&tables_lock);
	asked = tables_thread.asked && !load_relaxed(&tables_thread.stop);
	tables_thread.asked = 0;
	if (!asked) {
		mask_set(0);
		store_relaxed(&weft__own_threads.tables_was, load_relaxed(&weft__own_threads.tables));
		store_relaxed(&weft__own_threads.tables, 0u);
		store_release(&tables_thread.running, 0u);
		syscall(SYS_futex, &tables_thread.running, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	pthread_mutex_unlock(&tables_lock);
	return asked;
}

/* Until it is gone for good it is ours: who looks for threads would else find a new one on its way out. */
void weft__tables_forget(void)
{
	uint32_t tid = load_relaxed(&weft__own_threads.tables_was);

	if (tid && syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH)
		cas_acq_rel(&weft__own_threads.tables_was, &tid, 0u);
}

uint64_t weft__tables_cost(void)
{
	return load_relaxed(&tables_thread.cost_ns);
}

static void *tables_main(void *data)
{
	weft__ours_begin();
	weft__private_fds = data != NULL;
	if (weft__private_fds_wanted)
		weft__private_fds_begin(-1);
	pthread_setname_np(pthread_self(), "weft-tables");
	store_relaxed(&weft__own_threads.tables, (uint32_t)syscall(SYS_gettid));
	tables_thread.counted_ns = 0;
	mask_set(load_relaxed(&weft__thread_let));
	tables_thread.modest = 0;
	while (weft__private_fds && weft__unwinding.first && weft__unwinding.first())
		;
	do {
		compile_all();
		find_tracers();
		count_cpu();
	} while (asked_again());
	return NULL;
}

/* With the lock held. */
static int thread_make(void)
{
	int err;

	if (tables_thread.joinable)
		pthread_join(tables_thread.thread, NULL); /* it is on its way out */
	tables_thread.joinable = 0;
	tables_thread.asked = 0;
	store_relaxed(&tables_thread.stop, 0u);
	store_relaxed(&tables_thread.running, 1u);
	err = weft__thread_make(&tables_thread.thread, 0, tables_main, weft__private_fds ? &tables_thread : NULL);
	if (err) {
		store_relaxed(&tables_thread.running, 0u);
		return err;
	}
	tables_thread.joinable = 1;
	store_relaxed(&weft__own_threads.tables, weft__tls_tid(tables_thread.thread)); /* before the next scan */
	return 0;
}

/* Without a thread it is done here and now. */
static void tables_ask(void)
{
	int err = 0;

	pthread_mutex_lock(&tables_lock);
	if (load_relaxed(&tables_thread.running))
		tables_thread.asked = 1;
	else
		err = thread_make();
	pthread_mutex_unlock(&tables_lock);
	if (!err)
		return;
	if (err != load_relaxed(&tables_thread.refused)) {
		weft__log(WEFT_LOG_WARN, "no thread to compile unwind tables in: %s; whoever needs them waits",
			  weft_strerror(err));
		store_relaxed(&tables_thread.refused, err);
		weft__source_changed();
	}
	weft__modules_refresh();
}

static void tables_await(uint64_t until_ns)
{
	uint64_t now;

	while (load_acquire(&tables_thread.running) && (now = weft__clock_mono()) < until_ns) {
		struct timespec left = {0, (long)(until_ns - now)};

		syscall(SYS_futex, &tables_thread.running, FUTEX_WAIT_PRIVATE, 1, &left, NULL, 0);
	}
}

static void tables_wanted_since(uint64_t since_ns)
{
	tables_await(since_ns + TABLES_WAIT_NS);
	store_relaxed(&tables_thread.waiting, 0u);
}

void weft__tables_start(void)
{
	uint64_t now = weft__clock_mono();

	if (!weft__modules_stale())
		return;
	weft__modules_look(); /* modules without tables are better than none */
	store_relaxed(&tables_thread.waiting, 1u);
	tables_ask();
	/* While weft run's starter is here the program waits for it: that one comes back when the program goes on. */
	if (load_relaxed(&weft__late_tid) != (uint32_t)syscall(SYS_gettid))
		tables_wanted_since(now);
}

void weft__tables_started(void)
{
	if (load_relaxed(&tables_thread.waiting))
		tables_wanted_since(weft__clock_mono());
}

void weft__tables_look(void)
{
	if (weft__modules_stale())
		tables_ask();
}

void weft__tables_stop(void)
{
	int joinable;

	store_relaxed(&tables_thread.stop, 1u);
	pthread_mutex_lock(&tables_lock);
	joinable = tables_thread.joinable;
	tables_thread.joinable = 0;
	pthread_mutex_unlock(&tables_lock);
	if (joinable)
		pthread_join(tables_thread.thread, NULL);
}

void weft__tables_lock(void)
{
	pthread_mutex_lock(&tables_lock);
	weft__modules_lock();
}

void weft__tables_unlock(void)
{
	weft__modules_unlock();
	pthread_mutex_unlock(&tables_lock);
}

void weft__tables_forked(void)
{
	pthread_mutex_init(&tables_lock, NULL);
	tables_thread.joinable = tables_thread.asked = 0;
	store_relaxed(&tables_thread.running, 0u);
	store_relaxed(&tables_thread.waiting, 0u);
	store_relaxed(&weft__thread_let, 0u);
	store_relaxed(&weft__own_threads.tables, 0u);
	weft__modules_forked();
}
