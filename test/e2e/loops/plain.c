/* SPDX-License-Identifier: Apache-2.0 */
/* Loops as programs write them, with waits of all kinds inside their ticks. */
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "truth.h"

#define TICKS 24

static int quiet[2]; /* a pipe that nobody writes to */

static int epoll_of(int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (ep < 0 || (fd >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0))
		fail("epoll");
	return ep;
}

__attribute__((noinline)) static void wait_epoll(int ep, int ms)
{
	struct epoll_event ev;

	epoll_wait(ep, &ev, 1, ms);
}

__attribute__((noinline)) static void wait_poll(int fd, int ms)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	poll(&one, 1, ms);
}

__attribute__((noinline)) static void wait_select(int fd, int ms)
{
	struct timeval time = {0, ms * 1000};
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	select(fd + 1, &in, NULL, NULL, &time);
}

/* A whole loop in a tick, with a descriptor of its own that is new each time. */
static void nested_loop(void)
{
	int ep = epoll_of(quiet[0]), i;

	for (i = 0; i < 30; i++)
		wait_epoll(ep, 1);
	close(ep);
}

static void block_in(int tick)
{
	static int other = -1;
	struct timeval nothing = {0, 12000};

	if (other < 0)
		other = epoll_of(quiet[0]);
	if (tick == 4 || tick == 20)
		BLOCKED("epoll_wait", wait_epoll(other, 15));
	else if (tick == 6 || tick == 18)
		BLOCKED("epoll_wait", nested_loop());
	else if (tick == 8)
		BLOCKED("poll", poll(NULL, 0, 12));
	else if (tick == 10 || tick == 11 || tick == 12)
		BLOCKED("poll", wait_poll(quiet[0], 12));
	else if (tick == 14)
		BLOCKED("select", wait_select(quiet[0], 12));
	else if (tick == 16)
		BLOCKED("select", select(0, NULL, NULL, NULL, &nothing));
}

static void epoll_loop(void (*tick)(int))
{
	struct epoll_event ev;
	int timer = often(), ep = epoll_of(timer);

	for (ticks = 0; ticks < TICKS;) {
		if (epoll_wait(ep, &ev, 1, -1) != 1)
			fail("epoll_wait");
		drain(timer);
		if (tick)
			tick(ticks);
		ticks++;
	}
	close(ep);
	over = mono();
}

static void poll_loop(void (*tick)(int))
{
	struct pollfd fds[2] = {{.fd = often(), .events = POLLIN}, {.fd = quiet[0], .events = POLLIN}};
	int more[2];

	if (pipe(more) < 0)
		fail("pipe");
	for (ticks = 0; ticks < TICKS;) {
		if (poll(fds, 2, -1) < 1)
			fail("poll");
		drain(fds[0].fd);
		if (tick)
			tick(ticks);
		ticks++;
		fds[1].fd = ticks % 3 ? quiet[0] : more[0];
	}
}

static void select_loop(void (*tick)(int))
{
	int timer = often(), more[2];
	fd_set in;

	if (pipe(more) < 0)
		fail("pipe");
	for (ticks = 0; ticks < TICKS;) {
		FD_ZERO(&in);
		FD_SET(timer, &in);
		FD_SET(more[0], &in);
		if (ticks % 3)
			FD_SET(quiet[1], &in);
		if (select(64, &in, NULL, NULL, NULL) < 1)
			fail("select");
		drain(timer);
		if (tick)
			tick(ticks);
		ticks++;
	}
}

/* An answer that is waited for, before there is a loop and in its ticks. */
static int answers;

__attribute__((noinline)) static void ask(void)
{
	wait_poll(answers, 3);
}

static void ask_in(int tick)
{
	if (tick % 4 == 2)
		BLOCKED("poll", ask());
}

static void alternate(void)
{
	int first = epoll_of(quiet[0]), second = epoll_of(often()), i;

	for (i = 0; i < TICKS; i++) {
		wait_epoll(first, 0);
		wait_epoll(second, 2);
		ticks++;
	}
}

static void *once(void *data)
{
	wait_epoll(epoll_of(quiet[0]), 3);
	wait_poll(quiet[0], 3);
	nap(60 * MS);
	return data;
}

#define MANY 1100

static pthread_barrier_t all_there;

static void *one_of_many(void *data)
{
	int ep = epoll_of(quiet[0]), i;

	for (i = 0; i < 4; i++)
		wait_epoll(ep, 1);
	pthread_barrier_wait(&all_there);
	return data;
}

static void many(void)
{
	static pthread_t threads[MANY];
	pthread_attr_t small;
	int i;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_barrier_init(&all_there, NULL, MANY);
	for (i = 0; i < MANY; i++)
		if (pthread_create(&threads[i], &small, one_of_many, NULL) != 0)
			fail("pthread_create");
	for (i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	printf("{\"loop\": \"epoll_wait loop\", \"workers\": %d, \"each\": 3}\n", MANY);
}

static void late(void)
{
	nap(80 * MS);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int more[2];
	pthread_t thread;

	if (pipe(quiet) < 0 || pipe(more) < 0)
		fail("pipe");
	answers = more[0];
	if (!strcmp(mode, "epoll")) {
		epoll_loop(block_in);
		nap(80 * MS);
		tell("epoll_wait loop");
	} else if (!strcmp(mode, "poll")) {
		poll_loop(ask_in);
		tell("poll loop");
	} else if (!strcmp(mode, "select")) {
		select_loop(ask_in);
		tell("select loop");
	} else if (!strcmp(mode, "asked_first_epoll")) {
		ask(), ask(), ask();
		extra = 2; /* that was a loop, as far as could be seen */
		epoll_loop(ask_in);
		tell("epoll_wait loop");
	} else if (!strcmp(mode, "asked_first_poll")) {
		ask(), ask(), ask();
		extra = 2;
		poll_loop(ask_in);
		tell("poll loop");
	} else if (!strcmp(mode, "alternate")) {
		alternate();
		tell("epoll_wait loop");
	} else if (!strcmp(mode, "anew")) { /* one loop after the other */
		epoll_loop(ask_in);
		int before = ticks;
		over = 0;
		epoll_loop(ask_in);
		ticks += before;
		tell("epoll_wait loop");
	} else if (!strcmp(mode, "many")) {
		many();
	} else if (!strcmp(mode, "once")) {
		pthread_create(&thread, NULL, once, NULL);
		pthread_join(thread, NULL);
		once(NULL);
		tell("");
	} else if (!strcmp(mode, "exit")) {
		atexit(late);
		struct epoll_event ev;
		int ep = epoll_of(often());
		for (; ticks < TICKS; ticks++)
			epoll_wait(ep, &ev, 1, -1);
		over = mono();
		tell("epoll_wait loop");
		exit(0);
	} else {
		fprintf(stderr, "no mode %s\n", mode);
		return 2;
	}
	return 0;
}
