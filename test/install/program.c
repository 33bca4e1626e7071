/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program, C and C++: records in memory and looks at its own counters. */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

int main(void)
{
	struct weft_recorder *rec = NULL;
	struct weft_error err;
	struct weft_recorder_stats stats = WEFT_OPTIONS_INIT(weft_recorder_stats);
	struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);

	if (strcmp(weft_version(), WEFT_VERSION_STRING) != 0) {
		fprintf(stderr, "library %s, headers %s\n", weft_version(), WEFT_VERSION_STRING);
		return 1;
	}
	opts.sample_hz = WEFT_OFF;
	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	for (uint64_t task = 1; task <= 1000; task++) {
		weft_poll_begin(task, WEFT_DEPTH_UNKNOWN);
		weft_poll_end();
	}
	weft_recorder_stop(rec, NULL);
	if (weft_recorder_stats(rec, &stats) < 0 || stats.events < 2000) {
		fprintf(stderr, "%llu events of 2000\n", (unsigned long long)stats.events);
		return 1;
	}
	weft_recorder_close(rec, NULL);
	printf("weft %s, %llu events\n", weft_version(), (unsigned long long)stats.events);
	return 0;
}
