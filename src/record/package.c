/* SPDX-License-Identifier: Apache-2.0 */
#include "record/package.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/ours.h"
#include "base/private_fds.h"
#include "package/package.h"
#include "record/event/registry.h"
#include "record/helper.h"
#include "record/source.h"
#include "segment/defs.h"

#define SECOND_NS UINT64_C(1000000000)
#define PACKAGES_FIRST_NS (2 * SECOND_NS)  /* what ends before does not pay for it */
#define PACKAGES_AGAIN_NS (30 * SECOND_NS) /* until files that were mapped since are looked up */
#define PACKAGES_MAPS_BYTES ((size_t)1 << 20)
#define FACTS_TEXT 16384 /* of all facts together: half of what a segment has room for */
#define PACKAGES_NICENESS 19
#define PACKAGES_JOIN_MS 2000 /* a disk that does not answer holds nobody longer */

/* Constant once it is in the list. */
struct fact {
	struct fact *next;
	char *key, *value;
};

static struct {
	struct fact *facts; /* the list of a process, whatever recorders come and go */
	size_t bytes;       /* of the facts; the thread alone */
	uint32_t stop;
	uint32_t running; /* the thread has not ended */
	uint32_t started; /* it is to be joined */
	pthread_t thread;
	uint64_t due_ns, looked_ns;
	uint32_t modules; /* that there were when it looked */
	int off;          /* stopped: no thread is begun */
	uint64_t spent_ns;
	pthread_mutex_t lock; /* of all but the facts and what is atomic: the collector's, and who starts and stops */
} packages = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool has_package(const char *path)
{
	const struct fact *one;

	for (one = load_acquire(&packages.facts); one; one = one->next)
		if (strcmp(one->key + strlen(PACKAGE_FACT), path) == 0)
			return true;
	return false;
}

static void add_fact(const char *path, const struct weft__package_found *found)
{
	size_t n = strlen(PACKAGE_FACT) + strlen(path) + 1;
	struct fact *one = weft__calloc(1, sizeof(*one));
	char value[PACKAGE_FACT_BYTES];

	weft__package_fact(found, value, sizeof(value));
	if (one) {
		one->key = weft__alloc(n);
		one->value = weft__strdup(value);
	}
	if (!one || !one->key || !one->value || packages.bytes + n + strlen(value) + 8 > FACTS_TEXT) {
		if (one) {
			weft__free(one->key);
			weft__free(one->value);
		}
		weft__free(one);
		return;
	}
	snprintf(one->key, n, PACKAGE_FACT "%s", path);
	packages.bytes += n + strlen(value) + 8;
	one->next = packages.facts;
	store_release(&packages.facts, one);
}

/* The next path of a file with code, ended by a zero byte in `text`; NULL at the end. */
static char *next_file(char **text)
{
	char *line;

	while ((line = *text) && *line) {
		char *end = strchr(line, '\n'), *path, *mode;

		*text = end ? end + 1 : NULL;
		if (!end)
			return NULL; /* cut */
		*end = 0;
		path = strchr(line, '/');
		mode = strchr(line, ' ');
		if (path && mode && mode + 3 < path && mode[3] == 'x' &&
		    !(end - path > 10 && !strcmp(end - 10, " (deleted)")))
			return path;
	}
	return NULL;
}

static char *read_maps(void)
{
	char *text = weft__alloc(PACKAGES_MAPS_BYTES);
	int fd = text ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : -1;
	size_t n = 0;
	ssize_t got;

	while (fd >= 0 && n < PACKAGES_MAPS_BYTES - 1 && (got = read(fd, text + n, PACKAGES_MAPS_BYTES - 1 - n)) > 0)
		n += (size_t)got;
	if (fd >= 0)
		close(fd);
	if (text)
		text[n] = 0;
	return text;
}

/* Each once: a file has one part with code, and others between its next ones seldom. */
static void look_up(char *maps)
{
	struct weft__dpkg dpkg = {.stop = &packages.stop};
	struct weft__keys paths = {0};
	char exe[PATH_MAX] = "", *at = maps, *path;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	uint32_t number, i;
	int rc = 0;

	exe[n > 0 ? n : 0] = 0;
	while (rc == 0 && (path = next_file(&at)))
		if (!has_package(path) && (rc = weft__keys_text(&paths, path, &number)) == 0)
			rc = weft__dpkg_want(&dpkg, path);
	if (rc == 0)
		rc = weft__dpkg_read(&dpkg, WEFT__DPKG_DIR);
	for (i = 0; i < paths.n && rc == 0 && !load_relaxed(&packages.stop); i++) {
		struct weft__package_found found = {.manager = ""};

		path = (char *)(uintptr_t)weft__keys_at(&paths, i, NULL);
		weft__package_of_file(&dpkg, path, &found);
		if (strcmp(path, exe) == 0)
			found.origin = WEFT__ORIGIN_PROGRAM;
		add_fact(path, &found);
	}
	weft__keys_fini(&paths);
	weft__dpkg_fini(&dpkg);
}

static void *package_main(void *data)
{
	struct sched_param none = {0};
	struct timespec used = {0, 0};
	char *maps;

	(void)data;
	weft__ours_begin();
	pthread_setname_np(pthread_self(), "weft-packages");
	pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
	(void)!setpriority(PRIO_PROCESS, 0, PACKAGES_NICENESS); /* of this thread, in Linux */
#ifndef __SANITIZE_THREAD__                                     /* which takes the same number for the same file */
	weft__private_fds_begin(-1);
#endif
	maps = read_maps();
	if (maps)
		look_up(maps);
	weft__free(maps);
	weft__private_fds_end();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	add_relaxed(&packages.spent_ns, (uint64_t)used.tv_sec * SECOND_NS + (uint64_t)used.tv_nsec);
	if (load_relaxed(&packages.facts))
		weft__source_changed();
	store_release(&packages.running, 0u);
	return NULL;
}

uint64_t weft__package_cost(void)
{
	return load_relaxed(&packages.spent_ns);
}

static int package_start(pthread_t collector)
{
	(void)collector;
	pthread_mutex_lock(&packages.lock);
	store_relaxed(&packages.stop, 0u);
	packages.due_ns = 0;
	packages.off = 0;
	pthread_mutex_unlock(&packages.lock);
	return 0;
}

/* The thread, if there is one. One that is in a read that does not end is left alone; nothing is looked up again. */
static void package_stop(enum weft__source_end end)
{
	const struct timespec moment = {0, 1000000};
	uint32_t left_ms = PACKAGES_JOIN_MS, started;
	pthread_t thread;

	if (end != SOURCE_STOP)
		return;
	pthread_mutex_lock(&packages.lock);
	store_relaxed(&packages.stop, 1u);
	packages.off = 1;
	thread = packages.thread;
	started = packages.started;
	packages.started = 0;
	pthread_mutex_unlock(&packages.lock);
	if (!started)
		return;
	while (load_acquire(&packages.running) && left_ms-- > 0)
		nanosleep(&moment, NULL);
	if (load_acquire(&packages.running))
		pthread_detach(thread);
	else
		pthread_join(thread, NULL);
}

static uint64_t due_at(uint64_t now_ns)
{
	if (packages.off || load_acquire(&packages.running))
		return UINT64_MAX;
	if (!packages.due_ns) {
		packages.due_ns = now_ns + (packages.looked_ns ? PACKAGES_AGAIN_NS : PACKAGES_FIRST_NS);
		return packages.due_ns;
	}
	if (packages.looked_ns && packages.modules == weft__registry_modules())
		return UINT64_MAX;
	return packages.due_ns;
}

static uint64_t package_due(const struct weft__turn *turn)
{
	uint64_t due;

	pthread_mutex_lock(&packages.lock);
	due = due_at(turn->now_ns);
	pthread_mutex_unlock(&packages.lock);
	return due;
}

static void packages_look(uint64_t now_ns)
{
	if (packages.started) /* it has ended */
		pthread_join(packages.thread, NULL);
	packages.modules = weft__registry_modules();
	packages.looked_ns = now_ns;
	packages.due_ns = now_ns + PACKAGES_AGAIN_NS;
	store_relaxed(&packages.running, 1u);
	packages.started = weft__helper_thread(&packages.thread, package_main, NULL) == 0;
	if (!packages.started)
		store_relaxed(&packages.running, 0u);
}

static int package_turn(const struct weft__turn *turn)
{
	pthread_mutex_lock(&packages.lock);
	if (turn->now_ns >= due_at(turn->now_ns))
		packages_look(turn->now_ns);
	pthread_mutex_unlock(&packages.lock);
	return SOURCE_NOTHING;
}

static void package_facts(struct weft__defs *defs)
{
	const struct fact *one;

	for (one = load_acquire(&packages.facts); one; one = one->next)
		weft__defs_fact(defs, one->key, one->value);
}

/* The thread is not in the child; what it had found out is. */
static void package_fork(enum weft__source_fork when, struct weft__collector *c)
{
	(void)c;
	if (when == SOURCE_LOCK)
		pthread_mutex_lock(&packages.lock);
#ifdef __SANITIZE_ADDRESS__ /* whose heap may be locked for ever in a child, by a thread that is not there */
	store_relaxed(&packages.stop, 1u);
	while (when == SOURCE_LOCK && load_acquire(&packages.running))
		sched_yield();
#endif
	if (when == SOURCE_UNLOCK)
		pthread_mutex_unlock(&packages.lock);
	if (when != SOURCE_CHILD)
		return;
	packages.running = packages.started = 0;
	packages.due_ns = 0;
}

const struct weft__source weft__package_source = {
	.name = "packages",
	.what = "packages of code",
	.facts_change = 1,
	.start = package_start,
	.stop = package_stop,
	.fork = package_fork,
	.due = package_due,
	.turn = package_turn,
	.facts = package_facts,
};
