/* SPDX-License-Identifier: Apache-2.0 */
/* Files with sections and "key = value" lines, as ~/.aws/credentials. */
#ifndef WEFT_SHIP_PROFILE_H
#define WEFT_SHIP_PROFILE_H

#include <stddef.h>

/* The value of `key` in [section] of `text`, which ends in a zero byte. 1, or 0 when there is none or it does not
 * fit. */
int weft__profile_text(const char *text, const char *section, const char *key, char *to, size_t bytes);
/* The same, of the file at `path`. */
int weft__profile_get(const char *path, const char *section, const char *key, char *to, size_t bytes);
/* The content of a small file, without white space at its end. 1 or 0. */
int weft__small_file(const char *path, char *to, size_t bytes);

#endif
