/* SPDX-License-Identifier: Apache-2.0 */
/* The public reader of rows. */
#include "weft/trace.h"

#include <errno.h>
#include <string.h>

#include "unit/analyze/segfile.h"
#include "weft/wait.h"

#define MS 1000000u
#define AT(ms) (SEGFILE_MONO + (ms)*MS)

static const struct segfile_event events[] = {
	EV(AT(0), 1, SPAWN, 7, 2), EV(AT(9), 1, CONTEXT, 0x12, 0x34, 0xabc, 0, 0, 0), EV(AT(10), 1, POLL_BEGIN, 7, 3),
	EV(AT(50), 1, POLL_END),   EV(AT(60), 1, POLL_BEGIN, 8, WEFT_DEPTH_UNKNOWN),  EV(AT(64), 1, POLL_END),
};
static const char *const names[] = {"a.weft", NULL};
static char dir[256];

static struct weft_trace *open_trace(void)
{
	struct segfile file = {1, 0, "42", events, sizeof(events) / sizeof(events[0]), NULL, 0, 0};
	struct weft_trace *trace = NULL;
	const char *path = segfile_dir(dir, sizeof(dir));

	segfile_write(&file, segfile_path(dir, "a.weft"));
	CHECK_EQ(weft_trace_open(&trace, &path, 1, NULL, NULL), 0);
	return trace;
}

TEST(wanted_columns_are_numbers_texts_or_null)
{
	const char *columns[] = {"location", "queue_depth", "span", "trace", "duration_ns"};
	struct weft_trace_rows_opts opts = {.size = sizeof(opts), .columns = columns, .n_columns = 5};
	struct weft_trace *trace = open_trace();
	struct weft_trace_rows *rows;

	REQUIRE(trace && weft_trace_rows_open(&rows, trace, "poll", &opts, NULL) == 0);
	CHECK_EQ(weft_trace_rows_next(rows), 1);
	CHECK_STR(weft_trace_rows_text(rows, 0), "echo");
	CHECK_EQ(weft_trace_rows_number(rows, 1), 3);
	CHECK_STR(weft_trace_rows_text(rows, 1), "3");
	CHECK_EQ(weft_trace_rows_number(rows, 2), 0xabc);
	CHECK_STR(weft_trace_rows_text(rows, 2), "0000000000000abc");
	CHECK_STR(weft_trace_rows_text(rows, 3), "00000000000000120000000000000034");
	CHECK_EQ(weft_trace_rows_number(rows, 4), 40 * MS);
	CHECK(weft_trace_rows_is_null(rows, 5));
	CHECK_EQ(weft_trace_rows_next(rows), 1);
	CHECK(weft_trace_rows_is_null(rows, 1));
	CHECK(weft_trace_rows_text(rows, 1) == NULL);
	CHECK_EQ(weft_trace_rows_number(rows, 1), 0);
	CHECK_EQ(weft_trace_rows_next(rows), 0);
	CHECK(weft_trace_rows_is_null(rows, 0));
	weft_trace_rows_close(rows);
	CHECK(weft_trace_problem(trace, 0) == NULL);
	weft_trace_close(trace);
	segfile_remove(dir, names);
}

TEST(summaries_are_the_figures_of_the_report)
{
	const char *columns[] = {"worker",     "polls_count", "polls_max_ns", "busy_ns",
				 "busy_share", "observed_ns", "cpu_ns"};
	struct weft_trace_rows_opts opts = {.size = sizeof(opts), .columns = columns, .n_columns = 7};
	struct weft_trace *trace = open_trace();
	struct weft_trace_rows *rows;

	REQUIRE(trace && weft_trace_rows_open(&rows, trace, "worker_summary", &opts, NULL) == 0);
	CHECK_EQ(weft_trace_rows_next(rows), 1);
	CHECK_STR(weft_trace_rows_text(rows, 0), "demo/0");
	CHECK_EQ(weft_trace_rows_number(rows, 1), 2);
	CHECK(weft_trace_rows_number(rows, 2) == 40 * MS && weft_trace_rows_real(rows, 2) == 40e6);
	CHECK_EQ(weft_trace_rows_number(rows, 3), 44 * MS);
	CHECK(weft_trace_rows_real(rows, 4) == 44e6 / weft_trace_rows_real(rows, 5));
	CHECK(strncmp(weft_trace_rows_text(rows, 4), "0.", 2) == 0);
	CHECK_EQ(weft_trace_rows_number(rows, 4), 0); /* a share is no number of that type */
	CHECK(weft_trace_rows_is_null(rows, 6) && weft_trace_rows_real(rows, 6) == 0);
	CHECK_EQ(weft_trace_rows_next(rows), 0);
	weft_trace_rows_close(rows);
	weft_trace_close(trace);
	segfile_remove(dir, names);
}

TEST(filters_of_the_reader_leave_rows_out)
{
	struct weft_trace_filter filters[] = {{"duration_ns", WEFT_TRACE_LT, 40 * MS, NULL},
					      {"worker", WEFT_TRACE_EQ, 0, "demo/0"}};
	struct weft_trace_rows_opts opts = {.size = sizeof(opts), WEFT_TRACE_FILTERS(filters)};
	struct weft_trace *trace = open_trace();
	struct weft_trace_rows *rows;

	REQUIRE(trace && weft_trace_rows_open(&rows, trace, "poll", &opts, NULL) == 0);
	CHECK_EQ(weft_trace_rows_next(rows), 1);
	CHECK_EQ(weft_trace_rows_next(rows), 0);
	weft_trace_rows_close(rows);
	filters[1].text = "demo/1";
	REQUIRE(weft_trace_rows_open(&rows, trace, "poll", &opts, NULL) == 0);
	CHECK_EQ(weft_trace_rows_next(rows), 0);
	weft_trace_rows_close(rows);
	weft_trace_close(trace);
	segfile_remove(dir, names);
}

/* A later version's, which has one field more. */
struct larger_filter {
	struct weft_trace_filter known;
	uint64_t more;
};

TEST(filters_of_a_newer_program_are_taken_as_long_as_nothing_new_is_set)
{
	struct larger_filter filters[] = {{{"duration_ns", WEFT_TRACE_LT, 40 * MS, NULL}, 0},
					  {{"worker", WEFT_TRACE_EQ, 0, "demo/0"}, 0}};
	struct weft_trace_rows_opts opts = {
		.size = sizeof(opts), .filters = &filters[0].known, .n_filters = 2, .filter_size = sizeof(filters[0])};
	struct weft_trace *trace = open_trace();
	struct weft_trace_rows *rows;
	struct weft_error err;

	REQUIRE(trace && weft_trace_rows_open(&rows, trace, "poll", &opts, NULL) == 0);
	CHECK_EQ(weft_trace_rows_next(rows), 1);
	CHECK_EQ(weft_trace_rows_next(rows), 0);
	weft_trace_rows_close(rows);
	filters[1].more = 1;
	CHECK_EQ(weft_trace_rows_open(&rows, trace, "poll", &opts, &err), -E2BIG);
	opts.filter_size = 0;
	CHECK_EQ(weft_trace_rows_open(&rows, trace, "poll", &opts, &err), -EINVAL);
	CHECK_STR(err.msg, "set filter_size to sizeof(struct weft_trace_filter)");
	weft_trace_close(trace);
	segfile_remove(dir, names);
}

TEST(tables_and_columns_describe_themselves_to_old_programs_too)
{
	struct weft_trace_table table = {.size = sizeof(table)};
	struct weft_trace_column column = {.size = sizeof(column)};
	size_t i, k;

	for (i = 0; weft_trace_table(i, &table) == 0; i++) {
		CHECK(table.name[0] && table.meaning[0] && table.n_columns);
		for (k = 0; k < table.n_columns; k++) {
			CHECK_EQ(weft_trace_column(i, k, &column), 0);
			CHECK(column.name[0] && column.meaning[0] && column.type);
		}
		CHECK_EQ(weft_trace_column(i, k, &column), -ENOENT);
	}
	CHECK(i > 20);
	table.size = offsetof(struct weft_trace_table, meaning); /* of a program that knows no more */
	table.meaning = "mine";
	CHECK_EQ(weft_trace_table(0, &table), 0);
	CHECK_STR(table.name, "poll");
	CHECK_STR(table.meaning, "mine");
	table.size = 4;
	CHECK_EQ(weft_trace_table(0, &table), -EINVAL);
}

TEST(a_reader_that_cannot_be_opened_says_what_is_wrong)
{
	struct {
		struct weft_trace_opts known;
		uint64_t newer;
	} opts = {{.size = sizeof(opts)}, 1};
	const char *nowhere = "/nowhere/at/all", *unknown[] = {"dooration"};
	struct weft_trace_rows_opts bad = {.size = sizeof(bad), .columns = unknown, .n_columns = 1};
	struct weft_trace *trace = NULL;
	struct weft_trace_rows *rows = NULL;
	struct weft_error err = {0};

	CHECK_EQ(weft_trace_open(&trace, &nowhere, 1, NULL, &err), -ENOENT);
	CHECK(strstr(err.msg, nowhere) != NULL);
	CHECK_EQ(weft_trace_open(&trace, &nowhere, 1, &opts.known, &err), -EINVAL);
	CHECK(trace == NULL);
	trace = open_trace();
	REQUIRE(trace);
	CHECK_EQ(weft_trace_rows_open(&rows, trace, "pool", NULL, &err), -ENOENT);
	CHECK_STR(err.msg, "there is no table pool");
	CHECK_EQ(weft_trace_rows_open(&rows, trace, "poll", &bad, &err), -ENOENT);
	CHECK_STR(err.msg, "table poll has no column dooration");
	CHECK(rows == NULL);
	weft_trace_close(trace);
	segfile_remove(dir, names);
}
