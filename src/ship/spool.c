/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"

#define MARK ".ship-"
#define MARK_BYTES (SPOOL_NAME + 16)
#define LINE_BYTES 400
#define MOST 65536u                          /* segments of a directory that are looked at */
#define FIRST_NS (60 * UINT64_C(1000000000)) /* until the second try after a refusal; then twice as long, ... */

void weft__spool_init(struct weft__spool *spool, const char *path, const char *tag)
{
	memset(spool, 0, sizeof(*spool));
	spool->path = path;
	spool->lock_fd = -1;
	snprintf(spool->tag, sizeof(spool->tag), "%s", tag);
}

void weft__spool_fini(struct weft__spool *spool)
{
	if (spool->lock_fd >= 0)
		weft__own_close(&spool->lock_own, spool->lock_fd);
	spool->lock_fd = -1;
}

int weft__spool_dir(const struct weft__spool *spool, struct weft_error *err)
{
	return weft__dir_use(spool->path, 0, err);
}

/* Of the process: a child of fork does not have it, and a program that closes all files loses it, which is noticed. */
static int lock_file(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES || errno == EAGAIN ? -WEFT_E_BUSY : -errno;
}

int weft__spool_lock(struct weft__spool *spool, struct weft_error *err)
{
	char name[32];
	int dir, fd, r;

	if (spool->lock_fd >= 0 && weft__own_is(&spool->lock_own, spool->lock_fd))
		return lock_file(spool->lock_fd); /* it is this process' still, unless the file was closed meanwhile */
	spool->lock_fd = -1;
	dir = weft__spool_dir(spool, err);
	if (dir < 0)
		return dir;
	snprintf(name, sizeof(name), ".weft-ship-%s.lock", spool->tag);
	fd = weft__dir_create(dir, name, FILE_MODE);
	if (fd == -EEXIST)
		fd = weft__dir_file(dir, name, O_RDWR);
	close(dir);
	if (fd < 0)
		return weft__fail(err, fd, "%s/%s: %s", spool->path, name, weft_strerror(fd));
	r = lock_file(fd);
	if (r) {
		close(fd);
		return weft__fail(err, r, "%s: another process sends what is there", spool->path);
	}
	spool->lock_fd = fd;
	spool->lock_own = weft__own_of(fd);
	return 0;
}

static void mark_name(const char *name, const char *tag, char *to)
{
	snprintf(to, MARK_BYTES, "%.255s" MARK "%.8s", name, tag);
}

/* The length of a segment's name in that of a mark; 0: it is none. */
static size_t mark_of(const char *name)
{
	size_t n = strlen(name);

	if (n <= 14 || n >= MARK_BYTES || strspn(name + n - 8, "0123456789abcdef") != 8 ||
	    memcmp(name + n - 14, MARK, 6) != 0)
		return 0;
	n -= 14;
	return n > 5 && !memcmp(name + n - 5, ".weft", 5) ? n : 0;
}

/* The line of a mark; "" when there is none that is ours. */
static void mark_read(int dir, const char *name, const char *tag, char line[LINE_BYTES])
{
	char mark[MARK_BYTES];
	ssize_t n;
	int fd;

	mark_name(name, tag, mark);
	line[0] = 0;
	fd = weft__dir_file(dir, mark, O_RDONLY);
	if (fd < 0)
		return;
	n = pread(fd, line, LINE_BYTES - 1, 0);
	close(fd);
	line[n > 0 ? n : 0] = 0;
	if (!strchr(line, '\n')) /* it was not written to its end */
		line[0] = 0;
}

static int mark_write(int dir, const char *name, const char *tag, const char *line)
{
	char mark[MARK_BYTES];
	size_t n = strlen(line);
	int fd, r = 0;

	mark_name(name, tag, mark);
	fd = weft__dir_create(dir, mark, FILE_MODE);
	if (fd == -EEXIST)
		fd = weft__dir_file(dir, mark, O_RDWR);
	if (fd < 0)
		return fd;
	errno = 0;
	if (pwrite(fd, line, n, 0) != (ssize_t)n || ftruncate(fd, (off_t)n) < 0)
		r = errno ? -errno : -ENOSPC;
	close(fd);
	return r;
}

static int begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static void time_text(char to[32])
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(to, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

int weft__spool_sent(const struct weft__spool *spool, int dir, const char *name)
{
	char line[64], now[32];

	time_text(now);
	snprintf(line, sizeof(line), "sent %s\n", now);
	return mark_write(dir, name, spool->tag, line);
}

int weft__spool_refused(const struct weft__spool *spool, int dir, const struct weft__spooled *one, const char *why)
{
	char line[LINE_BYTES], now[32], number[24];

	time_text(now);
	snprintf(number, sizeof(number), "tried %u", one->tries + 1);
	snprintf(line, sizeof(line), "%s %s %.*s\n", one->tries + 1 < SPOOL_TRIES ? number : "refused", now,
		 (int)strcspn(why, "\n") < 240 ? (int)strcspn(why, "\n") : 240, why);
	return mark_write(dir, one->name, spool->tag, line);
}

int weft__spool_has(int dir, const char *name, const char *tag)
{
	char line[LINE_BYTES];

	mark_read(dir, name, tag, line);
	return begins(line, "sent ");
}

/* Marks of any target whose segment is not there any more. */
static void sweep_mark(int dir, const char *mark)
{
	char name[SPOOL_NAME];
	size_t n = mark_of(mark);
	struct stat st;

	if (!n || n >= sizeof(name) || weft__dir_mine(dir, mark, &st))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)n, mark);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		unlinkat(dir, mark, 0);
}

/* When a segment that was refused at that time is tried again. A time of the future is that of a clock that was set
 * back: it is tried now. */
static uint64_t due_after(const struct weft__spool *spool, uint64_t refused_ns, uint32_t tries)
{
	return refused_ns > spool->jump.real_ns ? 0 : refused_ns + (FIRST_NS << (tries - 1));
}

/* Whether the target is to have it now or later. */
static int is_wanted(const struct weft__spool *spool, int dir, struct weft__spooled *one)
{
	char line[LINE_BYTES];

	if (spool->age_ns && weft__jump_age(&spool->jump, one->time_ns) > spool->age_ns)
		return 0;
	mark_read(dir, one->name, spool->tag, line);
	if (begins(line, "sent "))
		return 0;
	if (begins(line, "refused "))
		return spool->again;
	if (begins(line, "tried ") && !spool->again) {
		char mark[MARK_BYTES];
		struct stat st;

		one->tries = (uint32_t)strtoul(line + 6, NULL, 10) & 31;
		mark_name(one->name, spool->tag, mark);
		if (one->tries && weft__dir_mine(dir, mark, &st) == 0)
			one->due_ns = due_after(spool, (uint64_t)st.st_mtim.tv_sec * 1000000000u, one->tries);
	}
	return 1;
}

static int older_first(const void *a, const void *b)
{
	const struct weft__spooled *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

int weft__spool_list(struct weft__spool *spool, int dir, const char *only, struct weft__spooled **ret, size_t *n,
		     struct weft_error *err)
{
	struct weft__spooled *all = NULL;
	struct weft__list list;
	size_t cap = 0;
	const char *name;
	int r = weft__list_open(&list, dir, ".");

	*n = 0;
	weft__jump_note(&spool->jump, weft__clock_real(), weft__jump_boot());
	if (r)
		return weft__fail(err, r, "%s: %s", spool->path, weft_strerror(r));
	while (!r && *n < MOST && (name = weft__list_next(&list))) {
		struct weft__spooled *grown, one = {0};
		struct stat st;

		if (mark_of(name))
			sweep_mark(dir, name);
		if (!weft__ends_in(name, ".weft") || strlen(name) >= SPOOL_NAME || (only && strcmp(name, only) != 0) ||
		    weft__dir_mine(dir, name, &st))
			continue;
		snprintf(one.name, sizeof(one.name), "%s", name);
		one.time_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
		one.bytes = (uint64_t)st.st_size;
		if (!is_wanted(spool, dir, &one))
			continue;
		grown = weft__grow(all, &cap, *n, sizeof(*all));
		if (!grown) {
			r = weft__fail(err, -ENOMEM, "out of memory");
			break;
		}
		all = grown;
		all[(*n)++] = one;
	}
	weft__list_close(&list);
	if (*n)
		weft__sort(all, *n, sizeof(*all), older_first);
	*ret = all;
	return r;
}

void weft__spool_remove(int dir, const char *name)
{
	struct weft__list list;
	const char *mark;
	struct stat st;

	if (weft__dir_mine(dir, name, &st) || unlinkat(dir, name, 0) < 0 || weft__list_open(&list, dir, "."))
		return;
	while ((mark = weft__list_next(&list)))
		if (mark_of(mark) == strlen(name) && !strncmp(mark, name, strlen(name)))
			sweep_mark(dir, mark);
	weft__list_close(&list);
}
