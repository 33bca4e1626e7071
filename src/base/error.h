/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a struct weft_error, and the log hook. CALLER and COLLECTOR. */
#ifndef WEFT_BASE_ERROR_H
#define WEFT_BASE_ERROR_H

#include "weft/error.h"
#include "weft/hooks.h"

/* Writes the message into `err` (which may be NULL) and answers `code`, a negative value. */
int weft__fail(struct weft_error *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

void weft__log(enum weft_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
