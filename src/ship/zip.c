/* SPDX-License-Identifier: Apache-2.0 */
/* An entry's checksum stands before it: the file is read once for it and once to be copied. */
#include "ship/zip.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "ship/zip_format.h"

#define COPY_BYTES 65536

void weft__zip_init(struct weft__zip *zip, int fd, uint64_t unix_s)
{
	time_t seconds = (time_t)unix_s;
	struct tm tm;

	*zip = (struct weft__zip){.fd = fd};
	gmtime_r(&seconds, &tm);
	if (tm.tm_year < 80) /* the first year that can be said */
		tm = (struct tm){.tm_year = 80, .tm_mday = 1};
	zip->date = (uint32_t)(tm.tm_year - 80) << 25 | (uint32_t)(tm.tm_mon + 1) << 21 | (uint32_t)tm.tm_mday << 16 |
		    (uint32_t)tm.tm_hour << 11 | (uint32_t)tm.tm_min << 5 | (uint32_t)tm.tm_sec / 2;
}

static int write_all(struct weft__zip *zip, const void *bytes, size_t n)
{
	const char *from = bytes;

	while (n) {
		ssize_t done = pwrite(zip->fd, from, n, (off_t)zip->at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -ENOSPC;
		from += done;
		n -= (size_t)done;
		zip->at += (uint64_t)done;
	}
	return 0;
}

/* The fields that both headers of an entry have, from the version on. */
static void set_common(uint8_t *to, const struct weft__zip *zip, uint32_t crc, uint64_t bytes, size_t name)
{
	put_u16(to, ZIP_VERSION);
	put_u32(to + 6, zip->date);
	put_u32(to + 10, crc);
	put_u32(to + 14, (uint32_t)bytes);
	put_u32(to + 18, (uint32_t)bytes);
	put_u16(to + 22, (uint16_t)name);
}

static int begin(struct weft__zip *zip, const char *name, uint32_t crc, uint64_t bytes)
{
	uint8_t local[ZIP_LOCAL_BYTES] = {0}, central[ZIP_CENTRAL_BYTES] = {0};
	size_t n = strlen(name);
	int r;

	if (n >= ZIP_NAME || bytes >= ZIP_MOST || zip->at + bytes + 1024 + zip->directory.n >= ZIP_MOST)
		return -EFBIG;
	put_u32(local, ZIP_LOCAL);
	set_common(local + 4, zip, crc, bytes, n);
	put_u32(central, ZIP_CENTRAL);
	put_u16(central + 4, ZIP_VERSION);
	set_common(central + 6, zip, crc, bytes, n);
	put_u32(central + 42, (uint32_t)zip->at);
	weft__buf_put(&zip->directory, central, sizeof(central));
	weft__buf_put(&zip->directory, name, n);
	zip->n++;
	r = write_all(zip, local, sizeof(local));
	return r ? r : write_all(zip, name, n);
}

/* Reads a file from its start and gives each part to the archive, or only to the checksum. */
static int pass(struct weft__zip *zip, int from, uint64_t bytes, uint32_t *crc)
{
	uint8_t part[COPY_BYTES];
	uint64_t at = 0;
	int r = 0;

	while (at < bytes && !r) {
		size_t most = bytes - at < sizeof(part) ? (size_t)(bytes - at) : sizeof(part);
		ssize_t n = pread(from, part, most, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		if (crc)
			*crc = libdeflate_crc32(*crc, part, (size_t)n);
		else
			r = write_all(zip, part, (size_t)n);
		at += (uint64_t)n;
	}
	return r;
}

int weft__zip_add_file(struct weft__zip *zip, const char *name, int from, uint64_t bytes)
{
	uint32_t crc = 0;
	int r = pass(zip, from, bytes, &crc);

	if (!r)
		r = begin(zip, name, crc, bytes);
	return r ? r : pass(zip, from, bytes, NULL);
}

int weft__zip_add(struct weft__zip *zip, const char *name, const void *bytes, size_t n)
{
	int r = begin(zip, name, libdeflate_crc32(0, bytes, n), n);

	return r ? r : write_all(zip, bytes, n);
}

int weft__zip_end(struct weft__zip *zip, uint64_t *bytes)
{
	uint8_t end[ZIP_END_BYTES] = {0};
	int r;

	put_u32(end, ZIP_END);
	put_u16(end + 8, (uint16_t)zip->n);
	put_u16(end + 10, (uint16_t)zip->n);
	put_u32(end + 12, (uint32_t)zip->directory.n);
	put_u32(end + 16, (uint32_t)zip->at);
	if (zip->directory.oom)
		return -ENOMEM;
	if (zip->n > UINT16_MAX)
		return -EFBIG;
	r = write_all(zip, zip->directory.bytes, zip->directory.n);
	if (!r)
		r = write_all(zip, end, sizeof(end));
	*bytes = zip->at;
	return r;
}

void weft__zip_fini(struct weft__zip *zip)
{
	weft__buf_free(&zip->directory);
}
