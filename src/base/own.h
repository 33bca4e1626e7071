/* SPDX-License-Identifier: Apache-2.0 */
/* Files that stay open in a program that may close whatever is open, as daemons do: the number is then soon that of
 * a file of the program, which is neither written to nor closed by us. So we look before we do. Any context. */
#ifndef WEFT_BASE_OWN_H
#define WEFT_BASE_OWN_H

#include <errno.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

struct weft__own { /* what was opened; all 0: nothing */
	uint64_t dev, ino;
};

struct weft__own_file {
	int fd; /* -1: none */
	struct weft__own own;
};

/* By the bare call, for HOT. */
static inline struct weft__own weft__own_of(int fd)
{
	struct stat st;

	if (fd < 0 || syscall(SYS_fstat, fd, &st) != 0)
		return (struct weft__own){0, 0};
	return (struct weft__own){st.st_dev, st.st_ino};
}

static inline int weft__own_is(const struct weft__own *own, int fd)
{
	struct weft__own now = weft__own_of(fd);

	return now.ino && now.ino == own->ino && now.dev == own->dev;
}

static inline void weft__own_close(const struct weft__own *own, int fd)
{
	if (weft__own_is(own, fd))
		close(fd);
}

/* Files of /proc are distinguished from others only. */
static inline void weft__own_close_proc(int fd)
{
	struct statfs fs;

	if (fd >= 0 && syscall(SYS_fstatfs, fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)
		syscall(SYS_close, fd);
}

/* Perf events have no files to distinguish them by. But few programs have any. */
static inline int weft__own_perf(int fd)
{
	uint64_t id;

	return fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0;
}

/* In a child of fork, where the event goes on in the parent. */
static inline void weft__own_perf_leave(int fd)
{
	if (weft__own_perf(fd))
		close(fd);
}

static inline void weft__own_perf_close(int fd)
{
	if (!weft__own_perf(fd))
		return;
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	close(fd);
}

#endif
