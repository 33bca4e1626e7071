/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/late.h"
#include "base/private_fds.h"
#include "base/short.h"
#include "late.h"
#include "preload.h"
#include "weft/calls.h"

extern int weft__threads_announced; /* record/thread/thread.h */

#define START_AFTER_MS 50

static struct weft_recorder_opts options PRELOAD_NEAR;
static char options_dir[PATH_MAX];
static char options_dir_near[200] PRELOAD_NEAR; /* if it fits */

extern struct preload_real __start_preload_reals[] __attribute__((visibility("hidden")));
extern struct preload_real __stop_preload_reals[] __attribute__((visibility("hidden")));

struct weft_recorder *weft__preload_recorder PRELOAD_NEAR;
uint32_t weft__preload_on PRELOAD_NEAR;
uint32_t weft__preload_epoch PRELOAD_NEAR = 1;
int weft__preload_pid PRELOAD_NEAR;

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

static void say(const char *why)
{
	fprintf(stderr, "weft: %s[%d] is not recorded: %s\n", program_invocation_short_name, (int)getpid(), why);
}

/* The value of NAME in an entry of the environment, or NULL. */
static char *value_in(char *entry, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(entry, name, n) && entry[n] == '=' ? entry + n + 1 : NULL;
}

/* Takes this library out of a list, in place, and leaves what else is there. True when something is. */
static bool leave_list(char *list)
{
	char *from = list, *to = list;

	while (*from) {
		size_t n = strcspn(from, ": "), gap = strspn(from + n, ": ");
		bool ours = memmem(from, n, "libweft-preload.so", sizeof("libweft-preload.so") - 1) != NULL;

		if (!ours && n) {
			if (to > list)
				*to++ = ':';
			memmove(to, from, n);
			to += n;
		}
		from += n + gap;
	}
	*to = 0;
	return to > list;
}

/* In the array that main is given: a program may have a setenv of its own, as bash has, which is not ready yet. */
static void leave_environment(void)
{
	char **from = environ, **to = environ;

	for (; from && *from; from++) {
		char *list = value_in(*from, "LD_PRELOAD");

		if (value_in(*from, "WEFT_PRELOAD_DIR") || value_in(*from, "WEFT_PRELOAD_CHILDREN") ||
		    value_in(*from, SHORT_ENV) || (list && !leave_list(list)))
			continue;
		*to++ = *from;
	}
	if (to)
		*to = NULL;
}

/* From where on a wait is reported by itself; WEFT_WAIT_MS, which the recorder reads, overrides it. */
static uint64_t threshold_ns(void)
{
	const char *text = getenv("WEFT_BLOCK_MS");
	double ms = text ? strtod(text, NULL) : 1;

	return ms > 0 && ms < 1e9 ? (uint64_t)(ms * 1e6) : 1000000;
}

/* Of the library inside: record/recorder.c. */
int weft__recorder_restart(struct weft_recorder *rec);
int weft__recorder_options(struct weft_recorder_opts *opts, struct weft_error *err);

/* With what the environment says now: the program may change it. WEFT_DIR is the program's, should it have a weft of
 * its own. */
static int take_options(const char *dir, bool children)
{
	struct weft_error err = {0};
	int r;

	options = (struct weft_recorder_opts){
		.size = sizeof(options),
		.dir = dir,
		.on_fork = children ? WEFT_FORK_RESTART : WEFT_FORK_OFF,
		.wait_ns = threshold_ns(),
		.no_recover = 1, /* weft run does it at the end; children that exec would each do it */
	};
	r = weft__recorder_options(&options, &err);
	if (r < 0)
		say(err.msg[0] ? err.msg : weft_strerror(r));
	return r;
}

static int open_recorder(struct weft_error *err)
{
	struct weft_recorder *rec = NULL;
	int r;

	weft__preload_describe_init();
	weft__private_fds_wanted = 1; /* nothing of the program runs on weft's threads */
	weft__threads_announced = 1;  /* in threads.c */
	r = weft_recorder_open(&rec, &options, err);
	if (r == 0)
		r = weft_recorder_start(rec, err);
	if (r == 0)
		__atomic_store_n(&weft__preload_recorder, rec, __ATOMIC_RELEASE);
	return r;
}

bool weft__preload_private_fds(void)
{
	return !options.sample_kernel && !options.symbolize;
}

int weft__preload_open(void)
{
	struct weft_recorder *rec = __atomic_load_n(&weft__preload_recorder, __ATOMIC_ACQUIRE);
	struct weft_error err = {0};
	int r;

	/* weft run has ended, and removed it. */
	if (access(options.dir, F_OK) < 0)
		return 1;
	weft__preload_thread.quiet++;
	r = rec ? weft__recorder_restart(rec) : open_recorder(&err);
	if (r < 0)
		say(err.msg[0] ? err.msg : weft_strerror(r));
	if (r == 0) {
		if (!rec)
			weft__preload_names_init();
		__atomic_store_n(&weft__preload_on, 1, __ATOMIC_RELEASE);
	}
	weft__preload_thread.quiet--;
	return r;
}

/* From when on a process is recorded. */
static uint64_t start_after_ns(void)
{
	const char *text = getenv("WEFT_START_AFTER_MS");
	double ms = text && text[0] ? strtod(text, NULL) : START_AFTER_MS;

	return ms >= 0 && ms < 1e9 ? (uint64_t)(ms * 1e6) : (uint64_t)START_AFTER_MS * 1000000;
}

/* Whether all are the C library's: one between this and the C library may have functions of its own that are not to
 * be passed by. Under the loader's lock nothing can be looked up later, and in the child of a fork it may stay
 * locked. */
static bool find_all(const struct symbol_objects *objects)
{
	struct preload_real *real;
	bool libc = true;

	for (real = __start_preload_reals; real < __stop_preload_reals; real++) {
		bool nobody = false;
		void *found;

		if (__atomic_load_n(real->at, __ATOMIC_RELAXED))
			continue;
		found = real->version ? dlvsym(RTLD_NEXT, real->name, real->version) : NULL;
		found = found ? found : weft__preload_in_libc_only(objects, real->name, &nobody);
		if (!found && !nobody) {
			found = dlsym(RTLD_NEXT, real->name);
			libc &= !found || weft__preload_in_libc(found);
		}
		__atomic_store_n(real->at, found, __ATOMIC_RELAXED);
	}
	return libc;
}

static bool records PRELOAD_NEAR; /* this library, not the program itself */

WEFT_API const struct weft_calls *weft_run_calls(void);
const struct weft_calls *weft_run_calls(void)
{
	return records ? weft_calls() : NULL;
}

/* The program may change its environment. */
static const char *keep_dir(const char *dir)
{
	size_t n = strlen(dir);
	char *at = n < sizeof(options_dir_near) ? options_dir_near : options_dir;

	n = n < sizeof(options_dir) ? n : sizeof(options_dir) - 1;
	memcpy(at, dir, n);
	at[n] = 0;
	return at;
}

__attribute__((constructor)) static void start(void)
{
	const char *dir = getenv("WEFT_PRELOAD_DIR"), *children = getenv("WEFT_PRELOAD_CHILDREN");
	bool with_children = !children || strcmp(children, "0") != 0;
	static bool begun PRELOAD_NEAR; /* the loader may call constructors again while the process exits */
	struct symbol_objects objects;
	int saved = errno;

	if (!dir || !dir[0] || begun)
		return;
	begun = true;
	weft__preload_objects(&objects);
	/* One that records itself must not be recorded twice, but it may do so where the others do. */
	if (weft__preload_may_have(&objects, "weft_recorder_open") && dlsym(RTLD_DEFAULT, "weft_recorder_open")) {
		setenv("WEFT_DIR", dir, 0);
		errno = saved;
		return;
	}
	records = true;
	weft__preload_thread.quiet = 1;
	weft__preload_pid = (int)getpid();
	weft__preload_code_init();
	if (find_all(&objects))
		weft__preload_alone_init();
	weft__preload_loop_init(&objects);
	weft__preload_wait_init();
	weft__preload_threads_init();
	weft__late_restarts = 1;
	dir = keep_dir(dir);
	if (take_options(dir, with_children) == 0)
		weft__preload_late_init(dir, with_children, start_after_ns());
	weft__preload_thread.quiet = 0;
	if (!with_children)
		leave_environment();
	errno = saved;
}
