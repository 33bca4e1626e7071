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
	struct weft_event_view ev, before = {0};
	uint32_t c = 0, end = 0, at;
	uint64_t sum = 0;

	if (size < 4 || (!decoder && weft__decoder_open(&decoder) < 0))
		return 0;
	if (weft__decoder_events(decoder, data + 4, size - 4, get_u32(data), &block, &why) < 0)
		return why ? 0 : (abort(), 0);
	for (at = 0; weft__decoded_event(&block, &ev); at++) {
		int is_first = at == end;

		end += is_first ? block.chunks[c++].n_events : 0;
		if (ev.time_ns < block.first_ns || ev.time_ns > block.last_ns || ev.time_ns != block.time[at] ||
		    (!is_first && ev.time_ns < before.time_ns) || ev.thread != block.chunks[c - 1].stream || !ev.kind ||
		    ev.n_fields > WEFT_FIELDS_MAX)
			abort();
		while (ev.n_fields)
			sum += ev.fields[--ev.n_fields];
		before = ev;
	}
	if (at != block.n || end != block.n || c != block.n_chunks)
		abort();
	return sum == 1 ? -1 : 0;
}
