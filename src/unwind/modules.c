/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/place.h"
#include "base/private_fds.h"
#include "unwind/image.h"
#include "unwind/modules_state.h"
#include "unwind/needed.h"
#include "unwind/on_demand.h"

/* Sets that wait for handlers to leave them. Each refresh frees what it can, so there are more only when handlers run
 * without a pause; then a refresh waits. */
#define RETIRED_MAX 8
#define WAIT_TURNS 20000

#define MODULES_MAX 65536
#define LOOKS_MAX 8 /* of one refresh, when modules come and go all the time */

static pthread_mutex_t modules_lock FORK_DATA = PTHREAD_MUTEX_INITIALIZER;
static struct weft__modules *retired;
static unsigned n_retired;
static uint32_t next_id = 1;
static uint64_t seen_adds, seen_subs;
static struct weft__needed needed_now; /* in the first look */

/* One walk over the loader's list. */
struct gather {
	struct weft__module **module;
	size_t n, module_cap;
	uint64_t adds, subs;
	int calls;
	int error;
	int changed;
};

/* The loader's lock, under which its names can be read, is not one that ThreadSanitizer sees. */
__attribute__((no_sanitize("thread"))) static const char *raw_copy(char *to, size_t n, const volatile char *from)
{
	size_t i = 0;

	for (; i + 1 < n && from[i]; i++)
		to[i] = from[i];
	to[i] = 0;
	return to;
}

static const char *image_path(const struct dl_phdr_info *info, struct weft__module *module, char *buf, size_t n)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR), libc = (uint64_t)(uintptr_t)&sched_yield;
	uint64_t own = (uint64_t)(uintptr_t)&weft__modules_look;
	ssize_t got;

	if (vdso && vdso >= module->start && vdso < module->end) {
		module->kind = WEFT__MODULE_VDSO;
		module->stays = 1;
		return "[vdso]";
	}
	module->kind = WEFT__MODULE_LIBRARY;
	module->stays = (libc >= module->start && libc < module->end) || (own >= module->start && own < module->end);
	if (info->dlpi_name && *raw_copy(buf, n, info->dlpi_name))
		return buf;
	module->kind = WEFT__MODULE_PROGRAM;
	module->stays = 1;
	got = readlink("/proc/self/exe", buf, n - 1);
	if (got <= 0)
		return "";
	buf[got] = 0;
	return buf;
}

/* The module of the set before that is the same one, still there. One without a build-id is only believed to be that
 * when nothing was unloaded since. */
static struct weft__module *known_module(const struct gather *g, const struct weft__module *like, const char *path)
{
	struct weft__modules *set = weft__modules_now.set;

	for (uint32_t i = 0; set && i < set->n; i++) {
		struct weft__module *module = set->module[i];

		if (module->start == like->start && module->end == like->end && module->bias == like->bias &&
		    module->build_id_n == like->build_id_n &&
		    memcmp(module->build_id, like->build_id, like->build_id_n) == 0 &&
		    (like->build_id_n || g->subs == seen_subs) && strcmp(module->path, path) == 0)
			return module;
	}
	return NULL;
}

static int gather_add(struct gather *g, struct dl_phdr_info *info)
{
	struct weft__module like = {0}, *module;
	char buf[4096];
	const char *path;
	void *room;

	if (g->n >= MODULES_MAX || weft__image_describe(info, &like) < 0)
		return 0;
	path = image_path(info, &like, buf, sizeof(buf));
	/* In the first look: what comes later was opened, and is not needed by the program. */
	if (!weft__modules_now.set &&
	    weft__needed_by_program(&needed_now, info, path, like.kind == WEFT__MODULE_PROGRAM))
		like.stays = 1;
	room = weft__grow(g->module, &g->module_cap, g->n, sizeof(void *));
	if (!room)
		return -ENOMEM;
	g->module = room;
	module = known_module(g, &like, path);
	if (module) {
		module->refs++;
	} else {
		module = weft__module_new(path);
		if (!module)
			return -ENOMEM;
		like.path = module->path;
		like.refs = 1;
		like.id = next_id++;
		like.pending = 1;
		if (like.stays)
			weft__image_mapped(info, &like);
		*module = like;
	}
	g->module[g->n++] = module;
	return 0;
}

/* In the first call of a walk. Whether modules have come or gone; *counted: the loader says. */
static int loader_moved(const struct dl_phdr_info *info, size_t size, int *counted)
{
	*counted = size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs);
	return *counted && (info->dlpi_adds != seen_adds || info->dlpi_subs != seen_subs);
}

static int on_image(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct gather *g = arg;

	if (g->calls++ == 0) {
		int counted, moved = loader_moved(info, size, &counted);

		g->adds = counted ? info->dlpi_adds : 0;
		g->subs = counted ? info->dlpi_subs : 0;
		g->changed = !counted || !weft__modules_now.set || moved;
	}
	if (g->changed)
		g->error = gather_add(g, info);
	return !g->changed || g->error;
}

/* The image of one module, found again. */
struct fetch {
	const struct weft__module *module;
	struct weft__image_frames frames;
	int calls;
	int error;
	int moved;
};

static int on_fetch(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct fetch *f = arg;
	struct weft__module like = {0};
	int counted;

	if (f->calls++ == 0)
		f->moved = loader_moved(info, size, &counted);
	if (f->moved)
		return 1;
	if (weft__image_describe(info, &like) < 0 || like.start != f->module->start || like.end != f->module->end ||
	    like.bias != f->module->bias)
		return 0;
	f->error = weft__image_frames(info, &f->frames);
	return 1;
}

/* The file of a module that is being made. Opened and closed with the lock held, so that the child of a fork knows
 * of it, unless it is in a table that the child has no copy of. Answers the file or a negative error. */
static int module_file_open(struct weft__module *module)
{
	int fd;

	pthread_mutex_lock(&modules_lock);
	fd = open(module->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	else if (!weft__private_fds)
		module->fd = fd;
	pthread_mutex_unlock(&modules_lock);
	return fd;
}

static void file_close(struct weft__module *module, int fd)
{
	pthread_mutex_lock(&modules_lock);
	close(fd);
	module->fd = -1;
	pthread_mutex_unlock(&modules_lock);
}

/* When the loader's tables leave out a good part of the code, as in what was built without them, the file's sections
 * may have more. */
static int table_make(struct weft__module *module, const struct weft__image_frames *frames, int (*halt)(void),
		      struct weft__unwind_table **ret)
{
	struct weft__unwind_table *table = NULL, *more = NULL;
	int error = frames->bytes ? weft__unwind_table_make(&table, &frames->in, 1, halt) : -ENOENT;

	if (error == -ENOMEM || error == -ECANCELED)
		return error;
	if (module->kind != WEFT__MODULE_VDSO &&
	    (!table || table->stats.code_bytes < (module->text_end - module->text_start) / 4 * 3)) {
		int fd = module_file_open(module);

		error = fd;
		if (fd >= 0) {
			error = weft__unwind_table_read(&more, fd, frames->bytes ? &frames->in : NULL, halt);
			file_close(module, fd);
		}
	}
	if (error == -ENOMEM || error == -ECANCELED || more) {
		weft__unwind_table_free(table);
		table = more;
	}
	*ret = table;
	return table ? 0 : error;
}

static void retire(struct weft__modules *set)
{
	if (!set)
		return;
	set->next = retired;
	set->drained = 0;
	retired = set;
	n_retired++;
}

/* With the lock held. Frees the sets that both counts have left, and sends newcomers to the count that is empty. */
static unsigned sweep(void)
{
	struct weft__modules **at = &retired;
	uint32_t drained = 0, phase = load_relaxed(&weft__modules_now.phase);

	for (uint32_t i = 0; i < 2 && retired; i++)
		drained |= (uint32_t)(load_seq_cst(&weft__modules_now.readers[i]) == 0) << i;
	while (*at) {
		struct weft__modules *set = *at;

		set->drained |= drained;
		if (set->drained != 3) {
			at = &set->next;
			continue;
		}
		*at = set->next;
		n_retired--;
		weft__modules_free(set);
	}
	if (retired && drained >> (phase ^ 1) & 1)
		store_seq_cst(&weft__modules_now.phase, phase ^ 1);
	return n_retired;
}

static unsigned sweep_wait(unsigned most)
{
	for (int i = 0; i < WAIT_TURNS && sweep() > most; i++)
		sched_yield();
	return n_retired;
}

static int set_make(struct gather *g)
{
	struct weft__modules *set, *old;
	int error = g->error;

	if (error == 0) {
		error = weft__modules_new(&set, g->module, (uint32_t)g->n);
	} else {
		for (size_t i = 0; i < g->n; i++)
			weft__module_free(g->module[i]);
	}
	if (error < 0)
		return error;
	old = swap_seq_cst(&weft__modules_now.set, set);
	seen_adds = g->adds;
	seen_subs = g->subs;
	retire(old);
	return 1;
}

int weft__modules_look(void)
{
	struct gather g = {0};
	int result;

	pthread_mutex_lock(&modules_lock);
	sweep();
	if (n_retired >= RETIRED_MAX && sweep_wait(RETIRED_MAX - 1) >= RETIRED_MAX) {
		pthread_mutex_unlock(&modules_lock);
		return -EAGAIN;
	}
	needed_now.n = 0;
	dl_iterate_phdr(on_image, &g);
	result = g.changed ? set_make(&g) : 0;
	weft__free(g.module);
	sweep();
	pthread_mutex_unlock(&modules_lock);
	return result;
}

/* Whether the table of `a` is to be made before that of `b`, which may be NULL. */
static int goes_first(const struct weft__module *a, const struct weft__module *b)
{
	uint32_t wanted = load_relaxed(&a->wanted);

	if (!b)
		return 1;
	if (wanted != load_relaxed(&b->wanted))
		return wanted != 0;
	if (a->stays != b->stays)
		return a->stays;
	return a->text_end - a->text_start < b->text_end - b->text_start;
}

static struct weft__module *next_pending(void)
{
	struct weft__modules *set = weft__modules_now.set;
	struct weft__module *next = NULL;

	for (uint32_t i = 0; set && i < set->n; i++)
		if (set->module[i]->pending && !set->module[i]->busy && goes_first(set->module[i], next))
			next = set->module[i];
	return next;
}

/* With the lock held. */
static void table_settle(struct weft__module *module, struct weft__unwind_table *table, int error)
{
	struct weft__modules *set = weft__modules_now.set;

	module->table = table;
	module->table_error = error;
	store_release(&module->pending, 0u);
	for (uint32_t i = 0; table && set && i < set->n; i++)
		if (set->module[i] == module)
			set->memory_bytes += table->memory_bytes;
}

int weft__modules_compile(int (*halt)(void))
{
	struct weft__unwind_table *table = NULL;
	struct weft__module *module;
	struct fetch f = {0};
	int error;

	pthread_mutex_lock(&modules_lock);
	f.module = module = next_pending();
	if (module)
		dl_iterate_phdr(on_fetch, &f);
	if (!module || f.moved || f.error == -ENOMEM) {
		pthread_mutex_unlock(&modules_lock);
		return !module ? 0 : f.moved ? -EAGAIN : -ENOMEM;
	}
	module->refs++; /* it may be unloaded meanwhile */
	module->busy = 1;
	module->fd = -1;
	pthread_mutex_unlock(&modules_lock);
	error = table_make(module, &f.frames, halt, &table);
	weft__free(f.frames.bytes);
	pthread_mutex_lock(&modules_lock);
	module->busy = 0;
	if (error != -ENOMEM && error != -ECANCELED)
		table_settle(module, table, error);
	weft__module_free(module);
	pthread_mutex_unlock(&modules_lock);
	return error == -ENOMEM || error == -ECANCELED ? error : 1;
}

int weft__modules_refresh(void)
{
	int made, changed = 0, result = 0;

	for (int i = 0; i < LOOKS_MAX; i++) {
		result = weft__modules_look();
		if (result < 0)
			return result;
		changed |= result;
		while ((made = weft__modules_compile(NULL)) > 0)
			changed = 1;
		if (made != -EAGAIN)
			return made < 0 ? made : changed;
	}
	return changed;
}

static int on_stale(struct dl_phdr_info *info, size_t size, void *arg)
{
	int counted, moved = loader_moved(info, size, &counted);

	*(int *)arg = !counted || moved;
	return 1;
}

int weft__modules_stale(void)
{
	int stale = 0;

	if (pthread_mutex_trylock(&modules_lock) != 0)
		return 1;
	sweep();
	dl_iterate_phdr(on_stale, &stale);
	stale |= !weft__modules_now.set || next_pending() != NULL;
	pthread_mutex_unlock(&modules_lock);
	return stale;
}

unsigned weft__modules_sweep(void)
{
	unsigned left;

	pthread_mutex_lock(&modules_lock);
	left = sweep();
	pthread_mutex_unlock(&modules_lock);
	return left;
}

void weft__modules_stop(void)
{
	pthread_mutex_lock(&modules_lock);
	retire(swap_seq_cst(&weft__modules_now.set, NULL));
	sweep_wait(0);
	pthread_mutex_unlock(&modules_lock);
}

void weft__modules_lock(void)
{
	pthread_mutex_lock(&modules_lock);
}

void weft__modules_unlock(void)
{
	pthread_mutex_unlock(&modules_lock);
}

void weft__modules_forked(void)
{
	struct weft__modules *set = weft__modules_now.set;

	pthread_mutex_init(&modules_lock, NULL);
	store_seq_cst(&weft__modules_now.readers[0], 0u);
	store_seq_cst(&weft__modules_now.readers[1], 0u);
	weft__on_demand_forked();
	for (uint32_t i = 0; set && i < set->n; i++) {
		struct weft__module *module = set->module[i];

		if (!module->busy)
			continue;
		if (module->fd >= 0)
			close(module->fd);
		module->fd = -1;
		module->busy = 0;
		module->refs--;
	}
}
