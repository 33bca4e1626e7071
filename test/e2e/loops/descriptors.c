/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks that wait for descriptors of all kinds, until a thread gives them what they wait for. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "truth.h"

static char directory[] = "/tmp/weft-descriptors-XXXXXX";
static char wanted[4096];
static int giving = -1, locked = -1;

static void expect(const char *call, const char *text)
{
	size_t n = strlen(wanted);

	snprintf(wanted + n, sizeof(wanted) - n, "%s[\"%s\", \"%s\"]", n ? ", " : "", call, text);
}

static void *give(void *data)
{
	uint64_t one = 1;

	nap(8 * MS);
	if (locked >= 0)
		flock(locked, LOCK_UN);
	else
		(void)!write(giving, &one, sizeof(one));
	return data;
}

/* Somebody writes to FD while WHAT waits. */
#define GIVEN(fd, what)                                                                                                \
	do {                                                                                                           \
		pthread_t thread;                                                                                      \
		giving = (fd);                                                                                         \
		pthread_create(&thread, NULL, give, NULL);                                                             \
		what;                                                                                                  \
		pthread_join(thread, NULL);                                                                            \
	} while (0)

static void from_pipe(void)
{
	uint64_t word;
	int ends[2];

	if (pipe(ends) < 0)
		fail("pipe");
	GIVEN(ends[1], (void)!read(ends[0], &word, sizeof(word)));
	expect("read", "pipe");
}

static void from_eventfd(void)
{
	int fd = eventfd(0, 0);
	uint64_t word;

	GIVEN(fd, (void)!read(fd, &word, sizeof(word)));
	expect("read", "eventfd");
}

static int listens(int domain, struct sockaddr *at, socklen_t *bytes, int backlog)
{
	int fd = socket(domain, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, at, *bytes) < 0 || listen(fd, backlog) < 0 || getsockname(fd, at, bytes) < 0)
		fail("listen");
	return fd;
}

static void from_tcp(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);
	int server = listens(AF_INET, (struct sockaddr *)&at, &bytes, 8), fd = socket(AF_INET, SOCK_STREAM, 0), peer;
	uint64_t word;
	char text[64];

	if (connect(fd, (struct sockaddr *)&at, bytes) < 0 || (peer = accept(server, NULL, NULL)) < 0)
		fail("connect");
	GIVEN(peer, recv(fd, &word, sizeof(word), 0));
	snprintf(text, sizeof(text), "tcp 127.0.0.1:%d", ntohs(at.sin_port));
	expect("recv", text);
}

/* More connections than anybody takes: the next one is not made. */
static void to_nobody(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval soon = {0, 20000};
	socklen_t bytes = sizeof(at);
	char text[64];
	int i, fd;

	listens(AF_INET, (struct sockaddr *)&at, &bytes, 0);
	for (i = 0; i < 4; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
		if (connect(fd, (struct sockaddr *)&at, bytes) < 0)
			break;
	}
	snprintf(text, sizeof(text), "tcp 127.0.0.1:%d", ntohs(at.sin_port));
	if (i < 4)
		expect("connect", text);
}

static void from_unix(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(at);
	int server, fd = socket(AF_UNIX, SOCK_STREAM, 0), peer;
	uint64_t word;
	char text[200];

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", directory);
	server = listens(AF_UNIX, (struct sockaddr *)&at, &bytes, 8);
	if (connect(fd, (struct sockaddr *)&at, bytes) < 0 || (peer = accept(server, NULL, NULL)) < 0)
		fail("connect");
	GIVEN(peer, recv(fd, &word, sizeof(word), 0));
	snprintf(text, sizeof(text), "unix socket %s", at.sun_path);
	expect("recv", text);
	unlink(at.sun_path);
}

static void for_file(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/file", directory);
	locked = open(path, O_RDWR | O_CREAT, 0600);
	fd = open(path, O_RDWR);
	if (flock(locked, LOCK_EX) < 0)
		fail("flock");
	GIVEN(-1, flock(fd, LOCK_EX));
	locked = -1;
	expect("flock", path);
	unlink(path);
}

static void for_epoll(void)
{
	struct epoll_event ev;

	epoll_wait(epoll_create1(0), &ev, 1, 8);
	expect("epoll_wait", "epoll");
}

int main(void)
{
	static void (*const all[])(void) = {from_pipe, from_eventfd, from_tcp, to_nobody,
					    from_unix, for_file,     for_epoll};
	int n = sizeof(all) / sizeof(all[0]), ep = epoll_create1(0);
	struct epoll_event ev;

	if (!mkdtemp(directory))
		fail("mkdtemp");
	for (ticks = 0; ticks < n + 3; ticks++) {
		epoll_wait(ep, &ev, 1, 1);
		if (ticks >= 2 && ticks < n + 2)
			all[ticks - 2]();
	}
	rmdir(directory);
	printf("{\"loop\": \"epoll_wait loop\", \"ticks\": %d, \"over\": 0, \"blocks\": [], \"slow\": 1, "
	       "\"descriptors\": "
	       "[%s]}\n",
	       ticks, wanted);
	return 0;
}
