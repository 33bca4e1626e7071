/* SPDX-License-Identifier: Apache-2.0 */
/* HOT because of the variables. */
#include "base/private_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/late.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif

uint32_t weft__late_tid;
int weft__private_fds_wanted;
__thread int weft__private_fds __attribute__((tls_model("initial-exec")));

/* The kernel copies what is below the range only, so that no file of the program stays open because of it. Those
 * below `keep` are copied and closed again: the starter waits for that. */
int weft__private_fds_begin(int keep)
{
	unsigned first = keep > STDERR_FILENO ? (unsigned)keep + 1 : STDERR_FILENO + 1;
	long nowhere;

	if (syscall(SYS_close_range, first, UINT_MAX, CLOSE_RANGE_UNSHARE) < 0)
		return -errno;
	weft__private_fds = 1;
	syscall(SYS_unshare, CLONE_FS); /* a program that goes to live in another root leaves us where our files are */
	if (first > STDERR_FILENO + 2)
		syscall(SYS_close_range, STDERR_FILENO + 1, first - 2, 0);
	nowhere = syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC);
	for (int fd = 0; fd <= STDERR_FILENO && nowhere >= 0; fd++)
		if (fd != keep && fd != nowhere)
			syscall(SYS_dup3, nowhere, fd, O_CLOEXEC);
	if (nowhere > STDERR_FILENO)
		syscall(SYS_close, nowhere);
	return 0;
}

void weft__private_fds_end(void)
{
	if (weft__private_fds)
		syscall(SYS_close_range, 0, UINT_MAX, 0);
}
