/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and reading files that somebody else made: never a fifo or a device, on which one could wait for ever.
 * CALLER. */
#ifndef WEFT_SYMBOL_FILE_H
#define WEFT_SYMBOL_FILE_H

#include <stdint.h>

#include "base/buf.h"

/* A file descriptor, or -errno; -EINVAL when it is not a regular file. `root` is put before the path. */
int weft__file_open(const char *root, const char *path, uint64_t *ret_bytes);
/* Appends the whole file and a 0. -EFBIG when it is longer than `max`. Takes files of /proc, whose size is not
 * known. */
int weft__file_read(struct weft__buf *buf, const char *path, uint64_t max);
/* The same for a file in a directory that anybody can write to: only of one of these users, root or this user, and
 * no link. -EPERM when it is something else. */
int weft__file_read_of(struct weft__buf *buf, const char *path, uint64_t max, uint32_t uid);

#endif
