/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "analyze/json.h"
#include "cli.h"
#include "print.h"
#include "weft/recorder.h"
#include "weft/segment.h"

const char cli_recover_help[] =
	"usage: weft recover [--json] DIR...\n"
	"\n"
	"Turns what killed or crashed processes left in a directory (rings and unsealed segments) into readable "
	"segments. Each\n"
	"event comes out once. Files of living processes are left alone. A recorder that opens the directory does the "
	"same.\n"
	"\n"
	"  --json       one JSON document\n"
	"  -h, --help\n"
	"\n"
	"example:\n"
	"  weft recover ~/weft && weft report ~/weft\n"
	"\n"
	"exit status: 0 done, also when there was nothing to do; 1 something could not be recovered; 2 wrong usage\n";

struct recovery {
	struct weft__json *json; /* or NULL */
	uint64_t n;
	uint64_t failed;
};

/* The pid of a recovered segment's process, as text; "" when it does not say. */
static void pid_of(const char *path, char *buf, size_t bytes)
{
	struct weft_segment *seg = NULL;
	const char *pid;

	buf[0] = 0;
	if (weft_segment_open(&seg, path, NULL) < 0)
		return;
	pid = weft_segment_fact(seg, "process.pid");
	if (pid)
		snprintf(buf, bytes, "%s", pid);
	weft_segment_close(seg);
}

static void tell_text(const struct weft_recovered *one, const char *pid)
{
	char events[CLI_FIGURE], rings[CLI_FIGURE];

	if (one->status < 0) {
		cli_fail("cannot recover %s: %s%s%s", one->path, weft_strerror(one->status),
			 one->note && one->note[0] ? ": " : "", one->note ? one->note : "");
		return;
	}
	printf("recovered %s events (%s from rings)", cli_count(one->events, events),
	       cli_count(one->from_rings, rings));
	if (pid[0])
		printf(" of pid %s", cli_safe(pid));
	printf(" into %s", cli_safe(one->path));
	if (one->note && one->note[0])
		printf(": %s", cli_safe(one->note));
	putchar('\n');
}

static void tell_json(struct weft__json *json, const struct weft_recovered *one, const char *pid)
{
	weft__json_begin(json, NULL, '{');
	weft__json_text(json, "path", one->path);
	weft__json_text(json, "error", one->status < 0 ? weft_strerror(one->status) : NULL);
	weft__json_text(json, "pid", pid[0] ? pid : NULL);
	weft__json_u64(json, "events", one->events);
	weft__json_u64(json, "from_rings", one->from_rings);
	weft__json_u64(json, "cut_bytes", one->cut_bytes);
	weft__json_text(json, "note", one->note);
	weft__json_end(json, '}');
}

static void tell(const struct weft_recovered *one, void *data)
{
	struct recovery *recovery = data;
	char pid[24] = "";

	if (one->status < 0)
		recovery->failed++;
	else
		recovery->n++;
	if (one->status == 0)
		pid_of(one->path, pid, sizeof(pid));
	if (recovery->json)
		tell_json(recovery->json, one, pid);
	else
		tell_text(one, pid);
}

static int recover_dir(const char *dir, struct recovery *recovery)
{
	uint64_t before = recovery->n + recovery->failed;
	struct weft_error err = {0};
	int rc = weft_recover(dir, tell, recovery, &err);

	if (rc < 0)
		return cli_fail("cannot recover in %s: %s", dir, err.msg[0] ? err.msg : weft_strerror(rc));
	if (!recovery->json && recovery->n + recovery->failed == before)
		printf("nothing to recover in %s\n", cli_safe(dir));
	return CLI_OK;
}

int cli_recover(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, CLI_OPT_JSON},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {NULL, longs, cli_recover_help,
				       "no DIR given: name the directory that was recorded to"};
	struct weft__json json = {.out = stdout};
	struct recovery recovery = {0};
	int code = CLI_OK, i;

	while (cli_option(&of, argc, argv, &code) == CLI_OPT_JSON)
		recovery.json = &json;
	if (code != CLI_OK)
		return code == CLI_DONE ? CLI_OK : code;
	if (recovery.json) {
		weft__json_begin(&json, NULL, '{');
		weft__json_u64(&json, "version", 1);
		weft__json_begin(&json, "recovered", '[');
	}
	for (i = optind; i < argc; i++)
		if (recover_dir(argv[i], &recovery) != CLI_OK)
			code = CLI_FAILED;
	if (recovery.json) {
		weft__json_end(&json, ']');
		weft__json_end(&json, '}');
	}
	return recovery.failed ? CLI_FAILED : code;
}
