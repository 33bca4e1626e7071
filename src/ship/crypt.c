/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/crypt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "ship/curl.h"

void weft__hex(const uint8_t *bytes, size_t n, char *to)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < n; i++) {
		*to++ = digits[bytes[i] >> 4];
		*to++ = digits[bytes[i] & 15];
	}
	*to = 0;
}

/* Bytes that are in memory, or in a file. */
struct digest_input {
	const void *bytes;
	int fd;
	uint64_t n;
};

static int feed(const struct weft__curl *lib, void *md, const struct digest_input *in, struct weft_error *err)
{
	uint8_t bytes[16384];
	uint64_t at = 0;

	if (in->bytes)
		return lib->md_update(md, in->bytes, (size_t)in->n) ? 0 : weft__fail(err, -EIO, "libcrypto failed");
	while (at < in->n) {
		size_t want = in->n - at < sizeof(bytes) ? (size_t)(in->n - at) : sizeof(bytes);
		ssize_t got = pread(in->fd, bytes, want, (off_t)at);

		if (got <= 0)
			return weft__fail(err, got < 0 ? -errno : -EIO, "the file cannot be read");
		lib->md_update(md, bytes, (size_t)got);
		at += (uint64_t)got;
	}
	return 0;
}

static int digest(const struct digest_input *in, char hex[SHA256_HEX], struct weft_error *err)
{
	const struct weft__curl *lib = weft__crypto_open(err);
	uint8_t bytes[SHA256_BYTES];
	void *md;
	int r;

	if (!lib)
		return -ENOENT;
	if (weft__curl_enter() < 0)
		return weft__fail(err, -ECANCELED, "stopped");
	md = lib->md_new();
	r = md && lib->md_init(md, lib->sha256(), NULL) ? feed(lib, md, in, err)
							: weft__fail(err, -ENOMEM, "out of memory");
	if (!r && lib->md_final(md, bytes, NULL))
		weft__hex(bytes, sizeof(bytes), hex);
	lib->md_free(md);
	weft__curl_leave();
	return r;
}

int weft__sha256(const void *bytes, size_t n, char hex[SHA256_HEX], struct weft_error *err)
{
	return digest(&(struct digest_input){n ? bytes : "", -1, n}, hex, err);
}

int weft__sha256_fd(int fd, uint64_t n, char hex[SHA256_HEX], struct weft_error *err)
{
	return digest(&(struct digest_input){NULL, fd, n}, hex, err);
}

int weft__hmac(const void *key, size_t key_bytes, const char *text, uint8_t ret[SHA256_BYTES], struct weft_error *err)
{
	const struct weft__curl *lib = weft__crypto_open(err);
	unsigned n = 0;

	if (!lib)
		return -ENOENT;
	if (!lib->hmac(lib->sha256(), key, (int)key_bytes, (const unsigned char *)text, strlen(text), ret, &n) ||
	    n != SHA256_BYTES)
		return weft__fail(err, -EIO, "libcrypto failed");
	return 0;
}
