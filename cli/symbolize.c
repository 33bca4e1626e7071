/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyze/annotate.h"
#include "analyze/json.h"
#include "base/error.h"
#include "base/text.h"
#include "cli.h"
#include "export/packages.h"
#include "print.h"

const char cli_symbolize_help[] =
	"usage: weft symbolize [OPTION...] PATH...\n"
	"\n"
	"Puts the names of functions, files and lines into segments (files, or all .weft files of a directory), so "
	"that they\n"
	"can be read anywhere. Needs the programs and libraries that ran, of the same build, or their debug files; a "
	"file of\n"
	"another build is never used. What is not found stays as module+offset. Segments are replaced by complete new "
	"ones.\n"
	"\n"
	"  -o OUT             write there and leave PATH alone: a file, or a directory when there are several "
	"segments\n"
	"  --root DIR         look for programs and libraries below DIR: the file system of the machine that recorded\n"
	"  --debug-dir DIR    look for separate debug files there first; may be given again\n"
	"  --jit-dir DIR      where perf-PID.map and jit-PID.dump are; /tmp\n"
	"  --kallsyms FILE    names of the kernel, saved from /proc/kallsyms while it ran\n"
	"  --no-debuginfod    ask no server, even when DEBUGINFOD_URLS is set\n"
	"  --force            look up again what has names, and write over OUT\n"
	"  --json             one JSON document\n"
	"  -h, --help\n"
	"\n"
	"examples:\n"
	"  weft symbolize ~/weft && weft report ~/weft\n"
	"  weft symbolize -o named.weft FILE.weft\n"
	"  weft symbolize --root /proc/1234/root ~/weft      what ran in a container, while it is there\n"
	"  DEBUGINFOD_URLS=https://debuginfod.example.org weft symbolize --force ~/weft\n"
	"\n"
	"exit status: 0 done, also when names are missing; 1 failed; 2 wrong usage; 3 done, but some file could not be "
	"read "
	"in full\n";

#define MODULES_SHOWN 5

struct job {
	struct weft__annotate_opts opts;
	const char *out;
	bool out_is_dir;
	bool force;
	bool as_json;
	struct weft__json json;
	struct weft__annotator *annotator;
	struct paths {
		char **at;
		size_t n, cap;
	} paths;
	size_t skipped; /* that are still being written */
	int code;
};

static void worse(struct job *job, int code)
{
	if (job->code != CLI_FAILED)
		job->code = code;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void add_path(struct paths *paths, const char *dir, const char *name)
{
	char *path = NULL;

	if (paths->n == paths->cap) {
		size_t cap = paths->cap ? paths->cap * 2 : 16;
		char **at = realloc(paths->at, cap * sizeof(*at));

		if (!at)
			abort();
		paths->at = at;
		paths->cap = cap;
	}
	if (asprintf(&path, "%s%s%s", dir ? dir : "", dir && !weft__ends_in(dir, "/") ? "/" : "", name) < 0)
		abort();
	paths->at[paths->n++] = path;
}

static int is_segment(const struct dirent *entry)
{
	return weft__ends_in(entry->d_name, ".weft");
}

static int is_active(const struct dirent *entry)
{
	return weft__ends_in(entry->d_name, ".weft.active");
}

static void free_entries(struct dirent **entries, int n)
{
	while (n-- > 0)
		free(entries[n]);
	free(entries);
}

static int add_dir(struct job *job, const char *dir)
{
	struct dirent **sealed = NULL, **active = NULL;
	int n = scandir(dir, &sealed, is_segment, alphasort), i;
	int n_active = n < 0 ? -1 : scandir(dir, &active, is_active, alphasort);

	if (n < 0)
		return cli_fail("%s: %s", dir, strerror(errno));
	for (i = 0; i < n; i++)
		if (sealed[i]->d_type == DT_LNK)
			cli_warn("%s/%s: a link, which is not followed in a directory: name the file itself", dir,
				 sealed[i]->d_name);
		else
			add_path(&job->paths, dir, sealed[i]->d_name);
	if (n_active > 0)
		job->skipped += (size_t)n_active;
	if (n == 0 && n_active > 0)
		cli_fail("%s: all segments there are still being written, or were left by a process that was killed "
			 "(then run weft recover)",
			 dir);
	else if (n == 0)
		cli_fail("no segments in %s: give a directory that a recorder writes to, or a .weft file", dir);
	free_entries(sealed, n);
	free_entries(active, n_active);
	return n > 0 ? CLI_OK : CLI_FAILED;
}

static void tell_progress(void *data, uint64_t done, uint64_t total)
{
	static uint64_t last_ns;
	static bool shown;
	struct timespec now;
	uint64_t ns;
	char text[CLI_FIGURE];

	(void)data;
	if ((done & 15) && done != total)
		return;
	if (done == total && shown) {
		fputs("\r\x1b[K", stderr);
		shown = false;
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (!last_ns)
		last_ns = ns + 500000000; /* what is over soon needs no line */
	if (ns < last_ns + 200000000)
		return;
	last_ns = ns;
	shown = true;
	fprintf(stderr, "\r%s frames, %.0f %%\x1b[K", cli_count(done, text), 100.0 * (double)done / (double)total);
}

static const char *module_name(const struct weft__annotated_module *module)
{
	if (module->path[0])
		return module->path;
	return module->kind == WEFT_MODULE_CODE ? "code made at run time" : "code in no module";
}

/* The most frames without a name first, then those without a line. */
static int by_missing(const void *a, const void *b)
{
	const struct weft__annotated_module *x = *(const struct weft__annotated_module *const *)a;
	const struct weft__annotated_module *y = *(const struct weft__annotated_module *const *)b;
	uint64_t x_names = x->places - x->named, y_names = y->places - y->named;
	uint64_t x_lines = x->places - x->lined, y_lines = y->places - y->lined;

	if (x_names != y_names)
		return x_names > y_names ? -1 : 1;
	if (x_lines != y_lines)
		return x_lines > y_lines ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* The modules that lack names, or lines for a reason that is known, worst first; the caller's. */
static const struct weft__annotated_module **lacking(const struct weft__annotated *done, size_t *ret_n)
{
	const struct weft__annotated_module **list =
		calloc(done->n_modules + 1, sizeof(struct weft__annotated_module *));
	size_t i;

	*ret_n = 0;
	if (!list)
		return NULL;
	for (i = 0; i < done->n_modules; i++) {
		const struct weft__annotated_module *module = &done->modules[i];

		if (module->named < module->places || (module->lined < module->places && module->why[0]))
			list[(*ret_n)++] = module;
	}
	qsort(list, *ret_n, sizeof(struct weft__annotated_module *), by_missing);
	return list;
}

static void tell_text(const char *path, const char *to, const struct weft__annotated *done)
{
	char places[CLI_FIGURE], named[CLI_FIGURE], lined[CLI_FIGURE], unknown[CLI_FIGURE], added[CLI_FIGURE];
	const struct weft__annotated_module **list;
	size_t n, i;

	printf("%s: %s frames, %s named, %s with lines, %s unknown", cli_safe(path), cli_count(done->places, places),
	       cli_count(done->named, named), cli_count(done->lined, lined),
	       cli_count(done->places - done->named, unknown));
	if (!done->stacks)
		printf("; it has no stacks");
	else if (!done->added)
		printf("; nothing new");
	else
		printf("; %s new", cli_count(done->added, added));
	printf("%s%s\n", strcmp(path, to) != 0 ? ", written to " : "", strcmp(path, to) != 0 ? cli_safe(to) : "");
	list = lacking(done, &n);
	for (i = 0; list && i < n && i < MODULES_SHOWN; i++)
		printf("  %s of %s named, %s with lines: %s%s%s\n", cli_count(list[i]->named, named),
		       cli_count(list[i]->places, places), cli_count(list[i]->lined, lined),
		       cli_safe(module_name(list[i])), list[i]->why[0] ? ": " : "", cli_safe(list[i]->why));
	if (list && n > MODULES_SHOWN)
		printf("  and %zu more modules\n", n - MODULES_SHOWN);
	free(list);
}

static void tell_json(struct weft__json *json, const char *path, const char *to, const struct weft__annotated *done,
		      const char *error)
{
	size_t i;

	weft__json_begin(json, NULL, '{');
	weft__json_text(json, "path", path);
	weft__json_text(json, "error", error);
	if (!error) {
		weft__json_text(json, "written", done->written ? to : NULL);
		weft__json_u64(json, "stacks", done->stacks);
		weft__json_u64(json, "frames", done->places);
		weft__json_u64(json, "named", done->named);
		weft__json_u64(json, "with_lines", done->lined);
		weft__json_u64(json, "unknown", done->places - done->named);
		weft__json_u64(json, "new", done->added);
		weft__json_u64(json, "inlined", done->frames - done->named);
		weft__json_text(json, "damage", done->damaged_places ? done->damage : NULL);
		weft__json_begin(json, "modules", '[');
		for (i = 0; i < done->n_modules; i++) {
			const struct weft__annotated_module *module = &done->modules[i];

			if (!module->places)
				continue;
			weft__json_begin(json, NULL, '{');
			weft__json_text(json, "path", module->path[0] ? module->path : NULL);
			weft__json_u64(json, "frames", module->places);
			weft__json_u64(json, "named", module->named);
			weft__json_u64(json, "with_lines", module->lined);
			weft__json_text(json, "why", module->why[0] ? module->why : NULL);
			weft__json_end(json, '}');
		}
		weft__json_end(json, ']');
	}
	weft__json_end(json, '}');
}

static void run_one(struct job *job, const char *path)
{
	struct weft__annotated done = {0};
	struct weft_error err = {0};
	char *to = NULL;
	int r;

	if (job->out && job->out_is_dir && asprintf(&to, "%s/%s", job->out, cli_base(path)) < 0)
		abort();
	if (job->out && !to)
		to = strdup(job->out);
	if (to && !job->force && access(to, F_OK) == 0)
		r = weft__fail(&err, -EEXIST, "%s is there already; give another -o, or --force", to);
	else
		r = weft__annotator_run(job->annotator, path, to, &done, &err);
	if (r) {
		worse(job, CLI_FAILED);
		cli_fail("%s", err.msg);
	} else if (done.damaged_places) {
		worse(job, CLI_DAMAGED);
		cli_warn("%s: damaged: %s", path, done.damage);
	}
	if (!r && done.full)
		cli_warn("%s: a segment takes no more names; some are missing", path);
	if (job->as_json)
		tell_json(&job->json, path, to ? to : path, &done, r ? err.msg : NULL);
	else if (!r)
		tell_text(path, to ? to : path, &done);
	free(to);
}

static int run_all(struct job *job)
{
	struct weft__package_cache *packages = weft__packages_open();
	struct weft_error err = {0};
	size_t i;

	if (!packages)
		return cli_fail("out of memory");
	job->opts.more = weft__packages_add;
	job->opts.more_data = packages;
	if (weft__annotator_open(&job->annotator, &job->opts, &err) < 0) {
		weft__packages_close(packages);
		return cli_fail("%s", err.msg);
	}
	job->json.out = stdout;
	if (job->as_json) {
		weft__json_begin(&job->json, NULL, '{');
		weft__json_u64(&job->json, "version", 1);
		weft__json_begin(&job->json, "segments", '[');
	}
	for (i = 0; i < job->paths.n; i++)
		run_one(job, job->paths.at[i]);
	if (job->as_json) {
		weft__json_end(&job->json, ']');
		weft__json_end(&job->json, '}');
	} else if (job->skipped) {
		printf("%zu segment%s still being written, or left by a killed process (weft recover): left alone\n",
		       job->skipped, job->skipped == 1 ? " is" : "s are");
	}
	weft__annotator_close(job->annotator);
	weft__packages_close(packages);
	return job->code;
}

static void add_dirs(char **dirs, const char *more)
{
	char *both = NULL;

	if (asprintf(&both, "%s%s%s", *dirs ? *dirs : "", *dirs ? ":" : "", more) < 0)
		abort();
	free(*dirs);
	*dirs = both;
}

/* What was not said is looked for below the root, too. */
static void settle_dirs(struct weft__symbolizer_opts *opts, char **debug_dirs, char **jit_dir)
{
	char *path = NULL;

	if (opts->root) {
		if (asprintf(&path, "%s/usr/lib/debug", opts->root) < 0)
			abort();
		add_dirs(debug_dirs, path);
		free(path);
		if (!*jit_dir && asprintf(jit_dir, "%s/tmp", opts->root) < 0)
			abort();
	}
	if (*debug_dirs)
		add_dirs(debug_dirs, "/usr/lib/debug");
	opts->debug_dirs = *debug_dirs;
	opts->jit_dir = *jit_dir;
}

enum { OPT_ROOT = 1000, OPT_DEBUG_DIR, OPT_JIT_DIR, OPT_KALLSYMS, OPT_NO_DEBUGINFOD, OPT_FORCE };

static const struct option longs[] = {
	{"root", required_argument, NULL, OPT_ROOT},
	{"debug-dir", required_argument, NULL, OPT_DEBUG_DIR},
	{"jit-dir", required_argument, NULL, OPT_JIT_DIR},
	{"kallsyms", required_argument, NULL, OPT_KALLSYMS},
	{"no-debuginfod", no_argument, NULL, OPT_NO_DEBUGINFOD},
	{"force", no_argument, NULL, OPT_FORCE},
	{"json", no_argument, NULL, CLI_OPT_JSON},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* Directories that are not there are mistakes that would only show as missing names. */
static int check_dir(const char *option, const char *dir)
{
	return is_dir(dir) ? CLI_OK : cli_fail("%s %s: there is no such directory", option, dir);
}

static int parse(struct job *job, int argc, char **argv, char **debug_dirs, char **jit_dir)
{
	struct weft__symbolizer_opts *symbols = &job->opts.symbols;
	const struct cli_options of = {"ho:", longs, cli_symbolize_help,
				       "no PATH given: name a segment or the directory that was recorded to"};
	int code = CLI_OK, c;

	while ((c = cli_option(&of, argc, argv, &code)) != -1) {
		switch (c) {
		case 'o':
			job->out = optarg;
			break;
		case OPT_ROOT:
			symbols->root = optarg;
			code = check_dir("--root", optarg);
			break;
		case OPT_DEBUG_DIR:
			add_dirs(debug_dirs, optarg);
			code = check_dir("--debug-dir", optarg);
			break;
		case OPT_JIT_DIR:
			free(*jit_dir);
			*jit_dir = strdup(optarg);
			code = check_dir("--jit-dir", optarg);
			break;
		case OPT_KALLSYMS:
			symbols->kallsyms = optarg;
			if (access(optarg, R_OK) != 0)
				code = cli_fail("--kallsyms %s: %s", optarg, strerror(errno));
			break;
		case OPT_NO_DEBUGINFOD:
			symbols->no_debuginfod = true;
			break;
		case OPT_FORCE:
			job->force = job->opts.again = true;
			break;
		case CLI_OPT_JSON:
			job->as_json = true;
			break;
		}
	}
	return code;
}

/* The segments that the arguments name. */
static int list_paths(struct job *job, int argc, char **argv)
{
	int i;

	for (i = optind; i < argc; i++) {
		if (!is_dir(argv[i]))
			add_path(&job->paths, NULL, argv[i]);
		else if (add_dir(job, argv[i]) != CLI_OK)
			job->code = CLI_FAILED;
	}
	job->out_is_dir = job->out && is_dir(job->out);
	if (job->out && !job->out_is_dir && job->paths.n > 1)
		return cli_usage(argv[0],
				 "%zu segments cannot become one file: -o %s has to be a directory that is "
				 "there",
				 job->paths.n, job->out);
	return CLI_OK;
}

int cli_symbolize(int argc, char **argv)
{
	struct job job = {0};
	char *debug_dirs = NULL, *jit_dir = NULL;
	int code = parse(&job, argc, argv, &debug_dirs, &jit_dir);
	size_t i;

	if (code == CLI_OK)
		code = list_paths(&job, argc, argv);
	if (code == CLI_OK) {
		settle_dirs(&job.opts.symbols, &debug_dirs, &jit_dir);
		if (isatty(STDERR_FILENO))
			job.opts.progress = tell_progress;
		code = run_all(&job);
	}
	for (i = 0; i < job.paths.n; i++)
		free(job.paths.at[i]);
	free(job.paths.at);
	free(debug_dirs);
	free(jit_dir);
	return code < 0 ? CLI_OK : code;
}
