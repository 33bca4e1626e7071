/* SPDX-License-Identifier: Apache-2.0 */
/* Zip archives: written with entries as they are (segments are compressed already), read with those and with deflated
 * ones. No archive beyond 4 GiB, no encryption, no archives in parts. Context: as all of ship. */
#ifndef WEFT_SHIP_ZIP_H
#define WEFT_SHIP_ZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "weft/error.h"

#define ZIP_NAME 256
#define ZIP_MOST (UINT64_C(1) << 32) /* bytes of an archive that is written, and of an entry that is read */

struct weft__zip {
	int fd; /* written from offset 0 on */
	uint64_t at;
	uint32_t date; /* of all entries: as DOS has it, day above time */
	uint32_t n;
	struct weft__buf directory;
};

/* Begins an archive in an empty file. The same entries at the same time make the same bytes. */
void weft__zip_init(struct weft__zip *zip, int fd, uint64_t unix_s);
/* Adds an entry: what is at the start of a file, or bytes. 0; -EFBIG beyond ZIP_MOST; -ENOMEM or a negative errno. */
int weft__zip_add_file(struct weft__zip *zip, const char *name, int from, uint64_t bytes);
int weft__zip_add(struct weft__zip *zip, const char *name, const void *bytes, size_t n);
/* Writes the list of entries. `*bytes` is the length of the archive. 0 or a negative error. */
int weft__zip_end(struct weft__zip *zip, uint64_t *bytes);
void weft__zip_fini(struct weft__zip *zip);

/* Reading: archives are any bytes. */
struct weft__zip_entry {
	char name[ZIP_NAME]; /* its last part, of letters, digits and "-_.:" only */
	uint64_t bytes;      /* unpacked */
	const uint8_t *packed;
	size_t packed_bytes;
	uint32_t method, crc;
};
struct weft__unzip {
	const uint8_t *bytes;
	size_t n;
	size_t at;     /* in the list of entries */
	uint32_t left; /* entries */
};
/* 0, or -WEFT_E_FORMAT: it is no archive, or one of a kind that is not read. */
int weft__unzip_init(struct weft__unzip *unzip, const void *bytes, size_t n, struct weft_error *err);
/* 1: an entry; 0: there is none left; -WEFT_E_FORMAT: the list is damaged. Folders are left out. */
int weft__unzip_next(struct weft__unzip *unzip, struct weft__zip_entry *ret, struct weft_error *err);
/* The entry, into `to`, which has room for its bytes. 0; -WEFT_E_FORMAT: damaged; -ENOMEM. */
int weft__unzip_get(const struct weft__zip_entry *entry, uint8_t *to, struct weft_error *err);

#endif
