/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads that work under one lock: one core's worth of work, and all of their time is either work or waiting,
 * be it for the lock or for a CPU. */
#include "waits.h"

#define CROWD 8
#define EACH_NS (SCALED(600, 300) * MS)
#define HOLD_NS (MS / 2)

static struct waits w;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t lock_name;

struct member {
	uint32_t tid;
	uint64_t least_ns, most_ns;  /* what is inside its waits, and what they are inside of, by clocks of its own */
	uint64_t worked_ns, life_ns; /* likewise */
	uint64_t queued_ns;          /* for a CPU, as the kernel counts it; some of it in waits for the lock */
};

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t queued_ns(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long cpu, queued = 0;

	if (file && fscanf(file, "%llu %llu", &cpu, &queued) != 2)
		queued = 0;
	if (file)
		fclose(file);
	return queued;
}

static void *crowd_in(void *data)
{
	struct member *m = data;
	uint64_t begin = session_now_ns(), cpu = cpu_ns(), at[2], until;

	m->tid = waits_tid();
	while (session_now_ns() < begin + EACH_NS) {
		if (pthread_mutex_trylock(&lock) != 0) {
			at[0] = session_now_ns();
			weft_wait_begin(WEFT_WAIT_LOCK, lock_name, (uint64_t)(uintptr_t)&lock);
			at[1] = session_now_ns();
			pthread_mutex_lock(&lock);
			m->least_ns += session_now_ns() - at[1];
			weft_wait_end(WEFT_WAIT_LOCK, (uint64_t)(uintptr_t)&lock);
			m->most_ns += session_now_ns() - at[0];
		}
		until = session_now_ns() + HOLD_NS;
		while (session_now_ns() < until)
			;
		pthread_mutex_unlock(&lock);
	}
	m->worked_ns = cpu_ns() - cpu;
	m->life_ns = session_now_ns() - begin;
	m->queued_ns = queued_ns();
	return NULL;
}

TEST(eight_spinners_under_one_lock_are_one_core_of_work_and_eight_of_time)
{
	struct weft_recorder *rec = session_start(NULL);
	struct member members[CROWD];
	pthread_t threads[CROWD];
	uint64_t work = 0, waits = 0, lives = 0, queued = 0, begin, wall, stolen;
	int i;

	REQUIRE(rec);
	lock_name = weft_string("the_only_lock");
	memset(members, 0, sizeof(members));
	stolen = session_stolen_ns();
	begin = session_now_ns();
	for (i = 0; i < CROWD; i++)
		REQUIRE(pthread_create(&threads[i], NULL, crowd_in, &members[i]) == 0);
	for (i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	wall = session_now_ns() - begin;
	stolen = session_stolen_ns() - stolen;
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	for (i = 0; i < CROWD; i++) {
		uint64_t reported;

		waits_read(&w, "the_only_lock", members[i].tid);
		reported = w.sum.long_ns + w.sum.short_ns;
		/* Each wait as its thread measured it, whichever were reported one by one and whichever summed. */
		CHECK(reported >= members[i].least_ns || waits_near(reported, members[i].least_ns, 5));
		CHECK(reported <= members[i].most_ns || waits_near(reported, members[i].most_ns, 5));
		work += members[i].worked_ns;
		waits += reported;
		lives += members[i].life_ns;
		queued += members[i].queued_ns;
	}
	session_remove_dir();
	printf("\twall %.3f s, work %.3f s, waits %.3f s, lives %.3f s, queued %.3f s, stolen %.3f s\n",
	       (double)wall / 1e9, (double)work / 1e9, (double)waits / 1e9, (double)lives / 1e9, (double)queued / 1e9,
	       (double)stolen / 1e9);
	CHECK(work <= wall + wall / 5); /* one core, and what locking itself takes */
	CHECK(work + waits <= lives + lives / 20);
	CHECK(work + waits + queued + stolen >= lives - lives / 20);
}
