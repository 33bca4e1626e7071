/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks that write to a memfd: the kernel copies, nobody waits. */
#include "truth.h"
#include <sys/mman.h>

enum { PIECE = 8 << 20 };

int main(void)
{
	char *data = calloc(1, PIECE);
	int fd = memfd_create("truth", MFD_CLOEXEC), loop = truth_loop(), tick, i;

	memset(data, 1, PIECE);
	for (tick = 0; tick < 8; tick++) {
		truth_next(loop);
		struct truth_poll *poll = truth_begin("write");
		for (i = 0; i < 4; i++)
			if (pwrite(fd, data, PIECE, 0) != PIECE)
				return 1;
		truth_end(poll);
	}
	truth_next(loop);
	truth_note("\"no_waits\": [\"pwrite\"]");
	truth_print();
	return 0;
}
