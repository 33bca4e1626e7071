/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

#define LINKS_FOLLOWED_MAX 40

struct path_walk {
	char rest[PATH_MAX]; /* what is still to be walked */
	const char *shown;
	unsigned make;
	int at; /* of the directory so far */
	int links;
	struct weft_error *err;
};

static int walk_fail(struct path_walk *w, int code)
{
	return weft__fail(w->err, code, "%s: %s", w->shown, weft_strerror(code));
}

/* A link of this user or of root: its text takes the place of its name. */
static int walk_link(struct path_walk *w, const char *name, const struct stat *st)
{
	char text[PATH_MAX], rest[PATH_MAX];
	ssize_t n;

	if (st->st_uid != geteuid() && st->st_uid != 0)
		return weft__fail(w->err, -EPERM,
				  "%s: '%s' on the way is a link that user %u made; give a path without it", w->shown,
				  name, (unsigned)st->st_uid);
	n = readlinkat(w->at, name, text, sizeof(text) - 1);
	if (n < 0)
		return walk_fail(w, -errno);
	text[n] = 0;
	if (++w->links > LINKS_FOLLOWED_MAX)
		return walk_fail(w, -ELOOP);
	memcpy(rest, w->rest, sizeof(rest));
	if ((size_t)snprintf(w->rest, sizeof(w->rest), "%s/%s", text, rest) >= sizeof(w->rest))
		return walk_fail(w, -ENAMETOOLONG);
	if (text[0] == '/') {
		close(w->at);
		w->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (w->at < 0)
			return walk_fail(w, -errno);
	}
	return 0;
}

static int walk_step(struct path_walk *w, const char *name)
{
	struct stat st;
	int next = openat(w->at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), error = errno;

	if (next < 0 && error == ENOENT && w->make) {
		if (mkdirat(w->at, name, w->make) < 0 && errno != EEXIST)
			return walk_fail(w, -errno);
		next = openat(w->at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		error = errno;
	}
	if (next < 0 && (error == ENOTDIR || error == ELOOP) && fstatat(w->at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		return walk_link(w, name, &st);
	if (next < 0)
		return walk_fail(w, -error);
	close(w->at);
	w->at = next;
	return 0;
}

int weft__dir_open(const char *path, unsigned make, struct weft_error *err)
{
	struct path_walk w = {.shown = path, .make = make, .err = err};
	int r = 0;

	if ((size_t)snprintf(w.rest, sizeof(w.rest), "%s", path) >= sizeof(w.rest) || !*path)
		return walk_fail(&w, *path ? -ENAMETOOLONG : -ENOENT);
	w.at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w.at < 0)
		return walk_fail(&w, -errno);
	while (!r && w.rest[0]) {
		char name[NAME_MAX + 1];
		size_t n = strcspn(w.rest, "/"), skip = n + strspn(w.rest + n, "/");

		if (n > NAME_MAX) {
			r = walk_fail(&w, -ENAMETOOLONG);
			break;
		}
		memcpy(name, w.rest, n);
		name[n] = 0;
		memmove(w.rest, w.rest + skip, strlen(w.rest + skip) + 1);
		if (n)
			r = walk_step(&w, name);
	}
	if (!r)
		return w.at;
	if (w.at >= 0)
		close(w.at);
	return r;
}

int weft__dir_check(int dir, const char *path, struct weft_error *err)
{
	uid_t me = geteuid();
	struct stat st;

	if (fstat(dir, &st) < 0)
		return weft__fail(err, -errno, "%s: %s", path, weft_strerror(-errno));
	if (st.st_uid != me && st.st_uid != 0)
		return weft__fail(
			err, -EPERM,
			"%s: belongs to user %u, who could change what is in it; give a directory of user %u, or "
			"do it as user %u",
			path, (unsigned)st.st_uid, (unsigned)me, (unsigned)st.st_uid);
	if (!(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	if (st.st_uid == me && (st.st_mode & S_ISVTX))
		return 0;
	if (st.st_uid == me)
		return weft__fail(err, -EPERM,
				  "%s: others may write to it (mode %04o); run: chmod go-w '%s' (or chmod +t)", path,
				  (unsigned)st.st_mode & 07777, path);
	return weft__fail(
		err, -EPERM,
		"%s: others may write to it (mode %04o) and it is not yours; make a directory of your own there: "
		"mkdir -m 700 '%s/weft-%u'",
		path, (unsigned)st.st_mode & 07777, path, (unsigned)me);
}

int weft__dir_use(const char *path, unsigned make, struct weft_error *err)
{
	int dir = weft__dir_open(path, make, err), r;

	if (dir < 0)
		return dir;
	r = weft__dir_check(dir, path, err);
	if (!r)
		return dir;
	close(dir);
	return r;
}

int weft__list_open(struct weft__list *list, int dir, const char *path)
{
	list->fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	list->n = list->at = 0;
	return list->fd < 0 ? -errno : 0;
}

const char *weft__list_next(struct weft__list *list)
{
	struct dirent64 *entry;

	if (list->at >= list->n) {
		list->at = 0;
		list->n = syscall(SYS_getdents64, list->fd, list->entries, sizeof(list->entries));
		if (list->n <= 0)
			return NULL;
	}
	entry = (struct dirent64 *)(void *)(list->entries + list->at);
	list->at += entry->d_reclen;
	return entry->d_name;
}

void weft__list_close(struct weft__list *list)
{
	if (list->fd >= 0)
		close(list->fd);
	list->fd = -1;
}

static int is_mine(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
}

int weft__dir_mine(int dir, const char *name, struct stat *st)
{
	if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return is_mine(st) ? 0 : -EPERM;
}

int weft__dir_file(int dir, const char *name, int flags)
{
	struct stat st;
	int fd, r = weft__dir_mine(dir, name, &st); /* first: opening alone does things to devices and pipes */

	if (r)
		return r;
	fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (fstat(fd, &st) < 0 || !is_mine(&st)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

int weft__dir_create(int dir, const char *name, unsigned mode)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);

	if (fd < 0)
		return -errno;
	if (mode && mode != FILE_MODE)
		(void)!fchmod(fd, mode); /* whatever the umask is */
	return fd;
}

int weft__dir_rename(int dir, const char *from, const char *to)
{
	struct stat st;

	if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system that cannot do that. Between the two only this user could put something there. */
	if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(dir, from, dir, to) < 0 ? -errno : 0;
}

void weft__dir_remove(int dir, const char *name, const struct weft__own *own)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == own->ino && st.st_dev == own->dev)
		unlinkat(dir, name, 0);
}

void weft__path_remove(const char *dir, const char *name, const struct weft__own *own)
{
	int fd = weft__dir_open(dir, 0, NULL);

	if (fd < 0)
		return;
	weft__dir_remove(fd, name, own);
	close(fd);
}

int weft__file_marked(int fd, const char *mark)
{
	char bytes[8];

	return pread(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) && !memcmp(bytes, mark, sizeof(bytes));
}
