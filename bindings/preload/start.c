/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/apart.h"
#include "preload.h"

struct weft_recorder *weft__preload_recorder;
uint32_t weft__preload_on;
uint32_t weft__preload_epoch = 1;
int weft__preload_pid;

static void *found_at(void **at, void *found)
{
	if (!found) {
		static const char text[] =
			"weft: libweft-preload.so: the C library does not have a function it should\n";

		(void)!write(2, text, sizeof(text) - 1);
		abort();
	}
	__atomic_store_n(at, found, __ATOMIC_RELAXED);
	return found;
}

void *weft__preload_find(void **at, const char *name)
{
	int saved = errno;
	void *found = found_at(at, dlsym(RTLD_NEXT, name));

	errno = saved;
	return found;
}

void *weft__preload_find_version(void **at, const char *name, const char *version)
{
	int saved = errno;
	void *found = dlvsym(RTLD_NEXT, name, version);

	found = found_at(at, found ? found : dlsym(RTLD_NEXT, name));
	errno = saved;
	return found;
}

static void forked(void)
{
	weft__preload_epoch++;
	weft__preload_pid = (int)getpid();
	weft__preload_thread.ticking = 0;
}

static void say(const char *why)
{
	fprintf(stderr, "weft: %s[%d] is not recorded: %s\n", program_invocation_short_name, (int)getpid(), why);
}

/* Takes this library out of LD_PRELOAD, and leaves what else is there. */
static void leave_environment(void)
{
	const char *list = getenv("LD_PRELOAD");
	char *copy = list ? strdup(list) : NULL, *kept = list ? strdup(list) : NULL, *end = kept, *word, *rest = NULL;

	for (word = copy && kept ? strtok_r(copy, ": ", &rest) : NULL; word; word = strtok_r(NULL, ": ", &rest)) {
		if (strstr(word, "libweft-preload.so"))
			continue;
		if (end > kept)
			*end++ = ':';
		end = mempcpy(end, word, strlen(word));
	}
	if (end > kept) {
		*end = 0;
		setenv("LD_PRELOAD", kept, 1);
	} else {
		unsetenv("LD_PRELOAD");
	}
	unsetenv("WEFT_PRELOAD_DIR");
	unsetenv("WEFT_PRELOAD_CHILDREN");
	free(kept);
	free(copy);
}

/* From where on a wait is told by itself; WEFT_WAIT_MS, which the recorder reads, overrides it. */
static uint64_t threshold_ns(void)
{
	const char *text = getenv("WEFT_BLOCK_MS");
	double ms = text ? strtod(text, NULL) : 1;

	return ms > 0 && ms < 1e9 ? (uint64_t)(ms * 1e6) : 1000000;
}

/* With the options of the environment, but for WEFT_DIR: that is the program's, should it have a weft of its own. */
static int open_recorder(const char *dir, bool children, struct weft_error *err)
{
	struct weft_recorder_opts opts = {
		.size = sizeof(opts),
		.dir = dir,
		.on_fork = children ? WEFT_FORK_RESTART : WEFT_FORK_OFF,
		.wait_ns = threshold_ns(),
		.no_recover = 1, /* weft run does it at the end; children that exec would each do it */
	};
	struct weft_recorder *rec = NULL;
	const char *theirs = getenv("WEFT_DIR");
	char *saved = theirs ? strdup(theirs) : NULL;
	int r;

	weft__preload_wait_init();
	weft__preload_describe_init();
	weft__apart_wanted = 1; /* nothing of the program runs on weft's threads */
	unsetenv("WEFT_DIR");
	r = weft_recorder_open_env(&rec, &opts, err);
	if (saved)
		setenv("WEFT_DIR", saved, 1);
	free(saved);
	if (r == 0)
		r = weft_recorder_start(rec, err);
	if (r == 0)
		__atomic_store_n(&weft__preload_recorder, rec, __ATOMIC_RELEASE);
	return r;
}

__attribute__((constructor)) static void start(void)
{
	const char *dir = getenv("WEFT_PRELOAD_DIR"), *children = getenv("WEFT_PRELOAD_CHILDREN");
	static bool begun; /* the loader may call constructors again while the process exits */
	struct weft_error err = {0};
	int saved = errno, r;

	if (!dir || !dir[0] || begun)
		return;
	begun = true;
	/* One that records itself must not be recorded twice, but it may do so where the others do. */
	if (dlsym(RTLD_DEFAULT, "weft_recorder_open")) {
		setenv("WEFT_DIR", dir, 0);
		errno = saved;
		return;
	}
	weft__preload_thread.quiet = 1;
	r = open_recorder(dir, !children || strcmp(children, "0") != 0, &err);
	if (r < 0)
		say(err.msg[0] ? err.msg : weft_strerror(r));
	if (r == 0) {
		weft__preload_names_init();
		weft__preload_alone_init();
		weft__preload_threads_init();
		pthread_atfork(NULL, NULL, forked);
		weft__preload_pid = (int)getpid();
		__atomic_store_n(&weft__preload_on, 1, __ATOMIC_RELEASE);
	}
	weft__preload_thread.quiet = 0;
	if (children && strcmp(children, "0") == 0)
		leave_environment();
	errno = saved;
}
