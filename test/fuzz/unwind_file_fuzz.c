/* SPDX-License-Identifier: Apache-2.0 */
/* A program file as the unwinder reads it: its sections, perhaps compressed, made into a table. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct weft__unwind_table *table = NULL;
	char path[64];

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (weft__unwind_table_open(&table, path, NULL) == 0) {
		for (uint64_t i = 0; i < 64; i++)
			if (weft__unwind_table_find(table, table->base + i * table->bytes / 64) >= table->n_rules)
				abort();
		weft__unwind_table_free(table);
	}
	return 0;
}
