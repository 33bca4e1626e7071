/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources use of glibc and Linux and wasi-libc does not have; included before each of them. */
#ifndef WEFT_SHIM_COMPAT_H
#define WEFT_SHIM_COMPAT_H
#include <stddef.h>

#define SEEK_DATA 3
#define SEEK_HOLE 4
#define F_DUPFD_CLOEXEC 1030

void qsort_r(void *array, size_t n, size_t bytes, int (*compare)(const void *, const void *, void *), void *data);
const char *strerrordesc_np(int code);
const char *sigabbrev_np(int number);
#endif
