/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ours.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"

#define OURS_MOST 16

static uint32_t our_tids[OURS_MOST]; /* thread ids; those of threads that are gone are taken again */
static __thread int is_self __attribute__((tls_model("initial-exec")));

static int gone(uint32_t tid)
{
	return !tid || (syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH);
}

void weft__ours_begin(void)
{
	uint32_t self = (uint32_t)syscall(SYS_gettid), i;
	int saved = errno;

	is_self = 1;
	for (i = 0; i < OURS_MOST; i++) {
		uint32_t was = load_relaxed(&our_tids[i]);

		if (gone(was) && cas_acq_rel(&our_tids[i], &was, self))
			break;
	}
	errno = saved;
}

void weft__ours_forked(void)
{
	for (uint32_t i = 0; i < OURS_MOST; i++)
		store_relaxed(&our_tids[i], 0u);
}

uint32_t weft__ours(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < OURS_MOST; i++)
		n += !gone(load_relaxed(&our_tids[i]));
	return n;
}

int weft__ours_is_self(void)
{
	return is_self;
}

/* A directory has a link for each directory in it, and two more. */
int weft__others(void)
{
	struct stat task;
	uint32_t n, again = weft__ours();

	do { /* one of ours may end or begin meanwhile */
		n = again;
		if (stat("/proc/self/task", &task) < 0 || task.st_nlink < 2 + n)
			return -1;
		again = weft__ours();
	} while (again != n);
	return (int)(task.st_nlink - 2 - n);
}

/* The thread library tells the kernel where each thread keeps its list of locks, and the kernel forgets it when the
 * thread ends. */
int weft__first_lives(void)
{
	void *list = NULL;
	size_t bytes = 0;

	return syscall(SYS_get_robust_list, getpid(), &list, &bytes) == 0 && list;
}

/* The fields behind the name of the first thread; NULL: not known. */
static const char *first_stat(char *text, size_t bytes)
{
	char path[64], *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, bytes - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	end = strrchr(text, ')'); /* the name may have one, too; the numbers behind it have none */
	return end && end[1] ? end + 2 : NULL;
}

int weft__first_ended(void)
{
	char text[1024];
	const char *state = first_stat(text, sizeof(text));

	return state && (*state == 'Z' || *state == 'X');
}

/* The last field, as wait has it. */
int weft__first_code(void)
{
	char text[1024];
	const char *fields = first_stat(text, sizeof(text)), *last = fields ? strrchr(fields, ' ') : NULL;

	return last ? (int)(strtoul(last, NULL, 10) >> 8 & 0xff) : 0;
}
