/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a region: what region.c and region_file.c share. CALLER and COLLECTOR. */
#ifndef WEFT_RING_REGION_FILE_H
#define WEFT_RING_REGION_FILE_H

#include "record/ring/region.h"

#define SHM_DIR "/dev/shm"
#define SHM_NAME "weft-%u-%s.rings" /* of the effective user, and the stem */

/* Makes the link in the directory to the file of that name in /dev/shm. 0 or -errno. */
int weft__region_link(const struct weft__region *region, int dir, const char *name);
/* A number for what paths mean to this process; 0: not known. */
uint64_t weft__region_mount_space(void);

#endif
