/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/zstd_mem.h"

#include "base/alloc.h"

static void *zstd_alloc(void *opaque, size_t bytes)
{
	(void)opaque;
	return weft__alloc(bytes);
}

static void zstd_free(void *opaque, void *ptr)
{
	(void)opaque;
	weft__free(ptr);
}

ZSTD_customMem weft__zstd_mem(void)
{
	ZSTD_customMem mem = {zstd_alloc, zstd_free, NULL};

	return mem;
}
