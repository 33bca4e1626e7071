/* SPDX-License-Identifier: Apache-2.0 */
/* What other users put into a directory, and what is there that weft did not make: nothing of it is followed,
 * written, renamed or deleted. The attacker of these tests is another user, so most of them need root. */
#include "child.h"

#include <signal.h>
#include <sys/mman.h>

#define OTHER 65534

static char outside[64]; /* a directory of root's only */

static int failed_status;
static char failed_note[200];

static void hear(const struct weft_recovered *one, void *data)
{
	*(int *)data += 1;
	if (one->status) {
		failed_status = one->status;
		snprintf(failed_note, sizeof(failed_note), "%s", one->note ? one->note : "");
	}
}

static int recover(struct weft_error *err)
{
	int heard = 0;

	failed_status = 0;
	failed_note[0] = 0;
	return weft_recover(session_dir, hear, &heard, err);
}

static void write_at(const char *dir, const char *name, const void *bytes, size_t n)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK_EQ(write(fd, bytes, n), n);
	close(fd);
}

/* What is at a path: its bytes up to a few. -1: nothing. */
static int content(const char *dir, const char *name, char *text, size_t bytes)
{
	char path[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	n = fd < 0 ? -1 : read(fd, text, bytes - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return (int)n;
}

static bool is_whole(const char *dir, const char *name, const char *expected)
{
	char text[64];

	return content(dir, name, text, sizeof(text)) >= 0 && !strcmp(text, expected);
}

static bool is_there(const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", session_dir, name);
	return lstat(path, &st) == 0;
}

static void begin_outside(void)
{
	snprintf(outside, sizeof(outside), "/tmp/weft-outside-XXXXXX");
	if (!mkdtemp(outside))
		outside[0] = 0;
	session_fresh_dir();
}

static void end_outside(void)
{
	char command[128];

	session_remove_dir();
	snprintf(command, sizeof(command), "rm -rf '%s'", outside);
	CHECK_EQ(system(command), 0);
}

/* Does it in a child that is another user. */
static int as_other(void (*fn)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		weft_test_failures = 0;
		if (setgroups(0, NULL) || setresgid(OTHER, OTHER, OTHER) || setresuid(OTHER, OTHER, OTHER))
			_exit(2);
		fn();
		_exit(weft_test_failures ? 1 : 0);
	}
	return session_wait(pid);
}

static void plant_link(const char *name, const char *to)
{
	char path[256], text[256];

	snprintf(path, sizeof(path), "%s/%s", session_dir, name);
	snprintf(text, sizeof(text), "%s/%s", outside, to);
	CHECK_EQ(symlink(text, path), 0);
}

static void plant(void)
{
	char path[256];

	plant_link("a-1-00-000000.weft.active", "secret");
	plant_link("b-1-00-000000.weft.active", "not-there");
	plant_link("z-1-00.rings", "disk.img");
	plant_link("z.rings", "disk.img");
	plant_link("c-1-00.rings", "conf");
	plant_link("d-1-00-000000.weft.active.new", "secret");
	write_at(session_dir, "e-1-00-000000.weft.active", "WEFTSEG1", 8);
	write_at(session_dir, "f-1-00-000000.weft.active.new", "WEFTSEG1", 8);
	snprintf(path, sizeof(path), "%s/g-1-00.rings", session_dir);
	CHECK_EQ(mkfifo(path, 0666), 0);
	snprintf(path, sizeof(path), "%s/h-1-00-000000.weft.active", session_dir);
	CHECK_EQ(mkfifo(path, 0666), 0);
}

static const char *const planted[] = {"a-1-00-000000.weft.active",
				      "b-1-00-000000.weft.active",
				      "z-1-00.rings",
				      "z.rings",
				      "c-1-00.rings",
				      "d-1-00-000000.weft.active.new",
				      "e-1-00-000000.weft.active",
				      "f-1-00-000000.weft.active.new",
				      "g-1-00.rings",
				      "h-1-00-000000.weft.active"};
#define N_PLANTED (int)(sizeof(planted) / sizeof(planted[0]))

static void check_untouched(void)
{
	static const char zeros[8192];
	char text[64];
	int i;

	(void)zeros;
	for (i = 0; i < N_PLANTED; i++)
		if (!CHECK(is_there(planted[i])))
			printf("\t%s\n", planted[i]);
	CHECK(is_whole(outside, "secret", "for root only"));
	CHECK(is_whole(outside, "conf.new", "the next configuration"));
	CHECK_EQ(content(outside, "disk.img", text, sizeof(text)), sizeof(text) - 1);
	CHECK_EQ(content(outside, "not-there", text, sizeof(text)), -1);
	CHECK_EQ(tally_files(session_dir, ".broken"), 0);
}

static void prepare(void)
{
	static const char zeros[8192];

	begin_outside();
	write_at(outside, "secret", "for root only", 13);
	write_at(outside, "disk.img", zeros, sizeof(zeros));
	write_at(outside, "conf.new", "the next configuration", 22);
}

TEST(recovery_follows_and_touches_nothing_of_another_user)
{
	if (geteuid() != 0)
		SKIP("only root can be attacked by another user here");
	prepare();
	CHECK_EQ(chmod(session_dir, 01777), 0);
	CHECK_EQ(as_other(plant), 0);
	CHECK_EQ(recover(NULL), 0);
	CHECK(failed_status && strstr(failed_note, "left alone"));
	check_untouched();
	end_outside();
}

/* The same links, of the user's own making: links are not followed whose ever they are. */
TEST(recovery_follows_no_link_of_its_own_user)
{
	prepare();
	plant();
	CHECK_EQ(unlink(strcat(strcpy((char[128]){0}, session_dir), "/e-1-00-000000.weft.active")), 0);
	CHECK_EQ(unlink(strcat(strcpy((char[128]){0}, session_dir), "/f-1-00-000000.weft.active.new")), 0);
	CHECK_EQ(recover(NULL), 0);
	write_at(session_dir, "e-1-00-000000.weft.active", "WEFTSEG1", 8);
	write_at(session_dir, "f-1-00-000000.weft.active.new", "WEFTSEG1", 8);
	check_untouched();
	end_outside();
}

TEST(a_recorder_that_opens_touches_nothing_of_another_user)
{
	struct weft_recorder_opts opts = {.dir = session_dir, .drain_ns = MS, .flush_ns = MS};
	struct weft_recorder *rec;

	if (geteuid() != 0)
		SKIP("only root can be attacked by another user here");
	prepare();
	CHECK_EQ(chmod(session_dir, 01777), 0);
	CHECK_EQ(as_other(plant), 0);
	rec = session_start(&opts);
	REQUIRE(rec);
	tally_emit(tally_kind(), 0, 1);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	check_untouched();
	CHECK_EQ(tally_files(session_dir, ".weft"), 1);
	end_outside();
}

static void open_refused(const char *part)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = session_dir};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	CHECK_EQ(weft_recorder_open(&rec, &opts, &err), -EPERM);
	if (!CHECK(strstr(err.msg, part)))
		printf("\t%s\n", err.msg);
	err.msg[0] = 0;
	CHECK_EQ(recover(&err), -EPERM);
	CHECK(strstr(err.msg, part));
}

TEST(a_directory_that_others_may_write_to_is_refused_with_what_to_do)
{
	session_fresh_dir();
	CHECK_EQ(chmod(session_dir, 0777), 0);
	open_refused("chmod go-w");
	CHECK_EQ(chmod(session_dir, 0770), 0);
	open_refused("chmod go-w");
	CHECK_EQ(chmod(session_dir, 0755), 0);
	CHECK_EQ(recover(NULL), 0);
	CHECK_EQ(chmod(session_dir, 01777), 0);
	CHECK_EQ(recover(NULL), 0);
	session_remove_dir();
}

static void other_opens(void)
{
	open_refused("mkdir -m 700");
}

TEST(a_sticky_directory_of_somebody_else_is_refused)
{
	if (geteuid() != 0)
		SKIP("only root can become somebody else");
	session_fresh_dir();
	CHECK_EQ(chmod(session_dir, 01777), 0);
	CHECK_EQ(as_other(other_opens), 0);
	session_remove_dir();
}

TEST(a_directory_of_another_user_is_refused_by_root_too)
{
	if (geteuid() != 0)
		SKIP("only root can be attacked by another user here");
	session_fresh_dir();
	CHECK_EQ(chown(session_dir, OTHER, OTHER), 0);
	open_refused("belongs to user 65534");
	session_remove_dir();
}

static char link_path[128];

static void plant_dir_link(void)
{
	CHECK_EQ(symlink(outside, link_path), 0);
}

TEST(a_link_of_another_user_on_the_way_is_not_followed)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = link_path};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	if (geteuid() != 0)
		SKIP("only root can be attacked by another user here");
	begin_outside();
	CHECK_EQ(chmod(session_dir, 0777), 0);
	snprintf(link_path, sizeof(link_path), "%s/recordings", session_dir);
	CHECK_EQ(as_other(plant_dir_link), 0);
	CHECK_EQ(weft_recorder_open(&rec, &opts, &err), -EPERM);
	CHECK(strstr(err.msg, "link"));
	/* root's own is a way like any other */
	CHECK_EQ(unlink(link_path), 0);
	plant_dir_link();
	CHECK_EQ(weft_recorder_open(&rec, &opts, &err), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	end_outside();
}

static int mode_of(const char *end)
{
	DIR *dir = opendir(session_dir);
	struct dirent *entry;
	struct stat st = {0};

	while (dir && (entry = readdir(dir))) {
		size_t n = strlen(entry->d_name), m = strlen(end);

		if (n > m && !strcmp(entry->d_name + n - m, end))
			fstatat(dirfd(dir), entry->d_name, &st, 0);
	}
	if (dir)
		closedir(dir);
	return (int)(st.st_mode & 07777);
}

static void check_modes(uint32_t option, int segment)
{
	struct weft_recorder_opts opts = {.drain_ns = MS, .flush_ns = MS, .file_mode = option};
	struct weft_recorder *rec = session_start(&opts);

	REQUIRE(rec);
	tally_emit(tally_kind(), 0, 1);
	CHECK(WAIT_FOR(tally_files(session_dir, ".active") == 1));
	CHECK_EQ(mode_of(".active"), segment);
	CHECK_EQ(mode_of(".rings"), 0600); /* of the file that it leads to */
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(mode_of(".weft"), segment);
	session_remove_dir();
}

TEST(segments_are_for_their_user_and_by_option_for_a_group)
{
	mode_t before = umask(0);
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = "/tmp", .file_mode = 0666};
	struct weft_recorder *rec;

	check_modes(0, 0600);
	umask(077);
	check_modes(0640, 0640);
	umask(before);
	CHECK_EQ(weft_recorder_open(&rec, &opts, NULL), -WEFT_E_OPTION);
}

/* Segments of other programs, files that are called like segments, and one of the same program. */
TEST(retention_deletes_segments_of_the_same_program_only)
{
	static const char *const others[] = {"other-1-00000000-000000.weft", "prog-x-1-00000000-000000.weft",
					     "prog.weft", "prog-1-00000000.weft", "x-prog-1-00000000-000000.weft"};
	struct weft_recorder_opts opts = {.name = "prog", .keep_bytes = 8192, .segment_bytes = 4096};
	static const char segment[16384] = "WEFTSEG1", text[16384] = "a text";
	struct weft_recorder *rec;
	size_t i;

	session_fresh_dir();
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		write_at(session_dir, others[i], segment, sizeof(segment));
	write_at(session_dir, "prog-1-00000000-000000.weft", segment, sizeof(segment));
	write_at(session_dir, "prog-2-00000000-000000.weft", text, sizeof(text));
	opts.dir = session_dir;
	rec = session_start(&opts);
	REQUIRE(rec);
	tally_emit(tally_kind(), 0, 1);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!CHECK(is_there(others[i])))
			printf("\t%s\n", others[i]);
	CHECK(is_there("prog-2-00000000-000000.weft")); /* which does not carry the mark */
	CHECK(!is_there("prog-1-00000000-000000.weft"));
	session_remove_dir();
}

/* A process that records and is killed. Its rings are in shared memory or in the directory. */
static void leave_rings(uint32_t place)
{
	pid_t pid = fork();

	if (!pid) {
		struct weft_recorder_opts opts = {.size = sizeof(opts),
						  .dir = session_dir,
						  .ring_place = place,
						  .drain_ns = 250 * MS,
						  .switches = WEFT_SWITCH_OFF,
						  .sample_hz = WEFT_OFF,
						  .no_recover = 1};
		struct weft_recorder *rec;
		int i, kind = tally_kind();

		if (weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0)
			_exit(1);
		for (i = 1; i <= 1000; i++)
			tally_emit(kind, 0, (uint64_t)i);
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(session_wait(pid), -1);
}

/* The link to rings, or the rings, in session_dir. */
static int find_rings(char *path, size_t bytes)
{
	DIR *dir = opendir(session_dir);
	struct dirent *entry;
	int found = 0;

	while (dir && !found && (entry = readdir(dir))) {
		size_t n = strlen(entry->d_name);

		found = n > 6 && !strcmp(entry->d_name + n - 6, ".rings");
		if (found)
			snprintf(path, bytes, "%s/%.100s", session_dir, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Somebody who cuts and grows a file as fast as possible. */
static void cut_for_ever(const char *path, off_t bytes)
{
	for (;;) {
		(void)!truncate(path, 8192);
		(void)!truncate(path, bytes);
	}
}

TEST(rings_that_are_cut_meanwhile_end_nobody)
{
	char path[200], kept[256], command[1024];
	int i, ended = 0;

	session_fresh_dir();
	snprintf(kept, sizeof(kept), "%s.kept", session_dir);
	leave_rings(WEFT_RING_DIR);
	REQUIRE(find_rings(path, sizeof(path)));
	snprintf(command, sizeof(command), "cp --sparse=always '%s' '%s'", path, kept);
	REQUIRE(system(command) == 0);
	snprintf(command, sizeof(command), "cp --sparse=always '%s' '%s'", kept, path);
	for (i = 0; i < SCALED(20, 8); i++) {
		struct stat st = {0};
		pid_t cutter, pid;

		if (system(command) != 0 || stat(path, &st) < 0)
			break;
		cutter = fork();
		if (!cutter)
			cut_for_ever(path, st.st_size);
		pid = fork();
		if (!pid) {
			recover(NULL);
			_exit(0);
		}
		ended += session_wait(pid) != 0;
		kill(cutter, SIGKILL);
		session_wait(cutter);
	}
	CHECK_EQ(ended, 0);
	CHECK_EQ(unlink(kept), 0);
	session_remove_dir();
}

TEST(a_directory_that_is_removed_leaves_no_rings_in_shared_memory)
{
	char path[200], target[200];
	struct stat st;
	ssize_t n;

	session_fresh_dir();
	leave_rings(WEFT_RING_AUTO);
	REQUIRE(find_rings(path, sizeof(path)));
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	if (n <= 0) {
		session_remove_dir();
		SKIP("there is no /dev/shm");
	}
	CHECK_EQ(stat(target, &st), 0);
	session_remove_dir();
	/* The next recovery of this user, in any directory and perhaps in another process, finds what nobody else
	 * would. */
	session_fresh_dir();
	CHECK_EQ(recover(NULL), 0);
	CHECK(stat(target, &st) < 0 && errno == ENOENT);
	session_remove_dir();
}
