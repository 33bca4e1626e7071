/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/profile_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "ship/profiles.h"

#define USERS_MAX 32u
#define POOLED_MAX 4u                   /* segments: a target that fails falls behind the others */
#define POOLED_BYTES ((size_t)8 << 20)  /* of all that nobody is sending right now */
#define SUMS_BYTES (UINT64_C(32) << 20) /* while one is made */
#define LOOK_NS 50000000                /* until it is looked again whether to stop */

struct weft__pooled {
	struct weft__pooled *next; /* newer ones first */
	char *path;
	struct stat file;
	uint32_t forms;
	uint32_t in_use, done; /* how many have it; bits by number of users */
	const struct weft_export_plugin *encoders;
	struct weft__bytes bytes[WEFT__FORMS];
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t made;
	bool making;
	uint32_t numbers;
	struct weft__pool_user *users;
	struct weft__pooled *all;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .made = PTHREAD_COND_INITIALIZER};
static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;

/* Nobody but the caller is in the child. What its parent had is left alone. */
static void begin_in_child(void)
{
	pthread_mutex_init(&pool.mutex, NULL);
	pthread_cond_init(&pool.made, NULL);
	pool.making = false;
	pool.numbers = 0;
	pool.users = NULL;
	pool.all = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, begin_in_child);
}

int weft__pool_join(struct weft__pool_user *user)
{
	int r = -EBUSY;

	pthread_once(&forks_watched, watch_forks);
	pthread_mutex_lock(&pool.mutex);
	for (user->number = 0; user->number < USERS_MAX && pool.numbers >> user->number & 1; user->number++)
		;
	if (user->number < USERS_MAX) {
		pool.numbers |= 1u << user->number;
		user->next = pool.users;
		pool.users = user;
		r = 0;
	}
	pthread_mutex_unlock(&pool.mutex);
	return r;
}

static size_t bytes_of(const struct weft__pooled *one)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < WEFT__FORMS; i++)
		n += one->bytes[i].n;
	return n;
}

static void pooled_free(struct weft__pooled *one)
{
	uint32_t i;

	for (i = 0; i < WEFT__FORMS; i++)
		one->encoders->free(&one->bytes[i]);
	weft__free(one->path);
	weft__free(one);
}

/* Whether a target that is there may still ask for it. */
static bool is_wanted(const struct weft__pooled *one)
{
	const struct weft__pool_user *user;

	for (user = pool.users; user; user = user->next)
		if (!(one->done >> user->number & 1) && (user->forms & one->forms) == user->forms)
			return true;
	return false;
}

/* With the mutex: what is not wanted any more, and what is beyond the bounds, oldest first. */
static void tidy(void)
{
	struct weft__pooled **at = &pool.all, *one;
	uint32_t n = 0;
	size_t bytes = 0;

	while ((one = *at)) {
		n++;
		bytes += bytes_of(one);
		if (!one->in_use && (!is_wanted(one) || n > POOLED_MAX || bytes > POOLED_BYTES)) {
			*at = one->next;
			pooled_free(one);
		} else {
			at = &one->next;
		}
	}
}

void weft__pool_leave(struct weft__pool_user *user)
{
	struct weft__pool_user **at;
	struct weft__pooled *one;

	pthread_mutex_lock(&pool.mutex);
	for (at = &pool.users; *at && *at != user; at = &(*at)->next)
		;
	if (*at) {
		*at = user->next;
		pool.numbers &= ~(1u << user->number);
		for (one = pool.all; one; one = one->next)
			one->done &= ~(1u << user->number);
		tidy();
		if (!pool.users)
			user->encoders->forget();
	}
	pthread_mutex_unlock(&pool.mutex);
}

/* A segment is replaced when it gets names. */
static bool is_of(const struct weft__pooled *one, const char *path, const struct stat *file)
{
	return one->file.st_dev == file->st_dev && one->file.st_ino == file->st_ino &&
	       one->file.st_size == file->st_size && one->file.st_mtim.tv_sec == file->st_mtim.tv_sec &&
	       one->file.st_mtim.tv_nsec == file->st_mtim.tv_nsec && strcmp(one->path, path) == 0;
}

static struct weft__pooled *find(const struct weft__pool_user *user, const char *path, const struct stat *file)
{
	struct weft__pooled *one = pool.all;

	while (one && !(is_of(one, path, file) && (user->forms & one->forms) == user->forms))
		one = one->next;
	return one;
}

/* With the mutex. Whether there is nothing made by others now; false: it is to stop. */
static bool await_turn(const struct weft__pool_user *user)
{
	while (pool.making && !(user->stop && load_relaxed(user->stop))) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&pool.made, &pool.mutex, &until);
	}
	return !(user->stop && load_relaxed(user->stop));
}

static uint32_t forms_of_all(void)
{
	const struct weft__pool_user *user;
	uint32_t forms = 0;

	for (user = pool.users; user; user = user->next)
		forms |= user->forms;
	return forms;
}

/* Without the mutex. Inside a program no server is asked for debug info. */
static int make(struct weft__pooled *one, struct weft_error *err)
{
	const struct weft__export_opts opts = {.max_bytes = SUMS_BYTES, .no_debuginfod = !weft__profiles_encoders};
	const char *paths[] = {one->path};

	return one->encoders->forms(one->bytes, one->forms, paths, 1, &opts, err);
}

static struct weft__pooled *pooled_new(const struct weft__pool_user *user, const char *path, const struct stat *file)
{
	struct weft__pooled *one = weft__calloc(1, sizeof(*one));

	if (!one)
		return NULL;
	one->path = weft__strdup(path);
	one->file = *file;
	one->encoders = user->encoders;
	if (one->path)
		return one;
	weft__free(one);
	return NULL;
}

/* With the mutex, which is given away meanwhile. */
static int get_made(struct weft__pool_user *user, const char *path, const struct stat *file, struct weft__pooled **ret,
		    struct weft_error *err)
{
	struct weft__pooled *one = pooled_new(user, path, file);
	int r;

	if (!one)
		return weft__fail(err, -ENOMEM, "out of memory");
	one->forms = forms_of_all();
	pool.making = true;
	pthread_mutex_unlock(&pool.mutex);
	r = make(one, err);
	pthread_mutex_lock(&pool.mutex);
	pool.making = false;
	pthread_cond_broadcast(&pool.made);
	if (r < 0) {
		pooled_free(one);
		return r;
	}
	one->next = pool.all;
	pool.all = one;
	*ret = one;
	return 0;
}

int weft__pool_get(struct weft__pool_user *user, const struct weft__parcel *parcel, struct weft__pooled **ret,
		   struct weft_error *err)
{
	struct weft__pooled *one = NULL;
	struct stat file;
	int r = 0;

	if (fstat(parcel->fd, &file) < 0)
		return weft__fail(err, -errno, "%s: %s", parcel->name, weft_strerror(-errno));
	pthread_mutex_lock(&pool.mutex);
	if (!await_turn(user))
		r = -ECANCELED;
	else if (!(one = find(user, parcel->path, &file)))
		r = get_made(user, parcel->path, &file, &one, err);
	if (one) {
		one->in_use++;
		tidy();
		*ret = one;
	}
	pthread_mutex_unlock(&pool.mutex);
	return r;
}

const struct weft__bytes *weft__pooled_bytes(const struct weft__pooled *one, enum weft__export_form form)
{
	return &one->bytes[form];
}

void weft__pool_put(struct weft__pool_user *user, struct weft__pooled *one, int done)
{
	pthread_mutex_lock(&pool.mutex);
	one->in_use--;
	if (done)
		one->done |= 1u << user->number;
	tidy();
	pthread_mutex_unlock(&pool.mutex);
}
