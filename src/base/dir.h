/* SPDX-License-Identifier: Apache-2.0 */
/* The directories that weft works in, and its files there. Any context but HOT.
 *
 * Other users may be able to put things there, and root may run weft. So: a directory is opened once, by a walk that
 * follows no link of another user; files are opened by their bare name below its descriptor, never through a link,
 * and only when they are regular files of this user with one name; new ones are made exclusively. docs/SECURITY.md
 * has the promises. */
#ifndef WEFT_BASE_DIR_H
#define WEFT_BASE_DIR_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/own.h"
#include "weft/error.h"

#define FILE_MODE 0600       /* of what weft makes */
#define FILE_MODE_GROUP 0640 /* with the option for a group */
#define DIR_MODE 0700
#define DIR_MODE_GROUP 0750

/* Opens a directory by its path. Links on the way are followed when they are this user's or root's. `make`: the mode
 * of directories that are missing, which are made; 0: none is. A descriptor (O_PATH), or -errno. */
int weft__dir_open(const char *path, unsigned make, struct weft_error *err);
/* Whether weft may work there: it is this user's or root's, and nobody else may write to it, or it is this user's
 * and sticky. 0, or -EPERM with what to do. */
int weft__dir_check(int dir, const char *path, struct weft_error *err);
/* Both. */
int weft__dir_use(const char *path, unsigned make, struct weft_error *err);
/* Its entries, without malloc, which opendir() calls: base/heap.h says why. */
struct weft__list {
	int fd; /* of the directory; -1: it is over */
	long n, at;
	_Alignas(8) char entries[4096];
};
/* 0 or -errno. `path` is below `dir`, or absolute. */
int weft__list_open(struct weft__list *list, int dir, const char *path);
/* The next name, which is good until the next call; NULL: there is none. */
const char *weft__list_next(struct weft__list *list);
void weft__list_close(struct weft__list *list);

/* The file of that name when it is one that weft may touch: regular, this user's, with this one name. 0, -ENOENT, or
 * -EPERM when it is anything else. */
int weft__dir_mine(int dir, const char *name, struct stat *st);
/* Opens such a file; `flags` are O_RDONLY or O_RDWR. A descriptor, or -errno in the same way. */
int weft__dir_file(int dir, const char *name, int flags);
/* Makes a file that is not there yet. A descriptor, or -errno. */
int weft__dir_create(int dir, const char *name, unsigned mode);
/* Gives a file another name, which must be free. 0 or -errno. */
int weft__dir_rename(int dir, const char *from, const char *to);
/* Removes the name of a file that was opened: not when something else has the name by now. */
void weft__dir_remove(int dir, const char *name, const struct weft__own *own);
/* The same for one who has the path only. */
void weft__path_remove(const char *dir, const char *name, const struct weft__own *own);

/* Whether a file begins with these 8 bytes. */
int weft__file_marked(int fd, const char *mark);

#endif
