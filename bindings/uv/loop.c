/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1
#include "loop.h"
#include "keep.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SAY_EVERY_MS 10000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and of who is in use */
static struct weft__uv_loop *loops;
__thread struct weft__uv_loop *weft__uv_current;

struct weft__uv_loop *weft__uv_find_other(uv_loop_t *loop)
{
	struct weft__uv_loop *in, *found = NULL;

	pthread_mutex_lock(&lock);
	for (in = loops; in; in = in->next)
		if (in->loop == loop && (in->attached || (!found && in->callbacks.n)))
			found = in;
	pthread_mutex_unlock(&lock);
	return found;
}

static void open_turn(struct weft__uv_loop *in, uint64_t tick)
{
	if (in->in_poll || in->flags & WEFT_UV_ONLY_WRAPPED)
		return;
	weft_poll_begin_at(in->task, WEFT_DEPTH_UNKNOWN, tick);
	in->in_poll = true;
}

void weft__uv_unpark(struct weft__uv_loop *in, uint64_t tick)
{
	if (in->parked)
		weft_unpark_at(WEFT_DEPTH_UNKNOWN, tick);
	in->parked = false;
}

void weft__uv_close_turn(struct weft__uv_loop *in, uint64_t tick)
{
	weft__uv_unpark(in, tick);
	if (in->in_poll)
		weft_poll_end_at(tick);
	in->in_poll = false;
}

/* A loop that waits in no wrapped callback of its own and is not run by this thread any more, or the other one would
 * not run: its uv_run has returned, or it is in a callback that is not wrapped. */
bool weft__uv_take_other(struct weft__uv_loop *in)
{
	if (!in->attached || (weft__uv_current && weft__uv_current->attached && weft__uv_current->in_callback))
		return false;
	if (weft__uv_current && weft__uv_current->attached)
		weft__uv_close_turn(weft__uv_current, weft_now_ticks());
	weft__uv_current = in;
	weft_worker_enter(in->runtime, in->index, NULL);
	return true;
}

bool weft__uv_wait_begin(int fd, int timeout)
{
	struct weft__uv_loop *in = weft__uv_current;
	uint64_t tick;

	if (!in || in->fd != fd || !in->attached || in->bracket || in->in_callback)
		return false;
	tick = weft_now_ticks();
	weft__uv_close_turn(in, tick);
	if (timeout != 0)
		weft_park_at(WEFT_DEPTH_UNKNOWN, tick);
	return true;
}

void weft__uv_wait_end(int timeout)
{
	uint64_t tick = weft_now_ticks();

	if (timeout != 0)
		weft_unpark_at(WEFT_DEPTH_UNKNOWN, tick);
	open_turn(weft__uv_current, tick);
}

static void note_recording(struct weft__uv_loop *in)
{
	uint32_t recording = weft__uv_recording(in);

	if (!recording)
		return;
	if (in->said != recording)
		weft_task_spawn(in->task, weft_location("callbacks not wrapped", "", 0));
	if (in->said != recording || uv_now(in->loop) - in->said_ms >= SAY_EVERY_MS) {
		weft__uv_say_loop(in);
		in->said = recording;
		in->said_ms = uv_now(in->loop);
	}
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct weft__uv_loop *in = prepare->data;
	uint64_t tick;

	if (!weft__uv_take(in))
		return;
	in->fd = uv_backend_fd(in->loop);
	in->turns++;
	note_recording(in);
	if (!in->bracket)
		return;
	tick = weft_now_ticks();
	weft__uv_close_turn(in, tick);
	weft_park_at(WEFT_DEPTH_UNKNOWN, tick);
	in->parked = true;
}

static void on_check(uv_check_t *check)
{
	struct weft__uv_loop *in = check->data;
	uint64_t tick;

	if (weft__uv_current != in || !in->bracket)
		return;
	tick = weft_now_ticks();
	weft__uv_unpark(in, tick);
	open_turn(in, tick);
}

int weft_uv_run(uv_loop_t *loop, uv_run_mode mode)
{
	struct weft__uv_loop *in = weft__uv_find(loop);
	int rc;

	if (in && weft__uv_take(in)) {
		note_recording(in);
		open_turn(in, weft_now_ticks());
	}
	rc = uv_run(loop, mode);
	if (in && weft__uv_current == in && !in->in_callback)
		weft__uv_close_turn(in, weft_now_ticks());
	return rc;
}

/* One that is not in use, or a new one, at its place in the list. Under the lock. */
static struct weft__uv_loop *loop_new(uv_loop_t *loop)
{
	struct weft__uv_loop *in, *next;

	for (in = loops; in && in->loop; in = in->next)
		;
	if (!in) {
		in = aligned_alloc(_Alignof(struct weft__uv_loop), sizeof(*in));
		if (!in)
			return NULL;
		in->next = loops;
		loops = in;
	}
	next = in->next;
	memset(in, 0, sizeof(*in));
	in->next = next;
	in->loop = loop;
	return in;
}

static bool is_free(uint32_t runtime, uint32_t index)
{
	const struct weft__uv_loop *in;

	for (in = loops; in; in = in->next)
		if (in->attached && in->runtime == runtime && in->index == index)
			return false;
	return true;
}

/* Loops of one name are of one runtime, also when all others of it are detached. Under the lock. */
static int set_runtime(struct weft__uv_loop *in, const char *name, struct weft_error *err)
{
	static struct {
		uint32_t id;
		char name[WEFT__UV_NAME];
	} runtimes[64];
	struct weft_runtime_opts opts = WEFT_OPTIONS_INIT(weft_runtime_opts);
	size_t i;

	strncpy(in->name, name, sizeof(in->name) - 1);
	for (i = 0; i < 63 && runtimes[i].id && strcmp(runtimes[i].name, in->name) != 0; i++)
		;
	if (!runtimes[i].id) {
		opts.name = in->name;
		runtimes[i].id = weft_runtime_add(&opts, err);
		if (!runtimes[i].id)
			return err->code;
		memcpy(runtimes[i].name, in->name, sizeof(in->name));
	}
	in->runtime = runtimes[i].id;
	while (!is_free(in->runtime, in->index))
		in->index++;
	return 0;
}

/* What was wrapped while the loop was attached before stays so. */
static void inherit(struct weft__uv_loop *in)
{
	struct weft__uv_loop *old;

	for (old = loops; old; old = old->next)
		if (old != in && old->loop == in->loop && old->callbacks.n) {
			in->callbacks = old->callbacks;
			old->callbacks = (struct weft__uv_map){0};
		}
}

static int fail(struct weft_error *err, int code, const char *text)
{
	err->code = code;
	strncpy(err->msg, text, sizeof(err->msg) - 1);
	err->msg[sizeof(err->msg) - 1] = 0;
	return code;
}

static int check_opts(const struct weft_uv_opts *opts, struct weft_error *err)
{
	if (!opts)
		return 0;
	if (opts->size < sizeof(*opts))
		return fail(err, -EINVAL, "weft_uv_attach: options without their size: use WEFT_OPTIONS_INIT");
	if (opts->size > sizeof(*opts))
		return fail(err, -E2BIG, "weft_uv_attach: options of a newer weft/uv.h than libweft-uv");
	if (opts->flags & ~(uint32_t)(WEFT_UV_BRACKET | WEFT_UV_ONLY_WRAPPED) || opts->reserved)
		return fail(err, -EINVAL, "weft_uv_attach: unknown flags");
	return 0;
}

static pthread_once_t first = PTHREAD_ONCE_INIT;

/* Under the lock. */
static int attach(uv_loop_t *loop, const struct weft_uv_opts *opts, struct weft_error *err)
{
	struct weft__uv_loop *in;
	int rc;

	for (in = loops; in; in = in->next)
		if (in->loop == loop && in->attached)
			return fail(err, -EEXIST, "weft_uv_attach: the loop is attached already");
	pthread_once(&first, weft__uv_try_keeping);
	in = loop_new(loop);
	if (!in)
		return fail(err, -ENOMEM, "weft_uv_attach: out of memory");
	rc = set_runtime(in, opts && opts->name ? opts->name : "uv", err);
	if (rc < 0) {
		in->loop = NULL;
		return rc;
	}
	inherit(in);
	in->flags = opts ? opts->flags : 0;
	in->bracket = in->flags & WEFT_UV_BRACKET || !weft__uv_epoll_seen();
	in->keeps = weft__uv_keeps();
	in->task = (uintptr_t)in & WEFT_TASK_MASK;
	in->fd = -1;
	in->prepare.data = in->check.data = in;
	uv_prepare_init(loop, &in->prepare);
	uv_check_init(loop, &in->check);
	uv_prepare_start(&in->prepare, on_prepare);
	uv_check_start(&in->check, on_check);
	uv_unref((uv_handle_t *)&in->prepare);
	uv_unref((uv_handle_t *)&in->check);
	in->open_handles = 2;
	in->attached = true;
	return 0;
}

int weft_uv_attach(uv_loop_t *loop, const struct weft_uv_opts *opts, struct weft_error *err)
{
	struct weft_error unwanted;
	int rc;

	err = err ? err : &unwanted;
	rc = check_opts(opts, err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&lock);
	rc = attach(loop, opts, err);
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Under the lock. */
static void recycle(struct weft__uv_loop *in)
{
	if (in->attached || in->in_callback || in->open_handles || in->callbacks.n)
		return;
	weft__uv_map_fini(&in->callbacks);
	weft__uv_map_fini(&in->places);
	in->loop = NULL;
}

void weft__uv_recycle_now(struct weft__uv_loop *in)
{
	pthread_mutex_lock(&lock);
	recycle(in);
	pthread_mutex_unlock(&lock);
}

static void on_closed(uv_handle_t *handle)
{
	struct weft__uv_loop *in = handle->data;

	in->open_handles--;
	weft__uv_recycle(in);
}

int weft_uv_detach(uv_loop_t *loop)
{
	struct weft__uv_loop *in;

	pthread_mutex_lock(&lock);
	for (in = loops; in && (in->loop != loop || !in->attached); in = in->next)
		;
	if (in)
		in->attached = false;
	pthread_mutex_unlock(&lock);
	if (!in)
		return -ENOENT;
	uv_close((uv_handle_t *)&in->prepare, on_closed);
	uv_close((uv_handle_t *)&in->check, on_closed);
	if (weft__uv_current == in && !in->in_callback) {
		weft__uv_close_turn(in, weft_now_ticks());
		weft_worker_leave();
		weft__uv_current = NULL;
	}
	return 0;
}
