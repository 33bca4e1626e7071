/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions begin that have no name: what a file has for unwinding says it of nearly all. CALLER. */
#ifndef WEFT_SYMBOL_FDES_H
#define WEFT_SYMBOL_FDES_H

#include "symbol/image.h"

struct weft__fdes {
	const uint8_t *index, *frames; /* .eh_frame_hdr, .eh_frame: the image's; NULL: not there */
	uint64_t index_at, frames_at;
	size_t n, frames_n; /* entries, bytes */
};

/* What is missing or made otherwise than compilers do gives no answers. */
void weft__fdes_open(struct weft__fdes *fdes, const struct weft__elf_image *image);
/* The begin of the function that the address lies in, or false. */
bool weft__fdes_start(const struct weft__fdes *fdes, uint64_t address, uint64_t *ret);

#endif
