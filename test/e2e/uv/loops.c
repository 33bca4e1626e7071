/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of libuv that are attached in all ways, for test/e2e/uv_loops.py: loops MODE DIR. Prints "ok". A call in
 * parentheses, (uv_timer_start)(...), is libuv's own: not wrapped. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WEFT_UV_REPLACE
#include <weft/uv.h>

#define CHECK(true_)                                                                                                   \
	do {                                                                                                           \
		if (!(true_)) {                                                                                        \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #true_);                            \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static struct weft_recorder *rec;
static int n_called;

static void nap(long ms)
{
	struct timespec time = {.tv_nsec = ms * 1000000};

	while (nanosleep(&time, &time) < 0 && errno == EINTR)
		;
}

static void block_20ms(uv_timer_t *timer)
{
	(void)timer;
	n_called++;
	nap(20);
}

static void on_left(uv_timer_t *timer)
{
	nap(10);
	uv_close((uv_handle_t *)timer, NULL);
}

static void on_right(uv_timer_t *timer)
{
	nap(10);
	uv_close((uv_handle_t *)timer, NULL);
}

static void attach(uv_loop_t *loop, const char *name, uint32_t flags)
{
	struct weft_uv_opts opts = WEFT_OPTIONS_INIT(weft_uv_opts);
	struct weft_error err;

	opts.name = name;
	opts.flags = flags;
	if (weft_uv_attach(loop, &opts, &err) < 0) {
		fprintf(stderr, "attach: %s\n", err.msg);
		exit(1);
	}
}

/* Ends a loop of which nothing is open but what attach opened. */
static void finish(uv_loop_t *loop)
{
	CHECK(weft_uv_detach(loop) == 0);
	CHECK(weft_uv_detach(loop) == -ENOENT);
	uv_run(loop, UV_RUN_DEFAULT);
	CHECK(uv_loop_close(loop) == 0);
}

static pthread_barrier_t both_attached; /* or the second may get the index of the first, which has ended */

static void *one_loop(void *arg)
{
	uv_loop_t loop;
	uv_timer_t timer;

	uv_loop_init(&loop);
	attach(&loop, "io", 0);
	pthread_barrier_wait(&both_attached);
	uv_timer_init(&loop, &timer);
	if (arg)
		uv_timer_start(&timer, on_right, 1, 0);
	else
		uv_timer_start(&timer, on_left, 1, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	nap(30); /* no part of the loop */
	finish(&loop);
	return NULL;
}

static void several(void)
{
	pthread_t thread;

	CHECK(pthread_barrier_init(&both_attached, NULL, 2) == 0);
	CHECK(pthread_create(&thread, NULL, one_loop, &n_called) == 0);
	one_loop(NULL);
	pthread_join(thread, NULL);
}

/* How often the callback was called; a turn may have its timers twice. */
static int run_once(uv_loop_t *loop)
{
	int before = n_called;

	uv_run(loop, UV_RUN_ONCE);
	CHECK(n_called > before);
	return n_called - before;
}

static void detached(void)
{
	struct weft_uv_opts bad = WEFT_OPTIONS_INIT(weft_uv_opts);
	uv_loop_t loop;
	uv_timer_t timer;
	struct weft_error err;
	int n_attached;

	uv_loop_init(&loop);
	bad.flags = 1u << 31;
	CHECK(weft_uv_attach(&loop, &bad, &err) == -EINVAL);
	attach(&loop, "uv", 0);
	CHECK(weft_uv_attach(&loop, NULL, &err) == -EEXIST && err.code == -EEXIST);
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, block_20ms, 1, 1);
	n_attached = run_once(&loop);
	CHECK(weft_uv_detach(&loop) == 0);
	run_once(&loop); /* called, and no poll */
	attach(&loop, "uv", 0);
	n_attached += run_once(&loop); /* wrapped as it was */
	printf("%d\n", n_attached);
	CHECK(weft_uv_detach(&loop) == 0);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK(uv_loop_close(&loop) == 0);
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	static char room[64];

	(void)handle;
	(void)wanted;
	*buf = uv_buf_init(room, sizeof(room));
}

static void on_byte(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	(void)n;
	(void)buf;
	nap(200);
	(uv_close)((uv_handle_t *)stream, NULL);
}

static void *write_late(void *arg)
{
	nap(100);
	CHECK(write(*(int *)arg, "x", 1) == 1);
	return NULL;
}

/* Nothing is wrapped: the loop waits 100 ms for the pipe, and blocks 200 ms in the callback. */
static void unwrapped(uint32_t flags)
{
	uv_loop_t loop;
	uv_pipe_t end;
	uv_file fds[2];
	pthread_t thread;

	uv_loop_init(&loop);
	attach(&loop, "uv", flags);
	CHECK(uv_pipe(fds, 0, 0) == 0);
	uv_pipe_init(&loop, &end, 0);
	uv_pipe_open(&end, fds[0]);
	(uv_read_start)((uv_stream_t *)&end, give_room, on_byte);
	CHECK(pthread_create(&thread, NULL, write_late, &fds[1]) == 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	pthread_join(thread, NULL);
	close(fds[1]);
	finish(&loop);
}

static uv_loop_t inner;

static void run_inner(uv_timer_t *timer)
{
	uv_timer_t other;

	uv_timer_init(&inner, &other);
	uv_timer_start(&other, on_left, 10, 0);
	uv_run(&inner, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)timer, NULL);
}

static void nested(void)
{
	uv_loop_t outer;
	uv_timer_t timer;

	uv_loop_init(&outer);
	uv_loop_init(&inner);
	attach(&outer, "outer", 0);
	attach(&inner, "inner", 0);
	uv_timer_init(&outer, &timer);
	uv_timer_start(&timer, run_inner, 1, 0);
	uv_run(&outer, UV_RUN_DEFAULT);
	finish(&inner);
	finish(&outer);
}

static int statuses[3];

static void nap_20ms(uv_work_t *work)
{
	(void)work;
	nap(20);
}

static int again;

static void on_done(uv_work_t *work, int status)
{
	*(int *)work->data = status;
	if (again-- > 0)
		uv_queue_work(work->loop, work, nap_20ms, on_done);
}

/* A request that is queued again by the callback after it. */
static void queued_again(void)
{
	uv_loop_t loop;
	uv_work_t work = {.data = &statuses[0]};

	uv_loop_init(&loop);
	attach(&loop, "uv", 0);
	again = 2;
	CHECK(uv_queue_work(&loop, &work, nap_20ms, on_done) == 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	finish(&loop);
}

/* One thread: the second waits for the first, the third is cancelled. */
static void cancelled(void)
{
	uv_loop_t loop;
	uv_work_t works[3];
	int i;

	uv_loop_init(&loop);
	attach(&loop, "uv", WEFT_UV_ONLY_WRAPPED);
	for (i = 0; i < 3; i++) {
		works[i].data = &statuses[i];
		CHECK(uv_queue_work(&loop, &works[i], nap_20ms, on_done) == 0);
	}
	CHECK(uv_cancel((uv_req_t *)&works[2]) == 0);
	CHECK(uv_queue_work(&loop, &works[0], NULL, on_done) == UV_EINVAL);
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK(statuses[0] == 0 && statuses[1] == 0 && statuses[2] == UV_ECANCELED);
	finish(&loop);
}

/* The wrapped calls on a loop that weft does not know. */
/* Frees its request, as libuv allows. */
static void on_written(uv_write_t *req, int status)
{
	CHECK(req->data == &n_called && status == 0);
	n_called++;
	free(req);
	nap(20);
}

static void write_byte(uv_pipe_t *end)
{
	uv_write_t *req = malloc(sizeof(*req));
	uv_buf_t buf = uv_buf_init((char *)(uintptr_t) "x", 1);

	CHECK(req);
	req->data = &n_called;
	CHECK(uv_write(req, (uv_stream_t *)end, &buf, 1, on_written) == 0);
}

/* Three writes: of the second the callback comes when the loop is not attached any more, the third is refused. */
static void written(void)
{
	uv_buf_t buf = uv_buf_init((char *)(uintptr_t) "x", 1);
	uv_loop_t loop;
	uv_pipe_t end, closed;
	uv_write_t req;
	uv_file fds[2];

	uv_loop_init(&loop);
	attach(&loop, "uv", 0);
	CHECK(uv_pipe(fds, 0, 0) == 0);
	uv_pipe_init(&loop, &end, 0);
	uv_pipe_open(&end, fds[1]);
	write_byte(&end);
	uv_run(&loop, UV_RUN_NOWAIT);
	CHECK(n_called == 1);
	write_byte(&end);
	CHECK(weft_uv_detach(&loop) == 0);
	uv_run(&loop, UV_RUN_NOWAIT);
	CHECK(n_called == 2);
	attach(&loop, "uv", 0);
	uv_pipe_init(&loop, &closed, 0);
	CHECK(uv_write(&req, (uv_stream_t *)&closed, &buf, 1, on_written) < 0);
	uv_close((uv_handle_t *)&closed, NULL);
	uv_close((uv_handle_t *)&end, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK(n_called == 2);
	close(fds[0]);
	finish(&loop);
}

static void unattached(void)
{
	uv_loop_t loop;
	uv_timer_t timer;
	uv_work_t work = {.data = &statuses[0]};

	uv_loop_init(&loop);
	statuses[0] = 1;
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, on_left, 1, 0);
	CHECK(uv_queue_work(&loop, &work, nap_20ms, on_done) == 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK(statuses[0] == 0);
	CHECK(weft_uv_detach(&loop) == -ENOENT);
	CHECK(uv_loop_close(&loop) == 0);
}

static uv_async_t async;

static void on_message(uv_async_t *handle)
{
	uv_close((uv_handle_t *)handle, NULL);
}

static void on_late(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
}

static int holding;

static void hold_loop(uv_timer_t *timer)
{
	__atomic_store_n(&holding, 1, __ATOMIC_RELAXED);
	nap(60);
	uv_close((uv_handle_t *)timer, NULL);
}

static void *send_message(void *arg)
{
	pthread_setname_np(pthread_self(), "sender");
	while (!__atomic_load_n(&holding, __ATOMIC_RELAXED))
		nap(1);
	uv_async_send(&async);
	return arg;
}

/* A callback holds the loop for 60 ms; a message and a timer come meanwhile. */
static void starved(void)
{
	uv_loop_t loop;
	uv_timer_t holder, late;
	pthread_t thread;

	uv_loop_init(&loop);
	attach(&loop, "uv", 0);
	uv_async_init(&loop, &async, on_message);
	uv_timer_init(&loop, &holder);
	uv_timer_init(&loop, &late);
	uv_timer_start(&holder, hold_loop, 0, 0);
	uv_timer_start(&late, on_late, 10, 0);
	CHECK(pthread_create(&thread, NULL, send_message, NULL) == 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	pthread_join(thread, NULL);
	finish(&loop);
}

static int run(const char *mode)
{
	if (strcmp(mode, "several") == 0)
		several();
	else if (strcmp(mode, "detached") == 0)
		detached();
	else if (strcmp(mode, "unwrapped") == 0)
		unwrapped(0);
	else if (strcmp(mode, "bracket") == 0)
		unwrapped(WEFT_UV_BRACKET);
	else if (strcmp(mode, "nested") == 0)
		nested();
	else if (strcmp(mode, "cancelled") == 0)
		cancelled();
	else if (strcmp(mode, "queued_again") == 0)
		queued_again();
	else if (strcmp(mode, "written") == 0)
		written();
	else if (strcmp(mode, "unattached") == 0)
		unattached();
	else if (strcmp(mode, "starved") == 0)
		starved();
	else
		return 2;
	return 0;
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
	struct weft_error err;
	int rc;

	if (argc != 3)
		return 2;
	opts.dir = argv[2];
	opts.budget_ppm = WEFT_OFF;
	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	rc = run(argv[1]);
	CHECK(weft_recorder_close(rec, &err) == 0);
	if (rc == 0)
		puts("ok");
	return rc;
}
