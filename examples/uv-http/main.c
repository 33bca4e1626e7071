/* SPDX-License-Identifier: Apache-2.0 */
/* uv-http [--port N] [--record DIR] [--ticker]: an HTTP server on libuv, which weft records to DIR or WEFT_DIR. With
 * --ticker, a thread wakes the loop every 7 ms. It ends on SIGTERM or SIGINT. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "http.h"

static uv_async_t async;
static uv_signal_t terminate, interrupt;
static uv_timer_t timer;
static pthread_t ticker;
static int ticking, stopping;

static void flush_log(uv_async_t *handle)
{
	(void)handle;
}

static void expire_sessions(uv_timer_t *handle)
{
	(void)handle;
}

static void *tick(void *arg)
{
	struct timespec time = {.tv_nsec = 7000000}; /* no multiple of hog_loop's 5 ms: wakes come at all its moments */

	pthread_setname_np(pthread_self(), "ticker");
	while (!__atomic_load_n(&stopping, __ATOMIC_RELAXED)) {
		uv_async_send(&async);
		nanosleep(&time, NULL);
	}
	return arg;
}

static void on_signal(uv_signal_t *handle, int signum)
{
	(void)signum;
	uv_stop(handle->loop);
}

static void start(uv_loop_t *loop)
{
	uv_signal_init(loop, &terminate);
	uv_signal_init(loop, &interrupt);
	uv_signal_start(&terminate, on_signal, SIGTERM);
	uv_signal_start(&interrupt, on_signal, SIGINT);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, expire_sessions, 20, 20);
	if (!ticking)
		return;
	uv_async_init(loop, &async, flush_log);
	pthread_create(&ticker, NULL, tick, NULL);
}

static int serve(uv_loop_t *loop, int port)
{
	int rc = http_listen(loop, port);

	if (rc < 0) {
		fprintf(stderr, "uv-http: port %d: %s\n", port, uv_strerror(rc));
		return 1;
	}
	printf("listening on 127.0.0.1:%d\n", rc);
	fflush(stdout);
	start(loop);
	uv_run(loop, UV_RUN_DEFAULT);
	__atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
	if (ticking)
		pthread_join(ticker, NULL);
	return 0;
}

#ifdef WITH_WEFT
static struct weft_recorder *recorder;

static int record(uv_loop_t *loop, const char *dir)
{
	struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
	struct weft_error err;

	opts.dir = dir;
	if (weft_recorder_open_env(&recorder, &opts, &err) < 0 || weft_recorder_start(recorder, &err) < 0 ||
	    weft_uv_attach(loop, NULL, &err) < 0) {
		fprintf(stderr, "uv-http: %s\n", err.msg);
		return 1;
	}
	return 0;
}

static void record_end(uv_loop_t *loop)
{
	weft_uv_detach(loop);
	weft_recorder_close(recorder, NULL);
}
#else
static int record(uv_loop_t *loop, const char *dir)
{
	(void)loop;
	return dir != NULL;
}

static void record_end(uv_loop_t *loop)
{
	(void)loop;
}
#endif

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	const char *dir = NULL;
	int port = 0, i, rc;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--port") == 0 && i + 1 < argc)
			port = atoi(argv[++i]);
		else if (strcmp(argv[i], "--record") == 0 && i + 1 < argc)
			dir = argv[++i];
		else if (strcmp(argv[i], "--ticker") == 0)
			ticking = 1;
		else {
			fprintf(stderr, "usage: uv-http [--port N] [--record DIR] [--ticker]\n");
			return 2;
		}
	}
	rc = record(loop, dir);
	if (rc == 0)
		rc = serve(loop, port);
	record_end(loop);
	return rc;
}
