/* SPDX-License-Identifier: Apache-2.0 */
/* The payload of an events block: u32 count of the block header, then the payload. */
#include <stdlib.h>

#include "base/bytes.h"
#include "segment/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct weft__decoder *decoder; /* kept, as a reader keeps it from block to block */
	static struct weft__decoded block;
	const char *why = NULL;
	uint64_t sum = 0;
	uint32_t i, f, c, at = 0;

	if (size < 4 || (!decoder && weft__decoder_open(&decoder) < 0))
		return 0;
	if (weft__decoder_events(decoder, data + 4, size - 4, get_u32(data), &block, &why) < 0)
		return why ? 0 : (abort(), 0);
	for (c = 0; c < block.n_chunks; c++)
		for (i = 0; i < block.chunks[c].n_events; i++, at++)
			if (block.time[at] < block.first_ns || block.time[at] > block.last_ns ||
			    (i && block.time[at] < block.time[at - 1]))
				abort();
	if (at != block.n)
		abort();
	for (i = 0; i < block.n; i++) {
		const struct weft__decoded_kind *kind = &block.kinds[block.kind[i]];

		for (f = 0; f < kind->n_fields; f++)
			sum += kind->field[f][block.row[i] & kind->step[f]];
	}
	return sum == 1 ? -1 : 0;
}
