/* SPDX-License-Identifier: Apache-2.0 */
/* Which waits are a loop's, by sequences of waits that programs make. */
#include "../../../bindings/preload/loop.c"
#include "../../../bindings/preload/symbol.c"

#include <sys/epoll.h>
#include <unistd.h>

#include "weft_test.h"

#define MAIN 0x1000 /* calls */
#define INNER 0x2000
#define OUTSIDE 0x7000 /* frames; lower is deeper */
#define INSIDE 0x6000

static struct preload_loops loops;
static uint64_t tick;

static enum preload_judged epoll_at(int fd, uintptr_t site, uintptr_t frame, bool parks)
{
	struct preload_wait wait = {.family = PRELOAD_EPOLL,
				    .fd = fd,
				    .id = (uint64_t)fd,
				    .site = site,
				    .frame = frame,
				    .parks = parks,
				    .tick = ++tick};

	return weft__preload_judge(&loops, &wait);
}

static enum preload_judged poll_at(uintptr_t site, uintptr_t frame, struct pollfd *fds, uint32_t n)
{
	struct preload_wait wait = {.family = PRELOAD_POLL,
				    .fd = -1,
				    .at = fds,
				    .n = n,
				    .site = site,
				    .frame = frame,
				    .parks = true,
				    .tick = ++tick};

	return weft__preload_judge(&loops, &wait);
}

static enum preload_judged select_at(uintptr_t site, const fd_set *in, int n)
{
	struct preload_wait wait = {.family = PRELOAD_SELECT,
				    .fd = -1,
				    .at = in,
				    .n = (uint32_t)n,
				    .sets = {in},
				    .site = site,
				    .frame = OUTSIDE,
				    .parks = true,
				    .tick = ++tick};

	return weft__preload_judge(&loops, &wait);
}

static void begin(void)
{
	memset(&loops, 0, sizeof(loops));
}

TEST(the_second_wait_for_an_epoll_descriptor_makes_a_loop)
{
	int a = epoll_create1(0), b = epoll_create1(0);

	begin();
	CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, true), PRELOAD_FIRST);
	CHECK_EQ(epoll_at(b, MAIN, OUTSIDE, true), PRELOAD_FIRST);
	CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, true), PRELOAD_FOUND);
	CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, true), PRELOAD_MINE);
	CHECK(preload_epoll_is(&loops, a));
	close(a), close(b);
}

TEST(a_nested_epoll_loop_stays_nested_however_often_it_waits)
{
	int a = epoll_create1(0), b;

	begin();
	epoll_at(a, MAIN, OUTSIDE, true);
	epoll_at(a, MAIN, OUTSIDE, true);
	for (int round = 0; round < 3; round++) {
		b = epoll_create1(0);
		for (int i = 0; i < 50; i++)
			CHECK_EQ(epoll_at(b, MAIN, INSIDE, true), PRELOAD_OTHER);
		close(b);
		CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, true), PRELOAD_MINE);
	}
	close(a);
}

TEST(a_loop_that_is_closed_is_over_and_the_next_one_there_is_the_loop_at_once)
{
	int a = epoll_create1(0), b = epoll_create1(0);

	begin();
	epoll_at(a, MAIN, OUTSIDE, true);
	CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, true), PRELOAD_FOUND);
	close(a); /* by another thread: nobody said so */
	CHECK_EQ(epoll_at(b, MAIN, OUTSIDE, true), PRELOAD_FOUND);
	weft__preload_forget(&loops);
	CHECK(!preload_epoll_is(&loops, b));
	close(b);
	b = epoll_create1(0);
	CHECK_EQ(epoll_at(b, MAIN, OUTSIDE, true), PRELOAD_FOUND);
	close(b);
}

TEST(a_loop_that_only_looks_gives_way_to_one_that_waits)
{
	int a = epoll_create1(0), b = epoll_create1(0);

	begin();
	epoll_at(a, MAIN, OUTSIDE, false);
	epoll_at(b, INNER, OUTSIDE, true);
	CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, false), PRELOAD_FOUND);
	CHECK_EQ(epoll_at(b, INNER, OUTSIDE, true), PRELOAD_FOUND);
	CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, false), PRELOAD_OTHER);
	CHECK_EQ(epoll_at(b, INNER, OUTSIDE, true), PRELOAD_MINE);
	close(a), close(b);
}

TEST(epoll_takes_over_from_a_poll_for_one_descriptor_and_keeps_the_place)
{
	int a = epoll_create1(0), ends[2];
	struct pollfd one = {.events = POLLIN};

	CHECK_EQ(pipe(ends), 0);
	one.fd = ends[0];
	begin();
	CHECK_EQ(poll_at(INNER, INSIDE, &one, 1), PRELOAD_OTHER);
	CHECK_EQ(poll_at(INNER, INSIDE, &one, 1), PRELOAD_FOUND);
	CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, true), PRELOAD_OTHER);
	CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, true), PRELOAD_FOUND);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(poll_at(INNER, INSIDE, &one, 1), PRELOAD_OTHER);
		CHECK_EQ(epoll_at(a, MAIN, OUTSIDE, true), PRELOAD_MINE);
	}
	close(a), close(ends[0]), close(ends[1]);
}

TEST(a_poll_loop_that_comes_back_was_outside_the_epoll_loop)
{
	int a = epoll_create1(0), ends[2];
	struct pollfd two[2] = {{.events = POLLIN}, {.events = POLLIN}};

	CHECK_EQ(pipe(ends), 0);
	two[0].fd = ends[0];
	two[1].fd = ends[1];
	begin();
	poll_at(MAIN, OUTSIDE, two, 2);
	CHECK_EQ(poll_at(MAIN, OUTSIDE, two, 2), PRELOAD_FOUND);
	epoll_at(a, INNER, INSIDE, true);
	CHECK_EQ(epoll_at(a, INNER, INSIDE, true), PRELOAD_FOUND); /* the guess was wrong */
	CHECK_EQ(poll_at(MAIN, OUTSIDE, two, 2), PRELOAD_FOUND);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(epoll_at(a, INNER, INSIDE, true), PRELOAD_OTHER);
		CHECK_EQ(epoll_at(a, INNER, INSIDE, true), PRELOAD_OTHER);
		CHECK_EQ(poll_at(MAIN, OUTSIDE, two, 2), PRELOAD_MINE);
	}
	close(a), close(ends[0]), close(ends[1]);
}

TEST(poll_without_descriptors_is_a_sleep)
{
	begin();
	for (int i = 0; i < 5; i++)
		CHECK_EQ(poll_at(MAIN, OUTSIDE, NULL, 0), PRELOAD_OTHER);
	CHECK_EQ(loops.now.family, PRELOAD_NONE);
}

TEST(a_poll_loop_keeps_its_place_as_descriptors_come_and_go)
{
	struct pollfd fds[8];
	int ends[8][2];

	begin();
	for (int i = 0; i < 8; i++) {
		CHECK_EQ(pipe(ends[i]), 0);
		fds[i] = (struct pollfd){.fd = ends[i][0], .events = POLLIN};
	}
	poll_at(MAIN, OUTSIDE, fds, 1);
	CHECK_EQ(poll_at(MAIN, OUTSIDE, fds, 1), PRELOAD_FOUND);
	CHECK_EQ(poll_at(MAIN, OUTSIDE, fds, 8), PRELOAD_MINE); /* many come at once */
	/* From the same place, for one that is served in the tick. */
	CHECK_EQ(poll_at(MAIN, OUTSIDE, fds + 3, 1), PRELOAD_OTHER);
	CHECK_EQ(poll_at(MAIN, OUTSIDE, fds, 8), PRELOAD_MINE);
	for (int i = 1; i < 8; i++)
		close(ends[i][0]);
	CHECK_EQ(poll_at(MAIN, OUTSIDE, fds, 1), PRELOAD_MINE); /* and all are gone */
	for (int i = 0; i < 8; i++)
		close(ends[i][1]);
	close(ends[0][0]);
}

TEST(a_select_for_something_else_from_the_same_place_is_not_the_loop_s)
{
	int a[2], b[2];
	fd_set loop, other;

	CHECK_EQ(pipe(a), 0);
	CHECK_EQ(pipe(b), 0);
	FD_ZERO(&loop);
	FD_SET(a[0], &loop);
	FD_SET(a[1], &loop);
	FD_ZERO(&other);
	FD_SET(b[0], &other);
	begin();
	select_at(MAIN, &loop, 64);
	CHECK_EQ(select_at(MAIN, &loop, 64), PRELOAD_FOUND);
	CHECK_EQ(select_at(MAIN, &other, 64), PRELOAD_OTHER);
	CHECK_EQ(select_at(MAIN, &loop, 64), PRELOAD_MINE);
	CHECK_EQ(select_at(MAIN, NULL, 0), PRELOAD_OTHER);
	close(a[0]), close(a[1]), close(b[0]), close(b[1]);
}
