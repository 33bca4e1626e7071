/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of small recordings whose every figure is known. */
#include "trace/trace.h"

#include <errno.h>

#include "analyze/analysis.h"
#include "unit/analyze/segfile.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS 1000000u
#define AT(ms) (SEGFILE_MONO + (ms)*MS)
#define COLLECTOR 9
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER
#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Two polls of echo on demo/0, of which the first wakes the task of the second; a nap, a lock and samples in them. */
static const struct segfile_event events[] = {
	EV(AT(0), 1, SPAWN, 7, 2),
	EV(AT(0), 1, SPAWN, 8, 2),
	EV(AT(0), 1, SPAWN, 9, 1), /* never polled */
	EV(AT(10), 1, POLL_BEGIN, 7, 3),
	EV(AT(12), 1, WAKE, 8, 0),
	EV(AT(15), 1, SAMPLE, SAMPLE_OF(11, 4)),
	EV(AT(30), 1, WAIT, WEFT_WAIT_LOCK, 1, 0xbeef, 10 * MS, 103, 0, 0, 0),
	EV(AT(50), 1, POLL_END),
	EV(AT(60), 1, POLL_BEGIN, 8, WEFT_DEPTH_UNKNOWN),
	EV(AT(61), 1, CONTEXT, 0x12, 0x34, 0xabc, 0xdef, 1, 0),
	EV(AT(64), 1, POLL_END),
	EV(AT(70), 1, PARK, 0),
	EV(AT(90), 1, UNPARK, 5),
	EV(AT(91), 1, SAMPLE, SAMPLE_OF(11, 4)),
	EV(AT(92), 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 100, 5 * MS, MS),
	EV(AT(95), 1, POLL_BEGIN, 7, 0), /* still running */
	EV(AT(100), 3, THREAD_BEGIN, 103),
	{AT(101), 3, 64, {4096, 1}, 2},
	EV(AT(50), COLLECTOR, WALL, 103, 30 * MS, 3, 8, 0),
	EV(AT(51), COLLECTOR, OFFCPU, 101, AT(40), 6 * MS, WEFT_OFFCPU_BLOCKED, 1, 0, 0),
};

static const struct weft_loss losses[] = {{WEFT_LOSS_RING_FULL, 3, 17, AT(200), AT(210)}};

static char dir[256];
static struct weft__recordings list;
static struct weft__set set;

static void facts(struct weft__defs *defs, const struct segfile *file)
{
	(void)file;
	weft__defs_fact(defs, "sample.engine", "timer");
	weft__defs_fact(defs, "sample.hz", "100");
}

static void reported_facts(struct weft__defs *defs, const struct segfile *file)
{
	facts(defs, file);
	weft__defs_fact(defs, "poll.mode", "slow");
}

static void open_events(const struct segfile_event *at, size_t n,
			void (*more)(struct weft__defs *, const struct segfile *))
{
	struct segfile file = {
		.recording = 1, .pid = "42", .events = at, .n_events = n, .losses = losses, .n_losses = 1};

	segfile_dir(dir, sizeof(dir));
	segfile_more = more;
	segfile_write(&file, segfile_path(dir, "a.weft"));
	memset(&list, 0, sizeof(list));
	CHECK_EQ(weft__recordings_add(&list, dir, NULL), 0);
	weft__recordings_settle(&list);
	CHECK_EQ(weft__set_init(&set, &list, true), 0);
}

static void close_events(void)
{
	static const char *const names[] = {"a.weft", NULL};

	weft__set_fini(&set);
	weft__recordings_fini(&list);
	segfile_remove(dir, names);
}

static struct weft__scan *open_table(enum weft__table_id table)
{
	struct weft__scan_opts opts = {.table = table};
	struct weft__scan *trace = NULL;

	CHECK_EQ(weft__scan_open(&trace, &set, &opts), 0);
	return trace;
}

static const struct weft__row *next(struct weft__scan *trace)
{
	const struct weft__row *row = NULL;
	int rc = weft__scan_next(trace, &row);

	CHECK(rc >= 0);
	return rc > 0 ? row : NULL;
}

#define CHECK_INT(row, column, value)                                                                                  \
	do {                                                                                                           \
		if (CHECK(weft__row_has(row, WEFT__COL_##column)))                                                     \
			CHECK_EQ((row)->at[WEFT__COL_##column].i, value);                                              \
	} while (0)
#define CHECK_TEXT(row, column, value)                                                                                 \
	do {                                                                                                           \
		if (CHECK(weft__row_has(row, WEFT__COL_##column)))                                                     \
			CHECK_STR((row)->at[WEFT__COL_##column].text, value);                                          \
	} while (0)
#define CHECK_NULL(row, column) CHECK(!weft__row_has(row, WEFT__COL_##column))

/* Both where a sample is given at once and where it waits for a poll that is reported at its end. */
TEST(a_sample_row_has_the_context_in_force_when_it_was_taken)
{
	static const struct segfile_event at[] = {
		EV(AT(10), 1, CONTEXT, 0x12, 0x34, 0xabc, 0xdef, 1, 0),
		EV(AT(12), 1, SAMPLE, SAMPLE_OF(11, 4)),
		EV(AT(13), 1, CONTEXT, 0, 0, 0xabd, 0xdef, 0, 0),
		EV(AT(14), 1, SAMPLE, SAMPLE_OF(11, 5)),
		EV(AT(15), 1, CONTEXT, 0, 0, 0, 0, 0, 0),
		EV(AT(16), 1, SAMPLE, SAMPLE_OF(11, 6)),
		EV(AT(17), 1, POLL, 7, 0, 6 * MS, 0, WEFT_POLL_SLOW),
	};
	static void (*const modes[])(struct weft__defs *, const struct segfile *) = {facts, reported_facts};
	struct weft__scan *trace;
	const struct weft__row *row;
	size_t i;

	for (i = 0; i < N(modes); i++) {
		open_events(at, N(at), modes[i]);
		trace = open_table(WEFT__TABLE_SAMPLE);
		row = next(trace);
		REQUIRE(row);
		CHECK_INT(row, SAMPLE_SPAN, 0xabc);
		CHECK_INT(row, SAMPLE_ROOT_SPAN, 0xdef);
		CHECK_EQ(row->trace[1], 0x34);
		CHECK(weft__row_has(row, WEFT__COL_SAMPLE_ENDPOINT));
		row = next(trace);
		REQUIRE(row);
		CHECK_INT(row, SAMPLE_SPAN, 0xabd);
		CHECK_NULL(row, SAMPLE_TRACE);
		CHECK_NULL(row, SAMPLE_ENDPOINT);
		row = next(trace);
		REQUIRE(row);
		CHECK_INT(row, SAMPLE_WEIGHT_NS, 6 * MS);
		CHECK_NULL(row, SAMPLE_SPAN);
		CHECK(!next(trace));
		weft__scan_close(trace);
		close_events();
	}
}

TEST(a_poll_row_has_its_breakdown_its_wake_and_its_context)
{
	struct weft__scan *trace;
	const struct weft__row *row;

	open_events(events, N(events), facts);
	trace = open_table(WEFT__TABLE_POLL);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, POLL_ID, 1);
	CHECK_INT(row, POLL_TASK, 7);
	CHECK_TEXT(row, POLL_LOCATION, "echo");
	CHECK_INT(row, POLL_LOCATION_ID, 2);
	CHECK_TEXT(row, POLL_WORKER, "demo/0");
	CHECK_TEXT(row, POLL_THREAD, "w0");
	CHECK_INT(row, POLL_TID, 101);
	CHECK_INT(row, POLL_BEGIN_NS, 10 * MS);
	CHECK_INT(row, POLL_END_NS, 50 * MS);
	CHECK_INT(row, POLL_DURATION_NS, 40 * MS);
	CHECK_INT(row, POLL_WAITING_NS, 10 * MS);
	CHECK_INT(row, POLL_BLOCKED_NS, 6 * MS);
	CHECK_INT(row, POLL_ON_CPU_NS, 24 * MS);
	CHECK_INT(row, POLL_PREEMPTED_NS, 0);
	CHECK_INT(row, POLL_NOT_MEASURED_NS, 0);
	CHECK_INT(row, POLL_SAMPLES, 1);
	CHECK_INT(row, POLL_QUEUE_DEPTH, 3);
	CHECK_INT(row, POLL_WAKES_ISSUED, 1);
	CHECK_NULL(row, POLL_WAKE_DELAY_NS);
	CHECK_NULL(row, POLL_SPAN);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, POLL_TASK, 8);
	CHECK_NULL(row, POLL_QUEUE_DEPTH); /* never 65535 */
	CHECK_INT(row, POLL_WAKE_NS, 12 * MS);
	CHECK_INT(row, POLL_WAKE_DELAY_NS, 48 * MS);
	CHECK_INT(row, POLL_WAKER_TASK, 7);
	CHECK_TEXT(row, POLL_WAKER_LOCATION, "echo");
	CHECK_INT(row, POLL_BEHIND_POLL_ID, 1);
	CHECK_INT(row, POLL_BEHIND_NS, 38 * MS);
	CHECK_INT(row, POLL_SPAN, 0xabc);
	CHECK_EQ(row->trace[0], 0x12);
	row = next(trace);
	REQUIRE(row);
	CHECK_NULL(row, POLL_END_NS);
	CHECK_INT(row, POLL_DURATION_NS, 6 * MS); /* until the last event */
	CHECK(next(trace) == NULL);
	weft__scan_close(trace);
	close_events();
}

TEST(the_slices_of_a_poll_add_up_to_its_parts)
{
	int64_t poll[WEFT__N_PARTS] = {24 * MS, 6 * MS, 10 * MS, 0, 0};
	const char *const parts[] = {"on_cpu", "blocked", "waiting", "preempted", "not_measured"};
	struct weft__scan *trace;
	const struct weft__row *row;
	size_t i;

	open_events(events, N(events), facts);
	trace = open_table(WEFT__TABLE_SLICE);
	while ((row = next(trace))) {
		if (row->at[WEFT__COL_SLICE_POLL_ID].i != 1)
			continue;
		for (i = 0; i < WEFT__N_PARTS; i++)
			if (strcmp(row->at[WEFT__COL_SLICE_PART].text, parts[i]) == 0)
				poll[i] -= row->at[WEFT__COL_SLICE_DURATION_NS].i;
		if (strcmp(row->at[WEFT__COL_SLICE_PART].text, "waiting") == 0) {
			CHECK_INT(row, SLICE_BEGIN_NS, 20 * MS);
			CHECK_INT(row, SLICE_END_NS, 30 * MS);
			CHECK_TEXT(row, SLICE_KIND, "lock");
			CHECK_INT(row, SLICE_OBJECT, 0xbeef);
		}
	}
	for (i = 0; i < WEFT__N_PARTS; i++)
		CHECK_EQ(poll[i], 0);
	weft__scan_close(trace);
	close_events();
}

TEST(a_wait_row_has_its_poll_and_its_holder_and_short_ones_are_a_sum)
{
	struct weft__scan *trace;
	const struct weft__row *row;

	open_events(events, N(events), facts);
	trace = open_table(WEFT__TABLE_WAIT);
	row = next(trace);
	REQUIRE(row);
	CHECK_TEXT(row, WAIT_KIND, "lock");
	CHECK_INT(row, WAIT_DURATION_NS, 10 * MS);
	CHECK_INT(row, WAIT_BEGIN_NS, 20 * MS);
	CHECK_INT(row, WAIT_POLL_ID, 1);
	CHECK_INT(row, WAIT_TASK, 7);
	CHECK_INT(row, WAIT_HOLDER_TID, 103);
	CHECK_INT(row, WAIT_OBJECT, 0xbeef);
	CHECK_NULL(row, WAIT_FD);
	CHECK(next(trace) == NULL);
	weft__scan_close(trace);
	trace = open_table(WEFT__TABLE_WAIT_SUM);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, WAIT_SUM_COUNT, 100);
	CHECK_INT(row, WAIT_SUM_TOTAL_NS, 5 * MS);
	CHECK(next(trace) == NULL);
	weft__scan_close(trace);
	close_events();
}

TEST(a_sample_row_names_the_poll_that_it_fell_into)
{
	struct weft__scan *trace;
	const struct weft__row *row;

	open_events(events, N(events), facts);
	trace = open_table(WEFT__TABLE_SAMPLE);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, SAMPLE_POLL_ID, 1);
	CHECK_TEXT(row, SAMPLE_STATE, "in_polls");
	CHECK_INT(row, SAMPLE_WEIGHT_NS, 4 * MS);
	CHECK_INT(row, SAMPLE_STACK_ID, 11);
	row = next(trace);
	REQUIRE(row);
	CHECK_NULL(row, SAMPLE_POLL_ID);
	CHECK_TEXT(row, SAMPLE_STATE, "between_polls");
	CHECK(next(trace) == NULL);
	weft__scan_close(trace);
	close_events();
}

static void caught(struct weft__defs *defs, const struct segfile *file)
{
	facts(defs, file);
	weft__defs_fact(defs, "poll.mode", "caught");
}

TEST(a_sample_comes_with_its_poll_where_that_is_recorded_at_its_end)
{
	static const struct segfile_event at_end[] = {
		EV(AT(5), 1, SAMPLE, SAMPLE_OF(11, 10)), /* before it */
		EV(AT(20), 1, SAMPLE, SAMPLE_OF(12, 10)),      EV(AT(50), 1, POLL, 1, 3, 40 * MS, 0, WEFT_POLL_CAUGHT),
		EV(AT(60), 1, POLL_COUNT, 1, 1000, 2000, 500), EV(AT(60), 1, POLL_COUNT, 1, 2000, UINT64_MAX, 2),
	};
	struct weft__scan *trace;
	const struct weft__row *row;

	open_events(at_end, N(at_end), caught);
	trace = open_table(WEFT__TABLE_SAMPLE);
	row = next(trace);
	REQUIRE(row);
	CHECK_NULL(row, SAMPLE_POLL_ID);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, SAMPLE_POLL_ID, 1);
	CHECK_TEXT(row, SAMPLE_STATE, "in_polls");
	weft__scan_close(trace);
	trace = open_table(WEFT__TABLE_POLL);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, POLL_SAMPLES, 1);
	CHECK_NULL(row, POLL_WAKES_ISSUED);
	CHECK_NULL(row, POLL_PREEMPTED_NS); /* nothing could have said that there was any */
	weft__scan_close(trace);
	trace = open_table(WEFT__TABLE_POLL_COUNT);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, POLL_COUNT_BELOW_NS, 2000);
	row = next(trace);
	REQUIRE(row);
	CHECK_NULL(row, POLL_COUNT_BELOW_NS);
	CHECK_INT(row, POLL_COUNT_COUNT, 2);
	weft__scan_close(trace);
	close_events();
}

TEST(parks_tasks_events_and_losses_are_rows)
{
	struct weft__scan *trace;
	const struct weft__row *row;

	open_events(events, N(events), facts);
	trace = open_table(WEFT__TABLE_PARK);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, PARK_DURATION_NS, 20 * MS);
	CHECK_INT(row, PARK_QUEUE_DEPTH, 5);
	CHECK_TEXT(row, PARK_WORKER, "demo/0");
	CHECK(next(trace) == NULL);
	weft__scan_close(trace);
	trace = open_table(WEFT__TABLE_TASK);
	while ((row = next(trace))) {
		CHECK_INT(row, TASK_POLLS,
			  row->at[WEFT__COL_TASK_TASK].i == 7   ? 2
			  : row->at[WEFT__COL_TASK_TASK].i == 8 ? 1
								: 0);
		CHECK_NULL(row, TASK_END_NS);
	}
	weft__scan_close(trace);
	trace = open_table(WEFT__TABLE_EVENT);
	row = next(trace);
	REQUIRE(row);
	CHECK_TEXT(row, EVENT_KIND, "request");
	CHECK_TEXT(row, EVENT_FIELDS, "{\"bytes\": 4096,\"path\": \"/up\\u001b[31mload\"}");
	weft__scan_close(trace);
	trace = open_table(WEFT__TABLE_CONTEXT);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, CONTEXT_TIME_NS, 61 * MS);
	CHECK_INT(row, CONTEXT_SPAN, 0xabc);
	CHECK_INT(row, CONTEXT_ROOT_SPAN, 0xdef);
	weft__scan_close(trace);
	trace = open_table(WEFT__TABLE_WALL);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, WALL_WEIGHT_NS, 30 * MS);
	CHECK_INT(row, WALL_SYSCALL, 7);
	CHECK_TEXT(row, WALL_THREAD, "io");
	weft__scan_close(trace);
	trace = open_table(WEFT__TABLE_LOSS);
	row = next(trace);
	REQUIRE(row);
	CHECK_TEXT(row, LOSS_REASON, "ring full");
	CHECK_INT(row, LOSS_COUNT, 17);
	weft__scan_close(trace);
	close_events();
}

/* The poll in which a task ends is reported behind the end; who wakes it then does not know. */
TEST(a_task_that_ends_in_a_poll_that_is_reported_later_is_one_row)
{
	static const struct segfile_event at[] = {
		EV(AT(1), 1, SPAWN, 7, 2),
		EV(AT(14), 1, TASK_END, 7),
		EV(AT(15), 1, POLL, 7, 0, 6 * MS, 0, WEFT_POLL_SLOW),
		EV(AT(16), 1, WAKE, 7, 0),
		EV(AT(20), 1, SPAWN, 7, 1), /* the number again */
		EV(AT(30), 1, POLL, 7, 0, 6 * MS, 0, WEFT_POLL_SLOW),
	};
	struct weft__scan *trace;
	const struct weft__row *row;

	open_events(at, N(at), reported_facts);
	trace = open_table(WEFT__TABLE_TASK);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, TASK_END_NS, 14 * MS);
	CHECK_INT(row, TASK_FIRST_POLL_NS, 9 * MS);
	CHECK_INT(row, TASK_WAKES, 1);
	CHECK_NULL(row, TASK_POLLS);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, TASK_SPAWN_NS, 20 * MS);
	CHECK_INT(row, TASK_FIRST_POLL_NS, 24 * MS);
	CHECK_NULL(row, TASK_END_NS);
	CHECK(next(trace) == NULL);
	weft__scan_close(trace);
	close_events();
}

TEST(a_poll_that_begins_after_the_end_of_its_task_is_of_another_task)
{
	static const struct segfile_event at[] = {
		EV(AT(10), 1, POLL_BEGIN, 7, 0), EV(AT(11), 1, TASK_END, 7), EV(AT(12), 1, POLL_END),
		EV(AT(20), 1, POLL_BEGIN, 7, 0), EV(AT(22), 1, POLL_END),
	};
	struct weft__scan *trace;
	const struct weft__row *row;
	size_t n = 0;

	open_events(at, N(at), facts);
	trace = open_table(WEFT__TABLE_TASK);
	while ((row = next(trace))) {
		CHECK_INT(row, TASK_POLLS, 1);
		n++;
	}
	CHECK_EQ(n, 2);
	weft__scan_close(trace);
	close_events();
}

enum { MANY_TASKS = 5000 };

TEST(tasks_that_end_are_rows_however_many_there_are)
{
	static struct segfile_event at[MANY_TASKS * 2];
	struct weft__scan *trace;
	const struct weft__row *row;
	size_t i, n = 0;

	for (i = 0; i < MANY_TASKS; i++) {
		at[2 * i] = (struct segfile_event)EV(AT(i), 1, SPAWN, 100 + i, 2);
		at[2 * i + 1] = (struct segfile_event)EV(AT(i) + 1000, 1, TASK_END, 100 + i);
	}
	open_events(at, N(at), facts);
	trace = open_table(WEFT__TABLE_TASK);
	while ((row = next(trace))) {
		CHECK_INT(row, TASK_TASK, (int64_t)(100 + n));
		CHECK_INT(row, TASK_END_NS, (int64_t)(n * MS + 1000));
		n++;
	}
	CHECK_EQ(n, MANY_TASKS);
	weft__scan_close(trace);
	close_events();
}

static void loop_facts(struct weft__defs *defs, const struct segfile *file)
{
	facts(defs, file);
	weft__defs_runtime(defs, 9, "loop");
	weft__defs_worker(defs, 9, 9, 0);
	weft__defs_location(defs, 9, 0, "epoll loop", "");
}

TEST(a_loop_that_weft_run_found_is_no_task)
{
	static const struct segfile_event at[] = {
		EV(AT(1), 1, SPAWN, 77, 9),      EV(AT(1), 1, SPAWN, 8, 9), /* the program's own */
		EV(AT(2), 1, POLL_BEGIN, 8, 0),  EV(AT(3), 1, POLL_END),    EV(AT(4), 1, WORKER, 9),
		EV(AT(5), 1, POLL_BEGIN, 77, 0), EV(AT(9), 1, POLL_END),
	};
	struct weft__scan *trace;
	const struct weft__row *row;

	open_events(at, N(at), loop_facts);
	trace = open_table(WEFT__TABLE_TASK);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, TASK_TASK, 8);
	CHECK(next(trace) == NULL);
	weft__scan_close(trace);
	close_events();
}

TEST(a_filter_leaves_rows_out_and_a_null_never_passes)
{
	struct weft__scan_opts opts = {.table = WEFT__TABLE_POLL, .n_filters = 1};
	struct weft__scan *trace;
	const struct weft__row *row;

	open_events(events, N(events), facts);
	opts.filters[0] = (struct weft__filter){WEFT__COL_POLL_QUEUE_DEPTH, WEFT__GE, {.i = 1}};
	CHECK_EQ(weft__scan_open(&trace, &set, &opts), 0);
	row = next(trace);
	REQUIRE(row);
	CHECK_INT(row, POLL_TASK, 7);
	CHECK(next(trace) == NULL);
	weft__scan_close(trace);
	opts.filters[0] = (struct weft__filter){WEFT__COL_POLL_LOCATION, WEFT__EQ, {.text = "accept"}};
	CHECK_EQ(weft__scan_open(&trace, &set, &opts), 0);
	CHECK(next(trace) == NULL);
	weft__scan_close(trace);
	close_events();
}

/* Tables of what happened: those before the first of what is defined, but for losses. */
#define HAPPENED WEFT__TABLE_LOSS

struct alone {
	struct weft__scan *scans[64]; /* of which each row has to be the next */
	enum weft__table_id tables[64];
	size_t n, n_rows;
};

static int same_row(void *data, size_t scan, const struct weft__row *row)
{
	struct alone *alone = data;
	const struct weft__table *table = &weft__tables[alone->tables[scan]];
	const struct weft__row *other = next(alone->scans[scan]);
	size_t i;

	if (!CHECK(other != NULL))
		return -1;
	CHECK_EQ(row->set, other->set);
	for (i = 0; i < table->n_columns; i++)
		if (weft__row_has(row, i) && table->columns[i].type == WEFT__TEXT)
			CHECK_STR(row->at[i].text, other->at[i].text);
		else if (weft__row_has(row, i) && table->columns[i].type != WEFT__TRACE)
			CHECK_EQ(row->at[i].i, other->at[i].i);
	alone->n_rows++;
	return 0;
}

TEST(tables_that_are_read_together_have_the_rows_that_each_has_alone)
{
	struct weft__scan *scans[64];
	struct alone alone = {.n = 0};
	struct weft__together together = {.scans = scans, .row = same_row, .data = &alone};
	size_t i;

	open_events(events, N(events), facts);
	for (i = 0; i < WEFT__N_TABLES; i++)
		if (i < HAPPENED || i == WEFT__TABLE_COST || i == WEFT__TABLE_TASK) {
			alone.tables[alone.n] = (enum weft__table_id)i;
			alone.scans[alone.n++] = open_table((enum weft__table_id)i);
			scans[together.n++] = open_table((enum weft__table_id)i);
		}
	CHECK_EQ(weft__scan_together(&together), 0);
	CHECK(alone.n_rows >= 15);
	for (i = 0; i < together.n; i++) {
		CHECK(!next(alone.scans[i]));
		weft__scan_close(alone.scans[i]);
		weft__scan_close(scans[i]);
	}
	close_events();
}

TEST(tables_of_definitions_are_not_read_together)
{
	struct weft__scan *scan;
	struct weft__together together = {.scans = &scan, .n = 1};

	open_events(events, N(events), facts);
	scan = open_table(WEFT__TABLE_THREAD);
	CHECK_EQ(weft__scan_together(&together), -EINVAL);
	weft__scan_close(scan);
	close_events();
}

TEST(every_table_can_be_read_and_closed_halfway)
{
	struct weft__scan *trace;
	size_t i;

	open_events(events, N(events), facts);
	for (i = 0; i < WEFT__N_TABLES; i++) {
		trace = open_table((enum weft__table_id)i);
		(void)next(trace);
		weft__scan_close(trace);
		trace = open_table((enum weft__table_id)i);
		while (next(trace))
			;
		weft__scan_close(trace);
	}
	close_events();
}

/* Bytes of the file are changed at random, and its end is cut: rows come, or none. */
TEST(a_damaged_segment_gives_rows_or_none)
{
	static uint8_t bytes[65536], changed[sizeof(bytes)];
	uint64_t random = 12345;
	struct weft__scan *trace;
	FILE *file;
	size_t n, i, k;

	open_events(events, N(events), facts);
	file = fopen(segfile_path(dir, "a.weft"), "re");
	REQUIRE(file != NULL);
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	for (i = 0; i < 100; i++) {
		weft__set_fini(&set);
		weft__recordings_fini(&list);
		memset(&list, 0, sizeof(list));
		memcpy(changed, bytes, n);
		for (k = 0; k < 1 + i % 4; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			changed[(random >> 33) % n] ^= (uint8_t)(1u << (random >> 60 & 7));
		}
		file = fopen(segfile_path(dir, "a.weft"), "we");
		REQUIRE(file != NULL);
		CHECK(fwrite(changed, 1, i % 3 ? n : n - (random >> 40) % (n / 2), file) > 0);
		fclose(file);
		CHECK_EQ(weft__recordings_add(&list, dir, NULL), 0);
		weft__recordings_settle(&list);
		CHECK_EQ(weft__set_init(&set, &list, true), 0);
		for (k = 0; k < WEFT__N_TABLES; k++) {
			trace = open_table((enum weft__table_id)k);
			while (next(trace))
				;
			weft__scan_close(trace);
		}
	}
	close_events();
}
