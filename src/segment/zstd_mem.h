/* SPDX-License-Identifier: Apache-2.0 */
/* zstd on the library's own allocator. Include instead of zstd.h. */
#ifndef WEFT_SEGMENT_ZSTD_MEM_H
#define WEFT_SEGMENT_ZSTD_MEM_H

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

ZSTD_customMem weft__zstd_mem(void);

#endif
