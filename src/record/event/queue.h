/* SPDX-License-Identifier: Apache-2.0 */
/* The length of each runtime's global queue, some times a second. */
#ifndef WEFT_EVENT_QUEUE_H
#define WEFT_EVENT_QUEUE_H

#include "record/source.h"

extern const struct weft__source weft__queue_source;

#endif
