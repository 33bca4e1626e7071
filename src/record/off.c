/* SPDX-License-Identifier: Apache-2.0 */
#include "record/off.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/ours.h"
#include "base/thread.h"

static struct {
	int has_thread;
	pthread_t thread;
	sem_t news;
	uint32_t stop;
	uint32_t toggled; /* by the signal: 1 is off */
	const char *file; /* NULL: none */
	int signal;       /* 0: none */
	struct sigaction before;
	struct weft_recorder *rec;
	int paused; /* by us */
} off;

static void off_handler(int signal, siginfo_t *info, void *context)
{
	const struct sigaction *before = &off.before;
	int saved = errno;

	__atomic_fetch_xor(&off.toggled, 1, __ATOMIC_RELAXED);
	sem_post(&off.news);
	errno = saved;
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(signal, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(signal);
}

static int is_off(void)
{
	return load_relaxed(&off.toggled) || (off.file && access(off.file, F_OK) == 0);
}

static enum weft_recorder_state state_of(struct weft_recorder *rec)
{
	struct weft_recorder_stats stats = {.size = sizeof(stats)};

	weft_recorder_stats(rec, &stats);
	return (enum weft_recorder_state)stats.state;
}

/* Who paused it himself goes on himself. */
static void obey(void)
{
	int wanted = is_off();
	enum weft_recorder_state state = state_of(off.rec);

	if (wanted && state == WEFT_STATE_RECORDING) {
		off.paused = 1;
		weft_recorder_pause(off.rec);
		weft__log(WEFT_LOG_WARN, "recording is paused by %s", off.toggled ? "the signal" : off.file);
	} else if (!wanted && off.paused && state == WEFT_STATE_PAUSED) {
		off.paused = 0;
		weft_recorder_start(off.rec, NULL);
		weft__log(WEFT_LOG_WARN, "recording goes on");
	}
}

static void *off_main(void *data)
{
	(void)data;
	weft__ours_begin();
	pthread_setname_np(pthread_self(), "weft-off");
	while (!load_relaxed(&off.stop)) {
		struct timespec until;

		obey();
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		while (sem_timedwait(&off.news, &until) < 0 && errno == EINTR)
			;
	}
	return NULL;
}

static void take_signal(int signal)
{
	struct sigaction ours = {.sa_sigaction = off_handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

	sigemptyset(&ours.sa_mask);
	if (sigaction(signal, NULL, &off.before) < 0 || sigaction(signal, &ours, NULL) < 0)
		weft__log(WEFT_LOG_WARN, "off_signal %d: %s", signal, weft_strerror(-errno));
	else
		off.signal = signal;
}

static void give_signal_back(void)
{
	struct sigaction now;

	if (off.signal && sigaction(off.signal, NULL, &now) == 0 && now.sa_sigaction == off_handler)
		sigaction(off.signal, &off.before, NULL);
	off.signal = 0;
}

int weft__off_start(struct weft_recorder *rec, const struct weft_recorder_opts *opts)
{
	if (!opts->off_file && !opts->off_signal)
		return 0;
	if (!off.has_thread) {
		memset(&off, 0, sizeof(off));
		sem_init(&off.news, 0, 0);
		off.rec = rec;
		off.file = opts->off_file;
		if (opts->off_signal)
			take_signal((int)opts->off_signal);
		off.has_thread = weft__thread_make(&off.thread, 0, off_main, NULL) == 0;
		if (!off.has_thread)
			weft__log(WEFT_LOG_WARN, "off_file and off_signal do nothing: no thread can be started");
	}
	off.paused = is_off();
	return off.paused;
}

void weft__off_stop(void)
{
	if (!off.has_thread)
		return;
	store_relaxed(&off.stop, 1u);
	sem_post(&off.news);
	pthread_join(off.thread, NULL);
	off.has_thread = 0;
	give_signal_back();
}

void weft__off_forked(void)
{
	off.has_thread = 0;
	give_signal_back();
}
