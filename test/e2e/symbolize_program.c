/* SPDX-License-Identifier: Apache-2.0 */
/* Burns CPU time in functions of known names, in segments of its own making: symbolize_program SEGMENTS. Options come from
 * the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weft/weft.h>

static volatile uint64_t sink;

__attribute__((always_inline)) static inline void spin_inlined(void)
{
	for (int i = 0; i < 20000; i++)
		sink += sink * 31 + (uint64_t)i;
}

__attribute__((noinline)) static void burn_in_this_function(double seconds)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < end)
		spin_inlined();
}

int main(int argc, char **argv)
{
	struct weft_recorder *rec = NULL;
	struct weft_error err;
	int n = argc > 1 ? atoi(argv[1]) : 1;

	if (weft_recorder_open_env(&rec, NULL, &err) != 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < n; i++) {
		weft_poll_begin((uint64_t)i + 1, WEFT_DEPTH_UNKNOWN);
		burn_in_this_function(0.25);
		weft_poll_end();
		if (i + 1 < n && weft_recorder_rotate(rec, NULL, 0) < 0)
			return 1;
	}
	return weft_recorder_close(rec) < 0;
}
