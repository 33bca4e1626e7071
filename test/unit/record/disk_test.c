/* SPDX-License-Identifier: Apache-2.0 */
/* A full disk: a real one, a tmpfs of 1 MiB in a mount namespace of this process alone. */
#include "session.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

static int noise_kind;

/* What no compressor makes smaller. */
static void emit_noise(uint64_t *state)
{
	uint64_t fields[8];
	int i;

	for (i = 0; i < 8; i++) {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		fields[i] = *state;
	}
	weft_event(noise_kind, fields, 8);
}

/* More than the last page of a file that has begun may have room for. */
static void emit_pages(void)
{
	uint64_t noise = 88172645463325252u;

	for (int i = 0; i < 200; i++)
		emit_noise(&noise);
}

static void define_noise(void)
{
	struct weft_field fields[8];
	int i;

	for (i = 0; i < 8; i++)
		fields[i] = (struct weft_field){"noise", WEFT_TYPE_U64, NULL};
	noise_kind = weft_event_define("noise", fields, 8, NULL);
}

/* session_dir becomes a file system of `size`; answers why not, or NULL. */
static const char *small_disk(const char *size)
{
	static int apart;
	char data[32];

	if (!apart && (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return "no right to a mount namespace (run as root)";
	apart = 1;
	session_fresh_dir();
	snprintf(data, sizeof(data), "size=%s", size);
	if (mount("weft-test", session_dir, "tmpfs", 0, data) < 0) {
		session_remove_dir();
		return "no right to mount a tmpfs (run as root)";
	}
	define_noise();
	return NULL;
}

static void remove_disk(void)
{
	umount2(session_dir, MNT_DETACH);
	rmdir(session_dir);
	session_dir[0] = 0;
}

static void ballast_path(char *path, size_t bytes)
{
	snprintf(path, bytes, "%s/ballast", session_dir);
}

/* Takes `bytes` of the disk, or as much as there is. */
static void ballast_add(size_t bytes)
{
	static const char block[4096];
	char path[128];
	int fd;

	ballast_path(path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	while (bytes >= sizeof(block) && write(fd, block, sizeof(block)) == sizeof(block))
		bytes -= sizeof(block);
	close(fd);
}

static void ballast_remove(void)
{
	char path[128];

	ballast_path(path, sizeof(path));
	CHECK_EQ(unlink(path), 0);
}

/* How long the calling thread has taken; time for which somebody else had its CPU does not count, unless it gave
 * that away. */
struct effort {
	uint64_t wall_ns, cpu_ns;
	long waits;
};

static struct effort effort_now(void)
{
	struct effort now = {.wall_ns = session_now_ns()};
	struct timespec cpu;
	struct rusage used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	getrusage(RUSAGE_THREAD, &used);
	now.cpu_ns = (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec;
	now.waits = used.ru_nvcsw;
	return now;
}

static uint64_t effort_since(const struct effort *began)
{
	struct effort now = effort_now();

	return now.waits != began->waits ? now.wall_ns - began->wall_ns : now.cpu_ns - began->cpu_ns;
}

static uint32_t state_of(struct weft_recorder *rec)
{
	return session_stats(rec).state;
}

static void check_inspect(void)
{
	char command[512];

	if (!getenv("WEFT_BUILD"))
		return;
	snprintf(command, sizeof(command), "\"$WEFT_BUILD/weft\" inspect %s/*.weft >/dev/null", session_dir);
	CHECK_EQ(system(command), 0);
}

TEST(recording_pauses_on_a_full_disk_and_goes_on_when_there_is_room)
{
	struct weft_recorder_opts opts = {.drain_ns = 2 * MS, .flush_ns = 5 * MS};
	const char *why = small_disk("4m");
	int kind = tally_kind();
	uint64_t noise = 88172645463325252u, n = 0, sure = 0, inert, from, lost, slowest = 0;
	struct weft_recorder *rec;
	struct tally t;
	uint32_t i;

	if (why)
		SKIP(why);
	ballast_add(3584 << 10); /* without it there is room for all that rings and staging hold */
	opts.dir = session_dir;
	rec = session_start(&opts);
	REQUIRE(rec);
	from = session_now_ns();
	while (state_of(rec) != WEFT_STATE_DISK_FULL && n < 100000) {
		struct effort began = effort_now();
		uint64_t took;

		tally_emit(kind, 0, ++n);
		sure = weft_recording() ? n : sure; /* it may have paused since the look at the state */
		for (i = 0; i < 10; i++)
			emit_noise(&noise);
		took = effort_since(&began);
		slowest = took > slowest ? took : slowest;
		if (n % 16 == 0)
			session_sleep_ns(MS / 4);
	}
	CHECK_EQ(state_of(rec), WEFT_STATE_DISK_FULL);
	CHECK(!weft_recording());
	CHECK(slowest < 200 * MS); /* no emit waited for the disk */
	for (inert = 0; inert < 1000; inert++)
		tally_emit(kind, 1, inert + 1);
	CHECK_EQ(session_stats(rec).pauses, 1);

	ballast_remove();
	CHECK(WAIT_FOR(state_of(rec) == WEFT_STATE_RECORDING));
	CHECK(weft_recording());
	for (i = 1; i <= 100; i++)
		tally_emit(kind, 2, i);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	lost = session_stats(rec).lost;
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	check_inspect();

	tally_init(&t, 3);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.damaged + t.undefined + t.disorder + t.backwards, 0);
	CHECK_EQ(t.lost, lost); /* reported once each, though writing was tried many times */
	CHECK(sure + 1 >= n);
	CHECK(t.sources[0].count + t.lost >= sure); /* noise may have been lost, and is counted with it */
	CHECK(t.sources[0].count > 0);
	CHECK_EQ(t.sources[1].count, 0);
	CHECK_EQ(t.sources[2].count, 100);
	for (i = 0; i < t.n_losses && t.losses[i].reason != WEFT_LOSS_DISK_FULL; i++)
		;
	if (CHECK(i < t.n_losses)) {
		CHECK_EQ(t.losses[i].count, 0);
		CHECK(t.losses[i].from_ns > from && t.losses[i].to_ns > t.losses[i].from_ns);
		CHECK(t.losses[i].to_ns < session_now_ns());
	}
	tally_fini(&t);
	remove_disk();
}

TEST(recording_pauses_on_a_full_disk_and_goes_on_again_and_again)
{
	struct weft_recorder_opts opts = {.drain_ns = 2 * MS, .flush_ns = 5 * MS, .segment_bytes = 64 << 10};
	const char *why = small_disk("4m");
	int kind = tally_kind(), round;
	uint64_t noise = 1, n = 0;
	struct weft_recorder *rec;
	struct tally t;

	if (why)
		SKIP(why);
	opts.dir = session_dir;
	rec = session_start(&opts);
	REQUIRE(rec);
	for (round = 0; round < 3; round++) {
		ballast_add(8 << 20);
		while (state_of(rec) != WEFT_STATE_DISK_FULL) {
			tally_emit(kind, 0, ++n);
			emit_noise(&noise);
			if (n % 50 == 0)
				session_sleep_ns(MS);
		}
		ballast_remove();
		CHECK(WAIT_FOR(state_of(rec) == WEFT_STATE_RECORDING));
	}
	CHECK_EQ(session_stats(rec).pauses, 3);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.damaged + t.undefined + t.disorder + t.backwards, 0);
	CHECK(t.sources[0].count + t.lost + 3 >= n); /* between the look at the state and the emit it may have paused */
	tally_fini(&t);
	remove_disk();
}

static void count_recovered(const struct weft_recovered *one, void *data)
{
	CHECK_EQ(one->status, 0);
	*(uint64_t *)data += one->events;
}

TEST(a_disk_that_is_full_at_the_end_loses_nothing_either)
{
	struct weft_recorder_opts opts = {.drain_ns = 250 * MS};
	const char *why = small_disk("1m");
	int kind = tally_kind();
	struct weft_recorder *rec;
	uint64_t events = 0, i;
	struct weft_error err = {0};
	struct tally t;

	if (why)
		SKIP(why);
	opts.dir = session_dir;
	rec = session_start(&opts);
	REQUIRE(rec);
	ballast_add(8 << 20);
	for (i = 1; i <= 1000; i++)
		tally_emit(kind, 0, i);
	CHECK_EQ(weft_recorder_close(rec, &err), -ENOSPC);
	CHECK_EQ(err.code, -ENOSPC);
	CHECK(strstr(err.msg, "weft recover") && strstr(err.msg, session_dir)); /* the fix is in it */
	CHECK_EQ(tally_files(session_dir, ".weft"), 0);
	CHECK(weft_recover(session_dir, NULL, NULL, NULL) <= 0); /* still no room, and nothing is lost by trying */
	ballast_remove();
	CHECK_EQ(weft_recover(session_dir, count_recovered, &events, NULL), 1);
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.damaged + t.undefined + t.disorder + t.lost, 0);
	CHECK_EQ(t.sources[0].count, 1000);
	CHECK_EQ(t.events, events);
	CHECK_EQ(tally_files(session_dir, ".active") + tally_files(session_dir, ".rings") +
			 tally_files(session_dir, ".new"),
		 0);
	tally_fini(&t);
	remove_disk();
}

/* Stop could not write it, so close must not remove where it is; and writes it itself when there is room again. */
static void stop_then_close(bool room)
{
	struct weft_recorder_opts opts = {.drain_ns = 250 * MS, .dir = session_dir};
	int kind = tally_kind();
	struct weft_recorder *rec = session_start(&opts);
	struct tally t;
	uint64_t i;

	REQUIRE(rec);
	ballast_add(8 << 20);
	for (i = 1; i <= 1000; i++)
		tally_emit(kind, 0, i);
	emit_pages();
	CHECK_EQ(weft_recorder_stop(rec, NULL), -ENOSPC);
	if (room)
		ballast_remove();
	CHECK_EQ(weft_recorder_close(rec, NULL), room ? 0 : -ENOSPC);
	if (!room) {
		ballast_remove();
		CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	}
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.sources[0].count, 1000);
	CHECK_EQ(t.lost + t.damaged, 0);
	CHECK(room ||
	      (t.n_losses && t.losses[0].reason == WEFT_LOSS_DISK_FULL)); /* from then on nothing was recorded */
	tally_fini(&t);
	remove_disk();
}

TEST(a_stop_that_could_not_write_is_not_forgotten_by_close)
{
	const char *why = small_disk("1m");

	if (why)
		SKIP(why);
	stop_then_close(false);
	REQUIRE(!small_disk("1m"));
	stop_then_close(true);
}

TEST(rotation_on_a_full_disk_is_an_error_and_can_be_tried_again)
{
	const char *why = small_disk("1m");
	struct weft_recorder_opts opts = {0};
	int kind = tally_kind();
	struct weft_recorder *rec;
	struct weft_error err = {0};
	struct tally t;

	if (why)
		SKIP(why);
	opts.dir = session_dir;
	rec = session_start(&opts);
	REQUIRE(rec);
	ballast_add(8 << 20);
	tally_emit(kind, 0, 1);
	emit_pages();
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, &err), -ENOSPC);
	CHECK(strstr(err.msg, "cannot seal the segment"));
	CHECK_EQ(state_of(rec), WEFT_STATE_DISK_FULL);
	ballast_remove();
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	CHECK(WAIT_FOR(state_of(rec) == WEFT_STATE_RECORDING));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.damaged + t.undefined, 0);
	CHECK_EQ(t.sources[0].count, 1);
	tally_fini(&t);
	remove_disk();
}

/* More is recorded than a file may have: in several, and recording never stops. */
TEST(segments_stay_below_the_limit_on_the_size_of_files)
{
	struct weft_recorder_opts opts = {.drain_ns = MS, .flush_ns = 10 * MS};
	struct rlimit limit, before;
	struct weft_recorder *rec;
	uint64_t state = 88172645463325252, i, pauses;
	struct tally t;

	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 4 << 20;
	define_noise();
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	rec = session_start(&opts);
	REQUIRE(rec);
	for (i = 0; i < 100000; i++) {
		emit_noise(&state);
		if (i % 500 == 499)
			CHECK(WAIT_FOR(session_ring()->hot.head ==
				       __atomic_load_n(&session_ring()->tail, __ATOMIC_ACQUIRE)));
	}
	pauses = session_stats(rec).pauses;
	session_end(rec, &t, 1);
	setrlimit(RLIMIT_FSIZE, &before);
	CHECK_EQ(pauses, 0);
	CHECK(t.segments >= 3);
	CHECK_EQ(t.by_kind[noise_kind], 100000);
	CHECK_EQ(t.lost, 0);
	tally_fini(&t);
}
