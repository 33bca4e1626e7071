/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery: whatever a dead process, a crash or somebody else left in the directory. */
#include "session.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct heard {
	int n;
	int failed;
	uint64_t events;
	uint64_t from_rings;
	uint64_t cut_bytes;
	char note[200];
};

static void hear(const struct weft_recovered *one, void *data)
{
	struct heard *heard = data;

	heard->n += one->status == 0;
	heard->failed += one->status < 0;
	heard->events += one->events;
	heard->from_rings += one->from_rings;
	heard->cut_bytes += one->cut_bytes;
	snprintf(heard->note, sizeof(heard->note), "%s", one->note ? one->note : "");
	CHECK(one->path && *one->path);
}

static struct heard recover(void)
{
	struct heard heard = {0};
	struct weft_error err = {0};
	int n = weft_recover(session_dir, hear, &heard, &err);

	CHECK_EQ(n, heard.n);
	return heard;
}

enum where { IN_RINGS, IN_STAGING, IN_FILE };

/* A process that records (0, 1..n) in session_dir and kills itself when all of that has got so far. */
static void leave_a_wreck(uint64_t n, enum where where, uint32_t place, uint32_t ring_bytes)
{
	pid_t pid = fork();

	if (!pid) {
		struct weft_recorder_opts opts = {.size = sizeof(opts),
						  .dir = session_dir,
						  .max_threads = 4,
						  .drain_ns = where == IN_RINGS ? 250 * MS : MS,
						  .flush_ns = where == IN_FILE ? MS : 10000 * MS,
						  .ring_place = place,
						  .ring_bytes = ring_bytes,
						  .no_recover = 1,
						  .switches = WEFT_SWITCH_OFF, /* a wreck of no event has none */
						  .sample_hz = WEFT_OFF};
		struct weft_recorder_stats stats = {.size = sizeof(stats)};
		struct weft_recorder *rec;
		int kind = tally_kind();
		uint64_t i;

		if (weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0)
			_exit(1);
		session_sleep_ns(5 * MS); /* past the first drain */
		for (i = 1; i <= n; i++)
			tally_emit(kind, 0, i);
		while (where == IN_FILE && stats.events < n)
			weft_recorder_stats(rec, &stats);
		while (where == IN_STAGING &&
		       __atomic_load_n(&session_ring()->tail, __ATOMIC_ACQUIRE) != session_ring()->hot.resv)
			session_sleep_ns(MS);
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(session_wait(pid), -1);
}

static void check_dir(uint64_t events)
{
	struct tally t;

	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.sources[0].count, events);
	CHECK_EQ(t.damaged + t.undefined + t.disorder + t.lost, 0);
	tally_fini(&t);
}

static int left_over(void)
{
	return tally_files(session_dir, ".active") + tally_files(session_dir, ".rings") +
	       tally_files(session_dir, ".new");
}

static void path_in(char *path, size_t bytes, const char *name)
{
	snprintf(path, bytes, "%s/%s", session_dir, name);
}

static void write_file(const char *name, const void *bytes, size_t n)
{
	char path[128];
	int fd;

	path_in(path, sizeof(path), name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK_EQ(write(fd, bytes, n), n);
	close(fd);
}

/* The first file of session_dir whose name ends so. */
static int find_file(const char *end, char *path, size_t bytes)
{
	DIR *dir = opendir(session_dir);
	struct dirent *entry;
	int found = 0;

	while (dir && !found && (entry = readdir(dir))) {
		size_t n = strlen(entry->d_name), m = strlen(end);

		found = n >= m && !strcmp(entry->d_name + n - m, end);
		if (found)
			snprintf(path, bytes, "%s/%.200s", session_dir, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

TEST(what_was_in_the_rings_is_found)
{
	struct heard heard;

	session_fresh_dir();
	leave_a_wreck(1000, IN_RINGS, WEFT_RING_AUTO, 0);
	heard = recover();
	CHECK_EQ(heard.n, 1);
	CHECK_EQ(heard.from_rings, heard.events);
	check_dir(1000);
	CHECK_EQ(left_over(), 0);
	CHECK_EQ(recover().n, 0);
	session_remove_dir();
}

TEST(what_was_in_staging_is_found)
{
	struct heard heard;

	session_fresh_dir();
	leave_a_wreck(1000, IN_STAGING, WEFT_RING_AUTO, 0);
	heard = recover();
	CHECK_EQ(heard.n, 1);
	CHECK_EQ(heard.from_rings, heard.events);
	check_dir(1000);
	session_remove_dir();
}

TEST(what_was_in_the_file_is_not_doubled)
{
	session_fresh_dir();
	leave_a_wreck(1000, IN_FILE, WEFT_RING_DIR, 0);
	CHECK_EQ(recover().n, 1);
	check_dir(1000);
	CHECK_EQ(left_over(), 0);
	session_remove_dir();
}

TEST(a_ring_with_more_events_than_a_block_takes_is_found_whole)
{
	session_fresh_dir();
	leave_a_wreck(SCALED(400000, 150000), IN_RINGS, WEFT_RING_DIR, 16 << 20);
	CHECK_EQ(recover().n, 1);
	check_dir(SCALED(400000, 150000));
	session_remove_dir();
}

TEST(the_next_start_recovers)
{
	struct weft_recorder_opts opts = {0};
	struct weft_recorder *rec;

	session_fresh_dir();
	leave_a_wreck(100, IN_RINGS, WEFT_RING_AUTO, 0);
	leave_a_wreck(0, IN_RINGS, WEFT_RING_AUTO, 0);
	opts.dir = session_dir;
	rec = session_start(&opts);
	REQUIRE(rec);
	CHECK_EQ(session_stats(rec).recovered, 1);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	check_dir(100);
	CHECK_EQ(left_over(), 0);
	session_remove_dir();
}

TEST(no_recover_leaves_it_alone)
{
	struct weft_recorder_opts opts = {.no_recover = 1};
	struct weft_recorder *rec;

	session_fresh_dir();
	leave_a_wreck(100, IN_RINGS, WEFT_RING_AUTO, 0);
	opts.dir = session_dir;
	rec = session_start(&opts);
	REQUIRE(rec);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(tally_files(session_dir, ".rings"), 1);
	CHECK_EQ(recover().n, 1);
	check_dir(100);
	session_remove_dir();
}

TEST(files_of_a_living_process_are_left_alone)
{
	struct weft_recorder_opts opts = {.drain_ns = MS, .flush_ns = MS};
	struct weft_recorder *rec = session_start(&opts);
	struct heard heard;
	struct tally t;

	REQUIRE(rec);
	tally_emit(tally_kind(), 0, 1);
	CHECK(WAIT_FOR(tally_files(session_dir, ".active") == 1));
	heard = recover();
	CHECK_EQ(heard.n + heard.failed, 0);
	CHECK_EQ(tally_files(session_dir, ".active"), 1);
	CHECK_EQ(tally_files(session_dir, ".rings"), 1);
	tally_emit(tally_kind(), 0, 2);
	session_end(rec, &t, 1);
	CHECK_EQ(t.sources[0].count, 2);
	tally_fini(&t);
}

TEST(a_link_to_nothing_is_swept_away)
{
	struct heard heard;
	char path[128], text[64];

	session_fresh_dir();
	path_in(path, sizeof(path), "x-1-00.rings");
	snprintf(text, sizeof(text), "/dev/shm/weft-%u-x-1-00.rings", (unsigned)geteuid());
	CHECK_EQ(symlink(text, path), 0);
	heard = recover();
	CHECK_EQ(heard.n + heard.failed, 0);
	CHECK_EQ(left_over(), 0);
	session_remove_dir();
}

TEST(a_segment_whose_rings_are_gone_is_recovered_from_itself)
{
	struct heard heard;
	char path[300];

	session_fresh_dir();
	leave_a_wreck(100, IN_FILE, WEFT_RING_DIR, 0);
	CHECK(find_file(".rings", path, sizeof(path)));
	CHECK_EQ(unlink(path), 0);
	heard = recover();
	CHECK_EQ(heard.n, 1);
	CHECK_EQ(heard.from_rings, 0);
	check_dir(100);
	CHECK_EQ(left_over(), 0);
	session_remove_dir();
}

/* With weft's mark, but nothing behind it makes sense. */
TEST(broken_files_are_set_aside_and_named)
{
	static char garbage[8192] = RINGS_MAGIC "....this is no ring file";
	static const uint32_t version = RINGS_VERSION;
	struct heard heard;

	session_fresh_dir();
	memcpy(garbage + 8, &version, sizeof(version));
	write_file("a-1-00.rings", garbage, sizeof(garbage));
	memcpy(garbage, "WEFTSEG1", 8);
	write_file("c-1-00-000000.weft.active", garbage, 40);
	heard = recover();
	CHECK_EQ(heard.n, 0);
	CHECK_EQ(heard.failed, 2);
	CHECK_EQ(tally_files(session_dir, ".broken"), 2);
	CHECK_EQ(left_over(), 0);
	CHECK_EQ(recover().failed, 0);
	session_remove_dir();
}

TEST(what_does_not_carry_the_mark_is_left_alone)
{
	static const char garbage[8192] = "this is no ring file", zeros[8192];
	struct heard heard;

	session_fresh_dir();
	write_file("a-1-00.rings", garbage, sizeof(garbage));
	write_file("b-1-00.rings", zeros, sizeof(zeros));
	write_file("c-1-00-000000.weft.active", garbage, sizeof(garbage));
	write_file("d-1-00-000000.weft.active", "", 0);
	write_file("disk.rings", zeros, sizeof(zeros));
	write_file("notes.new", garbage, 100);
	write_file("empty.new", garbage, 0);
	write_file("e-1-00-000000.weft.active.new", garbage, 100);
	write_file("my.weft.active", garbage, 100);
	heard = recover();
	CHECK_EQ(heard.n, 0);
	CHECK_EQ(heard.failed, 4); /* which are called like files of weft */
	CHECK(strstr(heard.note, "left alone"));
	CHECK_EQ(left_over(), 9);
	CHECK_EQ(tally_files(session_dir, ".broken"), 0);
	session_remove_dir();
}

TEST(files_that_were_never_begun_are_removed)
{
	static const char begun[8192] = RINGS_MAGIC;
	struct heard heard;

	session_fresh_dir();
	write_file("a-1-00.rings", begun, sizeof(begun));
	write_file("b-1-00.rings", begun, 8);
	write_file("b-1-00.rings.new", begun, sizeof(begun));
	write_file("a-1-00-000000.weft.active.new", begun, 0);
	write_file("a-1-00-dump-000000.weft.new", begun, 0);
	heard = recover();
	CHECK_EQ(heard.n + heard.failed, 0);
	CHECK_EQ(left_over(), 0);
	session_remove_dir();
}

TEST(a_segment_file_with_only_its_header_becomes_an_empty_segment)
{
	char path[300];
	struct tally t;

	session_fresh_dir();
	leave_a_wreck(100, IN_FILE, WEFT_RING_DIR, 0);
	CHECK(find_file(".rings", path, sizeof(path)));
	CHECK_EQ(unlink(path), 0);
	CHECK(find_file(".active", path, sizeof(path)));
	CHECK_EQ(truncate(path, 64), 0);
	CHECK_EQ(recover().n, 1);
	tally_init(&t, 1);
	CHECK_EQ(tally_dir(&t, session_dir), 1);
	CHECK_EQ(t.damaged + t.events, 0);
	tally_fini(&t);
	session_remove_dir();
}

TEST(a_directory_that_is_not_there_is_an_error_with_words)
{
	struct weft_error err = {0};

	CHECK_EQ(weft_recover("/nonexistent/weft", NULL, NULL, &err), -ENOENT);
	CHECK(strstr(err.msg, "/nonexistent/weft"));
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Flips some bytes of a ring file: mostly in the head, the ring pages, and the staging area, where they do harm. */
static void spoil(char *bytes, size_t n, uint64_t *state)
{
	static const size_t places[] = {0,
					4096,
					4096 + FACTS_BYTES,
					4096 + FACTS_BYTES + DEFS_BYTES,
					4096 + FACTS_BYTES + DEFS_BYTES + STAGINGS * STAGING_BYTES,
					8192 + FACTS_BYTES + DEFS_BYTES + STAGINGS * STAGING_BYTES};
	uint64_t flips = 1 + next_random(state) % 8;

	while (flips--) {
		size_t at = places[next_random(state) % 6] + next_random(state) % 512;

		if (at < n && at >= 12) /* beyond magic and version, which would end it early */
			bytes[at] = (char)next_random(state);
	}
}

static int slurp(const char *path, char **ret, size_t *n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	*ret = NULL;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	*n = (size_t)st.st_size;
	*ret = malloc(*n);
	if (*ret && read(fd, *ret, *n) != (ssize_t)*n)
		*n = 0;
	close(fd);
	return *ret ? 0 : -1;
}

static void spoil_and_recover(enum where where, int times)
{
	char path[300] = "", *good, *bad, command[160];
	uint64_t state = 0x9e3779b97f4a7c15;
	size_t n = 0;
	int i;

	session_fresh_dir();
	leave_a_wreck(1000, where, WEFT_RING_DIR, 65536);
	REQUIRE(find_file(".rings", path, sizeof(path)));
	REQUIRE(slurp(path, &good, &n) == 0);
	bad = malloc(n);
	snprintf(command, sizeof(command), "rm -f '%s'/*", session_dir);
	for (i = 0; bad && i < times; i++) {
		struct tally t;

		CHECK_EQ(system(command), 0);
		memcpy(bad, good, n);
		spoil(bad, n, &state);
		write_file("x-1-00.rings", bad, n);
		recover();
		tally_init(&t, 1);
		tally_dir(&t, session_dir);
		CHECK_EQ(t.damaged, 0); /* what comes out reads clean, whatever is in it */
		tally_fini(&t);
	}
	free(good);
	free(bad);
	session_remove_dir();
}

TEST(spoiled_rings_never_crash_recovery)
{
	spoil_and_recover(IN_RINGS, SCALED(200, 50));
}

TEST(spoiled_staging_never_crashes_recovery)
{
	spoil_and_recover(IN_STAGING, SCALED(200, 50));
}

TEST(a_ring_file_cannot_name_a_segment_elsewhere)
{
	struct rings_head *head;
	char path[300] = "", *bytes;
	size_t n = 0;

	session_fresh_dir();
	leave_a_wreck(10, IN_RINGS, WEFT_RING_DIR, 0);
	REQUIRE(find_file(".rings", path, sizeof(path)));
	REQUIRE(slurp(path, &bytes, &n) == 0);
	head = (struct rings_head *)(void *)bytes;
	snprintf(head->active, sizeof(head->active), "../weft-test-elsewhere.weft.active");
	CHECK_EQ(unlink(path), 0);
	write_file("x-1-00.rings", bytes, n);
	CHECK_EQ(recover().failed, 1);
	CHECK(access("/tmp/weft-test-elsewhere.weft", F_OK) < 0);
	free(bytes);
	session_remove_dir();
}
