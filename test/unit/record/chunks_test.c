/* SPDX-License-Identifier: Apache-2.0 */
/* Rings take their address space when threads need them, a chunk at a time. */
#include "session.h"

#include <signal.h>

#define THREADS SCALED(80, 40) /* in three chunks and more */
#define EVENTS 20
#define SESSIONS 4

static const struct weft_recorder_opts big = {.ring_bytes = 65536, .max_threads = 100};
static int kind;

static uint64_t status_kib(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kib = strtoull(line + strlen(name) + 1, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

/* The first of all, since what others leave behind is taken again. With samples, and as many events as make the
 * collector hand blocks to the thread that encodes them. */
TEST(a_session_takes_little_address_space)
{
	struct weft_recorder_opts opts = {.sample_hz = 99};
	uint64_t before, most = 0, n = 0, until;
	struct weft_recorder *rec;
	struct tally t;

	if (SCALED(0, 1))
		SKIP("sanitizers need address space without end");
	kind = tally_kind();
	before = status_kib("VmSize:");
	rec = session_start(&opts);
	REQUIRE(rec);
	until = session_now_ns() + 500 * MS;
	while (session_now_ns() < until) {
		uint64_t now = status_kib("VmSize:");

		for (int i = 0; i < 500; i++)
			tally_emit(kind, 0, ++n);
		most = now > most ? now : most;
	}
	session_end(rec, &t, 1);
	CHECK(t.sources[0].count > 0);
	tally_fini(&t);
	printf("\t%llu KiB\n", (unsigned long long)(most - before));
	CHECK(most - before <= 64 * 1024);
}

struct crowd {
	pthread_t threads[80];
	pthread_barrier_t all;
	uint64_t session;
};

struct one {
	struct crowd *crowd;
	uint64_t number;
};

/* As many times as there are sessions: the events of one, then a wait for the next. */
static void *one_main(void *data)
{
	struct one one = *(struct one *)data;

	free(data);
	for (;;) {
		pthread_barrier_wait(&one.crowd->all);
		if (!one.crowd->session)
			return NULL;
		for (uint64_t i = 1; i <= EVENTS; i++)
			tally_emit(kind, one.number, i);
		pthread_barrier_wait(&one.crowd->all);
	}
}

static void crowd_make(struct crowd *crowd)
{
	pthread_barrier_init(&crowd->all, NULL, THREADS + 1);
	for (uint64_t i = 0; i < THREADS; i++) {
		struct one *one = malloc(sizeof(*one));

		*one = (struct one){crowd, i};
		if (!CHECK_EQ(pthread_create(&crowd->threads[i], NULL, one_main, one), 0))
			exit(1);
	}
}

static void crowd_emit(struct crowd *crowd)
{
	crowd->session++;
	pthread_barrier_wait(&crowd->all);
	pthread_barrier_wait(&crowd->all);
}

static void crowd_end(struct crowd *crowd)
{
	crowd->session = 0;
	pthread_barrier_wait(&crowd->all);
	for (uint64_t i = 0; i < THREADS; i++)
		pthread_join(crowd->threads[i], NULL);
	pthread_barrier_destroy(&crowd->all);
}

static void check_all(const struct tally *t)
{
	uint64_t missing = 0;

	for (uint64_t i = 0; i < THREADS; i++)
		missing += EVENTS - t->sources[i].count;
	CHECK_EQ(missing, 0);
	CHECK_EQ(t->lost, 0);
}

static uint32_t chunks_mapped(void)
{
	uint32_t n = 0;

	while (n < RING_CHUNKS && __atomic_load_n(&weft__hot.map.chunks[n].at, __ATOMIC_ACQUIRE))
		n++;
	return n;
}

TEST(every_thread_gets_a_ring_and_chunks_come_as_they_are_needed)
{
	struct weft_recorder *rec = session_start(&big);
	struct crowd crowd = {.session = 0};
	struct tally t;

	REQUIRE(rec);
	kind = tally_kind();
	CHECK_EQ(chunks_mapped(), 1);
	crowd_make(&crowd);
	crowd_emit(&crowd);
	CHECK(chunks_mapped() >= 3);
	crowd_end(&crowd);
	session_end(rec, &t, THREADS);
	check_all(&t);
	tally_fini(&t);
}

/* Rings that have owners stay where they are when a session ends, and the next one has others. */
TEST(threads_that_outlive_a_session_have_rings_in_the_next)
{
	struct crowd crowd = {.session = 0};

	kind = tally_kind();
	crowd_make(&crowd);
	for (int i = 0; i < SESSIONS; i++) {
		struct weft_recorder *rec = session_start(&big);
		struct tally t;

		REQUIRE(rec);
		crowd_emit(&crowd);
		session_end(rec, &t, THREADS);
		check_all(&t);
		tally_fini(&t);
	}
	crowd_end(&crowd);
}

static void count_recovered(const struct weft_recovered *one, void *data)
{
	CHECK_EQ(one->status, 0);
	*(uint64_t *)data += 1;
}

/* `closed`: the program closes what it did not open, so the file of the rings is not there to be mapped. */
static void crowd_child(int closed)
{
	struct weft_recorder_opts opts = big;
	struct crowd crowd = {.session = 0};

	opts.dir = session_dir;
	opts.drain_ns = 250 * MS;
	kind = tally_kind();
	if (!session_start(&opts))
		_exit(1);
	for (int fd = 3; closed && fd < 64; fd++)
		close(fd);
	crowd_make(&crowd);
	crowd_emit(&crowd);
	if (!CHECK(chunks_mapped() >= 3))
		_exit(1);
	kill(getpid(), SIGKILL);
}

static void check_killed(int closed)
{
	uint64_t recovered = 0;
	struct tally t;
	pid_t pid;

	session_fresh_dir();
	pid = fork();
	if (!pid) {
		crowd_child(closed);
		_exit(1);
	}
	CHECK_EQ(session_wait(pid), -1);
	CHECK_EQ(weft_recover(session_dir, count_recovered, &recovered, NULL), 1);
	CHECK_EQ(recovered, 1);
	tally_init(&t, THREADS);
	tally_dir(&t, session_dir);
	check_all(&t);
	CHECK_EQ(t.damaged + t.disorder, 0);
	tally_fini(&t);
	session_remove_dir();
}

TEST(rings_of_all_chunks_are_recovered)
{
	check_killed(0);
}

TEST(chunks_come_also_when_the_program_closed_the_file)
{
	check_killed(1);
}
