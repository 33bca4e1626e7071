/* SPDX-License-Identifier: Apache-2.0 */
/* Every loss is in the segment, with reason and time. */
#include "session.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

/* The loss of that reason in session_dir; count UINT64_MAX: there is none. */
static struct weft_loss find_loss(uint32_t reason, struct tally *t)
{
	struct weft_loss none = {.count = UINT64_MAX};
	uint32_t i;

	tally_init(t, 1);
	tally_dir(t, session_dir);
	CHECK_EQ(t->damaged, 0);
	for (i = 0; i < t->n_losses; i++)
		if (t->losses[i].reason == reason)
			none = t->losses[i];
	tally_fini(t);
	return none;
}

TEST(a_recording_that_ends_while_it_is_paused_says_so)
{
	struct weft_recorder *rec = session_start(NULL);
	struct weft_loss loss;
	struct tally t;
	uint64_t before;

	REQUIRE(rec);
	tally_emit(tally_kind(), 0, 1);
	before = session_now_ns();
	CHECK_EQ(weft_recorder_pause(rec), 0);
	tally_emit(tally_kind(), 0, 2);
	session_sleep_ns(2 * MS);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	loss = find_loss(WEFT_LOSS_PAUSED, &t);
	CHECK_EQ(loss.count, 0);
	CHECK(loss.from_ns >= before && loss.to_ns >= loss.from_ns + 2 * MS);
	session_remove_dir();
}

TEST(a_process_that_is_killed_while_it_is_paused_leaves_that_to_recovery)
{
	struct weft_loss loss;
	struct tally t;
	pid_t pid;

	session_fresh_dir();
	pid = fork();
	if (!pid) {
		struct weft_recorder_opts opts = {.dir = session_dir};
		struct weft_recorder *rec = session_start(&opts);

		tally_emit(tally_kind(), 0, 1);
		weft_recorder_pause(rec);
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(session_wait(pid), -1);
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	loss = find_loss(WEFT_LOSS_PAUSED, &t);
	CHECK_EQ(loss.count, 0);
	CHECK(loss.from_ns > 0 && loss.to_ns >= loss.from_ns);
	session_remove_dir();
}

/* Names without end: there is no room for more of them, and still for kinds. */
static void fill_with_names(void)
{
	static char text[4000];
	int i;

	memset(text, 'x', sizeof(text) - 1);
	for (i = 0; i < 1000; i++) {
		snprintf(text, 20, "%019d", i);
		text[19] = 'x';
		weft_string(text);
	}
}

static uint32_t fill_with_kinds(struct weft_error *err)
{
	struct weft_field fields[8];
	char name[256], field[8][256];
	uint32_t kind = 1;
	int i, k;

	for (k = 0; k < 8; k++) {
		memset(field[k], 'a' + k, 255);
		field[k][255] = 0;
		fields[k] = (struct weft_field){field[k], WEFT_TYPE_U64, NULL};
	}
	for (i = 0; kind && i < 5000; i++) {
		snprintf(name, sizeof(name), "kind %d", i);
		kind = weft_event_define(name, fields, 8, err);
	}
	return kind;
}

static char degraded[200];

static void read_fact(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const char *fact = weft_segment_fact(seg, "degraded.definitions");

	(void)ev;
	(void)data;
	if (fact)
		snprintf(degraded, sizeof(degraded), "%s", fact);
}

TEST(events_of_kinds_that_were_refused_are_counted)
{
	struct weft_recorder *rec = session_start(NULL);
	struct weft_loss loss;
	struct tally t;
	struct weft_error err = {0};
	uint32_t kind;
	int i;

	REQUIRE(rec);
	fill_with_names();
	CHECK(weft_event_define("after the names", NULL, 0, NULL) > 0); /* which have left room for kinds */
	kind = fill_with_kinds(&err);
	CHECK_EQ(kind, 0);
	CHECK_EQ(err.code, -WEFT_E_LIMIT);
	CHECK(strstr(err.msg, "no room"));
	for (i = 0; i < 1000; i++)
		weft_event(kind, NULL, 0);
	weft_event(7, NULL, 0); /* which is no kind of the program's */
	tally_emit(tally_kind(), 0, 1);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 1);
	t.each = read_fact;
	tally_dir(&t, session_dir);
	CHECK_EQ(t.lost, 1001);
	CHECK(t.n_losses < 100); /* not a record for each */
	CHECK(strstr(degraded, "table of definitions is full"));
	tally_fini(&t);
	loss = find_loss(WEFT_LOSS_BAD_EVENT, &t);
	CHECK(loss.count > 0 && loss.count <= 1001 && loss.thread && loss.from_ns);
	session_remove_dir();
}

static char no_proc_why[200];

static void read_stacks_fact(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const char *fact = weft_segment_fact(seg, "degraded.stacks");

	(void)ev;
	(void)data;
	snprintf(no_proc_why, sizeof(no_proc_why), "%s", fact ? fact : "");
}

/* Where a stack ends is not known then. */
TEST(stacks_that_are_lost_without_proc_have_a_reason)
{
	struct weft_recorder_opts opts = {.sample_hz = 99, .dir = session_dir};
	struct tally t;
	pid_t pid;
	int r;

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer does not start threads in a child of one that had some");
	session_fresh_dir();
	pid = fork();
	if (!pid) {
		struct weft_recorder *rec;

		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    umount2("/proc", MNT_DETACH) < 0)
			_exit(77);
		rec = session_start(&opts);
		if (!rec)
			_exit(1);
		tally_emit(tally_kind(), 0, 1);
		_exit(weft_recorder_close(rec, NULL) != 0);
	}
	r = session_wait(pid);
	if (r == 77) {
		session_remove_dir();
		SKIP("no right to a mount namespace (run as root)");
	}
	CHECK_EQ(r, 0);
	tally_init(&t, 1);
	t.each = read_stacks_fact;
	tally_dir(&t, session_dir);
	CHECK(strstr(no_proc_why, "/proc/self/maps"));
	tally_fini(&t);
	session_remove_dir();
}
