/* SPDX-License-Identifier: Apache-2.0 */
/* Definition records. */
#include <errno.h>

#include "base/alloc.h"
#include "fuzz/read.h"
#include "segment/defs.h"
#include "segment/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft_segment *seg = weft__calloc(1, sizeof(*seg));
	int err;

	if (!seg)
		return 0;
	err = weft__segment_read_defs(seg, data, size / 2);
	HOLDS(err == 0 || err == -WEFT_E_DAMAGED);
	err = weft__segment_read_defs(seg, data + size / 2, size - size / 2);
	HOLDS(err == 0 || err == -WEFT_E_DAMAGED);
	HOLDS(weft__segment_sort_defs(seg) == 0);
	HOLDS(weft__defs_count(data, size) <= size);
	read_tables(seg);
	weft__segment_free_defs(seg);
	weft__free(seg);
	return 0;
}
