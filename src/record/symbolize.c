/* SPDX-License-Identifier: Apache-2.0 */
#include "record/symbolize.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/ours.h"
#include "base/plugin.h"
#include "record/helper.h"

#define WAITING_MAX 64 /* segments; with more the newest stay without names */
#define LOAD_WAIT_S 1
#define NICENESS 10 /* the application comes first */

enum load_state { LOADING, LOADED, NOT_LOADED };

struct weft__symbolize {
	struct weft__helper helper;
	char plugin[4096]; /* "": where it is found */
	int has_thread;
	pthread_t thread;
	enum load_state state;
	struct weft_error why; /* it is not loaded */
	char *waiting[WAITING_MAX];
	uint32_t first;
	uint32_t n;
	int busy;
	int stop;
	struct weft__symbolize_counts counts;
};

static void set_state(struct weft__symbolize *s, enum load_state state, const struct weft_error *why)
{
	pthread_mutex_lock(&s->helper.mutex);
	s->state = state;
	s->why = *why;
	pthread_cond_broadcast(&s->helper.news);
	pthread_mutex_unlock(&s->helper.mutex);
}

/* The next path to do, the caller's; NULL when it is over. */
static char *next_path(struct weft__symbolize *s)
{
	char *path = NULL;

	pthread_mutex_lock(&s->helper.mutex);
	s->busy = 0;
	pthread_cond_broadcast(&s->helper.news);
	while (!s->n && !s->stop)
		pthread_cond_wait(&s->helper.work, &s->helper.mutex);
	if (s->n) {
		path = s->waiting[s->first];
		s->first = (s->first + 1) % WAITING_MAX;
		s->n--;
		s->busy = 1;
	}
	pthread_mutex_unlock(&s->helper.mutex);
	return path;
}

static void count_segment(struct weft__symbolize *s, int failed)
{
	pthread_mutex_lock(&s->helper.mutex);
	s->counts.done += !failed;
	s->counts.failed += !!failed;
	pthread_mutex_unlock(&s->helper.mutex);
}

static void run_queue(struct weft__symbolize *s, const struct weft_symbolize_plugin *plugin, void *state)
{
	struct weft_error err;
	char *path;

	while ((path = next_path(s))) {
		int r = plugin ? plugin->run(state, path, err.msg, sizeof(err.msg)) : -ENOENT;

		/* A segment that is gone was deleted to make room: nobody misses its names. */
		if (r && r != -ENOENT)
			weft__log(WEFT_LOG_WARN, "no names: %s", err.msg);
		count_segment(s, r);
		weft__free(path);
	}
}

static void *symbolize_main(void *data)
{
	static const struct weft__helper_plugin file = {WEFT_SYMBOLIZE_FILE, WEFT_SYMBOLIZE_ENTRY, WEFT_SYMBOLIZE_ABI,
							"weft symbolize"};
	struct weft__symbolize *s = data;
	const struct weft_symbolize_plugin *plugin;
	struct weft_error err = {0};
	void *state = NULL;

	weft__ours_begin();
	pthread_setname_np(pthread_self(), "weft-symbolize");
	(void)!setpriority(PRIO_PROCESS, 0, NICENESS); /* of this thread, in Linux */
	plugin = weft__helper_load(s->plugin[0] ? s->plugin : NULL, &file, err.msg, sizeof(err.msg));
	if (plugin && plugin->open(&state, err.msg, sizeof(err.msg)) < 0)
		plugin = NULL;
	set_state(s, plugin ? LOADED : NOT_LOADED, &err);
	run_queue(s, plugin, state);
	if (plugin)
		plugin->close(state);
	return NULL;
}

/* Not for ever: the loader's lock may be held by who waits here, in a constructor. */
static void await_load(struct weft__symbolize *s)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOAD_WAIT_S;
	pthread_mutex_lock(&s->helper.mutex);
	while (s->state == LOADING && pthread_cond_timedwait(&s->helper.news, &s->helper.mutex, &until) == 0)
		;
	pthread_mutex_unlock(&s->helper.mutex);
}

int weft__symbolize_open(struct weft__symbolize **ret, const char *plugin)
{
	struct weft__symbolize *s = weft__calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	weft__helper_init(&s->helper);
	if (plugin)
		snprintf(s->plugin, sizeof(s->plugin), "%s", plugin);
	r = weft__helper_thread(&s->thread, symbolize_main, s);
	s->has_thread = !r;
	if (r) {
		s->state = NOT_LOADED;
		weft__fail(&s->why, r, "cannot start a thread: %s", weft_strerror(r));
	} else {
		await_load(s);
	}
	*ret = s;
	return 0;
}

void weft__symbolize_facts(struct weft__symbolize *s, struct weft__defs *defs)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->helper.mutex);
	if (s->state == NOT_LOADED)
		weft__defs_fact(defs, "degraded.symbolize", s->why.msg);
	else /* who sends segments waits for the names */
		weft__defs_fact(defs, "symbolize", "wanted");
	pthread_mutex_unlock(&s->helper.mutex);
}

void weft__symbolize_submit(struct weft__symbolize *s, const char *path)
{
	char *copy = s ? weft__strdup(path) : NULL;

	if (!s)
		return;
	pthread_mutex_lock(&s->helper.mutex);
	if (copy && s->has_thread && s->n < WAITING_MAX) {
		s->waiting[(s->first + s->n++) % WAITING_MAX] = copy;
		copy = NULL;
		pthread_cond_signal(&s->helper.work);
	} else {
		s->counts.failed++;
		s->counts.dropped++;
	}
	pthread_mutex_unlock(&s->helper.mutex);
	weft__free(copy);
}

void weft__symbolize_hold(struct weft__symbolize *s)
{
	if (s)
		weft__helper_hold(&s->helper);
}

void weft__symbolize_let(struct weft__symbolize *s)
{
	if (s)
		weft__helper_let(&s->helper);
}

void weft__symbolize_drain(struct weft__symbolize *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->helper.mutex);
	while (s->has_thread && (s->n || s->busy))
		pthread_cond_wait(&s->helper.news, &s->helper.mutex);
	pthread_mutex_unlock(&s->helper.mutex);
}

uint64_t weft__symbolize_cost(struct weft__symbolize *s)
{
	return s && s->has_thread ? weft__helper_cpu_ns(s->thread) : 0;
}

struct weft__symbolize_counts weft__symbolize_counts(struct weft__symbolize *s)
{
	struct weft__symbolize_counts counts = {0, 0, 0};

	if (!s)
		return counts;
	pthread_mutex_lock(&s->helper.mutex);
	counts = s->counts;
	pthread_mutex_unlock(&s->helper.mutex);
	return counts;
}

void weft__symbolize_close(struct weft__symbolize *s)
{
	if (!s)
		return;
	weft__symbolize_drain(s);
	pthread_mutex_lock(&s->helper.mutex);
	s->stop = 1;
	pthread_cond_signal(&s->helper.work);
	pthread_mutex_unlock(&s->helper.mutex);
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	weft__helper_unused(&s->helper);
	weft__helper_fini(&s->helper);
	weft__free(s);
}

void weft__symbolize_forked(struct weft__symbolize *s)
{
	(void)s;
}
