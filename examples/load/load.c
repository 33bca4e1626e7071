/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const uint64_t drain_ns = UINT64_C(5000000000); /* how long the last answers may take */

static uint64_t mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int client_open(struct load *load, struct client *client)
{
	const int one = 1;
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)load->port)};
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = client};

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, client->fd, &event) < 0)
		return -errno;
	load->n_open++;
	return 0;
}

static void client_close(struct load *load, struct client *client)
{
	if (client->fd < 0)
		return;
	close(client->fd);
	client->fd = -1;
	load->n_open--;
	load->n_lost += client->n_sent - client->n_answered;
}

static uint64_t under_way(const struct client *client)
{
	return client->n_sent - client->n_answered;
}

static bool may_send(const struct load *load, uint64_t now)
{
	return load->traffic.n_requests < load->max_requests && now < load->begin_ns + load->max_ns;
}

/* Puts the next request into the client's buffer, which has room for all that may be under way. */
static void client_put(struct load *load, struct client *client, uint64_t since_ns)
{
	if (client->out_end + REQUEST_MAX_BYTES > OUT_BYTES) {
		memmove(client->out, client->out + client->out_begin, client->out_end - client->out_begin);
		client->out_end -= client->out_begin;
		client->out_begin = 0;
	}
	client->out_end += (uint32_t)traffic_next(&load->traffic, client->out + client->out_end);
	client->since_ns[client->n_sent++ % UNDER_WAY_MAX] = since_ns;
	if (!client->dirty) {
		client->dirty = true;
		load->dirty[load->n_dirty++] = client;
	}
}

static void client_flush(struct load *load, struct client *client)
{
	while (client->fd >= 0 && client->out_begin < client->out_end) {
		ssize_t n = send(client->fd, client->out + client->out_begin, client->out_end - client->out_begin,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			if (errno != EAGAIN)
				client_close(load, client);
			return;
		}
		client->out_begin += (uint32_t)n;
	}
	client->out_begin = client->out_end = 0;
}

static void flush_dirty(struct load *load)
{
	while (load->n_dirty) {
		struct client *client = load->dirty[--load->n_dirty];

		client->dirty = false;
		client_flush(load, client);
	}
}

/* Windows begin at multiples of WINDOW_NS on CLOCK_MONOTONIC, which is the same for every program of the machine. */
static void log_window(struct load *load, uint64_t now)
{
	if (load->window.count) {
		fprintf(load->log,
			"{\"begin_ns\": %llu, \"end_ns\": %llu, \"latency\": ", (unsigned long long)load->window_ns,
			(unsigned long long)load->window_ns + WINDOW_NS);
		hist_write(&load->window, load->log);
		fputs("}\n", load->log);
		memset(&load->window, 0, sizeof(load->window));
	}
	load->window_ns = now - now % WINDOW_NS;
}

static void add_latency(struct load *load, uint64_t since_ns, uint64_t now)
{
	hist_add(&load->latency, now - since_ns);
	if (!load->log)
		return;
	if (now >= load->window_ns + WINDOW_NS)
		log_window(load, now);
	hist_add(&load->window, now - since_ns);
}

/* Counts the answers in what was received. Returns false when there is one too many. */
static bool count_answers(struct load *load, struct client *client, const char *bytes, size_t n_bytes, uint64_t now)
{
	const char *end = bytes + n_bytes;

	while (bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		const char *stop = newline ? newline : end;
		const char *p;

		for (p = bytes; p < stop && client->line_bytes < sizeof(client->line_start); p++)
			client->line_start[client->line_bytes++] = *p;
		if (!newline)
			return true;
		if (!under_way(client))
			return false;
		if (client->line_bytes == 4 && memcmp(client->line_start, "ERR ", 4) == 0)
			load->n_errors++;
		add_latency(load, client->since_ns[client->n_answered++ % UNDER_WAY_MAX], now);
		load->n_answered++;
		client->line_bytes = 0;
		bytes = newline + 1;
	}
	return true;
}

static void client_receive(struct load *load, struct client *client, uint32_t events)
{
	static char buffer[65536];
	ssize_t n;

	while (client->fd >= 0) {
		n = recv(client->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0 || !count_answers(load, client, buffer, (size_t)n, mono_ns())) {
			client_close(load, client);
			return;
		}
		if (n < (ssize_t)sizeof(buffer) && !(events & EPOLLRDHUP))
			return;
	}
}

static void refill(struct load *load, struct client *client, uint64_t now)
{
	while (client->fd >= 0 && under_way(client) < load->pipeline && may_send(load, now))
		client_put(load, client, now);
}

static uint64_t due_ns(const struct load *load)
{
	uint64_t n = load->traffic.n_requests;

	return load->begin_ns + n / load->rate * 1000000000u + n % load->rate * 1000000000u / load->rate;
}

/* A client that may take one more request, in turn; NULL when all have as many as they may. */
static struct client *free_client(struct load *load)
{
	uint32_t i;

	for (i = 0; i < load->n_connections; i++) {
		struct client *client = &load->clients[load->next_client];

		load->next_client = (load->next_client + 1) % load->n_connections;
		if (client->fd >= 0 && under_way(client) < UNDER_WAY_MAX)
			return client;
	}
	return NULL;
}

static void send_due(struct load *load, uint64_t now)
{
	struct client *client;

	while (may_send(load, now) && due_ns(load) <= now && (client = free_client(load)))
		client_put(load, client, due_ns(load));
}

/* How long to wait for answers: until the next request is due, if one will be. */
static struct timespec patience(const struct load *load, uint64_t now, uint64_t give_up_ns)
{
	uint64_t until = give_up_ns;
	uint64_t wait_ns;

	if (load->rate && may_send(load, now) && due_ns(load) < until)
		until = due_ns(load) > now ? due_ns(load) : now + 100000; /* due, but all are busy */
	wait_ns = until > now ? until - now : 0;
	return (struct timespec){(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
}

static void run(struct load *load)
{
	enum { EVENTS_MAX = 128 };
	const uint64_t give_up_ns = load->begin_ns + load->max_ns + drain_ns;
	uint64_t now = load->begin_ns;
	uint32_t i;

	for (i = 0; i < load->n_connections && !load->rate; i++)
		refill(load, &load->clients[i], now);
	for (;;) {
		struct epoll_event events[EVENTS_MAX];
		struct timespec timeout;
		int n;
		int k;

		if (load->rate)
			send_due(load, now);
		flush_dirty(load);
		if (!load->n_open || now >= give_up_ns ||
		    (!may_send(load, now) && load->traffic.n_requests == load->n_answered + load->n_lost))
			break;
		timeout = patience(load, now, give_up_ns);
		n = epoll_pwait2(load->epoll_fd, events, EVENTS_MAX, &timeout, NULL);
		now = mono_ns();
		for (k = 0; k < n; k++) {
			struct client *client = events[k].data.ptr;

			client_receive(load, client, events[k].events);
			client_flush(load, client);
			if (!load->rate)
				refill(load, client, now);
		}
	}
}

int load_run(struct load *load)
{
	uint32_t i;
	int err = 0;

	load->clients = calloc(load->n_connections, sizeof(*load->clients));
	load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!load->clients || load->epoll_fd < 0)
		err = -ENOMEM;
	prctl(PR_SET_TIMERSLACK, 1000); /* requests are due to the microsecond */
	for (i = 0; i < load->n_connections && err == 0; i++)
		err = client_open(load, &load->clients[i]);
	load->n_connections = i;
	if (err == 0) {
		load->begin_ns = mono_ns();
		run(load);
		load->end_ns = mono_ns();
		if (load->log)
			log_window(load, load->end_ns);
	}
	for (i = 0; i < load->n_connections; i++)
		client_close(load, &load->clients[i]);
	if (load->epoll_fd >= 0)
		close(load->epoll_fd);
	free(load->clients);
	return err;
}
