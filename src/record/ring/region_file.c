/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "record/ring/region.h"
#include "record/ring/ring.h"

int weft__file_lock(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	/* Of the open file, not of the process: it conflicts within a process too, and a stray close cannot drop it. */
	return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -WEFT_E_BUSY;
}

void weft__region_reopen(struct weft__region *region)
{
	int fd;

	if (region->file.fd < 0 || !region->path[0] || weft__own_is(&region->file.own, region->file.fd))
		return;
	fd = open(region->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (weft__own_is(&region->file.own, fd) && !weft__file_lock(fd)) {
		region->file.fd = fd; /* emitting threads find out for themselves, by the number that they have */
		return;
	}
	if (fd >= 0)
		close(fd);
}
