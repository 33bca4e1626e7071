/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks of page faults: of new memory and of a file in the page cache, which are CPU time, and of a file that has to
 * be read from disk, where the thread blocks in no call. */
/* run: fault_minor anonymous */
/* run: fault_cached cached */
/* run: fault_major disk */
#include "truth.h"
#include <sys/mman.h>
#include <sys/resource.h>

enum { SIZE = 16 << 20 };

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "anonymous";
	int loop = truth_loop(), fd = -1, tick, at, sum = 0;
	char path[] = "weft-truth-XXXXXX", *data = calloc(1, SIZE), *map;
	struct rusage usage;

	if (strcmp(how, "anonymous")) {
		fd = mkstemp(path);
		unlink(path);
		if (write(fd, data, SIZE) != SIZE || fsync(fd))
			truth_skip("no room for 16 MB here");
	}
	for (tick = 0; tick < 6; tick++) {
		if (!strcmp(how, "disk"))
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		truth_next(loop);
		struct truth_poll *poll = truth_begin(how);
		map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE, fd,
			   0);
		if (!strcmp(how, "disk"))
			madvise(map, SIZE, MADV_RANDOM);
		for (at = 0; at < SIZE; at += !strcmp(how, "disk") ? 65536 : 4096)
			sum += fd < 0 ? (map[at] = 1) : map[at];
		truth_end(poll);
		truth_next(loop);
		munmap(map, SIZE);
	}
	truth_next(loop);
	getrusage(RUSAGE_SELF, &usage);
	if (!strcmp(how, "disk") && usage.ru_majflt < 10)
		truth_skip("a file whose pages were given up is not read from disk here");
	truth_print();
	return sum == -1;
}
