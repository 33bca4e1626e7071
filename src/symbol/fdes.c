/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/fdes.h"

#include <string.h>

/* The header: version, three encodings, where the frames are, how many there are; then for each the distances of its
 * code and of its entry from the header, by address. These encodings are what all linkers write. */
#define INDEX_BYTES 12u
#define ENTRY_BYTES 8u
#define ENC_UDATA4 0x03
#define ENC_DATAREL_SDATA4 0x3b

/* An entry: length, distance of what it has in common with others, distance of its code from here, bytes of code. */
#define FDE_PC 8u
#define FDE_RANGE 12u
#define FDE_BYTES 16u

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static uint64_t from(uint64_t base, const uint8_t *bytes)
{
	return base + (uint64_t)(int64_t)(int32_t)word_at(bytes);
}

void weft__fdes_open(struct weft__fdes *fdes, const struct weft__elf_image *image)
{
	Elf_Data *index = weft__elf_image_section_at(image, ".eh_frame_hdr", &fdes->index_at);
	Elf_Data *frames = weft__elf_image_section_at(image, ".eh_frame", &fdes->frames_at);
	const uint8_t *bytes = index ? index->d_buf : NULL;
	size_t most;

	fdes->n = 0;
	if (!index || !frames || index->d_size < INDEX_BYTES || bytes[0] != 1 || bytes[2] != ENC_UDATA4 ||
	    bytes[3] != ENC_DATAREL_SDATA4)
		return;
	most = (index->d_size - INDEX_BYTES) / ENTRY_BYTES;
	fdes->index = bytes;
	fdes->frames = frames->d_buf;
	fdes->frames_n = frames->d_size;
	fdes->n = word_at(bytes + 8) < most ? word_at(bytes + 8) : most;
}

bool weft__fdes_start(const struct weft__fdes *fdes, uint64_t address, uint64_t *ret)
{
	size_t low = 0, high = fdes->n;
	const uint8_t *entry;
	uint64_t start, fde;

	while (low < high) { /* the first that begins behind the address */
		size_t middle = low + (high - low) / 2;

		if (from(fdes->index_at, fdes->index + INDEX_BYTES + ENTRY_BYTES * middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	entry = fdes->index + INDEX_BYTES + ENTRY_BYTES * (low - 1);
	start = from(fdes->index_at, entry);
	fde = from(fdes->index_at, entry + 4) - fdes->frames_at;
	if (fdes->frames_n < FDE_BYTES || fde > fdes->frames_n - FDE_BYTES)
		return false;
	/* When it says the same of where its code is, read so, then its length can be read so, too. */
	if (from(fdes->frames_at + fde + FDE_PC, fdes->frames + fde + FDE_PC) != start ||
	    address - start >= word_at(fdes->frames + fde + FDE_RANGE))
		return false;
	*ret = start;
	return true;
}
