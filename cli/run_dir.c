/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of `weft run`. Others may be able to rename what is on the way to it while the program runs, so it is
 * held by its descriptor: what is listed, written and removed is below that, never what its path means by now. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/text.h"
#include "cli.h"
#include "run.h"

#define TRIES 100     /* for a name that is free */
#define DEPTH_MAX 16  /* of directories that the program put there */
#define PASSES_MAX 64 /* some file systems skip entries while others are removed */

static int make_temporary(struct run_dir *dir, const char *parent)
{
	struct weft_error err = {0};
	char why[PATH_MAX + 128];
	uint64_t number;
	int i;

	dir->parent = weft__dir_open(parent, 0, &err);
	if (dir->parent < 0)
		return cli_fail("cannot make a directory in %s", err.msg);
	if (!cli_temporary_safe(dir->parent, parent, why, sizeof(why)))
		return cli_fail("cannot make a directory in %s: %sset TMPDIR to another one, or give -o DIR", parent,
				why);
	for (i = 0; i < TRIES; i++) {
		if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
			number = ((uint64_t)getpid() << 32) + (uint64_t)i; /* it is made exclusively all the same */
		snprintf(dir->name, sizeof(dir->name), "weft-%012" PRIx64, number & UINT64_C(0xffffffffffff));
		if (mkdirat(dir->parent, dir->name, DIR_MODE) == 0)
			break;
		if (errno != EEXIST)
			i = TRIES;
	}
	if (i >= TRIES)
		return cli_fail("cannot make a directory in %s: %s", parent, strerror(errno));
	dir->fd = openat(dir->parent, dir->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->fd < 0)
		return cli_fail("cannot use the directory %s/%s: %s", parent, dir->name, strerror(errno));
	if (weft__dir_check(dir->fd, parent, &err) < 0)
		return cli_fail("cannot record: %s", err.msg);
	return CLI_OK;
}

static int settle_path(struct run_dir *dir, const char *made)
{
	struct stat st;

	if (fstat(dir->fd, &st) < 0 || !realpath(made, dir->path))
		return cli_fail("cannot use the directory %s: %s", made, strerror(errno));
	dir->own.dev = st.st_dev;
	dir->own.ino = st.st_ino;
	if (!run_dir_same(dir))
		return cli_fail("cannot use the directory %s: somebody replaced it", made);
	return CLI_OK;
}

int run_dir_make(struct run_dir *dir, const char *path, const char *kept)
{
	const char *tmp = getenv("TMPDIR");
	char made[PATH_MAX];
	struct weft_error err = {0};

	dir->fd = dir->parent = -1;
	tmp = tmp && tmp[0] ? tmp : "/tmp";
	if (!path && !kept) {
		if (make_temporary(dir, tmp) != CLI_OK)
			return CLI_FAILED;
		if (snprintf(made, sizeof(made), "%s/%s", tmp, dir->name) >= (int)sizeof(made))
			return cli_fail("cannot make a directory in %s: %s", tmp, strerror(ENAMETOOLONG));
		return settle_path(dir, made);
	}
	if (path)
		snprintf(made, sizeof(made), "%s", path);
	else
		snprintf(made, sizeof(made), "weft-%.200s-%d", kept, (int)getpid());
	dir->fd = weft__dir_use(made, DIR_MODE, &err);
	return dir->fd < 0 ? cli_fail("cannot record: %s", err.msg) : settle_path(dir, made);
}

bool run_dir_same(const struct run_dir *dir)
{
	int fd = weft__dir_open(dir->path, 0, NULL);
	struct stat st;
	bool same = fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == dir->own.dev && st.st_ino == dir->own.ino;

	if (fd >= 0)
		close(fd);
	return same;
}

bool run_dir_has(const struct run_dir *dir, const char *end)
{
	struct weft__list list;
	const char *name;

	if (weft__list_open(&list, dir->fd, ".") < 0)
		return false;
	while ((name = weft__list_next(&list)) && !weft__ends_in(name, end))
		;
	weft__list_close(&list);
	return name != NULL;
}

/* Of NAME-PID-ID.rings; "?" when it is something else. */
static void add_pid(const char *name, char *pids, size_t bytes)
{
	const char *id = strrchr(name, '-'), *at = id;
	size_t used = strlen(pids), n;

	while (at && at > name && at[-1] >= '0' && at[-1] <= '9')
		at--;
	n = at ? (size_t)(id - at) : 0;
	if (n == 0 || n > 10 || at == name || at[-1] != '-') {
		at = "?";
		n = 1;
	}
	snprintf(pids + used, bytes - used, "%s%.*s", used ? ", " : "", (int)n, at);
}

size_t run_dir_still(const struct run_dir *dir, char *pids, size_t bytes)
{
	struct weft__list list;
	const char *name;
	struct stat st;
	size_t n = 0, used;

	pids[0] = 0;
	if (weft__list_open(&list, dir->fd, ".") < 0)
		return 0;
	while ((name = weft__list_next(&list))) {
		/* Others can put files with such names into a sticky directory. */
		if (!weft__ends_in(name, ".rings") || fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_uid != geteuid())
			continue;
		n++;
		used = strlen(pids);
		if (used + 24 < bytes)
			add_pid(name, pids, bytes);
		else if (!weft__ends_in(pids, "..."))
			snprintf(pids + used, bytes - used, ", ...");
	}
	weft__list_close(&list);
	return n;
}

static size_t remove_in(int dir, dev_t dev, unsigned depth);

/* A directory of this user and of the same file system is emptied first. */
static bool remove_name(int dir, const char *name, dev_t dev, unsigned depth)
{
	struct stat st;
	int sub, i;

	if (unlinkat(dir, name, 0) == 0)
		return true;
	if (errno != EISDIR && errno != EPERM)
		return false;
	sub = depth ? openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	if (sub >= 0 && fstat(sub, &st) == 0 && st.st_uid == geteuid() && st.st_dev == dev)
		for (i = 0; i < PASSES_MAX && remove_in(sub, dev, depth - 1); i++)
			;
	if (sub >= 0)
		close(sub);
	return unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

/* How many were removed. */
static size_t remove_in(int dir, dev_t dev, unsigned depth)
{
	struct weft__list list;
	const char *name;
	size_t n = 0;

	if (weft__list_open(&list, dir, ".") < 0)
		return 0;
	while ((name = weft__list_next(&list)))
		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			n += remove_name(dir, name, dev, depth);
	weft__list_close(&list);
	return n;
}

void run_dir_remove(const struct run_dir *dir)
{
	struct stat st;
	int i;

	for (i = 0; i < PASSES_MAX && remove_in(dir->fd, dir->own.dev, DEPTH_MAX); i++)
		;
	if (fstatat(dir->parent, dir->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == dir->own.dev &&
	    st.st_ino == dir->own.ino)
		unlinkat(dir->parent, dir->name, AT_REMOVEDIR);
}
