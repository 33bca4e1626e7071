/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks in calls that mostly copy, with somebody at the other end who takes it all at once. */
/* run: pipe_fast_reader pipe */
/* run: socketpair_send send */
/* run: sendfile_cached sendfile */
/* run: copy_file_range_cached copy_file_range */
/* run: open_close open */
/* run: dev_zero_read zero */
#include "truth.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

enum { PIECE = 1 << 20, PIECES = 16 };

static char data[PIECE], sink[PIECE];

static void *reader(void *arg)
{
	while (read(*(int *)arg, sink, sizeof(sink)) > 0)
		;
	return NULL;
}

static int whole(const char *how, int fd)
{
	int done = 0, n;

	while (done < PIECE) {
		n = (int)(*how == 's' ? send(fd, data, PIECE, 0) : write(fd, data, PIECE));
		if (n <= 0)
			return -1;
		done += n;
	}
	return 0;
}

static int work(const char *how, int from, int to)
{
	off_t at = 0;
	loff_t in = 0, out = 0;
	int i;

	if (!strcmp(how, "sendfile"))
		return sendfile(to, from, &at, PIECE) == PIECE ? 0 : -1;
	if (!strcmp(how, "copy_file_range"))
		return copy_file_range(from, &in, to, &out, PIECE, 0) > 0 ? 0 : -1;
	if (!strcmp(how, "zero"))
		return read(from, data, PIECE) == PIECE ? 0 : -1;
	for (i = 0; !strcmp(how, "open") && i < 200; i++)
		close(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
	return !strcmp(how, "open") ? 0 : whole(how, to);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "pipe";
	int loop = truth_loop(), tick, i, pair[2] = {-1, -1};
	pthread_t thread;

	if (!strcmp(how, "zero"))
		pair[0] = open("/dev/zero", O_RDONLY);
	else if (!strcmp(how, "pipe") ? pipe(pair) : socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 1;
	if (!strcmp(how, "sendfile") || !strcmp(how, "copy_file_range")) {
		pair[0] = memfd_create("from", 0);
		pair[1] = memfd_create("to", 0);
		whole("write", pair[0]);
	}
	if (!strcmp(how, "pipe") || !strcmp(how, "send"))
		pthread_create(&thread, NULL, reader, &pair[0]);
	for (tick = 0; tick < 8; tick++) {
		truth_next(loop);
		if (!strcmp(how, "sendfile"))
			lseek(pair[1], 0, SEEK_SET);
		struct truth_poll *poll = truth_begin(how);
		for (i = 0; i < PIECES; i++)
			if (work(how, pair[0], pair[1]) < 0)
				truth_skip("the call does not work here");
		truth_end(poll);
	}
	truth_next(loop);
	truth_print();
	return 0;
}
