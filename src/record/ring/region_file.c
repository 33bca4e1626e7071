/* SPDX-License-Identifier: Apache-2.0 */
#include "record/ring/region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/error.h"
#include "base/text.h"
#include "record/ring/names.h"
#include "record/ring/ring.h"

#define TMPFS 0x01021994

int weft__file_lock(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	/* Of the open file, not of the process: it conflicts within a process too, and a stray close cannot drop it. */
	return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -WEFT_E_BUSY;
}

int weft__region_shm(void)
{
	int dir = weft__dir_open(SHM_DIR, 0, NULL), err = 0;
	struct statfs fs;
	struct stat st;

	if (dir < 0)
		return dir;
	if (fstatfs(dir, &fs) < 0 || fs.f_type != TMPFS || fstat(dir, &st) < 0)
		err = -ENOENT;
	else if ((st.st_uid != 0 && st.st_uid != geteuid()) || ((st.st_mode & 022) && !(st.st_mode & S_ISVTX)))
		err = -EPERM; /* others could put their files in the place of ours */
	if (!err)
		return dir;
	close(dir);
	return err;
}

uint64_t weft__region_mount_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/mnt", &st) == 0 ? st.st_ino : 0;
}

static void link_text(const char *name, char *text, size_t bytes)
{
	snprintf(text, bytes, SHM_DIR "/%s", name);
}

int weft__region_link(const struct weft__region *region, int dir, const char *name)
{
	char text[256];

	link_text(name, text, sizeof(text));
	return symlinkat(text, dir, region->link) < 0 ? -errno : 0;
}

int weft__region_link_valid(const char *link, const char *text, char *name, size_t bytes)
{
	char expected[256 + sizeof(SHM_DIR)], file[256];
	size_t n = strlen(link) - strlen(".rings");

	if ((size_t)snprintf(file, sizeof(file), SHM_NAME, (unsigned)geteuid(), "") + n >= sizeof(file))
		return 0;
	snprintf(file, sizeof(file), "weft-%u-%.*s.rings", (unsigned)geteuid(), (int)n, link);
	snprintf(expected, sizeof(expected), SHM_DIR "/%s", file);
	return !strcmp(text, expected) && (size_t)snprintf(name, bytes, "%s", file) < bytes;
}

void weft__region_relink(const struct weft__region *region)
{
	int dir, err;

	if (!region->link[0])
		return;
	dir = weft__dir_use(region->dir, 0, NULL);
	err = dir < 0 ? dir : weft__region_link(region, dir, region->name);
	if (dir >= 0)
		close(dir);
	if (err && err != -EEXIST)
		weft__log(WEFT_LOG_WARN, "%s/%s: %s; after a crash the rings will not be found", region->dir,
			  region->link, weft_strerror(err));
}

void weft__region_reopen(struct weft__region *region)
{
	int dir, fd = -1;

	if (region->file.fd < 0 || !region->name[0] || weft__own_is(&region->file.own, region->file.fd))
		return;
	dir = weft__dir_open(region->home, 0, NULL);
	if (dir >= 0) {
		fd = openat(dir, region->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		close(dir);
	}
	if (weft__own_is(&region->file.own, fd) && !weft__file_lock(fd)) {
		region->file.fd = fd; /* emitting threads find out for themselves, by the number that they have */
		return;
	}
	if (fd >= 0)
		close(fd);
}

/* The link of this recording and no other. */
static void remove_link(const struct weft__region *region)
{
	char expected[256], text[256];
	int dir = weft__dir_open(region->dir, 0, NULL);
	ssize_t n;

	if (dir < 0)
		return;
	link_text(region->name, expected, sizeof(expected));
	n = readlinkat(dir, region->link, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	if (!strcmp(text, expected))
		unlinkat(dir, region->link, 0);
	close(dir);
}

void weft__region_remove(struct weft__region *region)
{
	if (region->link[0])
		remove_link(region);
	if (region->name[0])
		weft__path_remove(region->home, region->name, &region->file.own);
	region->link[0] = 0;
	region->name[0] = 0;
}

/* Whether the link to a ring file is gone for sure. */
static int link_gone(const struct rings_head *head, const char *stem, size_t n)
{
	char link[256];
	struct stat st;
	int dir, gone;

	if (head->dir[0] != '/' || !memchr(head->dir, 0, sizeof(head->dir)) || !head->mount_space ||
	    head->mount_space != weft__region_mount_space())
		return 0;
	dir = weft__dir_open(head->dir, 0, NULL);
	if (dir < 0)
		return dir == -ENOENT;
	snprintf(link, sizeof(link), "%.*s.rings", (int)n, stem);
	gone = fstatat(dir, link, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
	close(dir);
	return gone;
}

/* Whether nobody will ever come for a ring file. */
static int is_orphan(int fd, const char *stem, size_t n)
{
	struct rings_head head;

	return pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	       !memcmp(head.magic, RINGS_MAGIC, sizeof(head.magic)) &&
	       (!head.version || (head.version == RINGS_VERSION && link_gone(&head, stem, n)));
}

/* `stem`: in the name, of `n` bytes. Looks before it locks: a lock, held for however short a time, would be a living
 * process to who recovers that recording now. */
static void sweep_one(int shm, const char *name, const char *stem, size_t n)
{
	int fd = weft__dir_file(shm, name, O_RDWR);
	struct weft__own own = weft__own_of(fd);

	if (fd < 0)
		return;
	if (is_orphan(fd, stem, n) && !weft__file_lock(fd) && is_orphan(fd, stem, n))
		weft__dir_remove(shm, name, &own);
	close(fd);
}

void weft__region_sweep(void)
{
	int shm = weft__region_shm();
	struct weft__list list = {.fd = -1};
	const char *name;
	char before[32];
	size_t n = (size_t)snprintf(before, sizeof(before), "weft-%u-", (unsigned)geteuid());

	if (shm < 0 || weft__list_open(&list, shm, ".") < 0)
		goto done;
	while ((name = weft__list_next(&list))) {
		const char *stem = name + n;
		size_t m = strncmp(name, before, n) != 0 ? 0 : stem_of_rings(stem, ".rings");

		if (m)
			sweep_one(shm, name, stem, m);
	}
	weft__list_close(&list);
done:
	if (shm >= 0)
		close(shm);
}
