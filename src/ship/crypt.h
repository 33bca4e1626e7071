/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 and HMAC, by libcrypto. */
#ifndef WEFT_SHIP_CRYPT_H
#define WEFT_SHIP_CRYPT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

#define SHA256_BYTES 32
#define SHA256_HEX (2 * SHA256_BYTES + 1)

void weft__hex(const uint8_t *bytes, size_t n, char *to);
/* 0 or a negative error. */
int weft__sha256(const void *bytes, size_t n, char hex[SHA256_HEX], struct weft_error *err);
/* Of the first `n` bytes of a file. */
int weft__sha256_fd(int fd, uint64_t n, char hex[SHA256_HEX], struct weft_error *err);
int weft__hmac(const void *key, size_t key_bytes, const char *text, uint8_t ret[SHA256_BYTES], struct weft_error *err);

#endif
