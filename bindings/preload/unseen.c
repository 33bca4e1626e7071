/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that are not recorded: an io_uring that no call was seen to wait for, because the program makes its system
 * calls itself, as one with liburing inside it does; an epoll descriptor of a program of which no loop was seen,
 * such as Go's. And loops of more threads than there are numbers for. The collector looks, when the program has had
 * time to begin and then ever more seldom, and once more at the end. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/late.h"
#include "preload.h"

#define FDS 65536
#define LINKS_MAX 4096 /* that are looked at, of a program with very many files */

static uint64_t waited_for[FDS / 64];
static uint32_t loops_seen, loops_missed;

void weft__preload_seen(const struct preload_wait *wait)
{
	if (wait->fd >= 0 && wait->fd < FDS && wait->family >= PRELOAD_EPOLL)
		__atomic_fetch_or(&waited_for[wait->fd / 64], 1ull << wait->fd % 64, __ATOMIC_RELAXED);
}

void weft__preload_loop_seen(bool recorded)
{
	__atomic_fetch_add(recorded ? &loops_seen : &loops_missed, 1, __ATOMIC_RELAXED);
}

static bool was_waited_for(long fd)
{
	return fd >= FDS || __atomic_load_n(&waited_for[fd / 64], __ATOMIC_RELAXED) >> fd % 64 & 1;
}

struct linux_dirent64 {
	uint64_t inode;
	int64_t next;
	unsigned short bytes;
	unsigned char type;
	char name[];
};

struct unseen {
	int epoll, uring; /* a descriptor of each; -1: none */
};

static void look_at(int dir, const char *name, struct unseen *ret)
{
	char link[64], *end;
	long fd = strtol(name, &end, 10);
	ssize_t n;

	if (end == name || *end || was_waited_for(fd))
		return;
	n = readlinkat(dir, name, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = 0;
	if (strcmp(link, "anon_inode:[io_uring]") == 0)
		ret->uring = (int)fd;
	else if (strcmp(link, "anon_inode:[eventpoll]") == 0)
		ret->epoll = (int)fd;
}

/* The table of the program's first thread; the collector's own is another. No stream and no allocation:
 * base/private_fds.h. */
static struct unseen look(void)
{
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), left = LINKS_MAX;
	_Alignas(struct linux_dirent64) char entries[4096];
	struct unseen ret = {-1, -1};
	long n, at;

	while (dir >= 0 && left > 0 && (n = syscall(SYS_getdents64, dir, entries, sizeof(entries))) > 0)
		for (at = 0; at < n && left-- > 0;) {
			const struct linux_dirent64 *entry = (const void *)(entries + at);

			look_at(dir, entry->name, &ret);
			at += entry->bytes;
		}
	if (dir >= 0)
		close(dir);
	return ret;
}

static void note(const struct unseen *unseen)
{
	uint32_t missed = __atomic_load_n(&loops_missed, __ATOMIC_RELAXED);
	char text[400] = "";
	size_t n = 0;

	if (unseen->uring >= 0)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "the program has an io_uring (fd %d) that no call was seen to wait for: a loop "
				      "that waits by system "
				      "calls of its own is not recorded",
				      unseen->uring);
	else if (unseen->epoll >= 0 && !__atomic_load_n(&loops_seen, __ATOMIC_RELAXED))
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "the program has an epoll descriptor (fd %d) that no call was seen to wait for: "
				      "a loop that waits by "
				      "system calls of its own is not recorded",
				      unseen->epoll);
	if (missed && n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, "%sthe loops of %u threads are not recorded: there are too many",
			 n ? "; " : "", missed);
	weft__late_note(text);
}

void weft__preload_unseen_tend(void)
{
	static uint32_t turns;
	uint32_t turn = ++turns;
	struct unseen unseen;

	/* Once a second: not at the first, which may come before the wait that made the recorder start; at the next
	 * three, then at powers of two; and whenever a thread of the program asks, at its end. */
	if ((turn == 1 || (turn > 4 && (turn & (turn - 1)) != 0)) && weft__preload_thread.quiet)
		return;
	unseen = look();
	note(&unseen);
}
