/* SPDX-License-Identifier: Apache-2.0 */
/* A connection: one task that reads requests, answers the simple ones itself and hands the others to jobs, one at a
 * time. It allocates nothing per request and reads and writes as many requests at once as there are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft/weft.h>

#include "server.h"

enum {
	IN_BYTES = 16384,
	OUT_BYTES = 16384,
	READS_PER_POLL = 8, /* then others have their turn */
};

struct connection {
	struct task task;
	struct server *server;
	struct job *job; /* the request that the connection waits for */
	int fd;
	bool watched;      /* in the epoll of its worker */
	bool hangup;       /* answer what there is, then close */
	uint32_t in_begin; /* bytes in[in_begin..in_end) are not yet served */
	uint32_t in_end;
	uint32_t out_begin;
	uint32_t out_end;
	char in[IN_BYTES];
	char out[OUT_BYTES];
};

static struct connection *connection_of(struct task *task)
{
	return (struct connection *)task;
}

static void connection_drop(struct task *task)
{
	struct connection *conn = connection_of(task);

	if (conn->fd >= 0)
		close(conn->fd);
	free(conn);
}

/* Here and not in drop, which may run on another worker while epoll still names this task. */
static enum task_status connection_close(struct connection *conn)
{
	close(conn->fd);
	conn->fd = -1;
	atomic_fetch_sub(&conn->server->connections, 1);
	return TASK_DONE;
}

static void answer(struct connection *conn, const char *text, size_t n_bytes)
{
	memcpy(conn->out + conn->out_end, text, n_bytes);
	conn->out_end += (uint32_t)n_bytes;
}

static void answer_error(struct connection *conn, const char *why)
{
	answer(conn, "ERR ", 4);
	answer(conn, why, strlen(why));
	answer(conn, "\n", 1);
}

static bool has_room(const struct connection *conn)
{
	return OUT_BYTES - conn->out_end >= ANSWER_MAX_BYTES;
}

static bool is_command(const char *line, size_t n_bytes, const char *command, size_t command_bytes)
{
	return n_bytes > command_bytes && memcmp(line, command, command_bytes) == 0 && line[command_bytes] == ' ';
}

static void serve_job(struct connection *conn, struct worker *worker, const char *line, size_t n_bytes)
{
	static const struct {
		const char *command;
		enum route route;
	} routes[] = {{"GET", ROUTE_GET}, {"COMPUTE", ROUTE_COMPUTE}, {"SLEEP", ROUTE_SLEEP}, {"LOCK", ROUTE_LOCK}};
	const char *why = "unknown command";
	size_t i;

	for (i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		size_t skip = strlen(routes[i].command);

		if (!is_command(line, n_bytes, routes[i].command, skip))
			continue;
		conn->job = job_start(conn->server, &conn->task, worker, routes[i].route, line + skip + 1,
				      n_bytes - skip - 1, &why);
		break;
	}
	if (!conn->job)
		answer_error(conn, why);
}

static void serve_line(struct connection *conn, struct worker *worker, const char *line, size_t n_bytes)
{
	if (n_bytes && line[n_bytes - 1] == '\r')
		n_bytes--;
	atomic_store_explicit(&worker->requests, atomic_load_explicit(&worker->requests, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (is_command(line, n_bytes, "PING", 4)) {
		answer(conn, "PONG", 4);
		answer(conn, line + 4, n_bytes - 4);
		answer(conn, "\n", 1);
	} else if (is_command(line, n_bytes, "ECHO", 4)) {
		answer(conn, line + 5, n_bytes - 5);
		answer(conn, "\n", 1);
	} else {
		serve_job(conn, worker, line, n_bytes);
	}
}

/* Serves whole lines until there is none, a job has begun, or the answers may not fit any more. Returns whether it
 * stopped for lack of a line, so that reading is what helps. */
static bool serve_lines(struct connection *conn, struct worker *worker)
{
	while (!conn->job && !conn->hangup && has_room(conn)) {
		const char *line = conn->in + conn->in_begin;
		size_t n_bytes = conn->in_end - conn->in_begin;
		const char *end = memchr(line, '\n', n_bytes);

		if (end)
			n_bytes = (size_t)(end - line);
		if (n_bytes > LINE_MAX_BYTES) {
			answer_error(conn, "line is longer than 1024 bytes");
			conn->hangup = true;
			return false;
		}
		if (!end)
			return true;
		serve_line(conn, worker, line, n_bytes);
		conn->in_begin += (uint32_t)n_bytes + 1;
	}
	return false;
}

/* Returns 1 when all is written, 0 when the socket is full (epoll wakes the task when it is not), or -1. */
static int flush(struct connection *conn)
{
	while (conn->out_begin < conn->out_end) {
		ssize_t n = send(conn->fd, conn->out + conn->out_begin, conn->out_end - conn->out_begin, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		conn->out_begin += (uint32_t)n;
	}
	conn->out_begin = conn->out_end = 0;
	return 1;
}

/* Returns 1 when something was read, 0 when there is nothing now, or -1 at the end of the stream. A read that does not
 * fill the buffer has emptied the socket; only after a hang-up, which makes no other edge, must the end be read too. */
static int fill(struct connection *conn)
{
	ssize_t n;
	size_t room;

	if (!(conn->task.io_ready & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		return 0;
	memmove(conn->in, conn->in + conn->in_begin, conn->in_end - conn->in_begin);
	conn->in_end -= conn->in_begin;
	conn->in_begin = 0;
	room = IN_BYTES - conn->in_end;
	do
		n = recv(conn->fd, conn->in + conn->in_end, room, 0);
	while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		return -1;
	if (n < (ssize_t)room)
		conn->task.io_ready &= ~(uint32_t)EPOLLIN;
	if (n < 0)
		return 0;
	conn->in_end += (uint32_t)n;
	return 1;
}

static void finish_job(struct connection *conn)
{
	conn->out_end += (uint32_t)job_answer(conn->job, conn->out + conn->out_end);
	task_unref(&conn->job->task);
	conn->job = NULL;
}

static enum task_status serve_connection(struct task *task, struct worker *worker)
{
	struct connection *conn = connection_of(task);
	uint32_t reads = 0;

	if (!conn->watched) {
		/* The first readiness comes as an edge, like all others. */
		conn->watched = true;
		return io_add(worker, conn->fd, task) < 0 ? connection_close(conn) : TASK_WAITING;
	}
	if (conn->job) {
		if (!atomic_load(&conn->job->done))
			return TASK_WAITING;
		finish_job(conn);
	}
	for (;;) {
		bool starved = serve_lines(conn, worker);
		int flushed = flush(conn);
		int filled;

		if (conn->job || flushed == 0)
			return TASK_WAITING;
		if (flushed < 0 || conn->hangup)
			return connection_close(conn);
		if (!starved)
			continue;
		filled = fill(conn);
		if (filled < 0)
			return connection_close(conn);
		if (filled == 0)
			return TASK_WAITING;
		if (++reads == READS_PER_POLL) {
			task_wake(task);
			return TASK_WAITING;
		}
	}
}

int connection_open(struct server *server, int fd, struct worker *home)
{
	struct connection *conn = malloc(sizeof(*conn));

	if (!conn)
		return -ENOMEM;
	memset(conn, 0, offsetof(struct connection, in));
	conn->server = server;
	conn->fd = fd;
	conn->task.poll = serve_connection;
	conn->task.drop = connection_drop;
	atomic_init(&conn->task.refs, 1);
	task_spawn(&server->runtime, &conn->task, home, WEFT_HERE("serve_connection"));
	return 0;
}
