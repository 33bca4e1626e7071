/* SPDX-License-Identifier: Apache-2.0 */
/* Threads come and go: rings, file descriptors, mappings and memory do not pile up, and every thread's events are
 * there. */
/* presets: asan tsan release: it takes long */
#include "session.h"

#include <sys/syscall.h>

#define AT_ONCE 16
#define EACH 3
#define THREADS SCALED(100000, 4000)
#define AT_LEAST SCALED(10000, 4000)
#define LONGEST_NS (20000 * MS) /* a machine that is busy otherwise need not make them all */

static int kind;

static void *emit_some(void *data)
{
	uint64_t source = (uint64_t)(uintptr_t)data;
	uint64_t i;

	weft_park(0); /* opens the thread's schedstat */
	for (i = 1; i <= EACH; i++)
		tally_emit(kind, source, i);
	return NULL;
}

static long resident_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long all, resident = 0;

	if (file && fscanf(file, "%ld %ld", &all, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident;
}

static void run_batch(uint64_t first)
{
	pthread_t threads[AT_ONCE];
	int i;

	for (i = 0; i < AT_ONCE; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, emit_some, (void *)(uintptr_t)(first + (uint64_t)i)), 0);
	for (i = 0; i < AT_ONCE; i++)
		pthread_join(threads[i], NULL);
}

TEST(many_short_threads_leave_nothing_but_their_events)
{
	struct weft_recorder *rec = session_start(NULL);
	uint64_t until = session_now_ns() + LONGEST_NS;
	long pages;
	uint64_t i, made, seen = 0;
	int fds, maps;
	struct tally t;

	REQUIRE(rec);
	kind = tally_kind();
	for (i = 0; i < 10 * AT_ONCE; i += AT_ONCE)
		run_batch(i);
	fds = session_fds();
	maps = session_mappings();
	pages = resident_pages();
	for (; i < THREADS && (i < AT_LEAST || session_now_ns() < until); i += AT_ONCE)
		run_batch(i);
	made = i;
	if (made < THREADS)
		printf("\tonly %llu threads in 20 s\n", (unsigned long long)made);
	CHECK(session_stats(rec).rings <= AT_ONCE + 8);
	CHECK(session_stats(rec).threads <= 1);
	CHECK(WAIT_FOR(session_fds() <= fds + 2)); /* the collector has others open for a moment */
	CHECK(SCALED(0, 1) || session_mappings() <= maps + 20);
	CHECK(SCALED(0, 1) || resident_pages() <= pages + 4096); /* 16 MiB, for the collector's buffers */
	session_end(rec, &t, THREADS);
	for (i = 0; i < made; i++)
		seen += t.sources[i].count;
	/* A thread that finds every free ring full, because the machine gives the collector no time, is lost with
	 * its park. */
	CHECK_EQ(seen + t.lost - (made - t.by_kind[WEFT_KIND_PARK]), made * EACH);
	CHECK(t.lost < made / 100);
	CHECK_EQ(t.by_kind[WEFT_KIND_THREAD_BEGIN], t.by_kind[WEFT_KIND_THREAD_END]);
	tally_fini(&t);
}

static uint64_t left;

static void *leave_without_a_word(void *data)
{
	emit_some(data);
	__atomic_fetch_add(&left, 1, __ATOMIC_RELEASE);
	syscall(SYS_exit, 0);
	return NULL;
}

TEST(rings_of_threads_that_ended_without_a_word_are_found)
{
	struct weft_recorder *rec;
	pthread_attr_t attr;
	pthread_t thread;
	uint64_t i, rings;
	struct tally t;
	int fds;

	if (SCALED(0, 1))
		SKIP("the sanitizer's runtime does not survive a thread that exits behind its back");
	rec = session_start(NULL);
	REQUIRE(rec);
	kind = tally_kind();
	fds = session_fds();
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (i = 0; i < AT_ONCE; i++)
		CHECK_EQ(pthread_create(&thread, &attr, leave_without_a_word, (void *)(uintptr_t)i), 0);
	pthread_attr_destroy(&attr);
	CHECK(WAIT_FOR(__atomic_load_n(&left, __ATOMIC_ACQUIRE) == AT_ONCE)); /* some may begin late */
	CHECK(WAIT_FOR(session_stats(rec).rings > 0 && session_stats(rec).threads == 0));
	rings = session_stats(rec).rings;
	CHECK(WAIT_FOR(session_fds() <= fds + 2));
	run_batch(AT_ONCE);
	CHECK(session_stats(rec).rings <= (rings > AT_ONCE ? rings : AT_ONCE) + 8);
	session_end(rec, &t, 2 * AT_ONCE);
	for (i = 0; i < 2 * AT_ONCE; i++)
		CHECK_EQ(t.sources[i].count, EACH);
	CHECK_EQ(t.by_kind[WEFT_KIND_THREAD_END], 2 * AT_ONCE);
	tally_fini(&t);
}

static void name_is(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const struct weft_thread *thread = weft_segment_thread(seg, ev->thread);

	if (ev->kind >= WEFT_KIND_USER && thread && ev->fields[0] == 0)
		snprintf(data, 16, "%s", thread->name);
}

static void *named(void *data)
{
	pthread_setname_np(pthread_self(), "before-event");
	emit_some(data);
	return NULL;
}

static void *named_late(void *data)
{
	struct weft_recorder *rec = data;

	tally_emit(kind, 0, 1);
	pthread_setname_np(pthread_self(), "after-event");
	session_sleep_ns(1500 * MS); /* names are looked at again once a second */
	tally_emit(kind, 0, 2);
	(void)rec;
	return NULL;
}

static struct weft_recorder *recorder;
static bool too_late; /* for the name to be what the first look after 20 ms finds */

/* Over long before a second is, with drains on the way. */
static void wait_for_drains(void)
{
	uint64_t before = session_stats(recorder).drains;

	CHECK(WAIT_FOR(session_stats(recorder).drains >= before + 2));
}

static void *named_a_moment_late(void *data)
{
	uint64_t begin = session_now_ns();

	tally_emit(kind, 0, 1);
	wait_for_drains();
	pthread_setname_np(pthread_self(), "a-moment-later");
	too_late = session_now_ns() - begin > 15 * MS;
	session_sleep_ns(30 * MS);
	wait_for_drains();
	tally_emit(kind, 0, 2);
	return data;
}

static void check_name(void *(*fn)(void *), const char *want)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.drain_ns = MS});
	char name[16] = "";
	pthread_t thread;
	struct tally t;

	REQUIRE(rec);
	recorder = rec;
	kind = tally_kind();
	CHECK_EQ(pthread_create(&thread, NULL, fn, NULL), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 1);
	t.each = name_is;
	t.data = name;
	tally_dir(&t, session_dir);
	if (!too_late)
		CHECK_STR(name, want);
	tally_fini(&t);
	session_remove_dir();
}

TEST(a_thread_has_its_name)
{
	check_name(named, "before-event");
}

TEST(a_name_that_comes_late_is_seen)
{
	check_name(named_late, "after-event");
}

TEST(a_name_that_comes_a_moment_late_is_seen_soon)
{
	int tries = 0;

	do
		check_name(named_a_moment_late, "a-moment-later");
	while (too_late && ++tries < 100);
	CHECK(!too_late);
}

static uint32_t starting_is_over;

/* A context before the thread has a ring, and an event that gives it one. */
static void *come_and_go(void *data)
{
	struct weft_context context = {.span = 1};

	(void)data;
	weft_context_set(&context);
	weft_wake(0, 1);
	context.span = 0;
	weft_context_set(&context);
	return NULL;
}

static void *keep_coming(void *data)
{
	pthread_t threads[4];
	int i;

	while (!__atomic_load_n(&starting_is_over, __ATOMIC_RELAXED)) {
		for (i = 0; i < 4; i++)
			CHECK_EQ(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
		for (i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	return data;
}

/* For ThreadSanitizer: what is set at a start is read by threads that come, and those without a ring share one. */
TEST(recording_starts_and_stops_while_threads_come)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.sample_hz = 99});
	pthread_t maker;
	int i;

	REQUIRE(rec);
	starting_is_over = 0;
	REQUIRE(pthread_create(&maker, NULL, keep_coming, NULL) == 0);
	for (i = 0; i < 20; i++) {
		CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
		CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	}
	__atomic_store_n(&starting_is_over, 1, __ATOMIC_RELAXED);
	pthread_join(maker, NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}
