/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a zip archive. Names are file names, whatever they were. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ship/zip.h"

#define MOST 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft__zip_entry entry;
	struct weft_error err = {0};
	struct weft__unzip unzip;
	uint8_t *to;

	if (weft__unzip_init(&unzip, data, size, &err) < 0)
		return 0;
	while (weft__unzip_next(&unzip, &entry, &err) > 0) {
		if (strchr(entry.name, '/') || entry.name[0] == '.' || strlen(entry.name) >= sizeof(entry.name))
			abort();
		if (entry.packed < data || entry.packed + entry.packed_bytes > data + size)
			abort();
		if (entry.bytes > MOST)
			continue;
		to = malloc((size_t)entry.bytes + 1);
		if (to)
			weft__unzip_get(&entry, to, &err);
		free(to);
	}
	return 0;
}
