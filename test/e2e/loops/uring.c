/* SPDX-License-Identifier: Apache-2.0 */
/* A loop that waits for an io_uring, by the functions of liburing or by the system call. */
#include <liburing.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "truth.h"

/* Where uring.c of the preloaded library reads the descriptor. */
_Static_assert(offsetof(struct io_uring, ring_fd) == 196, "of all versions");

static struct io_uring ring, other;

static void timeout(struct io_uring *of, struct __kernel_timespec *time)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(of);

	io_uring_prep_timeout(sqe, time, 0, 0);
}

static void done(struct io_uring *of)
{
	struct io_uring_cqe *cqe;

	while (io_uring_peek_cqe(of, &cqe) == 0)
		io_uring_cqe_seen(of, cqe);
}

static void nested(void)
{
	struct __kernel_timespec time = {0, 20 * MS};
	struct io_uring_cqe *cqe;

	timeout(&other, &time);
	io_uring_submit(&other);
	io_uring_wait_cqe(&other, &cqe);
	done(&other);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "wait_cqe";
	struct __kernel_timespec time = {0, 2 * MS}, long_time = {1, 0};
	struct io_uring_cqe *cqe;

	if (io_uring_queue_init(8, &ring, 0) < 0 || io_uring_queue_init(8, &other, 0) < 0) {
		puts("{\"skip\": \"no io_uring here\"}");
		return 0;
	}
	for (ticks = 0; ticks < 20;) {
		timeout(&ring, &time);
		if (!strcmp(mode, "submit_and_wait")) {
			io_uring_submit_and_wait(&ring, 1);
		} else if (!strcmp(mode, "raw")) {
			io_uring_submit(&ring);
			syscall(SYS_io_uring_enter, ring.ring_fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
		} else if (!strcmp(mode, "timeout")) {
			io_uring_submit(&ring);
			io_uring_wait_cqe_timeout(&ring, &cqe, &long_time);
		} else {
			io_uring_submit(&ring);
			io_uring_wait_cqe(&ring, &cqe);
		}
		done(&ring);
		ticks++;
		if (ticks == 8 || ticks == 12)
			BLOCKED("io_uring_wait_cqe", nested());
	}
#ifndef UNSEEN
	io_uring_queue_exit(&ring);
#endif
	over = mono();
	nap(60 * MS);
#ifdef UNSEEN
	puts("{\"loop\": \"\", \"note\": \"the program has an io_uring\"}");
#else
	tell("io_uring loop");
#endif
	return 0;
}
