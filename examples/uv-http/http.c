/* SPDX-License-Identifier: Apache-2.0 */
#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uv_tcp_t listener;

struct answer {
	uv_write_t req;
	char text[256];
};

static void on_answered(uv_write_t *req, int status)
{
	(void)status;
	free(req);
}

void http_answer(struct connection *c, const char *body)
{
	struct answer *answer = malloc(sizeof(*answer));
	uv_buf_t buf;
	int n;

	if (!answer)
		return;
	n = snprintf(answer->text, sizeof(answer->text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		     strlen(body), body);
	buf = uv_buf_init(answer->text, (unsigned int)n);
	if (uv_write(&answer->req, (uv_stream_t *)&c->tcp, &buf, 1, on_answered) < 0)
		free(answer);
}

static void on_closed(uv_handle_t *handle)
{
	struct connection *c = (struct connection *)handle;

	c->closed = 1;
	if (!c->busy)
		free(c);
}

/* Requests that are there as a whole, until one has to wait. */
static void handle_requests(struct connection *c)
{
	char path[64], *end;
	size_t n;

	while (!c->busy && (end = memmem(c->in, c->n, "\r\n\r\n", 4))) {
		*end = 0;
		if (sscanf(c->in, "GET %63s", path) != 1)
			strcpy(path, "/");
		n = (size_t)(end + 4 - c->in);
		c->n -= n;
		memmove(c->in, c->in + n, c->n);
		request_handle(c, path);
	}
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	struct connection *c = (struct connection *)handle;

	(void)wanted;
	*buf = uv_buf_init(c->in + c->n, (unsigned int)(sizeof(c->in) - c->n));
}

static void on_data(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct connection *c = (struct connection *)stream;

	(void)buf;
	if (n < 0) {
		uv_close((uv_handle_t *)stream, on_closed);
		return;
	}
	c->n += (size_t)n;
	handle_requests(c);
}

static void on_client(uv_stream_t *server, int status)
{
	struct connection *c = status < 0 ? NULL : calloc(1, sizeof(*c));

	if (!c)
		return;
	uv_tcp_init(server->loop, &c->tcp);
	if (uv_accept(server, (uv_stream_t *)&c->tcp) < 0) {
		uv_close((uv_handle_t *)&c->tcp, on_closed);
		return;
	}
	uv_tcp_nodelay(&c->tcp, 1);
	uv_read_start((uv_stream_t *)&c->tcp, give_room, on_data);
}

int http_listen(uv_loop_t *loop, int port)
{
	struct sockaddr_in address;
	int n = sizeof(address), rc;

	uv_ip4_addr("127.0.0.1", port, &address);
	uv_tcp_init(loop, &listener);
	rc = uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0);
	if (rc == 0)
		rc = uv_listen((uv_stream_t *)&listener, 128, on_client);
	if (rc == 0)
		rc = uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &n);
	return rc < 0 ? rc : ntohs(address.sin_port);
}

void http_close(void)
{
	uv_close((uv_handle_t *)&listener, NULL);
}
