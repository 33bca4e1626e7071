/* SPDX-License-Identifier: Apache-2.0 */
#include "record/ship.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/ours.h"
#include "base/private_fds.h"
#include "base/ship_plugin.h"
#include "record/helper.h"
#include "record/host/cloud.h"

#define TARGETS_MAX 8
#define SHIP_NICENESS 19
#define JOIN_S 2 /* that a thread gets to end: one in a function of the program may not */

struct target {
	struct weft__ship *ship;
	struct weft_ship_target given;
	char *url;
	int has_thread;
	pthread_t thread;
	int opened;           /* or it could not be */
	int failed;           /* it could not be: no thread any more */
	uint64_t asked, done; /* turns: asked for, and done since */
	uint64_t due_ns;      /* the next one */
	struct weft_ship_state state;
};

struct weft__ship {
	struct weft__helper helper;
	char *dir;
	uint64_t wait_ns;
	uint32_t stop;
	uint32_t n;
	int started;
	struct target targets[TARGETS_MAX];
	const char *urls[TARGETS_MAX + 1];
	const struct weft_ship_plugin *plugin; /* under load_mutex */
};

static pthread_mutex_t load_mutex = PTHREAD_MUTEX_INITIALIZER;

static const struct weft_ship_plugin *ship_plugin(struct weft__ship *s, char *why, size_t why_bytes)
{
	static const struct weft__helper_plugin file = {WEFT_SHIP_FILE, WEFT_SHIP_ENTRY, WEFT_SHIP_ABI, "weft push"};
	const struct weft_ship_plugin *plugin;

	pthread_mutex_lock(&load_mutex);
	if (!s->plugin)
		s->plugin = weft__helper_load(NULL, &file, why, why_bytes);
	plugin = s->plugin;
	pthread_mutex_unlock(&load_mutex);
	return plugin;
}

static void ship_log(enum weft_log_level level, const char *line, void *data)
{
	(void)data;
	weft__log(level, "%s", line);
}

/* Waits until it is due, something was sealed, or it is over. Answers whether there is a turn to be had. */
static int await_turn(struct target *t, uint64_t due_ns)
{
	struct timespec until = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
	struct weft__ship *s = t->ship;
	int r = 0, go;

	pthread_mutex_lock(&s->helper.mutex);
	while (!s->stop && t->done == t->asked && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&s->helper.work, &s->helper.mutex, &until);
	go = !s->stop;
	pthread_mutex_unlock(&s->helper.mutex);
	return go;
}

static void ship_fact(const char *key, const char *value, void *data)
{
	(void)data;
	weft__cloud_add(key, value);
}

/* The first target on the network asks what machine this is, once in a process. */
static void find_host(struct target *t, const struct weft_ship_plugin *plugin)
{
	static uint32_t asked;
	uint32_t no = 0;

	if (t->given.fn || !strstr(t->url, "://") || !strncmp(t->url, "file:", 5) || weft__cloud_known() ||
	    !cas_acq_rel(&asked, &no, 1u))
		return;
	plugin->host(&t->ship->stop, ship_fact, NULL);
	if (weft__cloud_known())
		weft__source_changed();
}

static void take_turns(struct target *t, const struct weft_ship_plugin *plugin, void *state)
{
	struct weft__ship *s = t->ship;
	uint64_t due = 0;

	while (await_turn(t, due)) {
		struct weft_ship_state now;
		uint64_t asked;

		pthread_mutex_lock(&s->helper.mutex);
		asked = t->asked;
		pthread_mutex_unlock(&s->helper.mutex);
		due = plugin->turn(state, weft__clock_mono());
		plugin->state(state, &now);
		pthread_mutex_lock(&s->helper.mutex);
		t->done = asked;
		t->due_ns = due;
		t->state = now;
		pthread_cond_broadcast(&s->helper.news);
		pthread_mutex_unlock(&s->helper.mutex);
		find_host(t, plugin);
	}
}

static void ship_opened(struct target *t, int failed, const char *why)
{
	struct weft__ship *s = t->ship;

	pthread_mutex_lock(&s->helper.mutex);
	t->opened = 1;
	t->failed = failed;
	if (failed) {
		t->state.failing = 1;
		snprintf(t->state.why, sizeof(t->state.why), "%.230s", why);
	}
	pthread_cond_broadcast(&s->helper.news);
	pthread_mutex_unlock(&s->helper.mutex);
	if (failed)
		weft__log(WEFT_LOG_WARN, "ship: nothing is sent: %s", why);
}

/* Files of its own: a program that closes all files does not close its sockets, and its children do not have them. Not
 * where a function of the program runs. */
static void *ship_main(void *data)
{
	struct sched_param none = {0};
	struct target *t = data;
	const struct weft_ship_plugin *plugin;
	char why[500] = "";
	void *state = NULL;

	weft__ours_begin();
	pthread_setname_np(pthread_self(), "weft-ship");
	pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
	(void)!setpriority(PRIO_PROCESS, 0, SHIP_NICENESS);
	plugin = ship_plugin(t->ship, why, sizeof(why));
	if (!t->given.fn)
		weft__private_fds_begin(-1);
	if (plugin && plugin->open(&state, &t->given, why, sizeof(why)) < 0)
		plugin = NULL;
	ship_opened(t, !plugin, why);
	if (plugin) {
		take_turns(t, plugin, state);
		plugin->close(state);
	}
	weft__private_fds_end();
	return NULL;
}

static void ship_thread(struct target *t)
{
	t->has_thread = weft__helper_thread(&t->thread, ship_main, t) == 0;
	if (!t->has_thread)
		ship_opened(t, 1, "a thread cannot be started");
}

static struct target *new_target(struct weft__ship *s, const struct weft_recorder_opts *opts, const char *url, size_t n)
{
	struct target *t = &s->targets[s->n];

	t->url = weft__alloc(n + 1);
	if (!t->url)
		return NULL;
	memcpy(t->url, url, n);
	t->url[n] = 0;
	t->ship = s;
	t->given = (struct weft_ship_target){
		.dir = s->dir, .url = t->url, .all_urls = s->urls, .stop = &s->stop, .log = ship_log};
	if (opts) {
		t->given.age_ns = opts->ship_age_ns;
		t->given.timeout_ns = opts->ship_timeout_ns;
		t->given.delete = (int)opts->ship_delete;
	}
	s->urls[s->n++] = t->url;
	return t;
}

static void ship_free(struct weft__ship *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		weft__free(s->targets[i].url);
	weft__free(s->dir);
	weft__helper_fini(&s->helper);
	weft__free(s);
}

int weft__ship_open(struct weft__ship **ret, const struct weft_recorder_opts *opts)
{
	const char *at = opts->ship_to ? opts->ship_to : "";
	struct weft__ship *s;

	*ret = NULL;
	if (!opts->dir)
		return 0;
	s = weft__calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	weft__helper_init(&s->helper);
	s->dir = weft__strdup(opts->dir);
	s->wait_ns = opts->ship_wait_ns == WEFT_OFF ? 0 : opts->ship_wait_ns;
	while (s->dir && *(at += strspn(at, " \t\n")) && s->n < TARGETS_MAX) {
		size_t n = strcspn(at, " \t\n");

		if (!new_target(s, opts, at, n))
			break;
		at += n;
	}
	if (!s->dir || *at) {
		ship_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

int weft__ship_add(struct weft__ship *s, const char *name, weft_report_fn *fn, void *data, struct weft_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	size_t n = name ? strlen(name) : 0;
	struct target *t;

	if (!fn || !n || n > 100 || strspn(name, allowed) != n)
		return weft__fail(err, -EINVAL, "a target has a function, and a name of letters, digits, '-' and '_'");
	if (s->started)
		return weft__fail(err, -WEFT_E_STATE, "targets are added before the recorder is started");
	if (s->n == TARGETS_MAX)
		return weft__fail(err, -WEFT_E_LIMIT, "there are %d targets already", TARGETS_MAX);
	t = new_target(s, NULL, name, n);
	if (!t)
		return weft__fail(err, -ENOMEM, "out of memory");
	if (s->n > 1)
		t->given.delete = s->targets[0].given.delete;
	t->given.fn = fn;
	t->given.data = data;
	return 0;
}

void weft__ship_start(struct weft__ship *s)
{
	uint32_t i;

	if (!s || s->started)
		return;
	s->started = 1;
	for (i = 0; i < s->n; i++)
		ship_thread(&s->targets[i]);
}

void weft__ship_poke(struct weft__ship *s)
{
	uint32_t i;

	if (!s || !s->n)
		return;
	pthread_mutex_lock(&s->helper.mutex);
	for (i = 0; i < s->n; i++)
		s->targets[i].asked++;
	pthread_cond_broadcast(&s->helper.work);
	pthread_mutex_unlock(&s->helper.mutex);
}

/* With the mutex. Whether there is nothing to wait for until then. */
static int is_done(const struct target *t, uint64_t end_ns)
{
	if (!t->has_thread || t->failed)
		return 1;
	return t->opened && t->done == t->asked && (!t->state.waiting || t->state.busy || t->due_ns > end_ns);
}

void weft__ship_drain(struct weft__ship *s)
{
	struct timespec until;
	uint64_t end = weft__clock_mono();
	uint32_t i;
	int r = 0;

	if (!s || !s->n || !s->wait_ns)
		return;
	end += s->wait_ns;
	until = (struct timespec){(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
	weft__ship_poke(s);
	pthread_mutex_lock(&s->helper.mutex);
	for (i = 0; i < s->n && r != ETIMEDOUT; i++)
		while (!is_done(&s->targets[i], end) && r != ETIMEDOUT)
			r = pthread_cond_timedwait(&s->helper.news, &s->helper.mutex, &until);
	pthread_mutex_unlock(&s->helper.mutex);
}

void weft__ship_hold(struct weft__ship *s)
{
	if (s)
		weft__helper_hold(&s->helper);
}

void weft__ship_let(struct weft__ship *s)
{
	if (s)
		weft__helper_let(&s->helper);
}

uint64_t weft__ship_cost(struct weft__ship *s)
{
	uint64_t ns = 0;
	uint32_t i;

	for (i = 0; s && i < s->n; i++)
		ns += s->targets[i].has_thread ? weft__helper_cpu_ns(s->targets[i].thread) : 0;
	return ns;
}

void weft__ship_health(struct weft__ship *s, struct weft_health *health)
{
	uint32_t i, reached = 0;

	if (!s)
		return;
	pthread_mutex_lock(&s->helper.mutex);
	health->targets = s->n;
	for (i = 0; i < s->n; i++) {
		const struct weft_ship_state *t = &s->targets[i].state;

		reached += t->reached != 0;
		health->failing += t->failing != 0;
		health->sent += t->sent;
		health->bytes += t->bytes;
		health->retries += t->retries;
		health->refused += t->refused;
		health->waiting += t->waiting;
		if (t->sent_real_ns > health->sent_real_ns)
			health->sent_real_ns = t->sent_real_ns;
		if (t->why[0] && !health->why[0])
			snprintf(health->why, sizeof(health->why), "ship: %.190s", t->why);
	}
	if (s->n && reached == s->n)
		health->passed |= WEFT_CHECK_TARGETS;
	else if (health->failing)
		health->failed |= WEFT_CHECK_TARGETS;
	pthread_mutex_unlock(&s->helper.mutex);
}

void weft__ship_forked(struct weft__ship *s)
{
	(void)s;
	pthread_mutex_init(&load_mutex, NULL); /* one of them may have had it */
}

void weft__ship_quit(struct weft__ship *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->helper.mutex);
	store_relaxed(&s->stop, 1u);
	pthread_cond_broadcast(&s->helper.work);
	pthread_mutex_unlock(&s->helper.mutex);
}

/* One that is in a function of the program, and does not come out of it, is left alone, and so is all that it uses. */
void weft__ship_close(struct weft__ship *s)
{
	struct timespec until;
	uint32_t i;
	int left = 0;

	if (!s)
		return;
	weft__ship_quit(s);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += JOIN_S;
	for (i = 0; i < s->n; i++) {
		if (!s->targets[i].has_thread ||
		    pthread_clockjoin_np(s->targets[i].thread, NULL, CLOCK_MONOTONIC, &until) == 0)
			continue;
		pthread_detach(s->targets[i].thread);
		left = 1;
	}
	weft__helper_unused(&s->helper);
	if (!left)
		ship_free(s);
}
