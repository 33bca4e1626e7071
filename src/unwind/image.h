/* SPDX-License-Identifier: Apache-2.0 */
/* What the loader knows of one loaded ELF image. CALLER and COLLECTOR, inside a dl_iterate_phdr callback: only there
 * is it certain that the image stays mapped. */
#ifndef WEFT_UNWIND_IMAGE_H
#define WEFT_UNWIND_IMAGE_H

#include <link.h>

#include "unwind/modules.h"

/* A copy of the call frame information, so that the loader's lock is not held while a table is made of it. */
struct weft__image_frames {
	uint8_t *bytes; /* .eh_frame, then .eh_frame_hdr; NULL when the image has none that the loader knows of */
	struct weft__cfi_input in;
};

/* Ranges and build-id into a module; negative when it maps nothing executable. */
int weft__image_describe(const struct dl_phdr_info *info, struct weft__module *module);
/* Where its .eh_frame is mapped, if .eh_frame_hdr can be searched. For modules that stay. */
void weft__image_mapped(const struct dl_phdr_info *info, struct weft__module *module);
int weft__image_frames(const struct dl_phdr_info *info, struct weft__image_frames *ret);

#endif
