/* SPDX-License-Identifier: Apache-2.0 */
/* Which Debian package a file is of, from dpkg's own files: info/PACKAGE.list has the paths of a package, status the
 * versions. No process is started. Both are untrusted: what is malformed is skipped. Context: CALLER. */
#ifndef WEFT_PACKAGE_DPKG_H
#define WEFT_PACKAGE_DPKG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "package/keys.h"

#define WEFT__DPKG_DIR "/var/lib/dpkg"

struct weft__dpkg_package {
	uint32_t name, version, source; /* texts */
	bool base;                      /* Debian calls it essential, required or important */
};

struct weft__dpkg {
	struct weft__keys texts;  /* the first is "" */
	struct weft__keys wanted; /* paths, plain */
	uint32_t *package_of;     /* of each wanted path: number + 1; 0: of none */
	size_t cap_package_of;
	struct weft__keys names; /* as the lists are called: "libc6:amd64" */
	struct weft__dpkg_package *packages;
	size_t n_packages, cap_packages;
	size_t n_found;       /* of the wanted paths */
	size_t n_read;        /* lists, so far */
	const uint32_t *stop; /* not 0: what is not known yet stays so; NULL: never */
};

/* {0} is ready for use. Each returns 0 or -ENOMEM. Paths where Debian puts nothing are not looked up. */
int weft__dpkg_want(struct weft__dpkg *dpkg, const char *path);
/* Looks all of them up below `dir`: first in lists with names like those of the files, then in all others, until all
 * are found. A directory that is not there names none. */
int weft__dpkg_read(struct weft__dpkg *dpkg, const char *dir);
/* NULL: of no package. */
const struct weft__dpkg_package *weft__dpkg_get(const struct weft__dpkg *dpkg, const char *path);
void weft__dpkg_fini(struct weft__dpkg *dpkg);

/* Inside, for tests: the text of one list, and of the status file. */
int weft__dpkg_list(struct weft__dpkg *dpkg, const char *package, size_t package_bytes, const char *text, size_t n);
int weft__dpkg_status(struct weft__dpkg *dpkg, const char *text, size_t n);

#endif
