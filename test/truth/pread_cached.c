/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks that read a file of 64 MB from the page cache: nothing but CPU time, in calls that are watched. */
#include "truth.h"

enum { SIZE = 64 << 20, PIECE = 4 << 20 };

int main(void)
{
	char path[] = "/tmp/weft-truth-XXXXXX", *data = calloc(1, PIECE);
	int fd = mkstemp(path), loop = truth_loop(), tick, at;

	unlink(path);
	for (at = 0; at < SIZE; at += PIECE)
		if (pwrite(fd, data, PIECE, at) != PIECE)
			truth_skip("no room for 64 MB in /tmp");
	for (tick = 0; tick < 8; tick++) {
		truth_next(loop);
		struct truth_poll *poll = truth_begin("pread");
		for (at = 0; at < SIZE; at += PIECE)
			if (pread(fd, data, PIECE, at) != PIECE)
				return 1;
		truth_end(poll);
	}
	truth_next(loop);
	truth_note("\"no_waits\": [\"pread\"]");
	truth_print();
	return 0;
}
