/* SPDX-License-Identifier: Apache-2.0 */
/* What a program prints, for credential_process. It is no child that the application could notice: no SIGCHLD, no fork
 * handlers, nothing that wait() finds. */
#ifndef WEFT_SHIP_PROCESS_H
#define WEFT_SHIP_PROCESS_H

#include <stddef.h>

#include "ship/http.h"

#define PROCESS_MOST 65536

/* Runs a command by /bin/sh and reads what it prints, at most `bytes` with a zero byte. It has a minute, and ends when
 * `http` is to stop. 0; -ECANCELED; or a negative error with a message, in which nothing of the output is. */
int weft__process_read(const struct weft__http *http, const char *command, char *to, size_t bytes,
		       struct weft_error *err);

#endif
