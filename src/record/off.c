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
	uint32_t paused; /* by us */
} the_switch;

static void off_handler(int signal, siginfo_t *info, void *context)
{
	const struct sigaction *before = &the_switch.before;
	int saved = errno;

	__atomic_fetch_xor(&the_switch.toggled, 1, __ATOMIC_RELAXED);
	sem_post(&the_switch.news);
	errno = saved;
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(signal, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(signal);
}

static int off_wanted(void)
{
	return load_relaxed(&the_switch.toggled) || (the_switch.file && access(the_switch.file, F_OK) == 0);
}

static enum weft_recorder_state off_state_of(struct weft_recorder *rec)
{
	struct weft_recorder_stats stats = {.size = sizeof(stats)};

	weft_recorder_stats(rec, &stats);
	return (enum weft_recorder_state)stats.state;
}

/* Who paused it himself goes on himself. */
static void off_obey(void)
{
	int wanted = off_wanted();
	enum weft_recorder_state state = off_state_of(the_switch.rec);

	if (wanted && state == WEFT_STATE_RECORDING) {
		store_relaxed(&the_switch.paused, 1u);
		weft_recorder_pause(the_switch.rec);
		weft__log(WEFT_LOG_WARN, "recording is paused by %s",
			  load_relaxed(&the_switch.toggled) ? "the signal" : the_switch.file);
	} else if (!wanted && load_relaxed(&the_switch.paused) && state == WEFT_STATE_PAUSED) {
		store_relaxed(&the_switch.paused, 0u);
		weft_recorder_start(the_switch.rec, NULL);
		weft__log(WEFT_LOG_WARN, "recording goes on");
	}
}

static void *off_main(void *data)
{
	(void)data;
	weft__ours_begin();
	pthread_setname_np(pthread_self(), "weft-off");
	while (!load_relaxed(&the_switch.stop)) {
		struct timespec until;

		off_obey();
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		while (sem_clockwait(&the_switch.news, CLOCK_MONOTONIC, &until) < 0 && errno == EINTR)
			;
	}
	return NULL;
}

static void off_take_signal(int signal)
{
	struct sigaction ours = {.sa_sigaction = off_handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

	sigemptyset(&ours.sa_mask);
	if (sigaction(signal, NULL, &the_switch.before) < 0 || sigaction(signal, &ours, NULL) < 0)
		weft__log(WEFT_LOG_WARN, "off_signal %d: %s", signal, weft_strerror(-errno));
	else
		the_switch.signal = signal;
}

static void give_signal_back(void)
{
	struct sigaction now;

	if (the_switch.signal && sigaction(the_switch.signal, NULL, &now) == 0 && now.sa_sigaction == off_handler)
		sigaction(the_switch.signal, &the_switch.before, NULL);
	the_switch.signal = 0;
}

int weft__off_start(struct weft_recorder *rec, const struct weft_recorder_opts *opts)
{
	if (!opts->off_file && !opts->off_signal)
		return 0;
	if (!the_switch.has_thread) {
		memset(&the_switch, 0, sizeof(the_switch));
		sem_init(&the_switch.news, 0, 0);
		the_switch.rec = rec;
		the_switch.file = opts->off_file;
		if (opts->off_signal)
			off_take_signal((int)opts->off_signal);
		the_switch.has_thread = weft__thread_make(&the_switch.thread, 0, off_main, NULL) == 0;
		if (!the_switch.has_thread)
			weft__log(WEFT_LOG_WARN, "off_file and off_signal do nothing: no thread can be started");
	}
	store_relaxed(&the_switch.paused, (uint32_t)off_wanted());
	return (int)load_relaxed(&the_switch.paused);
}

void weft__off_stop(void)
{
	if (!the_switch.has_thread)
		return;
	store_relaxed(&the_switch.stop, 1u);
	sem_post(&the_switch.news);
	pthread_join(the_switch.thread, NULL);
	the_switch.has_thread = 0;
	give_signal_back();
}

void weft__off_forked(void)
{
	the_switch.has_thread = 0;
	give_signal_back();
}
