/* SPDX-License-Identifier: Apache-2.0 */
/* Where a worker meets epoll: waiting for file descriptors and for other workers. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weft/weft.h>

#include "runtime.h"

enum { EVENTS_MAX = 128 };

int io_init(struct worker *worker)
{
	/* Edge-triggered, and never read: each write to an eventfd is an edge of its own. */
	struct epoll_event bell = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};

	worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	worker->bell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (worker->epoll_fd < 0 || worker->bell_fd < 0 ||
	    epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->bell_fd, &bell) < 0)
		return -errno;
	return 0;
}

void io_fini(struct worker *worker)
{
	if (worker->epoll_fd >= 0)
		close(worker->epoll_fd);
	if (worker->bell_fd >= 0)
		close(worker->bell_fd);
	worker->epoll_fd = worker->bell_fd = -1;
}

int io_add(struct worker *worker, int fd, struct task *task)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = task};

	return epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void wake_ready(const struct epoll_event *events, int n, uint64_t now)
{
	int i;

	for (i = 0; i < n; i++) {
		struct task *task = events[i].data.ptr;

		if (!task)
			continue;
		task->io_ready |= events[i].events;
		task_wake_at(task, now);
	}
}

uint64_t io_check(struct worker *worker)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(worker->epoll_fd, events, EVENTS_MAX, 0);
	uint64_t now = weft_now_ticks();

	wake_ready(events, n, now);
	return now;
}

/* `asleep` is set before the queues are looked at for the last time, and those who fill the queues look at `asleep`
 * after that: one of the two sees the other. */
uint64_t io_wait(struct worker *worker, uint64_t now)
{
	struct runtime *rt = worker->runtime;
	struct epoll_event events[EVENTS_MAX];
	int n;

	atomic_store(&worker->asleep, true);
	if (atomic_load(&worker->inbox) || atomic_load(&rt->global_len) || atomic_load(&rt->stopping)) {
		atomic_store(&worker->asleep, false);
		return weft_now_ticks();
	}
	weft_park_at(worker->local.len, now);
	n = epoll_wait(worker->epoll_fd, events, EVENTS_MAX, -1);
	now = weft_now_ticks();
	weft_unpark_at(worker->local.len, now);
	atomic_store(&worker->asleep, false);
	wake_ready(events, n, now);
	return now;
}

void worker_ring(struct worker *worker)
{
	const uint64_t one = 1;
	ssize_t written;

	if (!atomic_exchange(&worker->asleep, false))
		return;
	written = write(worker->bell_fd, &one, sizeof(one));
	(void)written; /* fails only when the counter is at 2^64 - 2 */
}
