/* SPDX-License-Identifier: Apache-2.0 */
/* weft query: what it prints, and what it says when it cannot. */
#include <stdlib.h>

#include "../analyze/segfile.h"
#include "command.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS 1000000u
#define AT(ms) (SEGFILE_MONO + (ms)*MS)

static const struct segfile_event events[] = {
	EV(AT(0), 1, SPAWN, 7, 2),
	EV(AT(10), 1, POLL_BEGIN, 7, 3),
	EV(AT(30), 1, WAIT, WEFT_WAIT_LOCK, 1, 0xbeef, 10 * MS, 103, 0, 0, 0),
	EV(AT(50), 1, POLL_END),
	EV(AT(60), 1, POLL_BEGIN, 8, WEFT_DEPTH_UNKNOWN),
	EV(AT(64), 1, POLL_END),
	{AT(101), 3, 64, {4096, 1}, 2},
};
static const struct segfile file = {1, 0, "42", events, sizeof(events) / sizeof(events[0]), NULL, 0, 0};
static const struct segfile other = {2, 0, "43", events, sizeof(events) / sizeof(events[0]), NULL, 0, 0};
static const char *const names[] = {"a.weft", "b.weft", NULL};

static void write_files(void)
{
	segfile_dir(dir, sizeof(dir));
	segfile_write(&file, segfile_path(dir, "a.weft"));
	segfile_write(&other, segfile_path(dir, "b.weft"));
}

static void write_text(const char *name, const char *text)
{
	FILE *to = fopen(segfile_path(dir, name), "we");

	if (!CHECK(to != NULL))
		return;
	fputs(text, to);
	fclose(to);
}

TEST(rows_are_printed_as_a_table_as_csv_or_as_json)
{
	REQUIRE(command_there());
	write_files();
	CHECK_EQ(run("query a.weft 'select location, task, duration_ns, queue_depth from poll order by task'"), 0);
	CHECK_STR(out, "location                    task  duration_ns  queue_depth\n"
		       "echo                           7     40000000            3\n"
		       "(spawned before recording)     8      4000000         NULL\n");
	CHECK_EQ(run("query --csv a.weft 'select location, queue_depth, \"a,b\" from poll'"), 2);
	CHECK(says("no such column"));
	CHECK_EQ(run("query --csv a.weft \"select location, queue_depth, 'a,b' as x from poll\""), 0);
	CHECK_STR(out, "location,queue_depth,x\r\necho,3,\"a,b\"\r\n(spawned before recording),,\"a,b\"\r\n");
	CHECK_EQ(run("query --json a.weft 'select queue_depth from poll'"), 0);
	CHECK_STR(out, "[\n  {\n    \"queue_depth\": 3\n  },\n  {\n    \"queue_depth\": null\n  }\n]\n");
	segfile_remove(dir, names);
}

TEST(a_join_finds_rows_by_their_id_over_several_recordings)
{
	REQUIRE(command_there());
	write_files();
	CHECK_EQ(run("query --csv . 'select r.pid, w.object, p.task, l.file, l.line from wait w join poll p on p.id = "
		     "w.poll_id "
		     "join location l on l.id = p.location_id join recording r on r.id = w.recording order by r.pid'"),
		 0);
	CHECK_STR(out, "pid,object,task,file,line\r\n42,000000000000beef,7,src/server.c,120\r\n"
		       "43,000000000000beef,7,src/server.c,120\r\n");
	CHECK_EQ(run("query --csv . 'select count(*) from poll a, poll b, poll c where a.duration_ns < b.duration_ns "
		     "and "
		     "b.duration_ns < c.duration_ns + 1'"),
		 0);
	CHECK_STR(out, "count(*)\r\n8\r\n");
	CHECK_EQ(run("query --csv . 'select p.task, w.kind from poll p left join wait w on w.poll_id = p.id where "
		     "p.recording = 0 order by p.task'"),
		 0);
	CHECK_STR(out, "task,kind\r\n7,lock\r\n8,\r\n");
	segfile_remove(dir, names);
}

TEST(bad_sql_gets_the_message_of_sqlite_and_exit_2)
{
	REQUIRE(command_there());
	write_files();
	CHECK_EQ(run("query a.weft 'select dooration_ns from poll'"), 2);
	CHECK(says("no such column: dooration_ns"));
	CHECK(says("\n             ^\nTry 'weft query --schema': all tables and columns.\n"));
	CHECK_EQ(run("query a.weft 'select * from polls'"), 2);
	CHECK(says("no such table: polls\nTry 'weft query --schema'"));
	CHECK_EQ(run("query a.weft 'selec 1'"), 2);
	CHECK(says("syntax error"));
	CHECK(!says("--schema"));
	CHECK_EQ(run("query a.weft 'delete from poll'"), 2);
	CHECK(says("may not be modified"));
	CHECK_EQ(run("query a.weft \"attach 'x.db' as x\""), 2);
	CHECK(access(segfile_path(dir, "x.db"), F_OK) != 0);
	CHECK_EQ(run("query 'select 1 from poll'"), 2);
	CHECK(says("no PATH given"));
	CHECK_EQ(run("query --run nothing a.weft"), 2);
	CHECK(says("there is no saved question 'nothing'"));
	CHECK_EQ(run("query nowhere.weft 'select 1'"), 1);
	segfile_remove(dir, names);
}

TEST(sql_comes_from_standard_input_too)
{
	REQUIRE(command_there());
	write_files();
	write_text("in.sql", "select count(*)\nfrom poll; select 2;\nselect 3\n");
	CHECK_EQ(run("query --csv a.weft <in.sql"), 0);
	CHECK_STR(out, "count(*)\r\n2\r\n2\r\n2\r\n3\r\n3\r\n");
	write_text("in.sql", ".tables\n.worst-polls\n.quit\nselect no\n");
	CHECK_EQ(run("query a.weft <in.sql"), 0);
	unlink(segfile_path(dir, "in.sql"));
	CHECK(says("poll_count"));
	CHECK(says("begin_s"));
	segfile_remove(dir, names);
}

TEST(names_that_a_terminal_would_obey_are_escaped)
{
	REQUIRE(command_there());
	write_files();
	CHECK_EQ(run("query a.weft 'select name from wait'"), 0);
	CHECK_STR(out, "name\n/up?[31mload\n");
	CHECK_EQ(run("query --json a.weft \"select fields ->> '$.path' as path from event\""), 0);
	CHECK(says("/up\\u001b[31mload"));
	segfile_remove(dir, names);
}

TEST(a_segment_that_is_cut_gives_its_rows_and_says_so)
{
	struct segfile cut = file;

	REQUIRE(command_there());
	write_files();
	cut.unsealed = 1;
	segfile_write(&cut, segfile_path(dir, "a.weft"));
	CHECK_EQ(truncate(segfile_path(dir, "b.weft"), 700), 0);
	CHECK_EQ(run("query --csv a.weft 'select count(*) from poll'"), 0); /* the recorder may still write it */
	CHECK(says("2\r\n"));
	CHECK_EQ(run("query --csv b.weft 'select count(*) from poll'"), 3);
	CHECK(says("damaged") || says("cut"));
	segfile_remove(dir, names);
}

TEST(the_document_of_the_tables_is_up_to_date)
{
	static char doc[sizeof(out)];
	const char *source = getenv("WEFT_SOURCE");
	char path[1024];
	size_t n;
	FILE *text;

	REQUIRE(command_there() && source);
	segfile_dir(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/docs/TABLES.md", source);
	text = fopen(path, "re");
	REQUIRE(text != NULL);
	n = fread(doc, 1, sizeof(doc) - 1, text);
	fclose(text);
	doc[n] = 0;
	CHECK_EQ(run("query --tables-md"), 0);
	CHECK(strcmp(out, doc) == 0 || !printf("\trun tools/gen-tables\n"));
	rmdir(dir);
}
