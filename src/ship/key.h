/* SPDX-License-Identifier: Apache-2.0 */
/* Under which name a segment is stored: SERVICE/DATE/HOST/PID/FILE. All of it is from the segment itself and the name
 * of its file, so a segment that is sent twice has the same key. */
#ifndef WEFT_SHIP_KEY_H
#define WEFT_SHIP_KEY_H

#include <stddef.h>

#include "ship/ship.h"

#define KEY_BYTES 1024

/* A part of a key, of what may be any text: letters, digits and "-_." stay. */
void weft__key_part(const char *text, char *to, size_t bytes);
/* `prefix` may be "", and need not end in '/'. 0 or -ENAMETOOLONG. */
int weft__key(const struct weft__parcel *parcel, const char *prefix, char *to, size_t bytes);

#endif
