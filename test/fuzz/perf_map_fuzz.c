/* SPDX-License-Identifier: Apache-2.0 */
/* A perf map; where a piece is said to be, something is found. */
#include <stdlib.h>

#include "symbol/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft__jitcode code = {0};

	if (weft__perf_map_parse(&code, (const char *)data, size) < 0)
		abort();
	weft__jitcode_seal(&code);
	for (size_t i = 0; i < code.n && i < 100; i++) {
		const struct weft__jitcode_piece *piece = weft__jitcode_get(&code, code.pieces[i].lo, 0);

		if (!piece || piece->lo > code.pieces[i].lo || piece->hi <= code.pieces[i].lo)
			abort();
	}
	weft__jitcode_fini(&code);
	return 0;
}
