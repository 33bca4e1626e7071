/* SPDX-License-Identifier: Apache-2.0 */
/* Whether threads came or went: when the number of threads, or the last thread id that was given out on this
 * machine, is another than before. CALLER and COLLECTOR. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/thread/thread.h"

/* The last field of /proc/loadavg. 0: not known. */
static uint64_t last_tid(void)
{
	char text[128], *last;
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	last = strrchr(text, ' ');
	return last ? strtoull(last, NULL, 10) : 0;
}

int weft__threads_maybe(struct weft__threads_mark *mark)
{
	struct stat task;
	uint64_t threads = stat("/proc/self/task", &task) == 0 ? task.st_nlink : 0;
	uint64_t tid = last_tid();
	int changed =
		(!tid || tid != mark->last_tid ? THREADS_MAYBE : 0) | (threads != mark->threads ? THREADS_CHANGED : 0);

	mark->threads = threads;
	mark->last_tid = tid;
	return changed;
}
