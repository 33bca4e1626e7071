/* SPDX-License-Identifier: Apache-2.0 */
/* weft export: export.c has the options, export_zip.c the archive. */
#ifndef WEFT_CLI_EXPORT_H
#define WEFT_CLI_EXPORT_H

#include "analyze/recording.h"

/* The segments of all recordings, and metadata.json. A CLI_ code: `code` when all is well. */
int export_zip(struct weft__recordings *list, const char *path, int code);

#endif
