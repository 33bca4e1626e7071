/* SPDX-License-Identifier: Apache-2.0 */
/* Small recordings whose every figure is known, as profiles. test/e2e/export.py compares whole ones with the report. */
#include "export/aggregate.h"

#include "unit/analyze/segfile.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS 1000000u
#define AT(ms) (SEGFILE_MONO + (ms)*MS)
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER
#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Task 7 polls twice. A request has its endpoint only after its first sample, and the second sample is of the same
 * request in another span. */
static const struct segfile_event events[] = {
	EV(AT(0), 1, SPAWN, 7, 2),
	EV(AT(10), 1, POLL_BEGIN, 7, 3),
	EV(AT(11), 1, CONTEXT, 1, 2, 0xabc, 0xdef, 0, 0),
	EV(AT(15), 1, SAMPLE, SAMPLE_OF(11, 4)),
	EV(AT(16), 1, CONTEXT, 1, 2, 0xabd, 0xdef, 2, 3),
	EV(AT(17), 1, SAMPLE, SAMPLE_OF(11, 5)),
	EV(AT(18), 1, CONTEXT, 0, 0, 0, 0, 0, 0),
	EV(AT(30), 1, WAIT, WEFT_WAIT_LOCK, 1, 0xbeef, 10 * MS, 103, 12, 0, 0),
	EV(AT(50), 1, POLL_END),
	EV(AT(60), 1, POLL_BEGIN, 7, 0),
	EV(AT(62), 1, POLL_END),
	EV(AT(70), 1, SAMPLE, SAMPLE_OF(12, 6)),
	EV(AT(92), 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 100, 5 * MS, MS),
};

/* A request sleeps, waits and is preempted; switches are reported by another thread, when the next one is in force. */
static const struct segfile_event off_events[] = {
	EV(AT(0), 1, CONTEXT, 1, 2, 0xa1, 0xd1, 0, 0),
	EV(AT(4), 1, SAMPLE, SAMPLE_OF(11, 4)),
	EV(AT(40), 1, WAIT, WEFT_WAIT_LOCK, 1, 0xbeef, 10 * MS, 103, 12, 0, 0),
	EV(AT(45), 1, CONTEXT, 1, 2, 0xa2, 0xd2, 2, 0),
	EV(AT(60), 1, SAMPLE, SAMPLE_OF(11, 5)),
	EV(AT(50), 3, OFFCPU, 101, AT(5), 15 * MS, WEFT_OFFCPU_BLOCKED, 1, 12, 0),
	EV(AT(70), 3, OFFCPU, 101, AT(46), 12 * MS, WEFT_OFFCPU_PREEMPTED, 1, 0, 0),
};

static char dir[256];
static struct weft__recordings list;

static void more(struct weft__defs *defs, const struct segfile *file)
{
	static const struct weft_frame leaf[] = {{1, 0x10}, {1, 0x20}}, other[] = {{1, 0x30}, {1, 0x20}};
	struct weft_module module = {.id = 1,
				     .kind = WEFT_MODULE_FILE,
				     .path = "/opt/shop",
				     .start = 0x1000,
				     .end = 0x2000,
				     .offset = 0x400,
				     .build_id_n = 2,
				     .build_id = {0xab, 0xcd}};
	struct weft_stack stacks[] = {{.id = 11, .flags = WEFT_STACK_COMPLETE, .n_frames = 2, .frames = leaf},
				      {.id = 12, .flags = WEFT_STACK_CUT, .n_frames = 2, .frames = other}};

	(void)file;
	weft__defs_fact(defs, "sample.engine", "timer");
	weft__defs_fact(defs, "sample.hz", "100");
	weft__defs_fact(defs, "process.exe", "/opt/shop");
	weft__defs_fact(defs, "label.env", "prod");
	weft__defs_fact(defs, "label.team", "a b");
	weft__defs_fact(defs, "cloud.region", "eu-west-3");
	weft__defs_fact(defs, "aws.ecs.task.arn", "arn:aws:ecs:eu-west-3:1:task/c/1");
	weft__defs_string(defs, 2, "POST /cart");
	weft__defs_string(defs, 3, "tenant=a,tier=b");
	weft__defs_module(defs, &module);
	weft__defs_stack(defs, &stacks[0]);
	weft__defs_stack(defs, &stacks[1]);
}

static void begin_with(const struct segfile_event *all, size_t n)
{
	struct segfile file = {.recording = 1, .pid = "42", .events = all, .n_events = n};

	segfile_dir(dir, sizeof(dir));
	segfile_more = more;
	segfile_write(&file, segfile_path(dir, "a.weft"));
	memset(&list, 0, sizeof(list));
	CHECK_EQ(weft__recordings_add(&list, dir, NULL), 0);
	weft__recordings_settle(&list);
}

static void begin(void)
{
	begin_with(events, N(events));
}

static void end(void)
{
	static const char *const names[] = {"a.weft", NULL};

	weft__recordings_fini(&list);
	segfile_remove(dir, names);
}

static int64_t total(const struct weft__aggregate *agg, enum weft__value_type value)
{
	int64_t all = agg->sums.dropped[value];
	size_t i;

	for (i = 0; i < agg->sums.n_rows; i++)
		all += agg->sums.values[i * WEFT__N_VALUES + value];
	return all;
}

/* The labels of the row that has that CPU time. */
static bool row_of(const struct weft__aggregate *agg, int64_t cpu_ns, struct weft__row_labels *labels, size_t *row)
{
	for (*row = 0; *row < agg->sums.n_rows; ++*row)
		if (agg->sums.values[*row * WEFT__N_VALUES + WEFT__VALUE_CPU_NS] == cpu_ns) {
			weft__aggregate_labels(agg, agg->sums.rows[*row].labels, labels);
			return true;
		}
	return false;
}

TEST(an_endpoint_that_is_named_late_is_that_of_all_samples_of_its_request)
{
	struct weft__export_opts opts = {.no_symbols = true};
	struct weft__row_labels first, second, none;
	struct weft__aggregate agg;
	size_t row;

	begin();
	REQUIRE(weft__aggregate_init(&agg, &list, &opts, NULL, NULL) == 0);
	REQUIRE(row_of(&agg, 4 * MS, &first, &row));
	CHECK_EQ(first.span, 0xabc);
	CHECK_EQ(first.root, 0xdef);
	CHECK_STR(weft__aggregate_text(&agg, first.endpoint), "POST /cart");
	CHECK_STR(weft__aggregate_text(&agg, first.labels), "");
	CHECK_STR(weft__aggregate_text(&agg, first.location), "echo");
	CHECK_STR(weft__aggregate_text(&agg, first.worker), "demo/0");
	CHECK_EQ(first.tid, 101);
	REQUIRE(row_of(&agg, 5 * MS, &second, &row));
	CHECK_EQ(second.span, 0xabd);
	CHECK_EQ(second.trace_lo, 2);
	CHECK_STR(weft__aggregate_text(&agg, second.labels), "tenant=a,tier=b");
	REQUIRE(row_of(&agg, 6 * MS, &none, &row));
	CHECK_EQ(none.span, 0);
	CHECK_EQ(none.endpoint, 0);
	weft__aggregate_fini(&agg);
	end();
}

/* The span of all rows that have some of a value, which must be one; 0: there is none, or several. */
static uint64_t span_of(const struct weft__aggregate *agg, enum weft__value_type value, const char *state)
{
	uint64_t span = 0;
	size_t i;

	for (i = 0; i < agg->sums.n_rows; i++) {
		struct weft__row_labels labels;

		weft__aggregate_labels(agg, agg->sums.rows[i].labels, &labels);
		if (!agg->sums.values[i * WEFT__N_VALUES + value] ||
		    strcmp(weft__aggregate_text(agg, labels.state), state) != 0)
			continue;
		if (span && span != labels.span)
			return 0;
		span = labels.span;
	}
	return span;
}

TEST(time_off_the_cpu_and_wall_time_have_the_span_that_was_in_force_then)
{
	struct weft__export_opts opts = {.no_symbols = true};
	struct weft__aggregate agg;

	begin_with(off_events, N(off_events));
	REQUIRE(weft__aggregate_init(&agg, &list, &opts, NULL, NULL) == 0);
	CHECK_EQ(span_of(&agg, WEFT__VALUE_OFFCPU_NS, "blocked"), 0xa1);
	CHECK_EQ(span_of(&agg, WEFT__VALUE_OFFCPU_NS, "preempted"), 0xa2);
	CHECK_EQ(span_of(&agg, WEFT__VALUE_WALL_NS, "blocked"), 0xa1);
	CHECK_EQ(span_of(&agg, WEFT__VALUE_WALL_NS, "waiting"), 0xa1);
	CHECK_EQ(span_of(&agg, WEFT__VALUE_WALL_NS, "preempted"), 0xa2);
	CHECK_EQ(span_of(&agg, WEFT__VALUE_WAIT_NS, "waiting"), 0xa1);
	weft__aggregate_fini(&agg);
	end();
}

TEST(tags_are_those_given_then_the_users_labels_then_the_clouds_facts)
{
	const struct weft__export_tag given = {"team", "mine"};
	struct weft__export_opts opts = {.no_symbols = true, .tags = &given, .n_tags = 1};
	struct weft__aggregate agg;

	begin();
	REQUIRE(weft__aggregate_init(&agg, &list, &opts, NULL, NULL) == 0);
	CHECK_STR(weft__tags_get(&agg.tags, "team"), "mine");
	CHECK_STR(weft__tags_get(&agg.tags, "env"), "prod");
	CHECK_STR(weft__tags_get(&agg.tags, "cloud.region"), "eu-west-3");
	CHECK_STR(weft__tags_get(&agg.tags, "aws.ecs.task.arn"), "arn:aws:ecs:eu-west-3:1:task/c/1");
	CHECK(!weft__tags_get(&agg.tags, "process.exe"));
	weft__aggregate_fini(&agg);
	end();
}

TEST(a_place_has_its_address_in_the_mapping_and_a_cut_stack_says_so)
{
	struct weft__export_opts opts = {.no_symbols = true};
	struct weft__row_labels labels;
	struct weft__aggregate agg;
	const uint32_t *frames;
	size_t row, n;

	begin();
	REQUIRE(weft__aggregate_init(&agg, &list, &opts, NULL, NULL) == 0);
	REQUIRE(row_of(&agg, 6 * MS, &labels, &row));
	frames = weft__sums_frames(&agg.sums, agg.sums.rows[row].stack, &n);
	REQUIRE(n == 3);
	CHECK_EQ(agg.places[frames[0]].address, 0x1030);
	CHECK_EQ(agg.places[frames[1]].address, 0x1020);
	CHECK_EQ(agg.places[frames[2]].mapping, 0);
	REQUIRE(agg.n_mappings == 1);
	CHECK_EQ(agg.mappings[0].start, 0x1000);
	CHECK_STR(weft__aggregate_text(&agg, agg.mappings[0].build_id), "abcd");
	weft__aggregate_fini(&agg);
	end();
}

TEST(what_is_summed_is_what_was_asked_for)
{
	struct weft__export_opts opts = {.no_symbols = true};
	struct weft__aggregate agg;

	begin();
	REQUIRE(weft__aggregate_init(&agg, &list, &opts, NULL, NULL) == 0);
	CHECK_EQ(total(&agg, WEFT__VALUE_CPU_SAMPLES), 3);
	CHECK_EQ(total(&agg, WEFT__VALUE_CPU_NS), 15 * MS);
	CHECK_EQ(total(&agg, WEFT__VALUE_WAIT_COUNT), 101);
	CHECK_EQ(total(&agg, WEFT__VALUE_WAIT_NS), 15 * MS);
	CHECK_EQ(total(&agg, WEFT__VALUE_POLL_COUNT), 2);
	CHECK_EQ(total(&agg, WEFT__VALUE_POLL_NS), 42 * MS);
	CHECK_EQ(weft__aggregate_values(&agg) >> WEFT__VALUE_OFFCPU_NS & 1, 0); /* there is none */
	weft__aggregate_fini(&agg);
	opts.what = WEFT__EXPORT_POLL | WEFT__EXPORT_CPU;
	opts.min_poll_ns = 10 * MS;
	REQUIRE(weft__aggregate_init(&agg, &list, &opts, NULL, NULL) == 0);
	CHECK_EQ(total(&agg, WEFT__VALUE_CPU_NS), 9 * MS);
	CHECK_EQ(total(&agg, WEFT__VALUE_POLL_COUNT), 1);
	CHECK_EQ(total(&agg, WEFT__VALUE_WAIT_COUNT), 0);
	weft__aggregate_fini(&agg);
	opts = (struct weft__export_opts){
		.no_symbols = true, .no_contexts = true, .from_ns = 16 * MS, .to_ns = 55 * MS};
	REQUIRE(weft__aggregate_init(&agg, &list, &opts, NULL, NULL) == 0);
	CHECK_EQ(total(&agg, WEFT__VALUE_CPU_NS), 5 * MS);
	CHECK_EQ(total(&agg, WEFT__VALUE_POLL_COUNT), 1);
	CHECK_EQ(agg.end_unix_ns - agg.start_unix_ns, 39 * MS);
	weft__aggregate_fini(&agg);
	end();
}

TEST(a_profile_that_does_not_fit_keeps_its_sums_and_says_so)
{
	struct weft__export_opts opts = {.no_symbols = true, .plain = true, .max_bytes = 1};
	struct weft__bytes out = {0};
	struct weft__aggregate agg;
	size_t i, found = 0;

	begin();
	REQUIRE(weft__aggregate_init(&agg, &list, &opts, NULL, NULL) == 0);
	CHECK_EQ(agg.sums.n_rows, 0);
	CHECK(agg.sums.n_dropped > 0);
	CHECK_EQ(total(&agg, WEFT__VALUE_CPU_NS), 15 * MS);
	CHECK_EQ(total(&agg, WEFT__VALUE_POLL_NS), 42 * MS);
	weft__aggregate_fini(&agg);
	CHECK_EQ(weft__export_recordings(&out, &list, weft__pprof_encode, &opts, NULL), 0);
	CHECK_EQ(out.n_rows, 1);
	CHECK(out.n_dropped > 0);
	for (i = 0; i + 9 < out.n; i++)
		found += memcmp(out.at + i, "[dropped:", 9) == 0;
	CHECK(found > 0);
	weft__export_free(&out);
	end();
}

TEST(a_path_that_holds_no_segment_is_refused_with_the_reason)
{
	const char *paths[] = {"/nowhere/at/all"};
	struct weft__bytes out = {.n = 77};
	struct weft_error err = {0};

	CHECK(weft__export_pprof(&out, paths, 1, NULL, &err) < 0);
	CHECK(strstr(err.msg, "/nowhere/at/all"));
	CHECK_EQ(out.n, 77);
	begin();
	paths[0] = dir;
	CHECK_EQ(weft__export_otlp(&out, paths, 1, &(struct weft__export_opts){.no_symbols = true}, &err), 0);
	CHECK_EQ(out.start_unix_ns, SEGFILE_REAL);
	CHECK(out.at[0] == 0x1f && out.at[1] == 0x8b);
	weft__export_free(&out);
	CHECK(weft__export_pprof(&out, paths, 1, &(struct weft__export_opts){.no_symbols = true, .pid = 43}, &err) < 0);
	CHECK(strstr(err.msg, "43"));
	end();
}
