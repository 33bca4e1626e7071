/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `weft view`, as the build made it (cmake/viewer.cmake): gzipped files. */
#ifndef WEFT_CLI_VIEW_BUNDLE_H
#define WEFT_CLI_VIEW_BUNDLE_H

#include <stddef.h>

struct view_file {
	const char *name;
	const char *type; /* for Content-Type */
	const unsigned char *gzip;
	size_t gzip_bytes, bytes;
};

extern const struct view_file view_bundle[]; /* up to one without a name */
extern const char view_bundle_missing[];     /* why there is none; "": there is */

#endif
