# SPDX-License-Identifier: Apache-2.0
# src/symbol: addresses to names. Its own library, because the application's part must not need elfutils. libdebuginfod
# is only opened when it is asked for, and so brings no network library into the command.
find_path(LIBDW_INCLUDE_DIR elfutils/libdw.h)
find_path(LIBIBERTY_INCLUDE_DIR demangle.h PATH_SUFFIXES libiberty)
find_library(LIBDW NAMES dw)
find_library(LIBELF NAMES elf)
find_library(LIBLZMA NAMES lzma)
find_library(LIBDEFLATE NAMES deflate)
find_library(LIBIBERTY NAMES libiberty.a)
if(NOT LIBDW_INCLUDE_DIR OR NOT LIBIBERTY_INCLUDE_DIR OR NOT LIBDW OR NOT LIBELF OR NOT LIBLZMA OR
   NOT LIBDEFLATE OR NOT LIBIBERTY)
	message(FATAL_ERROR "libdw, libelf, liblzma, libdeflate or libiberty not found: run tools/bootstrap build")
endif()

file(GLOB symbol CONFIGURE_DEPENDS src/symbol/*.c)
if(symbol)
	add_library(weft_symbol STATIC ${symbol})
	target_include_directories(weft_symbol PRIVATE include src ${LIBDW_INCLUDE_DIR} ${LIBIBERTY_INCLUDE_DIR}
		${ZSTD_INCLUDE_DIR})
	target_link_libraries(weft_symbol PUBLIC weft_static ${LIBDW} ${LIBELF} ${LIBLZMA} ${LIBDEFLATE} ${LIBIBERTY}
		${CMAKE_DL_LIBS})
endif()
