/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that encodes blocks when nobody else wants the CPU, and a collector that never waits for it. */
#include <dirent.h>
#include <sched.h>

#include "session.h"

#define EMITTED 100000u

/* The thread of that name; 0: there is none. */
static pid_t thread_named(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t tid = 0;

	while (dir && !tid && (entry = readdir(dir))) {
		char path[300], text[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file && fgets(text, sizeof(text), file)) {
			text[strcspn(text, "\n")] = 0;
			tid = strcmp(text, name) ? 0 : (pid_t)atoi(entry->d_name);
		}
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return tid;
}

/* In small steps: no ring could take everything at once. */
static uint64_t emit_many(uint64_t first, uint64_t n)
{
	int kind = tally_kind();

	for (uint64_t i = 0; i < n; i++) {
		tally_emit(kind, 0, first + i + 1);
		if (i % 500 == 499)
			session_sleep_ns(MS / 2);
	}
	return first + n;
}

static struct weft_recorder *start_plain(uint64_t flush_ns)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts),
					  .sample_hz = WEFT_OFF,
					  .wall_hz = WEFT_OFF,
					  .budget_ppm = WEFT_OFF,
					  .flush_ns = flush_ns};

	return session_start(&opts);
}

TEST(large_blocks_are_encoded_by_a_thread_of_class_idle)
{
	struct weft_recorder *rec = start_plain(0);
	uint64_t n = 0, until = session_now_ns() + 20000 * MS;
	struct tally t;
	pid_t encoder = 0, collector;

	REQUIRE(rec);
	while (!encoder && session_now_ns() < until) {
		n = emit_many(n, 10000);
		encoder = thread_named("weft-encoder");
	}
	collector = thread_named("weft-collector");
	REQUIRE(encoder && collector);
	CHECK(WAIT_FOR(sched_getscheduler(encoder) == SCHED_IDLE));
	CHECK(sched_getscheduler(collector) == SCHED_BATCH || sched_getscheduler(collector) == SCHED_OTHER);
	session_end(rec, &t, 1);
	CHECK_EQ(t.sources[0].count + t.lost, n);
	tally_fini(&t);
	CHECK(WAIT_FOR(!thread_named("weft-encoder")));
}

TEST(small_blocks_need_no_thread)
{
	struct weft_recorder *rec = start_plain(20 * MS);
	uint64_t n = 0;
	struct tally t;

	REQUIRE(rec);
	for (int i = 0; i < 10; i++) {
		n = emit_many(n, 100);
		session_sleep_ns(30 * MS);
	}
	CHECK(!thread_named("weft-encoder"));
	session_end(rec, &t, 1);
	CHECK_EQ(t.sources[0].count, n);
	tally_fini(&t);
}

static uint32_t burning;

static void *burn(void *data)
{
	cpu_set_t one;

	(void)data;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	while (__atomic_load_n(&burning, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* Puts the thread onto a CPU that another thread keeps busy: there one of class idle runs for some milliseconds in
 * seconds. */
static int starve(pid_t tid, pthread_t *burner)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	__atomic_store_n(&burning, 1, __ATOMIC_RELAXED);
	if (pthread_create(burner, NULL, burn, NULL) != 0)
		return -1;
	CPU_SET(sched_getcpu(), &one);
	return pthread_setaffinity_np(*burner, sizeof(one), &one) || sched_setaffinity(tid, sizeof(one), &one);
}

TEST(nobody_waits_for_an_encoder_that_does_not_get_to_run)
{
	struct weft_recorder *rec = start_plain(0);
	uint64_t n = 0, until = session_now_ns() + 20000 * MS, begin;
	pthread_t burner;
	struct tally t;
	pid_t encoder = 0;

	REQUIRE(rec);
	while (!encoder && session_now_ns() < until) {
		n = emit_many(n, 10000);
		encoder = thread_named("weft-encoder");
	}
	REQUIRE(encoder);
	REQUIRE(starve(encoder, &burner) == 0);
	n = emit_many(n, EMITTED);
	begin = session_now_ns();
	session_end(rec, &t, 1);
	printf("\tclosed and read after %.0f ms, lost %llu\n", (double)(session_now_ns() - begin) / 1e6,
	       (unsigned long long)t.lost);
	CHECK(session_now_ns() - begin < 5000 * MS);
	CHECK_EQ(t.sources[0].count + t.lost, n);
	__atomic_store_n(&burning, 0, __ATOMIC_RELAXED);
	pthread_join(burner, NULL);
	tally_fini(&t);
}
