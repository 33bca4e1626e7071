/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector itself finds out (record/found.h). The source here finds as many events as it is asked for. */
#include "session.h"

#include <signal.h>
#include <sys/resource.h>

#include "record/event/wide.h"
#include "record/found.h"
#include "record/source.h"

static uint64_t to_find, found, first_ns;
static int limit_files; /* no file grows any more while it finds */

static void find_one(struct weft__collector *c, uint64_t i)
{
	uint64_t fields[WEFT_FIELDS_OF_OFFCPU] = {1, 0, i, WEFT_OFFCPU_BLOCKED, 1, 0, 0};

	weft__found_add(c, FOUND_SWITCH, &(struct weft__found){first_ns + i * 1000, WEFT_KIND_OFFCPU, fields, NULL, 0});
}

static int find_turn(const struct weft__turn *turn)
{
	struct rlimit none = {0, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
	uint64_t n = __atomic_load_n(&to_find, __ATOMIC_ACQUIRE), i;

	if (!weft_gate_on() || !n)
		return SOURCE_NOTHING;
	first_ns = turn->now_ns;
	if (limit_files)
		setrlimit(RLIMIT_FSIZE, &none);
	for (i = 0; i < n; i++)
		find_one(turn->collector, i);
	if (limit_files)
		setrlimit(RLIMIT_FSIZE, &all);
	__atomic_store_n(&to_find, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&found, n, __ATOMIC_RELEASE);
	return SOURCE_NOTHING;
}

static const struct weft__source find_source = {.name = "find", .what = "what is found", .turn = find_turn};
static const struct weft__source *const only_find[] = {&find_source};

static void find(uint64_t n)
{
	found = 0;
	__atomic_store_n(&to_find, n, __ATOMIC_RELEASE);
}

struct seen {
	uint64_t n, wrong_time, wrong_order, other_name;
};

static void see(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const struct weft_thread *thread = weft_segment_thread(seg, ev->thread);
	struct seen *seen = data;
	uint64_t i;

	if (ev->kind != WEFT_KIND_OFFCPU)
		return;
	i = ev->fields[WEFT_FIELD_OFFCPU_DURATION];
	seen->wrong_order += i != seen->n;
	seen->wrong_time += ev->time_ns + 8 < first_ns + i * 1000 || ev->time_ns > first_ns + i * 1000;
	seen->other_name += !thread || !thread->name || strcmp(thread->name, "weft-collector") != 0;
	seen->n++;
}

static struct weft_recorder *find_start(struct weft_recorder_opts *opts)
{
	weft__sources = (struct weft__source_list){.all = only_find, .n = 1};
	opts->drain_ns = MS;
	return session_start(opts);
}

/* A process finds `n` and kills itself when they are in staging, or in the file. These tests come first: under
 * ThreadSanitizer a child of a process with threads may make none. */
static void leave_found(uint64_t n, int in_file)
{
	pid_t pid = fork();

	if (!pid) {
		struct weft_recorder_opts opts = {.dir = session_dir,
						  .flush_ns = in_file ? MS : 10000 * MS,
						  .ring_place = WEFT_RING_DIR,
						  .no_recover = 1};
		struct weft_recorder *rec = find_start(&opts);

		if (!rec)
			_exit(1);
		find(n);
		if (WAIT_FOR(__atomic_load_n(&found, __ATOMIC_ACQUIRE)) &&
		    (!in_file || WAIT_FOR(session_stats(rec).events >= n)))
			kill(getpid(), SIGKILL);
		_exit(2);
	}
	CHECK_EQ(session_wait(pid), -1);
}

static void recover_and_check(uint64_t n)
{
	struct seen seen = {0};
	struct tally t;

	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	tally_init(&t, 0);
	t.each = see;
	t.data = &seen;
	tally_dir(&t, session_dir);
	CHECK_EQ(seen.n, n);
	CHECK_EQ(seen.wrong_order + seen.other_name, 0);
	CHECK_EQ(t.damaged + t.undefined + t.lost, 0);
	tally_fini(&t);
}

TEST(what_was_found_and_is_in_staging_survives_a_kill)
{
	session_fresh_dir();
	leave_found(1000, 0);
	recover_and_check(1000);
	session_remove_dir();
}

TEST(what_was_found_and_is_in_the_file_is_not_doubled_by_recovery)
{
	session_fresh_dir();
	leave_found(1000, 1);
	recover_and_check(1000);
	session_remove_dir();
}

/* The process died between the two stores that let a run grow by the last event. */
static void shrink_staging(uint64_t bytes)
{
	char path[300] = "";
	DIR *dir = opendir(session_dir);
	struct dirent *entry;
	struct rings_head head;
	int fd;

	REQUIRE(dir);
	while ((entry = readdir(dir)))
		if (strstr(entry->d_name, ".rings"))
			snprintf(path, sizeof(path), "%s/%.200s", session_dir, entry->d_name);
	closedir(dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0 && pread(fd, &head, sizeof(head), 0) == sizeof(head));
	CHECK(head.staging_used[head.staging_now] > bytes);
	head.staging_used[head.staging_now] -= bytes;
	CHECK_EQ(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	close(fd);
}

TEST(a_run_that_was_growing_at_a_kill_keeps_what_was_published)
{
	session_fresh_dir();
	leave_found(1000, 0);
	shrink_staging(weft__kind_slots(WEFT_KIND_OFFCPU) * sizeof(struct weft_slot));
	recover_and_check(999);
	session_remove_dir();
}

TEST(what_the_collector_finds_has_its_time_in_ns_and_needs_no_ring)
{
	struct weft_recorder *rec = find_start(&(struct weft_recorder_opts){0});
	struct seen seen = {0};

	REQUIRE(rec);
	find(1000);
	CHECK(WAIT_FOR(__atomic_load_n(&found, __ATOMIC_ACQUIRE)));
	CHECK_EQ(weft__hot.head->n_rings, 0);
	session_read_back(rec, see, &seen);
	CHECK_EQ(seen.n, 1000);
	CHECK_EQ(seen.wrong_order, 0);
	CHECK_EQ(seen.wrong_time, 0);
	CHECK_EQ(seen.other_name, 0);
}

TEST(more_found_in_one_turn_than_staging_holds_is_all_written)
{
	struct weft_recorder *rec = find_start(&(struct weft_recorder_opts){0});
	struct seen seen = {0};

	REQUIRE(rec);
	find(40000);
	CHECK(WAIT_FOR(__atomic_load_n(&found, __ATOMIC_ACQUIRE)));
	session_read_back(rec, see, &seen);
	CHECK_EQ(seen.n, 40000);
	CHECK_EQ(seen.wrong_order + seen.wrong_time, 0);
}

TEST(what_is_found_and_cannot_be_kept_is_counted_as_lost)
{
	struct weft_recorder *rec = find_start(&(struct weft_recorder_opts){0});
	struct tally t;
	uint64_t kept;

	REQUIRE(rec);
	signal(SIGXFSZ, SIG_IGN);
	limit_files = 1;
	find(30000);
	CHECK(WAIT_FOR(__atomic_load_n(&found, __ATOMIC_ACQUIRE)));
	limit_files = 0;
	CHECK(WAIT_FOR(session_stats(rec).lost));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = see;
	t.data = &(struct seen){0};
	tally_dir(&t, session_dir);
	kept = ((struct seen *)t.data)->n;
	CHECK(kept > 1000 && kept < 30000);
	CHECK_EQ(kept + t.lost, 30000);
	CHECK_EQ(t.damaged + t.undefined, 0);
	session_remove_dir();
	tally_fini(&t);
}
