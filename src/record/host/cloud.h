/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the machine that somebody else finds out, later, and that are in each segment from then on. */
#ifndef WEFT_HOST_CLOUD_H
#define WEFT_HOST_CLOUD_H

#include "record/source.h"

extern const struct weft__source weft__cloud_source;

/* One thread at a time, not in handlers. Once in a process; weft__source_changed() says so to the collector. */
void weft__cloud_add(const char *key, const char *value);
/* Whether there are some. */
int weft__cloud_known(void);

#endif
