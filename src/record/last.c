/* SPDX-License-Identifier: Apache-2.0 */
#include "record/last.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/ours.h"
#include "record/ring/ring.h"

#define ENDING_MOST 256
/* The one after it is ThreadSanitizer's, of a program that has it: no function that it watches may be called behind
 * that. */
#define LAST_ROUND (PTHREAD_DESTRUCTOR_ITERATIONS - 1)
#define WAIT_MS 1000
#define LAST_LOOK_NS UINT64_C(200000000)
#define LOOK_SOON_NS UINT64_C(50000000) /* while the first thread is known to end */

static pthread_mutex_t last_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t ending[ENDING_MOST]; /* threads in their last destructor; under the mutex */
static uint32_t n_ending;
static uint32_t first_ends;     /* the first thread has come to its destructors */
static uint64_t last_looked_ns; /* the collector's */

/* How the last thread ended so far. */
enum { END_UNKNOWN, END_RETURN, END_BARE };
static uint32_t end_how;
static int end_code;

void weft__last_forked(void)
{
	pthread_mutex_init(&last_mutex, NULL);
	n_ending = 0;
	first_ends = 0;
	last_looked_ns = 0;
	end_how = END_UNKNOWN;
}

void weft__last_bare_exit(int code)
{
	store_relaxed(&end_code, code & 0xff);
	store_release(&end_how, (uint32_t)END_BARE);
}

static int lives(uint32_t tid)
{
	return syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}

/* With the mutex. The others that are in their last destructor; of the first thread its place remains. */
static int others_ending(uint32_t self)
{
	uint32_t i, n = 0;

	for (i = 0; i < n_ending; i++)
		if (ending[i] != self && lives(ending[i]))
			ending[n++] = ending[i];
	n_ending = n;
	return (int)n;
}

/* With the mutex. */
static int finds_all_others(uint32_t self)
{
	int others, ends;

	do { /* one of them may be gone meanwhile */
		ends = others_ending(self);
		others = weft__others();
	} while (others_ending(self) != ends);
	return others == ends + 1;
}

/* Whoever comes last finds all others here. As long as the first thread goes on nobody is last. */
static int is_last(uint32_t self)
{
	int last;

	pthread_mutex_lock(&last_mutex);
	if (self == (uint32_t)getpid())
		store_relaxed(&first_ends, 1u);
	last = load_relaxed(&first_ends) && weft__ours() && finds_all_others(self);
	if (n_ending == ENDING_MOST)
		others_ending(self);
	if (n_ending < ENDING_MOST)
		ending[n_ending++] = self;
	pthread_mutex_unlock(&last_mutex);
	return last;
}

/* What others still do is done. */
static void await_others(uint32_t self)
{
	int keep = self == (uint32_t)getpid() ? 1 : 2, i;

	for (i = 0; weft__others() > keep && i < WAIT_MS; i++) {
		struct timespec nap = {0, 1000000};

		nanosleep(&nap, NULL);
	}
}

void weft__last_thread_ends(uint32_t *rounds, pthread_key_t key, const void *value)
{
	uint32_t self;

	if (weft__ours_is_self())
		return;
	if (++*rounds < LAST_ROUND) {
		pthread_setspecific(key, value);
		return;
	}
	*rounds = 0;
	self = (uint32_t)syscall(SYS_gettid);
	store_relaxed(&end_how, (uint32_t)END_RETURN);
	if (!is_last(self))
		return;
	await_others(self);
	exit(0);
}

/* A thread that takes no leave is noticed when the collector is awake anyway. */
uint64_t weft__last_due(void)
{
	return load_relaxed(&first_ends) ? last_looked_ns + LOOK_SOON_NS : UINT64_MAX;
}

int weft__last_is_gone(uint64_t now_ns)
{
	if (now_ns < last_looked_ns + (load_relaxed(&first_ends) ? LOOK_SOON_NS : LAST_LOOK_NS))
		return 0;
	last_looked_ns = now_ns;
	return !weft__first_lives() && weft__others() == 1 && weft__first_ended();
}

void weft__last_end(void)
{
	uint32_t how = load_acquire(&end_how);

	if (how == END_BARE)
		syscall(SYS_exit_group, load_relaxed(&end_code));
	if (!load_relaxed(&first_ends))
		syscall(SYS_exit_group, weft__first_code());
}
