/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a recorder: what is refused, with which words, and what the environment does. */
#include "session.h"

#include <errno.h>
#include <sys/stat.h>

#include "record/host/facts.h"
#include "record/options.h"

/* Opens with `opts` and expects `code` and a message with `word` in it. */
static void refused(struct weft_recorder_opts opts, int code, const char *word)
{
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	opts.size = sizeof(opts);
	CHECK_EQ(weft_recorder_open(&rec, &opts, &err), code);
	CHECK(!rec);
	CHECK_EQ(err.code, code);
	if (!CHECK(strstr(err.msg, word)))
		printf("\t%s\n", err.msg);
}

TEST(values_that_are_not_allowed_are_named)
{
	static const char *const labels[] = {"no-equals-sign", NULL};
	char longer[400];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	refused((struct weft_recorder_opts){.ring_bytes = 65537}, -WEFT_E_OPTION, "ring_bytes");
	refused((struct weft_recorder_opts){.ring_bytes = 4096}, -WEFT_E_OPTION, "ring_bytes");
	refused((struct weft_recorder_opts){.quantum_ns = 3}, -WEFT_E_OPTION, "quantum_ns");
	refused((struct weft_recorder_opts){.max_threads = 2000000}, -WEFT_E_OPTION, "max_threads");
	refused((struct weft_recorder_opts){.drain_ns = 251 * MS}, -WEFT_E_OPTION, "drain_ns");
	refused((struct weft_recorder_opts){.drain_ns = 1}, -WEFT_E_OPTION, "drain_ns");
	refused((struct weft_recorder_opts){.queue_ns = 1}, -WEFT_E_OPTION, "queue_ns");
	refused((struct weft_recorder_opts){.segment_bytes = 1}, -WEFT_E_OPTION, "segment_bytes");
	refused((struct weft_recorder_opts){.segment_bytes = 1 << 20, .keep_bytes = 4096}, -WEFT_E_OPTION,
		"keep_bytes");
	refused((struct weft_recorder_opts){.on_fork = 9}, -WEFT_E_OPTION, "on_fork");
	refused((struct weft_recorder_opts){.ring_place = 9}, -WEFT_E_OPTION, "ring_place");
	refused((struct weft_recorder_opts){.level = 20}, -WEFT_E_OPTION, "level");
	refused((struct weft_recorder_opts){.dir = ""}, -WEFT_E_OPTION, "dir");
	refused((struct weft_recorder_opts){.dir = longer}, -WEFT_E_OPTION, "dir");
	refused((struct weft_recorder_opts){.labels = labels}, -WEFT_E_OPTION, "no-equals-sign");
}

TEST(a_directory_that_cannot_be_is_named)
{
	refused((struct weft_recorder_opts){.dir = "/dev/null/x"}, -ENOTDIR, "/dev/null/x");
	refused((struct weft_recorder_opts){.dir = "/proc/weft"}, -ENOENT, "/proc/weft");
}

TEST(a_program_has_the_name_that_it_was_called_by)
{
	char *called = program_invocation_short_name, name[64];

	program_invocation_short_name = (char *)"redis-server";
	weft__facts_program(name, sizeof(name));
	CHECK_STR(name, "redis-server");
	program_invocation_short_name = (char *)"-bash";
	weft__facts_program(name, sizeof(name));
	CHECK_STR(name, "bash");
	program_invocation_short_name = (char *)"nginx: worker process"; /* written over the arguments */
	weft__facts_program(name, sizeof(name));
	CHECK(strstr(name, "options_test") != NULL);
	program_invocation_short_name = called;
}

TEST(options_without_a_size_are_refused)
{
	struct weft_recorder_opts opts = {.size = 0};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	CHECK_EQ(weft_recorder_open(&rec, &opts, &err), -WEFT_E_OPTION);
	CHECK(strstr(err.msg, "size"));
}

TEST(off_is_one_constant_for_rates_limits_and_times)
{
	struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
	struct weft_recorder *rec = NULL;

	CHECK_EQ(opts.size, sizeof(opts));
	opts.sample_hz = opts.wall_hz = opts.budget_ppm = opts.wait_ns = opts.stuck_ns = opts.poll_slow_ns = WEFT_OFF;
	CHECK_EQ(weft_recorder_open(&rec, &opts, NULL), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	refused((struct weft_recorder_opts){.drain_ns = WEFT_OFF}, -WEFT_E_OPTION, "drain_ns");
	refused((struct weft_recorder_opts){.wall_hz = 1001}, -WEFT_E_OPTION,
		"wall_hz is 1001; give at most 1000, or WEFT_OFF");
	refused((struct weft_recorder_opts){.sync = 2}, -WEFT_E_OPTION, "sync is 2; it is 0 or 1");
}

TEST(a_caller_built_with_older_headers_gets_defaults_for_the_rest)
{
	struct weft_recorder_opts opts = {.size = offsetof(struct weft_recorder_opts, name), .level = 99};
	struct weft_recorder *rec = NULL;

	CHECK_EQ(weft_recorder_open(&rec, &opts, NULL), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
}

TEST(a_caller_built_with_newer_headers_may_not_use_what_is_new)
{
	struct {
		struct weft_recorder_opts opts;
		uint64_t more;
	} newer = {.opts = {.size = sizeof(newer)}};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	CHECK_EQ(weft_recorder_open(&rec, &newer.opts, NULL), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	newer.more = 1;
	rec = NULL;
	CHECK_EQ(weft_recorder_open(&rec, &newer.opts, &err), -E2BIG);
	CHECK(strstr(err.msg, "newer"));
	CHECK(!rec);
}

TEST(newer_options_are_taken_with_the_environment_too)
{
	struct {
		struct weft_recorder_opts opts;
		uint64_t more;
	} newer = {.opts = {.size = sizeof(newer)}};
	struct weft_recorder *rec = NULL;

	session_fresh_dir();
	newer.opts.dir = session_dir;
	CHECK_EQ(weft_recorder_open_env(&rec, &newer.opts, NULL), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	newer.more = 1;
	CHECK_EQ(weft_recorder_open_env(&rec, &newer.opts, NULL), -E2BIG);
	session_remove_dir();
}

TEST(stats_of_another_size_are_filled_as_far_as_they_go)
{
	struct {
		struct weft_recorder_stats stats;
		uint64_t more;
	} newer = {.stats = {.size = sizeof(newer)}, .more = 7};
	struct weft_recorder_stats stats = {.size = offsetof(struct weft_recorder_stats, events), .events = 7};

	CHECK_EQ(weft_recorder_stats(NULL, &newer.stats), 0);
	CHECK_EQ(newer.more, 0);
	CHECK_EQ(weft_recorder_stats(NULL, &stats), 0);
	CHECK_EQ(stats.events, 7);
}

static void clear_env(void)
{
	static const char *const names[] = {
		"WEFT_DIR",  "WEFT_NAME", "WEFT_OFF",        "WEFT_LABELS",        "WEFT_RING_BYTES",
		"WEFT_RING", "WEFT_FORK", "WEFT_KEEP_BYTES", "WEFT_SEGMENT_BYTES", "WEFT_SEGMENT_SECONDS",
		"WEFT_LEVEL"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

TEST(without_a_directory_the_environment_leaves_recording_off)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = "/nonexistent"};
	struct weft_recorder *rec = (void *)1;

	clear_env();
	CHECK_EQ(weft_recorder_open_env(&rec, NULL, NULL), 1);
	CHECK(!rec);
	setenv("WEFT_OFF", "1", 1);
	setenv("WEFT_DIR", "/nonexistent", 1);
	rec = (void *)1;
	CHECK_EQ(weft_recorder_open_env(&rec, &opts, NULL), 1);
	CHECK(!rec);
	clear_env();
}

static void note_facts(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	(void)ev;
	(void)data;
	CHECK_STR(weft_segment_fact(seg, "service.name"), "by-env");
	CHECK_STR(weft_segment_fact(seg, "label.zone"), "eu-1");
	CHECK_STR(weft_segment_fact(seg, "label.empty"), "");
	CHECK_STR(weft_segment_fact(seg, "ring.slots"), "1024");
	CHECK_STR(weft_segment_fact(seg, "ring.place"), "memory");
}

TEST(the_environment_sets_options_over_those_of_the_program)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = "/nonexistent", .name = "by-program"};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};
	struct tally t;

	clear_env();
	session_fresh_dir();
	setenv("WEFT_DIR", session_dir, 1);
	setenv("WEFT_NAME", "by-env", 1);
	setenv("WEFT_LABELS", "zone=eu-1,empty=", 1);
	setenv("WEFT_RING_BYTES", "16K", 1);
	setenv("WEFT_RING", "memory", 1);
	setenv("WEFT_FORK", "off", 1);
	setenv("WEFT_KEEP_BYTES", "1M", 1);
	setenv("WEFT_LEVEL", "3", 1);
	if (!CHECK_EQ(weft_recorder_open_env(&rec, &opts, &err), 0))
		printf("\t%s\n", err.msg);
	clear_env();
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	CHECK_EQ(tally_files(session_dir, ".rings"), 0);
	weft_poll_end();
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = note_facts;
	CHECK_EQ(tally_dir(&t, session_dir), 1);
	CHECK_EQ(t.by_kind[WEFT_KIND_POLL_END], 1);
	tally_fini(&t);
	session_remove_dir();
}

static int n_warnings;
static char warning[500];

static void keep_warning(enum weft_log_level level, const char *msg, void *data)
{
	(void)level;
	(void)data;
	n_warnings++;
	snprintf(warning, sizeof(warning), "%s", msg);
}

static void env_warned(const char *name, const char *value)
{
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	clear_env();
	setenv("WEFT_DIR", session_dir, 1);
	setenv(name, value, 1);
	n_warnings = 0;
	weft_set_log(keep_warning, WEFT_LOG_WARN, NULL);
	CHECK_EQ(weft_recorder_open_env(&rec, NULL, &err), 0);
	weft_set_log(NULL, WEFT_LOG_WARN, NULL);
	CHECK_EQ(n_warnings, 1);
	if (!CHECK(strstr(warning, name)))
		printf("\t%s\n", warning);
	weft_recorder_close(rec, NULL);
	clear_env();
	unsetenv(name);
}

TEST(a_variable_that_makes_no_sense_is_warned_of_and_its_default_holds)
{
	session_fresh_dir();
	env_warned("WEFT_RING_BYTES", "many");
	env_warned("WEFT_RING_BYTES", "5G");
	env_warned("WEFT_RING_BYTES", "65537");
	env_warned("WEFT_KEEP_BYTES", "-1");
	env_warned("WEFT_SEGMENT_SECONDS", "99999999999999999999");
	env_warned("WEFT_RING", "disk");
	env_warned("WEFT_FORK", "maybe");
	env_warned("WEFT_LABELS", "novalue");
	session_remove_dir();
}

TEST(the_configuration_file_is_below_environment_and_program)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .level = 4};
	struct weft__options store = {0};
	char path[600];
	FILE *file;

	session_fresh_dir();
	clear_env();
	snprintf(path, sizeof(path), "%s/weft.conf", session_dir);
	file = fopen(path, "w");
	REQUIRE(file != NULL);
	fprintf(file,
		"# a comment\n\n level = 9\nWEFT_KEEP_BYTES=1M \nship_to = s3://a s3://b\nfork=off\nname=n\nring=x");
	fclose(file);
	chmod(path, 0600);
	setenv("WEFT_CONFIG", path, 1);
	setenv("WEFT_NAME", "by-env", 1);
	CHECK_EQ(weft__options_env(&opts, &store, NULL), 0);
	CHECK_EQ(opts.level, 4);
	CHECK_EQ(opts.keep_bytes, 1 << 20);
	CHECK_STR(opts.ship_to, "s3://a s3://b");
	CHECK_STR(opts.name, "by-env");
	CHECK_EQ(opts.ring_place, 0);
	weft__options_fini(&store);
	chmod(path, 0666);
	opts = (struct weft_recorder_opts){.size = sizeof(opts)};
	CHECK_EQ(weft__options_env(&opts, &store, NULL), 0);
	CHECK(!opts.ship_to);
	weft__options_fini(&store);
	unsetenv("WEFT_CONFIG");
	clear_env();
	session_remove_dir();
}
