/* SPDX-License-Identifier: Apache-2.0 */
/* Rings that grow: a thread that emits fast gets more slots, and nothing is misplaced over it. */
#include "record/collect/collector.h"
#include "session.h"
#include "stall.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#define SMALL_RING 8192 /* 512 slots */

static const struct weft_recorder_opts small = {.ring_bytes = SMALL_RING, .drain_ns = MS};
static int kind;

static uint64_t mine_left(void)
{
	const struct ring_page *ring = session_ring();

	return ring->hot.resv - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}

/* Emits (0, 1..) in bursts that fill most of the ring, waiting for the collector in between, until the ring has so
 * many slots. Answers how many events that took. */
static uint64_t emit_until(uint64_t slots)
{
	uint64_t n = 0, until = session_now_ns() + 10000 * MS;

	weft_park(0); /* so that events of two slots begin at odd ones */
	while (session_ring()->hot.mask + 1 < slots && session_now_ns() < until) {
		uint64_t i, end, burst = (session_ring()->hot.mask + 1) * 5 / 16;

		for (i = 0; i < burst; i++)
			tally_emit(kind, 0, ++n);
		end = session_ring()->hot.resv; /* a handler may go on to emit, without end */
		while (__atomic_load_n(&session_ring()->tail, __ATOMIC_ACQUIRE) < end && session_now_ns() < until)
			sched_yield();
	}
	CHECK_EQ(session_ring()->hot.mask + 1, slots);
	return n;
}

TEST(a_thread_that_emits_fast_gets_more_slots)
{
	struct weft_recorder *rec = session_start(&small);
	struct tally t;
	uint64_t n;

	REQUIRE(rec);
	kind = tally_kind();
	tally_emit(kind, 1, 1);
	CHECK_EQ(session_ring()->hot.mask + 1, 512);
	n = emit_until(2048);
	/* Now as much fits as it has slots, though nobody empties it. */
	stall_begin();
	while (mine_left() + 2 * RING_SLACK < 2048)
		tally_emit(kind, 0, ++n);
	CHECK(mine_left() > 1500);
	CHECK_EQ(session_ring()->lost, 0);
	stall_end();
	session_end(rec, &t, 2);
	CHECK_EQ(t.sources[0].count, n);
	CHECK_EQ(t.sources[0].last, n);
	CHECK_EQ(t.lost, 0);
	tally_fini(&t);
}

/* The memory behind most of a ring is there when it is needed. */
TEST(a_ring_gets_the_rest_of_its_memory_when_its_thread_needs_it)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.size = 0});
	struct tally t;
	uint64_t n = 0;

	REQUIRE(rec);
	kind = tally_kind();
	stall_begin();
	tally_emit(kind, 0, ++n);
	CHECK(session_ring()->backed > 0);
	while (mine_left() + 2 * RING_SLACK < 4096)
		tally_emit(kind, 0, ++n);
	CHECK_EQ(session_ring()->backed, 0);
	CHECK_EQ(session_ring()->lost, 0);
	stall_end();
	session_end(rec, &t, 1);
	CHECK_EQ(t.sources[0].count, n);
	CHECK_EQ(t.sources[0].last, n);
	CHECK_EQ(t.lost, 0);
	tally_fini(&t);
}

TEST(a_thread_of_small_bursts_keeps_what_it_has)
{
	struct weft_recorder *rec = session_start(&small);
	uint64_t i, n;
	struct tally t;

	REQUIRE(rec);
	kind = tally_kind();
	for (n = 0; n < 100; n++) {
		for (i = 0; i < 60; i++)
			tally_emit(kind, 0, n * 60 + i + 1);
		CHECK(WAIT_FOR(!mine_left())); /* 120 slots, less than a quarter: however late the collector comes */
	}
	CHECK_EQ(session_ring()->hot.mask + 1, 512);
	session_end(rec, &t, 1);
	CHECK_EQ(t.sources[0].count, 100 * 60);
	tally_fini(&t);
}

/* Whether a ring of 512 slots gets more, of which so many were filled in so long, or in more. */
static int wants_more(uint64_t slots, uint64_t since_ns)
{
	struct rings_head head = {.ring_slots = 512, .ring_most = 2048};
	struct weft__region region = {.head = &head};
	struct weft__ring_note note = {.drained_ns = session_now_ns() - since_ns};
	struct weft__collector *c = calloc(1, sizeof(*c));
	struct ring_page *ring = aligned_alloc(64, sizeof(*ring));

	if (!CHECK(c && ring))
		exit(1);
	memset(ring, 0, sizeof(*ring));
	ring->hot.mask = 511;
	ring->slots_first = 512;
	c->region = &region;
	c->notes = &note;
	c->grown_bytes = UINT64_C(1) << 40; /* none is left to be given */
	weft__grow_ring(c, 0, ring, slots);
	free(ring);
	free(c);
	return note.grown != 0;
}

/* A stall makes the time longer, never shorter: what is slow stays slow, and what is fast is tried until no stall
 * came between. */
TEST(a_thread_that_emits_slowly_keeps_what_it_has)
{
	CHECK(!wants_more(127, 0)); /* says nothing of a rate */
	CHECK(!wants_more(180, 36 * MS));
	CHECK(!wants_more(500, 98 * MS));
	CHECK(WAIT_FOR(wants_more(180, 30 * MS)));
	CHECK(WAIT_FOR(wants_more(500, 90 * MS)));
}

static volatile uint64_t handled;

static void handler(int signal)
{
	(void)signal;
	tally_emit(kind, 1, ++handled);
}

TEST(handlers_emit_while_the_ring_grows)
{
	struct itimerval every = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct weft_recorder_opts opts = small;
	int round;

	kind = tally_kind();
	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
	for (round = 0; round < 10; round++) {
		struct weft_recorder *rec = session_start(&opts);
		struct tally t;
		uint64_t n;

		REQUIRE(rec);
		handled = 0;
		CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
		n = emit_until(2048);
		CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
		session_end(rec, &t, 2);
		CHECK_EQ(t.sources[0].count + t.sources[1].count + t.lost, n + handled);
		CHECK(t.sources[0].last <= n);
		CHECK(t.sources[1].last <= handled);
		tally_fini(&t);
	}
}

static void count_recovered(const struct weft_recovered *one, void *data)
{
	CHECK_EQ(one->status, 0);
	*(uint64_t *)data += one->from_rings;
}

TEST(what_is_in_a_ring_that_grew_is_recovered)
{
	uint64_t n = 0, from_rings = 0;
	struct tally t;
	int pipes[2];
	pid_t pid;

	session_fresh_dir();
	REQUIRE(pipe(pipes) == 0);
	pid = fork();
	if (!pid) {
		struct weft_recorder_opts opts = small;

		opts.dir = session_dir;
		kind = tally_kind();
		if (!session_start(&opts))
			_exit(1);
		n = emit_until(2048);
		stall_begin();
		while (mine_left() + 2 * RING_SLACK < 2048)
			tally_emit(kind, 0, ++n);
		if (write(pipes[1], &n, sizeof(n)) == sizeof(n) && !weft_test_failures)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	CHECK_EQ(session_wait(pid), -1);
	CHECK_EQ(read(pipes[0], &n, sizeof(n)), sizeof(n));
	close(pipes[0]);
	close(pipes[1]);
	CHECK_EQ(weft_recover(session_dir, count_recovered, &from_rings, NULL), 1);
	CHECK(from_rings > 750); /* of two slots each: more than the ring began with */
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.sources[0].count, n);
	CHECK_EQ(t.sources[0].last, n);
	CHECK_EQ(t.disorder + t.lost + t.damaged, 0);
	tally_fini(&t);
	session_remove_dir();
}

/* A program may be allowed less than the rings would have with room to grow, or than any file of that size. */
static int limited_child(int resource, uint64_t bytes, uint64_t *ret_most)
{
	int pipes[2];
	pid_t pid;

	*ret_most = 0;
	session_fresh_dir();
	if (pipe(pipes) < 0)
		return -1;
	pid = fork();
	if (!pid) {
		struct weft_recorder_opts opts = {.dir = session_dir, .max_threads = 4096};
		struct rlimit limit = {bytes, bytes};
		struct weft_recorder *rec;
		uint64_t most;

		if (setrlimit(resource, &limit) < 0)
			_exit(2);
		rec = session_start(&opts);
		if (!rec)
			_exit(1);
		most = weft__hot.head->ring_most;
		tally_emit(tally_kind(), 0, 1);
		_exit(weft_recorder_close(rec, NULL) < 0 || write(pipes[1], &most, sizeof(most)) != sizeof(most));
	}
	close(pipes[1]);
	if (read(pipes[0], ret_most, sizeof(*ret_most)) < 0)
		*ret_most = 0;
	close(pipes[0]);
	return session_wait(pid);
}

static void check_limited(int status)
{
	struct tally t;

	CHECK_EQ(status, 0);
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.sources[0].count, 1);
	tally_fini(&t);
	session_remove_dir();
}

TEST(rings_that_grow_need_little_address_space)
{
	uint64_t most;

	if (SCALED(0, 1))
		SKIP("sanitizers need address space without end");
	check_limited(limited_child(RLIMIT_AS, UINT64_C(128) << 20, &most));
	CHECK_EQ(most, 16384);
}

TEST(a_limit_on_the_size_of_files_ends_nobody)
{
	uint64_t most;

	check_limited(limited_child(RLIMIT_FSIZE, UINT64_C(16) << 20, &most));
	CHECK_EQ(most, 16384); /* in memory */
	check_limited(limited_child(RLIMIT_FSIZE, UINT64_C(16) << 10, &most));
}
