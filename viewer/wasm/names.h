/* SPDX-License-Identifier: Apache-2.0 */
/* Names beside the segments. Context: CALLER. */
#ifndef WEFT_VIEW_NAMES_H
#define WEFT_VIEW_NAMES_H

#include "analyze/recording.h"

/* Adds the names to the recordings, which are settled and of which no name was asked for. The text is changed. Returns
 * 0 or -ENOMEM. */
int view_names_read(struct weft__recordings *list, char *text);

#endif
