/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the weft command that was built beside this test: output, messages and exit status. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../analyze/segfile.h"
#include "command.h"

static const struct segfile_event events[] = {
	EV(1001000, 1, SPAWN, 1, 1), EV(1002000, 1, POLL_BEGIN, 1, 0), EV(1002500, 1, WAKE, 2, 1),
	EV(1003000, 1, POLL_END),    EV(1001000, 2, SPAWN, 2, 2),      EV(1003500, 2, POLL_BEGIN, 2, 3),
	EV(53803500, 2, POLL_END),   EV(53804000, 2, PARK, 0),         EV(60000000, 3, USER, 77, 1),
};
static const struct segfile whole = {5, 0, "4242", events, 9, NULL, 0, 0};
static const struct segfile none = {6, 0, "4243", NULL, 0, NULL, 0, 0};
static const char *const names[] = {"one.weft", "none.weft", "junk.weft", NULL};

static bool begin(void)
{
	if (!command_there())
		return false;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&whole, segfile_path(dir, "one.weft"));
	return true;
}

#define BEGIN                                                                                                          \
	if (!begin())                                                                                                  \
	SKIP("there is no weft command in $WEFT_BUILD")

TEST(help_and_version_are_printed_and_succeed)
{
	BEGIN;
	CHECK_EQ(run("--version"), 0);
	CHECK(says("weft "));
	CHECK_EQ(run("--help"), 0);
	CHECK(says("examples:"));
	CHECK_EQ(run("help report"), 0);
	CHECK(says("--location NAME"));
	CHECK_EQ(run("inspect --help"), 0);
	CHECK(says("--dump"));
	CHECK_EQ(run("%s", ""), 2);
	CHECK(says("usage: weft COMMAND"));
	segfile_remove(dir, names);
}

/* Nothing is waited for that may never come. */
TEST(a_fifo_is_refused_at_once)
{
	BEGIN;
	CHECK_EQ(mkfifo(segfile_path(dir, "pipe.weft"), 0600), 0);
	CHECK_EQ(run("report --full %s/pipe.weft", dir), 1);
	CHECK(says("not a regular file"));
	CHECK_EQ(run("inspect %s/pipe.weft", dir), 1);
	CHECK(says("not a regular file"));
	CHECK_EQ(run("symbolize %s/pipe.weft", dir), 1);
	CHECK(says("not a regular file"));
	CHECK_EQ(run("report --full %s", dir), 0); /* with the segment that is there, too */
	CHECK_EQ(unlink(segfile_path(dir, "pipe.weft")), 0);
	segfile_remove(dir, names);
}

TEST(wrong_usage_is_reported_with_the_way_out)
{
	BEGIN;
	CHECK_EQ(run("reprot"), 2);
	CHECK(says("did you mean 'report'?"));
	CHECK_EQ(run("xyzzyxyzzy"), 2);
	CHECK(!strstr(out, "did you mean"));
	CHECK_EQ(run("report --frob one.weft"), 2);
	CHECK(says("Try 'weft report --help'"));
	CHECK_EQ(run("report"), 2);
	CHECK(says("no PATH given"));
	CHECK_EQ(run("report --from 2s --to 1s one.weft"), 2);
	CHECK_EQ(run("report --from soon one.weft"), 2);
	CHECK(says("12.5s or 300ms"));
	CHECK_EQ(run("export one.weft"), 2);
	CHECK(says("no -o FILE given"));
	CHECK_EQ(run("export -o x.pb.gz"), 2);
	CHECK(says("no PATH given"));
	CHECK_EQ(run("export --what heap -o x.pb.gz one.weft"), 2);
	CHECK(says("cpu,wall,offcpu,wait,poll"));
	CHECK_EQ(run("polls"), 2);
	CHECK(says("no PATH given"));
	CHECK_EQ(run("polls --group task one.weft"), 2);
	CHECK_EQ(run("polls --min soon one.weft"), 2);
	CHECK(says("5ms"));
	CHECK_EQ(run("report --top 0 one.weft"), 2);
	CHECK_EQ(run("inspect --dump --json one.weft"), 2);
	CHECK_EQ(run("inspect --order up --dump one.weft"), 2);
	CHECK_EQ(run("recover"), 2);
	CHECK_EQ(run("view"), 2);
	CHECK(says("no PATH given"));
	CHECK_EQ(run("view --port 70000 one.weft"), 2);
	CHECK(says("up to 65535"));
	CHECK_EQ(run("view --frob one.weft"), 2);
	CHECK(says("Try 'weft view --help'"));
	segfile_remove(dir, names);
}

TEST(a_name_that_nothing_has_is_reported_with_those_there_are)
{
	BEGIN;
	CHECK_EQ(run("report --full --location ehco one.weft"), 0);
	CHECK(says("warning: --location 'ehco': nothing here is called so; there are: accept, echo\n"));
	CHECK_EQ(run("report --full --worker demo/7 one.weft"), 0);
	CHECK(says("warning: --worker 'demo/7': nothing here is called so; there are: demo/0, demo/1"));
	CHECK_EQ(run("report --full --thread nobody one.weft"), 0);
	CHECK(says("warning: --thread 'nobody': nothing here is called so; there are: "));
	CHECK_EQ(run("report --full --from 1h one.weft"), 0);
	CHECK(says("warning: --from lies behind the end: "));
	CHECK_EQ(run("report --full --location 'e*' --worker 'demo/*' --from 1us one.weft"), 0);
	CHECK(!strstr(out, "warning"));
	segfile_remove(dir, names);
}

TEST(what_cannot_be_read_is_reported)
{
	FILE *junk;

	BEGIN;
	CHECK_EQ(run("report --full nowhere.weft"), 1);
	CHECK(says("nowhere.weft"));
	CHECK(says("No such file"));
	junk = fopen(segfile_path(dir, "junk.weft"), "w");
	REQUIRE(junk != NULL);
	fputs("this is no segment, however it is called", junk);
	fclose(junk);
	CHECK_EQ(run("inspect junk.weft"), 1);
	CHECK_EQ(run("report --full . >/dev/null"), 3);
	CHECK(says("junk.weft"));
	CHECK_EQ(run("report --full --pid 1 one.weft"), 1);
	CHECK(says("no recording of process 1"));
	unlink(segfile_path(dir, "one.weft"));
	unlink(segfile_path(dir, "junk.weft"));
	CHECK_EQ(run("report --full ."), 1);
	CHECK(says("no segments in"));
	segfile_remove(dir, names);
}

TEST(the_report_begins_with_the_worst)
{
	BEGIN;
	CHECK_EQ(run("report --full one.weft"), 0);
	CHECK(says("worst poll: 52.8 ms on worker demo/1 at +0.000003 s, task 2 `echo` (server.c:120),\n"
		   "            woken 1.00 us before by task 1 `accept` (server.c:80) on demo/0\n"));
	CHECK(says("not measured"));
	CHECK(!strstr(out, "\x1b"));
	CHECK_EQ(run("report --full --worker demo/0 --top 1 one.weft"), 0);
	CHECK(says("worst poll: 1.00 us on worker demo/0"));
	CHECK_EQ(run("report --full --location echo --to 50ms one.weft"), 0);
	CHECK(says("still running: 50.0 ms so far on worker demo/1"));
	segfile_remove(dir, names);
}

TEST(the_json_of_the_report_is_json)
{
	BEGIN;
	CHECK_EQ(run("report --json one.weft"), 0);
	CHECK(says("\"duration_ns\": 52800000,"));
	CHECK(says("\"cpu_share\": null,\n          \"cpu_share_why\": \"fewer than two readings"));
	CHECK(says("\"global_queues\": null,"));
	CHECK(says("\"delay_ns\": 1000,"));
	CHECK(says("\"busy_share\": "));
	CHECK_EQ(run("report --json one.weft | /usr/bin/python3 -m json.tool >/dev/null"), 0);
	CHECK_EQ(run("inspect --json one.weft | /usr/bin/python3 -m json.tool >/dev/null"), 0);
	segfile_remove(dir, names);
}

TEST(a_recording_without_events_is_no_failure)
{
	BEGIN;
	segfile_write(&none, segfile_path(dir, "none.weft"));
	CHECK_EQ(run("report --full none.weft"), 0);
	CHECK(says("no events"));
	CHECK_EQ(run("report --json none.weft | /usr/bin/python3 -m json.tool >/dev/null"), 0);
	CHECK_EQ(run("inspect none.weft"), 0);
	CHECK_EQ(run("report --full --pid 4242 ."), 0);
	CHECK(!strstr(out, "no events"));
	segfile_remove(dir, names);
}

TEST(inspect_lists_and_dumps)
{
	BEGIN;
	CHECK_EQ(run("inspect one.weft"), 0);
	CHECK(says("poll_begin"));
	CHECK(says("src/server.c"));
	CHECK(says("w0"));
	CHECK_EQ(run("inspect --dump one.weft"), 0);
	CHECK_STR(out,
		  "1001000 1 7 1 1\n1002000 1 3 1 0\n1002500 1 9 2 1\n1003000 1 4\n1001000 2 7 2 2\n1003500 2 3 2 3\n"
		  "53803500 2 4\n53804000 2 5 0\n60000000 3 64 77 1\n");
	CHECK_EQ(run("inspect --dump --order time one.weft"), 0);
	CHECK(says("1001000 1 7 1 1\n1001000 2 7 2 2\n1002000 1 3 1 0\n"));
	CHECK_EQ(run("inspect --events one.weft"), 0);
	CHECK(says("+0.000002500  w0(101)  wake  task=2  worker=demo/1\n"));
	CHECK(says("request  bytes=77 By  path=\"/up?[31mload\"\n")); /* no escape reaches the terminal */
	CHECK_EQ(run("inspect --blocks one.weft"), 0);
	CHECK(says("definitions"));
	segfile_write(&none, segfile_path(dir, "none.weft"));
	CHECK_EQ(run("inspect ."), 0);
	CHECK(says("one.weft"));
	CHECK(says("none.weft"));
	segfile_remove(dir, names);
}

TEST(damage_has_its_own_exit_status)
{
	struct stat st;

	BEGIN;
	CHECK_EQ(stat(segfile_path(dir, "one.weft"), &st), 0);
	CHECK_EQ(truncate(segfile_path(dir, "one.weft"), st.st_size - 120), 0);
	CHECK_EQ(run("report --full one.weft"), 3);
	CHECK(says("damaged"));
	CHECK_EQ(run("inspect one.weft"), 3);
	CHECK_EQ(run("inspect --dump one.weft"), 3);
	segfile_remove(dir, names);
}

/* Anybody can make a file that is larger than what can be read; what comes after its hole is found. */
TEST(the_hole_of_a_sparse_file_is_passed_over)
{
	char bytes[65536];
	ssize_t n;
	int fd;

	BEGIN;
	fd = open(segfile_path(dir, "one.weft"), O_RDWR | O_CLOEXEC);
	n = pread(fd, bytes, sizeof(bytes), 0);
	CHECK(n > 0 && n < (ssize_t)sizeof(bytes));
	CHECK_EQ(ftruncate(fd, (off_t)1 << 40), 0);
	CHECK_EQ(run("inspect one.weft"), 3);
	CHECK(says("the file ends inside a block or is damaged from here"));
	CHECK_EQ(pwrite(fd, bytes, (size_t)n, (off_t)1 << 39), n);
	CHECK_EQ(run("inspect one.weft"), 3);
	CHECK(says("a block is damaged"));
	close(fd);
	segfile_remove(dir, names);
}

TEST(inspect_ends_quietly_when_its_pipe_is_closed)
{
	BEGIN;
	CHECK_EQ(run("inspect --events one.weft | head -1 >/dev/null"), 0);
	CHECK_STR(out, "");
	CHECK_EQ(run("report --full one.weft >/dev/full"), 1);
	CHECK(says("cannot write the output"));
	segfile_remove(dir, names);
}

TEST(push_ls_and_config_refuse_what_makes_no_sense)
{
	FILE *conf;

	BEGIN;
	CHECK_EQ(run("push %s", dir), 2);
	CHECK(says("no target: give --to URL"));
	CHECK_EQ(run("push --to s3://x --wait soon %s", dir), 2);
	CHECK(says("'soon' is not a time"));
	CHECK_EQ(run("push --to gopher://x/y %s", dir), 1);
	CHECK(says("there is no such target"));
	CHECK_EQ(run("push --to %s/copy %s/nowhere.weft", dir, dir), 1);
	CHECK_EQ(run("ls"), 2);
	CHECK_EQ(run("ls http://x"), 1);
	CHECK(says("s3://BUCKET/PREFIX"));
	CHECK_EQ(run("config x"), 2);
	CHECK_EQ(run("config --all"), 0);
	CHECK(says("WEFT_SHIP_WAIT_MS"));
	CHECK_EQ(run("config --json | /usr/bin/python3 -m json.tool >/dev/null"), 0);
	setenv("WEFT_LEVEL", "99", 1);
	CHECK_EQ(run("config"), 1);
	CHECK(says("WEFT_LEVEL=99: level is 99; give at most 19"));
	unsetenv("WEFT_LEVEL");
	setenv("WEFT_SHIP_TO", "/tmp ftp://user:secret@x", 1);
	CHECK_EQ(run("config"), 1);
	CHECK(says("there is no such target") && !says("secret"));
	unsetenv("WEFT_SHIP_TO");
	setenv("WEFT_SAMPLE_HERTZ", "9", 1);
	CHECK_EQ(run("config"), 0);
	CHECK(says("WEFT_SAMPLE_HERTZ is no option"));
	unsetenv("WEFT_SAMPLE_HERTZ");
	conf = fopen(segfile_path(dir, "my.conf"), "we");
	REQUIRE(conf != NULL);
	fputs("sample_hz = 9\n# a = b\n\n  sample_hertz=9\n", conf);
	fclose(conf);
	setenv("WEFT_CONFIG", segfile_path(dir, "my.conf"), 1);
	CHECK_EQ(run("config"), 1);
	CHECK(says("my.conf: sample_hertz is no option"));
	unsetenv("WEFT_CONFIG");
	unlink(segfile_path(dir, "my.conf"));
	segfile_remove(dir, names);
}

TEST(recover_says_when_there_is_nothing_to_do)
{
	BEGIN;
	CHECK_EQ(run("recover ."), 0);
	CHECK(says("nothing to recover in ."));
	CHECK_EQ(run("recover --json . | /usr/bin/python3 -m json.tool >/dev/null"), 0);
	CHECK_EQ(run("recover ./nowhere"), 1);
	CHECK(says("nowhere"));
	segfile_remove(dir, names);
}
