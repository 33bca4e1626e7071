/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of libuv, with another one run inside a tick, as node does for child processes that are waited for. */
#include <uv.h>

#include "truth.h"

static uv_timer_t timer;
static uv_check_t check;

static void stop_nested(uv_timer_t *t)
{
	uv_close((uv_handle_t *)t, NULL);
}

static void nested(void)
{
	uv_loop_t loop;
	uv_timer_t t;

	uv_loop_init(&loop);
	uv_timer_init(&loop, &t);
	uv_timer_start(&t, stop_nested, 25, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
}

static void polled(uv_check_t *c)
{
	(void)c;
	ticks++;
}

static void fired(uv_timer_t *t)
{
	static int n;

	n++;
	if (n == 8 || n == 12)
		BLOCKED("epoll_", nested());
	if (n == 20) {
		uv_close((uv_handle_t *)t, NULL);
		uv_close((uv_handle_t *)&check, NULL);
	}
}

int main(void)
{
	uv_loop_t loop;

	uv_loop_init(&loop);
	uv_timer_init(&loop, &timer);
	uv_check_init(&loop, &check);
	uv_check_start(&check, polled);
	uv_timer_start(&timer, fired, 2, 2);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	over = mono();
	nap(60 * MS);
	extra = 1; /* the last one has no check: its handle is closed */
	tell("epoll_wait loop");
	return 0;
}
