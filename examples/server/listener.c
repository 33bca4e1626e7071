/* SPDX-License-Identifier: Apache-2.0 */
/* The task that accepts connections and deals them out to the workers in turn. */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft/weft.h>

#include "server.h"

struct listener {
	struct task task;
	struct server *server;
	int fd;
	bool watched;
};

static void listener_drop(struct task *task)
{
	struct listener *listener = (struct listener *)task;

	close(listener->fd);
	free(listener);
}

static void admit(struct server *server, int fd)
{
	const int one = 1;
	struct runtime *rt = &server->runtime;
	struct worker *home;

	if (atomic_fetch_add(&server->connections, 1) >= server->max_connections)
		goto refuse;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	home = &rt->workers[atomic_fetch_add(&server->accepted, 1) % rt->n_workers];
	if (connection_open(server, fd, home) == 0)
		return;
refuse:
	atomic_fetch_sub(&server->connections, 1);
	close(fd);
}

static enum task_status accept_connections(struct task *task, struct worker *worker)
{
	struct listener *listener = (struct listener *)task;

	if (!listener->watched) {
		listener->watched = true;
		return io_add(worker, listener->fd, task) < 0 ? TASK_DONE : TASK_WAITING;
	}
	for (;;) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			admit(listener->server, fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			return TASK_WAITING;
	}
}

static int listen_on(uint32_t port)
{
	const int one = 1;
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(fd, 512) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int listener_open(struct server *server, uint32_t port)
{
	struct sockaddr_in addr = {0};
	socklen_t addr_bytes = sizeof(addr);
	struct listener *listener;
	int fd = listen_on(port);

	if (fd < 0)
		return fd;
	listener = calloc(1, sizeof(*listener));
	if (!listener) {
		close(fd);
		return -ENOMEM;
	}
	getsockname(fd, (struct sockaddr *)&addr, &addr_bytes);
	server->port = ntohs(addr.sin_port);
	listener->server = server;
	listener->fd = fd;
	listener->task.poll = accept_connections;
	listener->task.drop = listener_drop;
	atomic_init(&listener->task.refs, 1);
	task_spawn(&server->runtime, &listener->task, &server->runtime.workers[0], WEFT_HERE("accept_connections"));
	return 0;
}
