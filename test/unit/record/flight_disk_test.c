/* SPDX-License-Identifier: Apache-2.0 */
/* A dump on a full disk: a real one, a tmpfs in a mount namespace of this process alone. */
#include "session.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#define NOISE_EVENTS 5000 /* of 64 bytes that no compressor makes smaller: more than the disk has */
#define DISK "size=256k"

static int noise_kind;

static void define_noise(void)
{
	struct weft_field fields[8];
	int i;

	for (i = 0; i < 8; i++)
		fields[i] = (struct weft_field){"noise", WEFT_TYPE_U64, NULL};
	noise_kind = weft_event_define("noise", fields, 8, NULL);
}

static void emit_noise(struct weft_recorder *rec, uint64_t n)
{
	uint64_t state = 88172645463325252, fields[8], i;
	int f;

	for (i = 0; i < n; i++) {
		for (f = 0; f < 8; f++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			fields[f] = state;
		}
		weft_event(noise_kind, fields, 8);
		if (i % 500 == 499)
			CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0); /* no event is lost */
	}
}

static const char *small_disk(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return "no right to a mount namespace (run as root)";
	session_fresh_dir();
	if (mount("weft-test", session_dir, "tmpfs", 0, DISK) < 0) {
		session_remove_dir();
		return "no right to mount a tmpfs (run as root)";
	}
	define_noise();
	return NULL;
}

TEST(a_dump_that_does_not_fit_leaves_nothing_and_recording_goes_on)
{
	struct weft_recorder_opts opts = {
		.flight_ns = 60000 * MS, .trigger_signal = SIGUSR2, .ring_place = WEFT_RING_MEMORY};
	const char *why = small_disk();
	struct weft_recorder *rec;
	struct weft_error err = {0};
	char path[512];
	struct tally t;

	if (why)
		SKIP(why);
	opts.dir = session_dir;
	rec = session_start(&opts);
	REQUIRE(rec);
	emit_noise(rec, NOISE_EVENTS);
	CHECK_EQ(weft_recorder_dump(rec, 0, 0, path, sizeof(path), &err), -ENOSPC);
	CHECK_STR(path, "");
	CHECK_EQ(tally_files(session_dir, ""), 0);
	raise(SIGUSR2); /* is tried again and again */
	emit_noise(rec, 500);
	CHECK_EQ(session_stats(rec).state, WEFT_STATE_RECORDING);
	CHECK_EQ(session_stats(rec).lost, 0);
	CHECK_EQ(session_stats(rec).dumps, 0);
	CHECK_EQ(mount("weft-test", session_dir, "tmpfs", MS_REMOUNT, "size=16m"), 0);
	CHECK(WAIT_FOR(session_stats(rec).dumps == 1));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 1);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.segments, 1);
	CHECK_EQ(t.damaged, 0);
	CHECK(t.by_kind[noise_kind] >= NOISE_EVENTS);
	tally_fini(&t);
	umount2(session_dir, MNT_DETACH);
	rmdir(session_dir);
}
