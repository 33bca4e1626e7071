/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli.h"
#include "print.h"
#include "ship/profiles.h"
#include "ship/worker.h"
#include "weft/recorder.h"

const char cli_push_help[] =
	"usage: weft push --to URL... [OPTION...] FILE-or-DIR...\n"
	"\n"
	"Sends sealed segments to where they are wanted. Of a directory all are sent that the target does not have "
	"yet, "
	"oldest\n"
	"first; what killed processes left there is recovered before. The files SEGMENT.ship-* say what a target has.\n"
	"\n"
	"  --to URL       s3://BUCKET/PREFIX, http://HOST/PATH (PUT), a directory; as profiles: "
	"pyroscope+http://HOST:4040,\n"
	"                 parca+http://HOST:7070, datadog+http://HOST:8126, otlp+http://HOST:4318; https works, too. "
	"May be\n"
	"                 given more than once; without it: WEFT_SHIP_TO. weft-agent(7) has more about targets.\n"
	"                 ?layout=rust-agent&group=NAME behind s3:// or file:// stores archives as that agent does\n"
	"  --again        also what the target has refused for good\n"
	"  --delete       remove segments that all targets have\n"
	"  --wait TIME    how long to try again when a target fails (1m)\n"
	"  --timeout TIME give up a try that makes no progress (30s)\n"
	"  --no-recover   leave alone what killed processes left\n"
	"  -q, --quiet    print only what fails\n"
	"  -h, --help\n"
	"\n"
	"example:\n"
	"  weft push --to 's3://profiles/web?region=eu-central-1' ~/weft\n"
	"\n"
	"exit status: 0 all were sent, 1 some were not, 2 wrong usage\n";

enum { OPT_TO = 1000, OPT_AGAIN, OPT_DELETE, OPT_WAIT, OPT_TIMEOUT, OPT_NO_RECOVER };

/* The encoders that are linked in. */
static const struct weft_export_plugin encoders = {
	.abi = WEFT_EXPORT_ABI,
	.opts_bytes = sizeof(struct weft__export_opts),
	.pprof = weft__export_pprof,
	.otlp = weft__export_otlp,
	.folded = weft__export_folded,
	.provenance = weft__export_provenance,
	.forms = weft__export_forms,
	.forget = weft__export_forget,
	.free = weft__export_free,
};

struct push {
	const char *urls[WORKER_TARGETS + 1];
	uint32_t n_urls;
	struct weft__worker_opts opts;
	uint64_t wait_ns;
	bool quiet, no_recover;
	uint64_t n_sent, n_failed;
	const char *shown; /* the target */
};

static void tell_one(void *data, const char *name, const struct weft__verdict *verdict)
{
	struct push *push = data;

	if (verdict->outcome == PARCEL_SENT) {
		push->n_sent++;
		if (!push->quiet)
			printf("%s -> %s\n", cli_safe(name), push->shown);
	} else {
		cli_warn("%s: %s: %s", push->shown, name, verdict->why);
	}
}

static void nap_until(uint64_t due_ns)
{
	struct timespec at = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};

	fflush(stdout);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* All that waits for one target in one directory. */
static int push_dir(struct push *push, const char *dir, const char *only, const char *url)
{
	uint64_t end = weft__clock_mono() + push->wait_ns, due;
	struct weft_error err = {0};
	struct weft__worker w;
	int code = CLI_OK;

	push->opts.target.url = url;
	push->opts.dir = dir;
	push->opts.only = only;
	if (weft__worker_open(&w, &push->opts, &err) < 0) {
		weft__worker_close(&w);
		return cli_fail("%s", err.msg);
	}
	push->shown = w.target.shown;
	for (;;) {
		uint64_t now = weft__clock_mono();

		due = weft__worker_turn(&w, now);
		if (w.state.busy)
			w.state.waiting = 1;
		if (!w.state.waiting || due > end)
			break;
		if (!w.state.failing && !w.state.busy && w.state.retries)
			break; /* what is left was refused */
		nap_until(due);
	}
	if (w.state.busy)
		code = cli_fail("%s: another process sends what is there to %s", dir, push->shown);
	else if (w.state.waiting || w.state.refused)
		code = cli_fail("%s: %llu of the segments are not at %s%s%s", dir,
				(unsigned long long)w.state.waiting + (unsigned long long)w.state.refused, push->shown,
				w.state.why[0] ? ": " : "", w.state.why);
	else if (w.state.why[0])
		code = cli_fail("%s: %s", dir, w.state.why);
	weft__worker_close(&w);
	push->shown = NULL;
	return code;
}

static int push_path(struct push *push, const char *path)
{
	char resolved[PATH_MAX], *only = NULL;
	const char *dir = resolved;
	int code = CLI_OK;
	struct stat st;
	uint32_t i;

	if (!realpath(path, resolved) || stat(resolved, &st) < 0)
		return cli_fail("%s: %s", path, strerror(errno));
	if (S_ISREG(st.st_mode)) {
		only = strrchr(resolved, '/');
		*only++ = 0;
		if (!weft__ends_in(only, ".weft"))
			return cli_fail("%s: not a sealed segment: its name does not end in .weft", path);
	} else if (!push->no_recover) {
		weft_recover(resolved, NULL, NULL, NULL);
	}
	for (i = 0; i < push->n_urls; i++)
		if (push_dir(push, *dir ? dir : "/", only, push->urls[i]) != CLI_OK)
			code = CLI_FAILED;
	return code;
}

/* The URLs of WEFT_SHIP_TO, separated by white space. */
static void urls_of_environment(struct push *push)
{
	static char text[4096];
	const char *value = getenv("WEFT_SHIP_TO");
	char *save = NULL, *one;

	snprintf(text, sizeof(text), "%s", value ? value : "");
	for (one = strtok_r(text, " \t\n", &save); one && push->n_urls < WORKER_TARGETS;
	     one = strtok_r(NULL, " \t\n", &save))
		push->urls[push->n_urls++] = one;
}

static int take_option(struct push *push, const char *command, int c)
{
	switch (c) {
	case OPT_TO:
		if (push->n_urls == WORKER_TARGETS)
			return cli_usage(command, "at most %d targets", WORKER_TARGETS);
		push->urls[push->n_urls++] = optarg;
		return CLI_OK;
	case OPT_AGAIN:
		push->opts.again = 1;
		return CLI_OK;
	case OPT_DELETE:
		push->opts.delete = 1;
		return CLI_OK;
	case OPT_NO_RECOVER:
		push->no_recover = true;
		return CLI_OK;
	case 'q':
		push->quiet = true;
		return CLI_OK;
	default:
		if (!cli_parse_time(optarg, c == OPT_WAIT ? &push->wait_ns : &push->opts.target.timeout_ns))
			return cli_usage(command, "'%s' is not a time: give for example 30s or 5m", optarg);
		return CLI_OK;
	}
}

int cli_push(int argc, char **argv)
{
	static const struct option longs[] = {
		{"to", required_argument, NULL, OPT_TO},
		{"again", no_argument, NULL, OPT_AGAIN},
		{"delete", no_argument, NULL, OPT_DELETE},
		{"wait", required_argument, NULL, OPT_WAIT},
		{"timeout", required_argument, NULL, OPT_TIMEOUT},
		{"no-recover", no_argument, NULL, OPT_NO_RECOVER},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {"qh", longs, cli_push_help, CLI_NO_PATH};
	struct push push = {.wait_ns = UINT64_C(60000000000)};
	int code = CLI_OK, c, i;

	while ((c = cli_option(&of, argc, argv, &code)) != -1)
		code = take_option(&push, argv[0], c);
	if (code != CLI_OK)
		return code == CLI_DONE ? CLI_OK : code;
	if (!push.n_urls)
		urls_of_environment(&push);
	if (!push.n_urls)
		return cli_usage(argv[0], "no target: give --to URL, or set WEFT_SHIP_TO");
	weft__profiles_encoders = &encoders;
	push.opts.all_urls = push.urls;
	push.opts.sent = tell_one;
	push.opts.data = &push;
	for (i = optind; i < argc; i++)
		if (push_path(&push, argv[i]) != CLI_OK)
			code = CLI_FAILED;
	if (!push.quiet && !push.n_sent && code == CLI_OK)
		printf("nothing to send: the targets have all of it\n");
	return code;
}
