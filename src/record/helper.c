/* SPDX-License-Identifier: Apache-2.0 */
#include "record/helper.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HELPER_STACK ((size_t)8 << 20) /* demanglers recurse */

void weft__helper_init(struct weft__helper *helper)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&helper->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&helper->work, &attr);
	pthread_cond_init(&helper->news, &attr);
	pthread_condattr_destroy(&attr);
}

void weft__helper_fini(struct weft__helper *helper)
{
	pthread_cond_destroy(&helper->work);
	pthread_cond_destroy(&helper->news);
	pthread_mutex_destroy(&helper->mutex);
}

void weft__helper_hold(struct weft__helper *helper)
{
	pthread_mutex_lock(&helper->mutex);
	helper->users++;
	pthread_mutex_unlock(&helper->mutex);
}

void weft__helper_let(struct weft__helper *helper)
{
	pthread_mutex_lock(&helper->mutex);
	helper->users--;
	pthread_cond_broadcast(&helper->news);
	pthread_mutex_unlock(&helper->mutex);
}

void weft__helper_unused(struct weft__helper *helper)
{
	pthread_mutex_lock(&helper->mutex);
	while (helper->users)
		pthread_cond_wait(&helper->news, &helper->mutex);
	pthread_mutex_unlock(&helper->mutex);
}

int weft__helper_thread(pthread_t *ret, void *(*start)(void *), void *data)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	pthread_attr_setstacksize(&attr, HELPER_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(ret, &attr, start, data);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

uint64_t weft__helper_cpu_ns(pthread_t thread)
{
	struct timespec ts = {0, 0};
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) == 0)
		clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The plugin is beside the library that this function is in. */
static void find_plugin(char *path, size_t bytes, const char *file)
{
	const char *slash;
	Dl_info info;

	snprintf(path, bytes, "%s", file);
	if (!dladdr((void *)(uintptr_t)find_plugin, &info) || !info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	if (!slash)
		return;
	snprintf(path, bytes, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, file);
	if (access(path, R_OK) != 0)
		snprintf(path, bytes, "%s", file);
}

const void *weft__helper_load(const char *path, const struct weft__helper_plugin *of, char *why, size_t why_bytes)
{
	const void *(*entry)(void) = NULL;
	const void *plugin;
	char found[4096];
	void *handle, *symbol;
	uint32_t abi = 0;

	if (!path) {
		find_plugin(found, sizeof(found), of->file);
		path = found;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *text = dlerror();

		snprintf(why, why_bytes, "%.300s; install %s beside libweft.so, or run %s", text ? text : path,
			 of->file, of->instead);
		return NULL;
	}
	symbol = dlsym(handle, of->entry);
	memcpy(&entry, &symbol, sizeof(symbol));
	plugin = entry ? entry() : NULL;
	if (plugin)
		memcpy(&abi, plugin, sizeof(abi));
	if (abi == of->abi)
		return plugin;
	snprintf(why, why_bytes, "%.300s is not of this version of weft; install both of the same one", path);
	return NULL;
}
