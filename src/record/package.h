/* SPDX-License-Identifier: Apache-2.0 */
/* Which packages the program's files of code are of, as facts of each segment (package/package.h). A thread of weft
 * finds that out once, some seconds after the start, and again when files were mapped since; it ends then. Bounded in
 * files and bytes. */
#ifndef WEFT_RECORD_PACKAGE_H
#define WEFT_RECORD_PACKAGE_H

#include <stdint.h>

struct weft__source;
extern const struct weft__source weft__package_source;

/* CPU time of that thread so far. Any context. */
uint64_t weft__package_cost(void);

#endif
