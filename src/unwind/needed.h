/* SPDX-License-Identifier: Apache-2.0 */
/* Which images were loaded with the program because it, or what it needs, names them: the loader never unloads
 * those. CALLER and COLLECTOR, inside a dl_iterate_phdr callback. */
#ifndef WEFT_UNWIND_NEEDED_H
#define WEFT_UNWIND_NEEDED_H

#include <link.h>
#include <stdint.h>

#define WEFT__NEEDED_MAX 512

/* One walk over the loader's list; n is 0 at first. Names are the images' own, which stay; each is there once, and
 * the first image of that name is meant: another one, from elsewhere or in a namespace of its own, was loaded later. */
struct weft__needed {
	struct {
		const char *name;
		uint32_t hash;
		int met;
	} of[WEFT__NEEDED_MAX];
	unsigned n;
};

/* For each image, in the order of the list, which has those that need others before these. 1: it is one of them, or
 * the program. */
int weft__needed_by_program(struct weft__needed *needed, const struct dl_phdr_info *info, const char *path,
			    int program);

#endif
