/* SPDX-License-Identifier: Apache-2.0 */
/* Debug files from servers, when DEBUGINFOD_URLS names some. The library is opened at the first question, so that a
 * command that asks none carries no network code. CALLER. */
#ifndef WEFT_SYMBOL_DEBUGINFOD_H
#define WEFT_SYMBOL_DEBUGINFOD_H

#include <stdint.h>

struct weft__debuginfod {
	void *library;
	void *client;
	int refused; /* servers that could not be reached, so far */
	int off;     /* not asked any more */
};

enum weft__debuginfod_what { WEFT__DEBUGINFOD_DEBUG, WEFT__DEBUGINFOD_EXECUTABLE };

/* A file descriptor; -ENOENT when no server has it; -ENOTSUP when none is to be asked. */
int weft__debuginfod_get(struct weft__debuginfod *servers, enum weft__debuginfod_what what, const uint8_t *build_id,
			 uint32_t n);
void weft__debuginfod_fini(struct weft__debuginfod *servers);

#endif
