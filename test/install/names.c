/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program that wants names in its segments: names DIR. */
#include <stdio.h>
#include <time.h>
#include <weft/weft.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void burn_until(clock_t end)
{
	while (clock() < end)
		for (int i = 0; i < 10000; i++)
			sink += sink * 31 + (unsigned long)i;
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .sample_hz = 999, .symbolize = 1};
	struct weft_recorder *rec = NULL;
	struct weft_error err;

	opts.dir = argc > 1 ? argv[1] : ".";
	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	burn_until(clock() + CLOCKS_PER_SEC / 4);
	return weft_recorder_close(rec, NULL) < 0;
}
