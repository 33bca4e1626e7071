/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of libevent; EVENT_NOEPOLL and EVENT_NOPOLL choose what it waits with. */
#include <event2/event.h>
#include <poll.h>

#include "truth.h"

static int quiet[2];
static struct event_base *base;

static void fired(int fd, short what, void *data)
{
	struct pollfd one = {.fd = quiet[1], .events = POLLIN};

	(void)what, (void)data;
	drain(fd);
	ticks++;
	if (ticks == 6 || ticks == 9)
		BLOCKED("poll", poll(&one, 1, 15));
	if (ticks == 20)
		event_base_loopbreak(base);
}

static void ignored(int fd, short what, void *data)
{
	(void)fd, (void)what, (void)data;
}

int main(void)
{
	const char *how;
	struct event *timer, *reader;
	char name[32];

	if (pipe(quiet) < 0)
		fail("pipe");
	base = event_base_new();
	how = event_base_get_method(base);
	timer = event_new(base, often(), EV_READ | EV_PERSIST, fired, NULL);
	reader = event_new(base, quiet[0], EV_READ | EV_PERSIST, ignored, NULL);
	event_add(reader, NULL);
	event_add(timer, NULL);
	event_base_dispatch(base);
	snprintf(name, sizeof(name), "%s loop", strcmp(how, "epoll") == 0 ? "epoll_wait" : how);
	tell(name);
	event_free(timer);
	event_free(reader);
	event_base_free(base);
	return 0;
}
