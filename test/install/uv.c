/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program on libuv: one callback, counted by the recorder. */
#include <stdio.h>

#define WEFT_UV_REPLACE
#include <weft/uv.h>

static void on_timer(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
}

int main(void)
{
	struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
	struct weft_recorder_stats stats = WEFT_OPTIONS_INIT(weft_recorder_stats);
	struct weft_recorder *rec = NULL;
	struct weft_error err;
	uv_timer_t timer;

	opts.sample_hz = WEFT_OFF;
	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0 ||
	    weft_uv_attach(uv_default_loop(), NULL, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	uv_timer_init(uv_default_loop(), &timer);
	uv_timer_start(&timer, on_timer, 1, 0);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	weft_recorder_stop(rec, NULL);
	weft_recorder_stats(rec, &stats);
	weft_recorder_close(rec, NULL);
	printf("libuv %s, a loop, recorded\n", uv_version_string());
	return stats.events < 8; /* spawn, begin, next, next, end, park, unpark, the loop's own */
}
