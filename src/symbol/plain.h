/* SPDX-License-Identifier: Apache-2.0 */
/* A file's DWARF, unpacked. CALLER.
 *
 * Distributions compress their debug files. libdw unpacks every section when it opens one, with zlib, and that is
 * most of the time that a short list of addresses takes. Here only the sections that we read are unpacked, three
 * times faster. */
#ifndef WEFT_SYMBOL_PLAIN_H
#define WEFT_SYMBOL_PLAIN_H

#include "symbol/image.h"

/* Makes an image that has just the unpacked sections. -ENOENT when nothing is packed, or in a way that is better
 * left to libdw; -EINVAL when a section is damaged, or would be larger than its bytes can be; -ENOMEM. */
int weft__plain_open(struct weft__elf_image *plain, const struct weft__elf_image *image);

#endif
