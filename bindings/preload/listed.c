/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the program's descriptors, without those of the recorder that are in its table (fds.c). A program may close
 * or count what it finds in /proc/self/fd. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"

/* Whether it is the list of this process, or of a thread of it. */
static bool lists_us(int dir)
{
	char path[40], to[64], *end;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return false;
	to[n] = 0;
	end = strrchr(to, '/');
	return !strncmp(to, "/proc/", 6) && strtol(to + 6, NULL, 10) == getpid() && end &&
	       (!strcmp(end, "/fd") || !strcmp(end, "/fdinfo"));
}

static bool is_hidden(int dir, const char *name)
{
	int saved = errno;
	bool hidden;
	char *end;
	long fd;

	if (WEFT_LIKELY(*name < '0' || *name > '9'))
		return false;
	fd = strtol(name, &end, 10);
	hidden = !*end && fd < INT32_MAX && weft__preload_own((int)fd) && lists_us(dir);
	errno = saved;
	return hidden;
}

#define READDIR(name, type)                                                                                            \
	PRELOAD_API struct type *name(DIR *dir)                                                                        \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		struct type *(*call)(DIR *) = PRELOAD_REAL(real, #name);                                               \
		struct type *entry;                                                                                    \
                                                                                                                       \
		do                                                                                                     \
			entry = call(dir);                                                                             \
		while (entry && is_hidden(dirfd(dir), entry->d_name));                                                 \
		return entry;                                                                                          \
	}

READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

/* 0 is the end of the list: it is not answered for entries that are all hidden. */
PRELOAD_API ssize_t getdents64(int fd, void *buf, size_t bytes)
{
	static void *real PRELOAD_NEAR;
	ssize_t (*call)(int, void *, size_t) = PRELOAD_REAL(real, "getdents64");
	ssize_t n, at, kept;

	do {
		n = call(fd, buf, bytes);
		for (at = kept = 0; at < n;) {
			struct dirent64 *entry = (struct dirent64 *)(void *)((char *)buf + at);
			unsigned short length = entry->d_reclen;

			at += length;
			if (is_hidden(fd, entry->d_name))
				continue;
			memmove((char *)buf + kept, entry, length);
			kept += length;
		}
	} while (n > 0 && !kept);
	return n > 0 ? kept : n;
}
