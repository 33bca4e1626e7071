/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of several processes: who did the most comes first, who did little is a row. */
#include <stdio.h>

#include "../analyze/segfile.h"
#include "command.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS 1000000u
#define AT(ms) (SEGFILE_MONO + (ms)*MS)
#define RAN(ms) 0, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER
#define LITTLE 12

enum { S_READ = 11 };

static const struct segfile_event little_events[] = {
	EV(AT(1), 3, SAMPLE, RAN(10)),
	EV(AT(40), 3, WAIT, WEFT_WAIT_CALL, S_READ, 7, 30 * MS, 0, 0),
};
static const struct segfile_event idle_events[] = {EV(AT(5), 3, WAIT, WEFT_WAIT_CALL, S_READ, 7, 4 * MS, 0, 0)};
static const struct segfile_event loop_events[] = {
	EV(AT(1), 1, POLL_BEGIN, 1, 0),
	EV(AT(3), 1, SAMPLE, RAN(2)),
	EV(AT(9), 1, POLL_END),
};
static const struct segfile_event busy_events[] = {
	EV(AT(60), 3, SAMPLE, RAN(60)),
	EV(AT(110), 3, SAMPLE, RAN(50)),
};
#define FILE_OF(id, pid, events)                                                                                       \
	{                                                                                                              \
		id, 0, pid, events, sizeof(events) / sizeof(events[0]), NULL, 0, 0                                     \
	}

static const struct segfile files[] = {FILE_OF(1, "100", little_events), FILE_OF(2, "200", loop_events),
				       FILE_OF(3, "300", busy_events)};
static const char *const names[] = {"0.weft", "1.weft", "2.weft", NULL};

static void define(struct weft__defs *defs, const struct segfile *of)
{
	weft__defs_fact(defs, "sample.hz", "100");
	weft__defs_fact(defs, "sample.engine", "timer");
	weft__defs_string(defs, S_READ, "read");
	if (of->recording == 1)
		weft__defs_fact(defs, "process.cmdline", "sh -c \x1b[31mls");
}

static void write_files(size_t from, size_t upto)
{
	segfile_more = define;
	for (; from < upto; from++)
		segfile_write(&files[from], segfile_path(dir, names[from]));
	segfile_more = NULL;
}

static size_t at(const char *text)
{
	const char *found = strstr(out, text);

	return says(text) ? (size_t)(found - out) : 0;
}

static size_t count(const char *text)
{
	const char *p = out;
	size_t n = 0;

	while ((p = strstr(p, text))) {
		n++;
		p++;
	}
	return n;
}

#define BEGIN                                                                                                          \
	if (!command_there())                                                                                          \
		SKIP("there is no weft command in $WEFT_BUILD");                                                       \
	segfile_dir(dir, sizeof(dir))

TEST(the_process_that_did_the_most_comes_first)
{
	BEGIN;
	write_files(0, 3);
	CHECK_EQ(run("report --full ."), 0);
	CHECK(at("demo  pid 300") == 0 && says("demo  pid 300"));
	CHECK(at("demo  pid 300") < at("demo  pid 200"));
	CHECK(at("demo  pid 200") < at("Processes without a loop"));
	CHECK(strstr(out, "demo  pid 100") == NULL);
	CHECK(says(
		"Processes without a loop that used less than 50.0 ms of CPU (weft report --pid PID has all of one)\n"
		"pid  command            CPU  recorded  mostly\n"
		"100  sh -c ?[31mls  10.0 ms   40.0 ms  waited 30.0 ms: read fd 7\n"));
	segfile_remove(dir, names);
}

TEST(a_process_that_did_little_has_a_section_when_it_is_asked_for)
{
	BEGIN;
	write_files(0, 3);
	CHECK_EQ(run("report --full --pid 100 ."), 0);
	CHECK(says("demo  pid 100"));
	CHECK(strstr(out, "Processes without") == NULL);
	CHECK_EQ(run("report --full 0.weft"), 0); /* it is the only one */
	CHECK(says("demo  pid 100"));
	CHECK(strstr(out, "Processes without") == NULL);
	segfile_remove(dir, names);
}

TEST(the_json_of_the_report_has_all_recordings_in_order_of_time)
{
	BEGIN;
	write_files(0, 3);
	CHECK_EQ(run("report --json ."), 0);
	CHECK_EQ(count("\"longest_polls\""), 3);
	CHECK(at("\"process.pid\": \"100\"") < at("\"process.pid\": \"200\""));
	segfile_remove(dir, names);
}

/* A build has hundreds of them. The one that did the most has its section all the same. */
TEST(of_many_processes_that_did_little_the_report_lists_some)
{
	static const char *const all[LITTLE + 1] = {"00.weft", "01.weft", "02.weft", "03.weft", "04.weft",
						    "05.weft", "06.weft", "07.weft", "08.weft", "09.weft",
						    "10.weft", "11.weft", NULL};
	char pid[8];
	uint8_t i;

	BEGIN;
	segfile_more = define;
	for (i = 0; i < LITTLE; i++) {
		struct segfile one = FILE_OF((uint8_t)(10 + i), pid, idle_events);

		if (i == 7) {
			one.events = little_events;
			one.n_events = 2;
		}
		snprintf(pid, sizeof(pid), "%u", 1000u + i);
		segfile_write(&one, segfile_path(dir, all[i]));
	}
	segfile_more = NULL;
	CHECK_EQ(run("report --full --top 4 ."), 0);
	CHECK(at("demo  pid 1007") == 0 && says("demo  pid 1007"));
	CHECK_EQ(count("below 10.0 ms"), 4);
	CHECK(says("and 7 more, without a sample\n"));
	segfile_remove(dir, all);
}
