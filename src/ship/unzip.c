/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "ship/zip.h"
#include "ship/zip_format.h"

static int bad(struct weft_error *err, const char *what)
{
	return weft__fail(err, -WEFT_E_FORMAT, "%s", what);
}

/* The end record is behind everything but a comment. */
int weft__unzip_init(struct weft__unzip *unzip, const void *bytes, size_t n, struct weft_error *err)
{
	const uint8_t *at = bytes;
	size_t back;

	for (back = ZIP_END_BYTES; back <= n && back <= ZIP_END_BYTES + ZIP_COMMENT_MOST; back++) {
		const uint8_t *end = at + n - back;

		if (get_u32(end) != ZIP_END)
			continue;
		if (get_u32(end + 16) > n - back)
			return bad(err, "a zip archive whose list is not where it should be, or one beyond 4 GiB");
		*unzip = (struct weft__unzip){at, n - back, get_u32(end + 16), get_u16(end + 10)};
		return 0;
	}
	return bad(err, "not a zip archive, or not whole");
}

/* Names go to file names: nothing but the last part, and nothing that means something to anybody. */
static void set_name(struct weft__zip_entry *to, const uint8_t *name, size_t n)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:";
	size_t i, at = 0;

	for (i = 0; i < n; i++)
		if (name[i] == '/' || name[i] == '\\')
			at = i + 1;
	for (i = 0; at + i < n && i + 1 < sizeof(to->name); i++) {
		char c = (char)name[at + i];

		to->name[i] = (char)(c && strchr(plain, c) && !(c == '.' && i == 0) ? c : '_');
	}
	to->name[i] = 0;
}

/* Where the bytes of an entry are: behind its own header, whose lengths may differ from those in the list. */
static bool find_bytes(const struct weft__unzip *unzip, uint64_t at, struct weft__zip_entry *to)
{
	const uint8_t *local = unzip->bytes + at;
	uint64_t first;

	if (at > unzip->n || unzip->n - at < ZIP_LOCAL_BYTES || get_u32(local) != ZIP_LOCAL)
		return false;
	first = at + ZIP_LOCAL_BYTES + get_u16(local + 26) + get_u16(local + 28);
	if (first > unzip->n || unzip->n - first < to->packed_bytes)
		return false;
	to->packed = unzip->bytes + first;
	return true;
}

int weft__unzip_next(struct weft__unzip *unzip, struct weft__zip_entry *ret, struct weft_error *err)
{
	while (unzip->left) {
		const uint8_t *one = unzip->bytes + unzip->at;
		size_t rest = unzip->n - unzip->at, name, length;

		if (rest < ZIP_CENTRAL_BYTES || get_u32(one) != ZIP_CENTRAL)
			return bad(err, "the list of the zip archive is damaged");
		name = get_u16(one + 28);
		length = ZIP_CENTRAL_BYTES + name + get_u16(one + 30) + get_u16(one + 32);
		if (length > rest)
			return bad(err, "the list of the zip archive is cut");
		unzip->at += length;
		unzip->left--;
		if (name && one[ZIP_CENTRAL_BYTES + name - 1] == '/')
			continue;
		*ret = (struct weft__zip_entry){.bytes = get_u32(one + 24),
						.packed_bytes = get_u32(one + 20),
						.method = get_u16(one + 10),
						.crc = get_u32(one + 16)};
		set_name(ret, one + ZIP_CENTRAL_BYTES, name);
		if (get_u16(one + 8) & ZIP_FLAG_SECRET)
			return bad(err, "the zip archive is encrypted");
		if (!find_bytes(unzip, get_u32(one + 42), ret))
			return bad(err, "an entry of the zip archive is not whole");
		return 1;
	}
	return 0;
}

static int inflate(const struct weft__zip_entry *entry, uint8_t *to, struct weft_error *err)
{
	struct libdeflate_decompressor *of = libdeflate_alloc_decompressor();
	enum libdeflate_result got;

	if (!of)
		return weft__fail(err, -ENOMEM, "out of memory");
	got = libdeflate_deflate_decompress(of, entry->packed, entry->packed_bytes, to, (size_t)entry->bytes, NULL);
	libdeflate_free_decompressor(of);
	return got == LIBDEFLATE_SUCCESS ? 0 : bad(err, "an entry of the zip archive is damaged");
}

int weft__unzip_get(const struct weft__zip_entry *entry, uint8_t *to, struct weft_error *err)
{
	int r = 0;

	if (entry->method == ZIP_DEFLATED)
		r = inflate(entry, to, err);
	else if (entry->method == ZIP_STORED && entry->bytes == entry->packed_bytes)
		memcpy(to, entry->packed, entry->packed_bytes);
	else
		r = weft__fail(err, -WEFT_E_FORMAT, "compressed by method %u, which weft does not know", entry->method);
	if (!r && libdeflate_crc32(0, to, (size_t)entry->bytes) != entry->crc)
		r = bad(err, "the checksum of an entry of the zip archive is wrong");
	return r;
}
