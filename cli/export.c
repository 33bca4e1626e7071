/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli.h"
#include "export.h"
#include "export/aggregate.h"
#include "print.h"

const char cli_export_help[] =
	"usage: weft export [OPTION...] PATH... -o FILE\n"
	"\n"
	"Sums segments up by stack, thread, labels and state, and writes a profile that other tools open. The end of "
	"FILE's\n"
	"name says which:\n"
	"\n"
	"  .pb.gz, .pprof, .pb     pprof, compressed by gzip but for .pb: go tool pprof, Pyroscope, Parca, speedscope\n"
	"  .otlp, .otlp.gz         OTLP profiles (v1development, opentelemetry-proto 1.10 and 1.11)\n"
	"  .folded, .collapsed     a line for each stack: flamegraph.pl, inferno, speedscope\n"
	"  .json                   which package each file of code is of (code provenance)\n"
	"  .zip                    the segments themselves with metadata.json, as the rust-agent of async-profiler "
	"stores its\n"
	"                          profiles; whole: no filter works on it\n"
	"\n"
	"  -o, --output FILE  where to; - is standard output, as pprof unless another option says otherwise\n"
	"  --otlp             OTLP, whatever FILE is called\n"
	"  --what LIST        of cpu, wall, offcpu, wait, poll: what is summed (all that was recorded; collapsed: "
	"cpu)\n"
	"  --tag KEY=VALUE    in the profile: service, env, version, host, runtime-id, or your own; as often as "
	"needed\n"
	"  --from TIME        only what happened from TIME on, relative to the recording's start: 12.5s, 300ms\n"
	"  --to TIME          ... and before TIME\n"
	"  --worker NAME      only this worker (demo/1) or thread; a shell pattern will do\n"
	"  --thread NAME      only the threads of this name, or the one of this tid; patterns too\n"
	"  --location NAME    only polls of tasks spawned at this location, and what is in them; patterns too\n"
	"  --min DURATION     only polls of at least this length, and what is in them: 5ms\n"
	"  --span ID          only this span, those whose local root it is, or this trace: hex digits\n"
	"  --label KEY=VALUE  only what was done in a context with this label\n"
	"  --endpoint NAME    only what was done for this endpoint; patterns too\n"
	"  --pid PID          only the recordings of this process\n"
	"  --no-contexts      no labels of spans and traces: a smaller profile\n"
	"  --no-symbols       do not look for names of functions in program files and debug info\n"
	"  -h, --help\n"
	"\n"
	"examples:\n"
	"  weft export ~/weft -o x.pb.gz && go tool pprof -top x.pb.gz\n"
	"  weft export ~/weft --what offcpu -o off.folded\n"
	"  weft export ~/weft --location handle_upload --min 5ms -o slow.pb.gz\n"
	"  weft export ~/weft --otlp -o - | curl --data-binary @- -H 'Content-Type: application/x-protobuf' \\\n"
	"      http://localhost:4318/v1development/profiles\n"
	"\n"
	"exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something could not be read in full\n";

enum format { FORMAT_NONE, FORMAT_PPROF, FORMAT_OTLP, FORMAT_FOLDED, FORMAT_PROVENANCE, FORMAT_ZIP };

struct options {
	struct weft__export_opts export;
	struct weft__export_tag tags[WEFT__TAGS_MAX];
	const char *output;
	enum format format;
};

static enum format format_of(const char *path, bool *plain)
{
	static const struct {
		const char *end;
		enum format format;
		bool plain;
	} known[] = {
		{".pb.gz", FORMAT_PPROF, false},    {".pprof.gz", FORMAT_PPROF, false},
		{".pprof", FORMAT_PPROF, false},    {".pb", FORMAT_PPROF, true},
		{".otlp.gz", FORMAT_OTLP, false},   {".otlp", FORMAT_OTLP, true},
		{".folded", FORMAT_FOLDED, true},   {".collapsed", FORMAT_FOLDED, true},
		{".json", FORMAT_PROVENANCE, true}, {".zip", FORMAT_ZIP, true},
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (weft__ends_in(path, known[i].end)) {
			*plain = known[i].plain;
			return known[i].format;
		}
	return FORMAT_NONE;
}

static bool parse_what(const char *text, uint32_t *what)
{
	static const char *const names[] = {"cpu", "wall", "offcpu", "wait", "poll"};
	size_t n, i;

	for (*what = 0; *text; text += n + (text[n] == ',')) {
		n = strcspn(text, ",");
		for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0)
				break;
		if (i == sizeof(names) / sizeof(names[0]))
			return false;
		*what |= 1u << i;
	}
	return *what != 0;
}

static bool parse_tag(char *text, struct options *opts)
{
	char *value = strchr(text, '=');

	if (!value || value == text || opts->export.n_tags == WEFT__TAGS_MAX)
		return false;
	*value++ = 0;
	opts->tags[opts->export.n_tags++] = (struct weft__export_tag){text, value};
	return true;
}

static void parse_filter(int c, struct weft__export_opts *opts)
{
	switch (c) {
	case CLI_OPT_WORKER:
		opts->worker = optarg;
		break;
	case CLI_OPT_LOCATION:
		opts->location = optarg;
		break;
	case CLI_OPT_THREAD:
		opts->thread = optarg;
		break;
	case CLI_OPT_LABEL:
		opts->label = optarg;
		break;
	case CLI_OPT_ENDPOINT:
		opts->endpoint = optarg;
		break;
	case CLI_OPT_NO_SYMBOLS:
		opts->no_symbols = true;
		break;
	case CLI_OPT_NO_CONTEXTS:
		opts->no_contexts = true;
		break;
	}
}

static int parse_value(int c, const char *command, struct options *opts)
{
	switch (c) {
	case CLI_OPT_FROM:
		if (!cli_parse_time(optarg, &opts->export.from_ns))
			return cli_usage(command, "--from takes a time like 12.5s or 300ms, not '%s'", optarg);
		break;
	case CLI_OPT_TO:
		if (!cli_parse_time(optarg, &opts->export.to_ns) || opts->export.to_ns == 0)
			return cli_usage(command, "--to takes a time like 12.5s or 300ms, not '%s'", optarg);
		break;
	case CLI_OPT_MIN:
		if (!cli_parse_time(optarg, &opts->export.min_poll_ns))
			return cli_usage(command, "--min takes a duration like 5ms, not '%s'", optarg);
		break;
	case CLI_OPT_SPAN:
		if (!cli_parse_span(optarg, &opts->export.span, &opts->export.trace_hi, &opts->export.trace_lo))
			return cli_usage(
				command,
				"--span takes the hex digits of a span (up to 16) or a trace (up to 32), not '%s'",
				optarg);
		break;
	case CLI_OPT_PID:
		if (!cli_parse_number(optarg, UINT32_MAX, &opts->export.pid) || opts->export.pid == 0)
			return cli_usage(command, "--pid takes the number of a process, not '%s'", optarg);
		break;
	case CLI_OPT_WHAT:
		if (!parse_what(optarg, &opts->export.what))
			return cli_usage(command, "--what takes some of cpu,wall,offcpu,wait,poll, not '%s'", optarg);
		break;
	case CLI_OPT_TAG:
		if (!parse_tag(optarg, opts))
			return cli_usage(command, "--tag takes KEY=VALUE, at most %d times", WEFT__TAGS_MAX);
		break;
	default:
		parse_filter(c, &opts->export);
	}
	return CLI_OK;
}

static bool filters(const struct options *opts)
{
	const struct weft__export_opts *e = &opts->export;

	return e->what || e->from_ns || e->to_ns || e->worker || e->location || e->thread || e->endpoint || e->label ||
	       e->span || e->trace_hi || e->trace_lo || e->min_poll_ns || e->pid;
}

static int check(const char *command, struct options *opts, bool otlp)
{
	bool plain = false;

	if (!opts->output)
		return cli_usage(command, "no -o FILE given: where the profile goes, as x.pb.gz");
	opts->format = strcmp(opts->output, "-") == 0 ? FORMAT_PPROF : format_of(opts->output, &plain);
	if (otlp) {
		opts->format = FORMAT_OTLP;
		plain = !weft__ends_in(opts->output, ".gz");
	}
	opts->export.plain = plain;
	if (opts->format == FORMAT_NONE)
		return cli_usage(command,
				 "'%s' does not say which format: it must end in .pb.gz, .otlp, .folded, .json or .zip",
				 opts->output);
	if (opts->format == FORMAT_ZIP && filters(opts))
		return cli_usage(command, "a zip archive has whole segments: no filter works on it");
	if (opts->export.label && !strchr(opts->export.label, '='))
		return cli_usage(command, "--label takes KEY=VALUE, not '%s'", opts->export.label);
	if (opts->export.to_ns && opts->export.to_ns <= opts->export.from_ns)
		return cli_usage(command, "--to must lie behind --from");
	if (opts->format == FORMAT_FOLDED && !opts->export.what)
		opts->export.what = WEFT__EXPORT_CPU;
	if (opts->format == FORMAT_FOLDED && opts->export.what & (opts->export.what - 1))
		return cli_usage(command, "collapsed stacks have one value only: give --what one of its names");
	return CLI_OK;
}

static int parse(int argc, char **argv, struct options *opts)
{
	static const struct option longs[] = {
		{"output", required_argument, NULL, 'o'},
		{"otlp", no_argument, NULL, CLI_OPT_OTLP},
		{"what", required_argument, NULL, CLI_OPT_WHAT},
		{"tag", required_argument, NULL, CLI_OPT_TAG},
		{"from", required_argument, NULL, CLI_OPT_FROM},
		{"to", required_argument, NULL, CLI_OPT_TO},
		{"worker", required_argument, NULL, CLI_OPT_WORKER},
		{"location", required_argument, NULL, CLI_OPT_LOCATION},
		{"thread", required_argument, NULL, CLI_OPT_THREAD},
		{"min", required_argument, NULL, CLI_OPT_MIN},
		{"span", required_argument, NULL, CLI_OPT_SPAN},
		{"label", required_argument, NULL, CLI_OPT_LABEL},
		{"endpoint", required_argument, NULL, CLI_OPT_ENDPOINT},
		{"pid", required_argument, NULL, CLI_OPT_PID},
		{"no-contexts", no_argument, NULL, CLI_OPT_NO_CONTEXTS},
		{"no-symbols", no_argument, NULL, CLI_OPT_NO_SYMBOLS},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {"ho:", longs, cli_export_help, CLI_NO_PATH};
	int code = CLI_OK, c, rc = CLI_OK;
	bool otlp = false;

	opts->export.tags = opts->tags;
	while (rc == CLI_OK && (c = cli_option(&of, argc, argv, &code)) != -1) {
		if (c == 'o')
			opts->output = optarg;
		else if (c == CLI_OPT_OTLP)
			otlp = true;
		else
			rc = parse_value(c, argv[0], opts);
	}
	if (rc == CLI_OK)
		rc = code;
	return rc == CLI_OK ? check(argv[0], opts, otlp) : rc;
}

static void progress(void *data, uint64_t n_events, uint64_t total)
{
	(void)data;
	cli_progress(n_events, total);
}

static int write_bytes(const char *path, const struct weft__bytes *bytes)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *out = standard ? stdout : fopen(path, "we");
	bool good;

	if (!out)
		return cli_fail("cannot write %s: %s", path, strerror(errno));
	good = fwrite(bytes->at, 1, bytes->n, out) == bytes->n;
	if (!standard)
		good = (fclose(out) == 0) & good;
	if (good)
		return CLI_OK;
	cli_fail("cannot write %s: %s", path, strerror(errno));
	if (!standard)
		unlink(path);
	return CLI_FAILED;
}

static int make(struct weft__bytes *out, struct weft__recordings *list, const struct options *opts,
		struct weft_error *err)
{
	switch (opts->format) {
	case FORMAT_PROVENANCE:
		return weft__provenance_export(out, list, err);
	case FORMAT_OTLP:
		return weft__export_recordings(out, list, weft__otlp_encode, &opts->export, err);
	case FORMAT_FOLDED:
		return weft__export_recordings(out, list, weft__folded_encode, &opts->export, err);
	default:
		return weft__export_recordings(out, list, weft__pprof_encode, &opts->export, err);
	}
}

static int run(struct weft__recordings *list, const struct options *opts, int code)
{
	struct weft__bytes out = {0};
	struct weft_error err = {0};
	char figure[32];
	size_t i;
	int rc = make(&out, list, opts, &err), written;

	cli_progress_end();
	if (rc < 0)
		return cli_fail("%s", err.msg);
	if (out.n_rows == 0) {
		weft__export_free(&out);
		return cli_fail(
			"nothing to export: the recording has nothing of what was asked for; `weft report` says "
			"what it has");
	}
	written = write_bytes(opts->output, &out);
	if (written == CLI_OK && out.n_dropped)
		cli_warn("%s samples did not fit into memory: the profile has them in one row without a stack",
			 cli_count(out.n_dropped, figure));
	weft__export_free(&out);
	for (i = 0; i < list->n; i++)
		if (cli_tell_damage(&list->all[i]))
			code = CLI_DAMAGED;
	return written == CLI_OK ? code : written;
}

int cli_export(int argc, char **argv)
{
	struct options opts = {.export = {.progress = progress}};
	struct weft__recordings list = {0};
	int code = parse(argc, argv, &opts);

	if (code != CLI_OK)
		return code < 0 ? CLI_OK : code;
	code = cli_load(&list, argc - optind, argv + optind);
	if (code != CLI_FAILED && opts.format == FORMAT_ZIP)
		code = export_zip(&list, opts.output, code);
	else if (code != CLI_FAILED)
		code = run(&list, &opts, code);
	weft__recordings_fini(&list);
	return code;
}
