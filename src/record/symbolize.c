/* SPDX-License-Identifier: Apache-2.0 */
#include "record/symbolize.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/ours.h"
#include "base/plugin.h"

#define WAITING_MAX 64 /* segments; with more the newest stay without names */
#define LOAD_WAIT_S 1
#define STACK_BYTES ((size_t)8 << 20) /* demanglers recurse */
#define NICENESS 10                   /* the application comes first */

enum load_state { LOADING, LOADED, NOT_LOADED };

struct weft__symbolize {
	char plugin[4096];
	int has_thread;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t work; /* for the thread */
	pthread_cond_t news; /* from the thread */
	enum load_state state;
	struct weft_error why; /* it is not loaded */
	char *waiting[WAITING_MAX];
	uint32_t first;
	uint32_t n;
	int busy;
	int stop;
	uint32_t users; /* that wait without the recorder's mutex: it stays until they are gone */
	struct weft__symbolize_counts counts;
};

/* The plugin is beside the library that this function is in. */
static void find_plugin(char *path, size_t bytes)
{
	Dl_info info;
	const char *slash;

	snprintf(path, bytes, "%s", WEFT_SYMBOLIZE_FILE);
	if (!dladdr((void *)(uintptr_t)find_plugin, &info) || !info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	if (!slash)
		return;
	snprintf(path, bytes, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, WEFT_SYMBOLIZE_FILE);
	if (access(path, R_OK) != 0)
		snprintf(path, bytes, "%s", WEFT_SYMBOLIZE_FILE);
}

/* It stays loaded: there is nothing to win by unloading it. */
static const struct weft_symbolize_plugin *load_plugin(const char *path, struct weft_error *err)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct weft_symbolize_plugin *plugin;
	weft_symbolize_plugin_fn *entry = NULL;
	void *symbol;

	if (!handle) {
		const char *text = dlerror();

		weft__fail(err, -ENOENT, "%s; install " WEFT_SYMBOLIZE_FILE " beside libweft.so, or run weft symbolize",
			   text ? text : path);
		return NULL;
	}
	symbol = dlsym(handle, WEFT_SYMBOLIZE_ENTRY);
	memcpy(&entry, &symbol, sizeof(symbol));
	plugin = entry ? entry() : NULL;
	if (plugin && plugin->abi == WEFT_SYMBOLIZE_ABI)
		return plugin;
	weft__fail(err, -WEFT_E_VERSION, "%s is not of this version of weft; install both of the same one", path);
	return NULL;
}

static void set_state(struct weft__symbolize *s, enum load_state state, const struct weft_error *why)
{
	pthread_mutex_lock(&s->mutex);
	s->state = state;
	s->why = *why;
	pthread_cond_broadcast(&s->news);
	pthread_mutex_unlock(&s->mutex);
}

/* The next path to do, the caller's; NULL when it is over. */
static char *next_path(struct weft__symbolize *s)
{
	char *path = NULL;

	pthread_mutex_lock(&s->mutex);
	s->busy = 0;
	pthread_cond_broadcast(&s->news);
	while (!s->n && !s->stop)
		pthread_cond_wait(&s->work, &s->mutex);
	if (s->n) {
		path = s->waiting[s->first];
		s->first = (s->first + 1) % WAITING_MAX;
		s->n--;
		s->busy = 1;
	}
	pthread_mutex_unlock(&s->mutex);
	return path;
}

static void count_segment(struct weft__symbolize *s, int failed)
{
	pthread_mutex_lock(&s->mutex);
	s->counts.done += !failed;
	s->counts.failed += !!failed;
	pthread_mutex_unlock(&s->mutex);
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
	struct weft__symbolize *s = data;
	const struct weft_symbolize_plugin *plugin;
	struct weft_error err = {0};
	void *state = NULL;

	weft__ours_begin();
	pthread_setname_np(pthread_self(), "weft-symbolize");
	(void)!setpriority(PRIO_PROCESS, 0, NICENESS); /* of this thread, in Linux */
	plugin = load_plugin(s->plugin, &err);
	if (plugin && plugin->open(&state, err.msg, sizeof(err.msg)) < 0)
		plugin = NULL;
	set_state(s, plugin ? LOADED : NOT_LOADED, &err);
	run_queue(s, plugin, state);
	if (plugin)
		plugin->close(state);
	return NULL;
}

static int start_thread(struct weft__symbolize *s)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&s->thread, &attr, symbolize_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	s->has_thread = !r;
	return -r;
}

/* Not for ever: the loader's lock may be held by who waits here, in a constructor. */
static void await_load(struct weft__symbolize *s)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOAD_WAIT_S;
	pthread_mutex_lock(&s->mutex);
	while (s->state == LOADING && pthread_cond_timedwait(&s->news, &s->mutex, &until) == 0)
		;
	pthread_mutex_unlock(&s->mutex);
}

int weft__symbolize_open(struct weft__symbolize **ret, const char *plugin)
{
	struct weft__symbolize *s = weft__calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int r;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->news, &attr);
	pthread_condattr_destroy(&attr);
	if (plugin)
		snprintf(s->plugin, sizeof(s->plugin), "%s", plugin);
	else
		find_plugin(s->plugin, sizeof(s->plugin));
	r = start_thread(s);
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
	pthread_mutex_lock(&s->mutex);
	if (s->state == NOT_LOADED)
		weft__defs_fact(defs, "degraded.symbolize", s->why.msg);
	else /* who sends segments waits for the names */
		weft__defs_fact(defs, "symbolize", "wanted");
	pthread_mutex_unlock(&s->mutex);
}

void weft__symbolize_submit(struct weft__symbolize *s, const char *path)
{
	char *copy = s ? weft__strdup(path) : NULL;

	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	if (copy && s->has_thread && s->n < WAITING_MAX) {
		s->waiting[(s->first + s->n++) % WAITING_MAX] = copy;
		copy = NULL;
		pthread_cond_signal(&s->work);
	} else {
		s->counts.failed++;
		s->counts.dropped++;
	}
	pthread_mutex_unlock(&s->mutex);
	weft__free(copy);
}

void weft__symbolize_hold(struct weft__symbolize *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	s->users++;
	pthread_mutex_unlock(&s->mutex);
}

void weft__symbolize_let(struct weft__symbolize *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	s->users--;
	pthread_cond_broadcast(&s->news);
	pthread_mutex_unlock(&s->mutex);
}

void weft__symbolize_drain(struct weft__symbolize *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	while (s->has_thread && (s->n || s->busy))
		pthread_cond_wait(&s->news, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
}

uint64_t weft__symbolize_cost(struct weft__symbolize *s)
{
	struct timespec ts = {0, 0};
	clockid_t clock;

	if (s && s->has_thread && pthread_getcpuclockid(s->thread, &clock) == 0)
		clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct weft__symbolize_counts weft__symbolize_counts(struct weft__symbolize *s)
{
	struct weft__symbolize_counts counts = {0, 0, 0};

	if (!s)
		return counts;
	pthread_mutex_lock(&s->mutex);
	counts = s->counts;
	pthread_mutex_unlock(&s->mutex);
	return counts;
}

void weft__symbolize_close(struct weft__symbolize *s)
{
	if (!s)
		return;
	weft__symbolize_drain(s);
	pthread_mutex_lock(&s->mutex);
	s->stop = 1;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->mutex);
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	pthread_mutex_lock(&s->mutex);
	while (s->users)
		pthread_cond_wait(&s->news, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->news);
	pthread_mutex_destroy(&s->mutex);
	weft__free(s);
}

void weft__symbolize_forked(struct weft__symbolize *s)
{
	(void)s;
}
