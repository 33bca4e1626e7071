/* SPDX-License-Identifier: Apache-2.0 */
/* Waits inside ticks that are not the loop's own: they are part of the tick. And what is after the loop, or no loop:
 * not in polls. */
/* run: nested_epoll nested_epoll */
/* run: nested_loop nested_loop */
/* run: poll_loop_sleep poll_loop */
/* run: select_loop_sleep select_loop */
/* run: loop_closed closed */
/* run: epoll_once once */
/* run: ppoll_loop ppoll_loop */
#include "truth.h"
#include <poll.h>
#include <sys/select.h>

static const char *how;

static int is(const char *name)
{
	return !strcmp(how, name);
}

static void next(int loop)
{
	struct pollfd fd = {loop, POLLIN, 0};
	struct timespec ts = {0, 2 * MS};
	struct timeval tv = {0, 2000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(loop, &set);
	if (is("poll_loop"))
		poll(&fd, 1, 2);
	else if (is("ppoll_loop"))
		ppoll(&fd, 1, &ts, NULL);
	else if (is("select_loop"))
		select(loop + 1, &set, NULL, NULL, &tv);
	else
		truth_next(loop);
}

static void inside(void)
{
	struct epoll_event event;
	struct timeval tv = {0, 6000};
	int other = truth_loop(), i;

	truth_burn(2 * MS);
	if (is("nested_epoll"))
		epoll_wait(other, &event, 1, 6);
	for (i = 0; is("nested_loop") && i < 5;
	     i++) { /* as a library does that runs a loop of its own until it has an answer */
		epoll_wait(other, &event, 1, 2);
		truth_burn(MS / 2);
	}
	if (is("poll_loop") || is("ppoll_loop"))
		poll(NULL, 0, 6);
	if (is("select_loop"))
		select(0, NULL, NULL, NULL, &tv);
	close(other);
}

/* The time that follows is no poll. */
static void no_polls(void)
{
	int64_t begin = truth_wall();

	truth_burn(60 * MS);
	truth_nap(60 * MS);
	truth_note("\"no_polls\": [{\"tid\": %d, \"begin\": %lld, \"end\": %lld}]", (int)getpid(), (long long)begin,
		   (long long)truth_wall());
}

int main(int argc, char **argv)
{
	int loop = truth_loop(), tick;

	how = argc > 1 ? argv[1] : "nested_epoll";
	if (!is("once"))
		next(loop); /* two waits make a loop */
	for (tick = 0; tick < (is("once") ? 0 : 8); tick++) {
		next(loop);
		struct truth_poll *poll = truth_begin(how);
		inside();
		truth_end(poll);
	}
	next(loop);
	if (is("closed") || is("once")) {
		close(loop);
		no_polls();
	}
	truth_print();
	return 0;
}
