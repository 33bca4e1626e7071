/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the separate debug file of a build: by build-id, by .gnu_debuglink. CALLER. */
#ifndef WEFT_SYMBOL_DEBUG_FILE_H
#define WEFT_SYMBOL_DEBUG_FILE_H

#include "symbol/image.h"

/* DIR/.build-id/xx/yyyy.debug in each of `dirs`. 0; -ENOENT. */
int weft__debug_file_by_build(struct weft__elf_image *debug, const char *dirs, const uint8_t *build_id, uint32_t n);
/* What the image's .gnu_debuglink names, beside it, in .debug beside it, and below each of `dirs`: the one whose
 * build-id is that of the image, or whose checksum is that of the link. `path` is that of the image. 0; -ENOENT. */
int weft__debug_file_by_link(struct weft__elf_image *debug, const char *root, const char *dirs,
			     const struct weft__elf_image *image, const char *path);

#endif
