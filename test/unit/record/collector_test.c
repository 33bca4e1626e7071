/* SPDX-License-Identifier: Apache-2.0 */
/* The collector: its thread, its pace, and the segments that it makes, rotates, keeps and loses. */
#include "session.h"

#include <inttypes.h>
#include <sys/stat.h>

static int kind;

static void emit_n(uint64_t source, uint64_t n)
{
	uint64_t i;

	for (i = 1; i <= n; i++)
		tally_emit(kind, source, i);
}

TEST(a_trickle_is_drained_within_a_quarter_of_a_second)
{
	struct weft_recorder *rec = session_start(NULL);
	struct ring_page *ring;
	struct tally t;
	int i;

	REQUIRE(rec);
	kind = tally_kind();
	/* By naps of a millisecond: while the machine stops, or gives neither thread a CPU, none goes by. */
	for (i = 1; i <= 4; i++) {
		uint64_t naps = 0;

		tally_emit(kind, 0, (uint64_t)i);
		ring = session_ring();
		while (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) != ring->hot.resv && naps < 10000) {
			session_sleep_ns(MS);
			naps++;
		}
		CHECK(naps < 250 + 100); /* and some for a busy machine */
	}
	session_end(rec, &t, 1);
	CHECK_EQ(t.sources[0].count, 4);
	tally_fini(&t);
}

/* The line of a thread's status file that begins with `field`, for the thread called `name`. */
static int thread_status(const char *name, const char *field, char *to, size_t bytes)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int found = 0;

	while (dir && (entry = readdir(dir))) {
		char path[300], line[256];
		int right = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			line[strcspn(line, "\n")] = 0;
			right |= !strncmp(line, "Name:\t", 6) && !strcmp(line + 6, name);
			if (right && !strncmp(line, field, strlen(field))) {
				snprintf(to, bytes, "%.60s", line + strlen(field));
				found = 1;
			}
		}
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return found;
}

TEST(its_thread_has_a_name_and_takes_no_signal)
{
	struct weft_recorder *rec = session_start(NULL);
	char text[64] = "";
	uint64_t blocked;
	struct tally t;
	int signal;

	REQUIRE(rec);
	CHECK(WAIT_FOR(thread_status("weft-collector", "SigBlk:\t", text, sizeof(text))));
	blocked = strtoull(text, NULL, 16);
	for (signal = 1; signal <= 64; signal++)
		if (signal != 9 && signal != 19 && signal != 32 &&
		    signal != 33) /* which nobody can block, or the C library keeps */
			CHECK(blocked >> (signal - 1) & 1);
	session_end(rec, &t, 0);
	tally_fini(&t);
}

/* Events that name something of each sort of definition. */
static int mixed_kind;
static uint32_t mixed_string, mixed_place, mixed_worker;

static void define_mixed(void)
{
	static const struct weft_field fields[] = {{"text", WEFT_TYPE_STRING, NULL},
						   {"place", WEFT_TYPE_LOCATION, NULL},
						   {"worker", WEFT_TYPE_WORKER, NULL},
						   {"noise", WEFT_TYPE_U64, "1"}};
	static uint32_t runtime;

	if (!runtime)
		runtime = weft_runtime_add(
			&(struct weft_runtime_opts){sizeof(struct weft_runtime_opts), "mixed", NULL, NULL, NULL}, NULL);
	mixed_kind = weft_event_define("mixed", fields, 4, NULL);
	mixed_string = weft_string("a string");
	mixed_place = WEFT_HERE("a place");
	mixed_worker = weft_worker_id(runtime, 5, NULL);
	CHECK(runtime && mixed_kind >= WEFT_KIND_USER && mixed_string && mixed_place);
}

static void emit_mixed(uint64_t *noise, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		uint64_t fields[4] = {mixed_string, mixed_place, mixed_worker, 0};

		*noise = *noise * 6364136223846793005u + 1442695040888963407u;
		fields[3] = *noise;
		weft_event(mixed_kind, fields, 4);
		weft_task_spawn(*noise, mixed_place);
		weft_wake(*noise, mixed_worker);
		if (i % 50 == 0) /* so that none is lost, however late the collector is */
			CHECK(WAIT_FOR(__atomic_load_n(&session_ring()->tail, __ATOMIC_ACQUIRE) ==
				       session_ring()->hot.resv));
	}
}

static uint64_t dir_bytes(void)
{
	DIR *dir = opendir(session_dir);
	struct dirent *entry;
	uint64_t sum = 0;
	struct stat st;

	while (dir && (entry = readdir(dir)))
		if (tally_is_segment(entry) && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
			sum += (uint64_t)st.st_size;
	if (dir)
		closedir(dir);
	return sum;
}

TEST(segments_rotate_by_size_and_each_stands_alone)
{
	struct weft_recorder_opts opts = {.segment_bytes = 16384, .drain_ns = MS, .flush_ns = 2 * MS};
	struct weft_recorder *rec = session_start(&opts);
	uint64_t noise = 1;
	struct tally t;

	REQUIRE(rec);
	define_mixed();
	emit_mixed(&noise, 5000);
	session_end(rec, &t, 0); /* which checks that nothing an event names is undefined in its segment */
	CHECK(t.segments >= 3);
	CHECK_EQ(t.by_kind[mixed_kind] + t.by_kind[WEFT_KIND_SPAWN] + t.by_kind[WEFT_KIND_WAKE] + t.lost, 15000);
	tally_fini(&t);
}

TEST(segments_rotate_by_time)
{
	struct weft_recorder_opts opts = {.segment_ns = 50 * MS, .drain_ns = 5 * MS, .flush_ns = 5 * MS};
	uint64_t began = session_now_ns(), took;
	struct weft_recorder *rec = session_start(&opts);
	struct tally t;
	int i;

	REQUIRE(rec);
	kind = tally_kind();
	for (i = 1; i <= 40; i++) {
		tally_emit(kind, 0, (uint64_t)i);
		session_sleep_ns(10 * MS);
	}
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	took = session_now_ns() - began;
	session_end(rec, &t, 1);
	CHECK(t.segments >= 4 && t.segments <= took / (50 * MS) + 1);
	CHECK_EQ(t.sources[0].count, 40);
	tally_fini(&t);
}

TEST(a_rotation_says_where_the_segment_is)
{
	struct weft_recorder *rec = session_start(NULL);
	char path[256] = "", again[256] = "";
	struct tally t;

	REQUIRE(rec);
	kind = tally_kind();
	emit_n(0, 10);
	CHECK_EQ(weft_recorder_rotate(rec, path, sizeof(path), NULL), 0);
	tally_init(&t, 1);
	tally_file(&t, path);
	CHECK_EQ(t.sources[0].count, 10);
	CHECK_EQ(t.damaged, 0);
	tally_fini(&t);
	emit_n(1, 10);
	CHECK_EQ(weft_recorder_rotate(rec, again, sizeof(again), NULL), 0);
	CHECK(strcmp(path, again) != 0);
	session_end(rec, &t, 2);
	CHECK_EQ(t.sources[0].count + t.sources[1].count, 20);
	tally_fini(&t);
}

/* Answers when. */
static uint64_t begun_before_its_events(const char *path)
{
	const struct weft_segment_info *info;
	struct weft_segment *seg;
	uint64_t start_ns;

	if (!CHECK_EQ(weft_segment_open(&seg, path, NULL), 0))
		return 0;
	info = weft_segment_info(seg);
	start_ns = info->start_mono_ns;
	CHECK(info->n_events > 0);
	CHECK(start_ns <= info->first_ns);
	weft_segment_close(seg);
	return start_ns;
}

/* The file is made when there is something to write, which is later than that. */
TEST(a_segment_is_begun_before_its_first_event)
{
	struct weft_recorder_opts opts = {.drain_ns = 250 * MS, .flush_ns = 1000 * MS};
	uint64_t before = session_now_ns(), start_ns, next_ns;
	struct weft_recorder *rec = session_start(&opts);
	char first[256] = "", second[256] = "";

	REQUIRE(rec);
	kind = tally_kind();
	emit_n(0, 10);
	session_sleep_ns(20 * MS);
	CHECK_EQ(weft_recorder_rotate(rec, first, sizeof(first), NULL), 0);
	emit_n(1, 10);
	session_sleep_ns(20 * MS);
	CHECK_EQ(weft_recorder_rotate(rec, second, sizeof(second), NULL), 0);
	start_ns = begun_before_its_events(first);
	next_ns = begun_before_its_events(second);
	CHECK(before <= start_ns && start_ns <= next_ns);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

TEST(the_oldest_segments_go_when_there_are_too_many_bytes)
{
	struct weft_recorder_opts opts = {
		.segment_bytes = 8192, .keep_bytes = 50000, .drain_ns = MS, .flush_ns = 2 * MS};
	struct weft_recorder *rec = session_start(&opts);
	uint64_t noise = 1;
	struct tally t;

	REQUIRE(rec);
	define_mixed();
	kind = tally_kind();
	emit_n(0, 10);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	emit_mixed(&noise, 8000);
	CHECK(WAIT_FOR(__atomic_load_n(&session_ring()->tail, __ATOMIC_ACQUIRE) == session_ring()->hot.resv));
	emit_n(1, 10);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	CHECK(dir_bytes() <= 50000 && dir_bytes() > 20000);
	CHECK(session_stats(rec).segments > 2);
	session_end(rec, &t, 2);
	CHECK_EQ(t.sources[0].count, 0);
	CHECK_EQ(t.sources[1].count, 10);
	tally_fini(&t);
}

TEST(old_segments_go_by_age)
{
	struct weft_recorder_opts opts = {.keep_ns = 100 * MS};
	struct weft_recorder *rec = session_start(&opts);
	struct tally t;

	REQUIRE(rec);
	kind = tally_kind();
	emit_n(0, 10);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	CHECK_EQ(tally_files(session_dir, ".weft"), 1);
	session_sleep_ns(150 * MS);
	emit_n(1, 10);
	session_end(rec, &t, 2);
	CHECK_EQ(t.sources[0].count, 0);
	CHECK_EQ(t.sources[1].count, 10);
	tally_fini(&t);
}

static void delete_under_it(int times)
{
	struct weft_recorder_opts opts = {.drain_ns = MS, .flush_ns = 2 * MS};
	struct weft_recorder *rec = session_start(&opts);
	char command[128];
	struct tally t;
	uint64_t events;
	int i;

	REQUIRE(rec);
	kind = tally_kind();
	snprintf(command, sizeof(command), "rm -rf '%s'", session_dir);
	emit_n(0, 10);
	CHECK(WAIT_FOR(session_stats(rec).events >= 10));
	for (i = 1; i <= times; i++) {
		CHECK_EQ(system(command), 0);
		events = session_stats(rec).events;
		emit_n((uint64_t)i, 10);
		CHECK(WAIT_FOR(session_stats(rec).events > events && tally_files(session_dir, ".active") == 1));
		CHECK_EQ(tally_files(session_dir, ".rings"), 1); /* and a crash now would find them */
	}
	CHECK(session_stats(rec).lost >= 10u * (uint32_t)times);
	session_end(rec, &t, 4); /* threads are defined in the new segment, too */
	CHECK_EQ(t.sources[0].count, 0);
	CHECK_EQ(t.sources[times].count, 10);
	tally_fini(&t);
}

TEST(recording_goes_on_when_its_directory_is_deleted)
{
	delete_under_it(1);
}

TEST(recording_goes_on_when_its_directory_is_deleted_again_and_again)
{
	delete_under_it(3);
}

TEST(a_segment_that_somebody_moved_away_is_let_go)
{
	struct weft_recorder_opts opts = {.drain_ns = MS, .flush_ns = 2 * MS};
	struct weft_recorder *rec = session_start(&opts);
	char command[300];
	struct tally t;

	REQUIRE(rec);
	kind = tally_kind();
	emit_n(0, 10);
	CHECK(WAIT_FOR(tally_files(session_dir, ".active") == 1));
	snprintf(command, sizeof(command), "mv '%s'/*.active '%s/away'", session_dir, session_dir);
	CHECK_EQ(system(command), 0);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	emit_n(1, 10);
	session_end(rec, &t, 2);
	CHECK_EQ(t.sources[1].count, 10);
	tally_fini(&t);
}

TEST(memory_only_mode_saves_on_demand)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts)};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};
	char path[64] = "x", sub[128];
	struct tally t;

	kind = tally_kind();
	CHECK_EQ(weft_recorder_open(&rec, &opts, &err), 0);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	emit_n(0, 100);
	CHECK_EQ(weft_recorder_rotate(rec, path, sizeof(path), NULL), 0);
	CHECK_STR(path, "");
	emit_n(1, 100);
	session_fresh_dir();
	snprintf(sub, sizeof(sub), "%s/a/b", session_dir);
	CHECK_EQ(weft_recorder_save(rec, sub, &err), 2);
	CHECK_EQ(weft_recorder_save(rec, "/dev/null/x", &err), -ENOTDIR);
	CHECK(strstr(err.msg, "/dev/null"));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 2);
	CHECK_EQ(tally_dir(&t, sub), 2);
	CHECK_EQ(t.sources[0].count, 100);
	CHECK_EQ(t.sources[1].count, 100);
	CHECK_EQ(t.damaged + t.undefined + t.disorder, 0);
	tally_fini(&t);
	session_remove_dir();
}

TEST(memory_only_mode_keeps_within_its_limit)
{
	struct weft_recorder_opts opts = {
		.size = sizeof(opts), .segment_bytes = 8192, .keep_bytes = 50000, .drain_ns = MS, .flush_ns = 2 * MS};
	struct weft_recorder *rec = NULL;
	uint64_t noise = 1;
	int fds, n;

	define_mixed();
	CHECK_EQ(weft_recorder_open(&rec, &opts, NULL), 0);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	fds = session_fds();
	emit_mixed(&noise, 5000);
	session_fresh_dir();
	n = weft_recorder_save(rec, session_dir, NULL);
	CHECK(n >= 2 && WAIT_FOR(session_fds() <= fds + n + 2)); /* others are open for a moment, to read tables */
	CHECK(dir_bytes() <= 50000);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK(WAIT_FOR(session_fds() <= fds));
	session_remove_dir();
}

static void check_facts(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	static const char *const keys[] = {"weft.version", "host.name",   "host.arch",       "host.kernel",
					   "host.cpus",    "process.exe", "process.cmdline", "clock.source",
					   "clock.hz",     "ring.place",  "ring.slots"};
	size_t i;

	(void)ev;
	(void)data;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		CHECK(weft_segment_fact(seg, keys[i]) && *weft_segment_fact(seg, keys[i]));
	CHECK_STR(weft_segment_fact(seg, "service.name"), "fact service");
	CHECK_STR(weft_segment_fact(seg, "label.zone"), "eu=1");
	CHECK_EQ(strtoul(weft_segment_fact(seg, "process.pid"), NULL, 10), getpid());
}

TEST(labels_and_facts_are_in_every_segment)
{
	static const char *const labels[] = {"zone=eu=1", NULL};
	struct weft_recorder_opts opts = {.name = "fact service", .labels = labels};
	struct weft_recorder *rec = session_start(&opts);
	struct tally t;

	REQUIRE(rec);
	weft_poll_end();
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	weft_poll_end();
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = check_facts;
	tally_dir(&t, session_dir);
	CHECK_EQ(t.segments, 2);
	tally_fini(&t);
	session_remove_dir();
}
