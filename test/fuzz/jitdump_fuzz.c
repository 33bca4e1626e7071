/* SPDX-License-Identifier: Apache-2.0 */
/* A jitdump; every piece that it gives can be asked for, with its lines. */
#include <stdlib.h>
#include <string.h>

#include "symbol/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft__jitcode code = {0};

	weft__jitdump_parse(&code, data, size);
	weft__jitcode_seal(&code);
	for (size_t i = 0; i < code.n && i < 100; i++) {
		uint64_t address = code.pieces[i].hi - 1;
		const struct weft__jitcode_piece *piece = weft__jitcode_get(&code, address, 0);
		const struct weft__jitcode_line *line;

		if (!piece || strlen(piece->name) < piece->name_n)
			abort();
		line = weft__jitcode_line(&code, piece, address);
		if (line && line->file && strlen(line->file) > size)
			abort();
		weft__jitcode_get(&code, address, code.pieces[i].from);
	}
	weft__jitcode_fini(&code);
	return 0;
}
