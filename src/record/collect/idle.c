/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/idle.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/ours.h"
#include "base/private_fds.h"
#include "base/thread.h"
#include "record/tables/tables.h"
#include "record/thread/thread.h"

/* FREE -> GIVEN -> BUSY -> DONE -> FREE; the collector takes a batch back from GIVEN, and leaves it to the thread
 * from BUSY. */
enum { FREE, GIVEN, BUSY, DONE, LEFT, CLOSED, CLOSED_LEFT };

struct weft__idle {
	uint32_t state;
	int level;
	const struct weft__batch *batch;
	struct weft__batch *left; /* to the thread */
	struct weft__encoder *encoder;
	struct weft__buf payload;
	uint64_t first_ns, last_ns;
	int err;
	int private_fds;
	uint64_t cpu_ns;
};

static void idle_count_cost(struct weft__idle *idle)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) == 0)
		store_relaxed(&idle->cpu_ns, (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec);
}

/* As in the collector: for what the engine's net catches in this thread the kernel would look for another one, which
 * may sleep. */
static void let_signal(int how)
{
	int signal = weft__tables_lets();
	sigset_t set;

	if (!signal)
		return;
	sigemptyset(&set);
	sigaddset(&set, signal);
	pthread_sigmask(how, &set, NULL);
}

static void encode(struct weft__idle *idle)
{
	let_signal(SIG_UNBLOCK);
	idle->err = idle->encoder ? 0 : weft__encoder_open(&idle->encoder, idle->level);
	if (!idle->err)
		idle->err = weft__encoder_events(idle->encoder, idle->batch, &idle->payload, &idle->first_ns,
						 &idle->last_ns);
	idle_count_cost(idle);
	let_signal(SIG_BLOCK);
}

static void free_left(struct weft__idle *idle)
{
	if (idle->left) {
		weft__batch_fini(idle->left);
		weft__free(idle->left);
	}
	idle->left = NULL;
}

/* True when the thread is to end. */
static int idle_settle(struct weft__idle *idle)
{
	uint32_t was = BUSY;

	if (cas_acq_rel(&idle->state, &was, DONE))
		return 0;
	free_left(idle); /* LEFT or CLOSED_LEFT */
	return was != LEFT || !cas_acq_rel(&idle->state, &was, FREE);
}

static void *idle_main(void *data)
{
	struct weft__idle *idle = data;
	struct sched_param param = {0};
	int over = 0;

	weft__ours_begin();
	store_relaxed(&weft__own_threads.encoder, (uint32_t)syscall(SYS_gettid));
	weft__private_fds = idle->private_fds;
	pthread_setname_np(pthread_self(), "weft-encoder");
	sched_setscheduler(0, SCHED_IDLE, &param);
	while (!over) {
		uint32_t state = GIVEN;

		if (cas_acq_rel(&idle->state, &state, BUSY)) {
			encode(idle);
			over = idle_settle(idle);
		} else if (state == CLOSED) {
			over = 1;
		} else {
			syscall(SYS_futex, &idle->state, FUTEX_WAIT_PRIVATE, state, NULL, NULL, 0);
		}
	}
	weft__encoder_close(idle->encoder);
	weft__buf_free(&idle->payload);
	weft__free(idle);
	return NULL;
}

int weft__idle_open(struct weft__idle **ret, int level)
{
	struct weft__idle *idle = weft__calloc(1, sizeof(*idle));
	pthread_t thread;
	int err;

	if (!idle)
		return -ENOMEM;
	idle->level = level;
	idle->private_fds = weft__private_fds;
	err = weft__thread_make(&thread, 1, idle_main, idle); /* with the collector's files */
	if (err) {
		weft__free(idle);
		return err;
	}
	store_relaxed(&weft__own_threads.encoder, weft__tls_tid(thread));
	*ret = idle;
	return 0;
}

static void wake(struct weft__idle *idle)
{
	syscall(SYS_futex, &idle->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void weft__idle_close(struct weft__idle *idle)
{
	uint32_t state;

	if (!idle)
		return;
	store_relaxed(&weft__own_threads.encoder, 0u);
	state = load_acquire(&idle->state);
	while (!cas_acq_rel(&idle->state, &state, state == LEFT ? CLOSED_LEFT : CLOSED))
		;
	wake(idle);
}

int weft__idle_free(const struct weft__idle *idle)
{
	return load_acquire(&idle->state) == FREE;
}

void weft__idle_give(struct weft__idle *idle, const struct weft__batch *batch)
{
	idle->batch = batch;
	store_release(&idle->state, GIVEN);
	wake(idle);
}

int weft__idle_ready(const struct weft__idle *idle, struct weft__encoded *ret)
{
	if (load_acquire(&idle->state) != DONE)
		return 0;
	*ret = (struct weft__encoded){&idle->payload, idle->first_ns, idle->last_ns, idle->err};
	return 1;
}

int weft__idle_done(struct weft__idle *idle)
{
	uint32_t state = load_acquire(&idle->state);

	while (state == GIVEN || state == DONE)
		if (cas_acq_rel(&idle->state, &state, FREE))
			return 1;
	return 0;
}

int weft__idle_leave(struct weft__idle *idle, struct weft__batch *batch)
{
	uint32_t state = BUSY;

	idle->left = batch;
	if (cas_acq_rel(&idle->state, &state, LEFT))
		return 1;
	idle->left = NULL;
	store_release(&idle->state, FREE); /* DONE */
	return 0;
}

uint64_t weft__idle_cost(const struct weft__idle *idle)
{
	return idle ? load_relaxed(&idle->cpu_ns) : 0;
}
