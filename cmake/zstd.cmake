# SPDX-License-Identifier: Apache-2.0
# The application gets no dependency from us but libc: zstd and libdeflate are linked in, xxhash is headers only.
find_library(ZSTD_STATIC NAMES libzstd.a)
find_library(LIBDEFLATE_STATIC NAMES libdeflate.a)
find_path(ZSTD_INCLUDE_DIR zstd.h)
find_path(XXHASH_INCLUDE_DIR xxhash.h)
if(NOT ZSTD_STATIC OR NOT LIBDEFLATE_STATIC OR NOT ZSTD_INCLUDE_DIR OR NOT XXHASH_INCLUDE_DIR)
	message(FATAL_ERROR "libzstd.a, libdeflate.a, zstd.h or xxhash.h not found: run tools/bootstrap build")
endif()
