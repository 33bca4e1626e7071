/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1
#include "keep.h"

#include <fcntl.h>
#include <unistd.h>

#define LOCATION_TRIED 0x5eed

static bool keeps;

bool weft__uv_keeps(void)
{
	return __atomic_load_n(&keeps, __ATOMIC_RELAXED);
}

static void tried(uv_write_t *req, int status)
{
	bool same = weft__uv_kept_cb(req) == (void (*)(void))tried && weft__uv_kept_location(req) == LOCATION_TRIED;

	*(bool *)req->data = same && status == 0;
	uv_close((uv_handle_t *)req->handle, NULL);
}

/* The end that is written to is the pipe's when it was opened, and then -1. */
static bool try_write(uv_loop_t *loop, int ends[2])
{
	bool kept = false;
	uv_write_t req = {.data = &kept};
	uv_buf_t buf = uv_buf_init((char *)(uintptr_t) "", 1);
	uv_pipe_t pipe;

	if (uv_pipe_init(loop, &pipe, 0) < 0)
		return false;
	weft__uv_keep(&req, (void (*)(void))tried, LOCATION_TRIED);
	if (uv_pipe_open(&pipe, ends[1]) == 0)
		ends[1] = -1;
	if (ends[1] >= 0 || uv_write(&req, (uv_stream_t *)&pipe, &buf, 1, tried) < 0)
		uv_close((uv_handle_t *)&pipe, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	return kept;
}

void weft__uv_try_keeping(void)
{
	uv_loop_t loop;
	int ends[2];

	if (uv_loop_init(&loop) < 0)
		return;
	if (pipe2(ends, O_CLOEXEC) == 0) {
		__atomic_store_n(&keeps, try_write(&loop, ends), __ATOMIC_RELAXED);
		close(ends[0]);
		if (ends[1] >= 0)
			close(ends[1]);
	}
	uv_loop_close(&loop);
}
