/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

#include <errno.h>
#include <getopt.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "fetch.h"

const char cli_view_help[] =
	"usage: weft view [OPTION...] PATH...\n"
	"\n"
	"Shows segments (files, or all of a directory) in a browser: the timeline of every worker and thread, what "
	"each "
	"poll's\n"
	"time was spent on and why, flame graphs of any selection, and the lists of weft report. The page is served on "
	"127.0.0.1\n"
	"to who has the address that is printed, and follows a recording that is still going on. Nothing is sent "
	"anywhere.\n"
	"\n"
	"  --html FILE     write one file with page and segments in it instead, which opens from disk and can be "
	"mailed\n"
	"  --port N        listen there; 0: any that is free (0)\n"
	"  --no-open       only print the address, do not open the browser\n"
	"  -h, --help\n"
	"\n"
	"examples:\n"
	"  weft view ~/weft\n"
	"  weft view --no-open --port 7000 DIR     then, elsewhere: ssh -L 7000:127.0.0.1:7000 HOST\n"
	"  weft view --html slow.html DIR          for a bug report\n"
	"\n"
	"exit status: 0 done, 1 failed, 2 wrong usage\n";

struct view_opts {
	unsigned port;
	const char *html;
	bool no_open;
};

enum { OPT_HTML = 1000, OPT_PORT, OPT_NO_OPEN };

static int parse(int argc, char **argv, struct view_opts *opts)
{
	static const struct option longs[] = {
		{"html", required_argument, NULL, OPT_HTML},
		{"port", required_argument, NULL, OPT_PORT},
		{"no-open", no_argument, NULL, OPT_NO_OPEN},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {NULL, longs, cli_view_help, CLI_NO_PATH};
	uint64_t number;
	int code = CLI_OK, c;

	while ((c = cli_option(&of, argc, argv, &code)) != -1) {
		switch (c) {
		case OPT_HTML:
			opts->html = optarg;
			break;
		case OPT_PORT:
			if (!cli_parse_number(optarg, 65535, &number))
				return cli_usage(argv[0], "--port takes a number up to 65535, not '%s'", optarg);
			opts->port = (unsigned)number;
			break;
		case OPT_NO_OPEN:
			opts->no_open = true;
			break;
		}
	}
	return code;
}

const struct view_file *view_bundle_find(const char *name)
{
	const struct view_file *file;

	for (file = view_bundle; file->name; file++)
		if (strcmp(file->name, name) == 0)
			return file;
	return NULL;
}

char *view_bundle_plain(const struct view_file *file)
{
	struct libdeflate_decompressor *unzip = libdeflate_alloc_decompressor();
	char *plain = malloc(file->bytes + 1);

	if (!unzip || !plain ||
	    libdeflate_gzip_decompress(unzip, file->gzip, file->gzip_bytes, plain, file->bytes, NULL) !=
		    LIBDEFLATE_SUCCESS) {
		free(plain);
		plain = NULL;
	}
	if (unzip)
		libdeflate_free_decompressor(unzip);
	if (plain)
		plain[file->bytes] = 0;
	return plain;
}

int cli_view(int argc, char **argv)
{
	struct view_files files = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct view_opts opts = {0};
	struct view_server_opts server;
	int code = parse(argc, argv, &opts), i;
	bool some_missing = false;

	if (code != CLI_OK)
		return code < 0 ? CLI_OK : code;
	if (view_bundle_missing[0])
		return cli_fail("this weft was built without the page of weft view: %s; run tools/bootstrap viewer and "
				"make again",
				view_bundle_missing);
	for (i = optind; i < argc; i++)
		if (cli_fetch_wanted(argv[i]) && !(argv[i] = cli_fetch(argv[i], false, &some_missing)))
			return CLI_FAILED;
	files.paths = argv + optind;
	files.n_paths = argc - optind;
	if (view_files_look(&files) < 0)
		return cli_fail("out of memory");
	if (files.n == 0)
		return cli_fail("no segments in %s: give a .weft file or the directory that was recorded to",
				files.paths[0]);
	server = (struct view_server_opts){&files, opts.port, !opts.no_open};
	code = opts.html ? view_write_html(&files, opts.html) : view_serve(&server);
	view_files_fini(&files);
	return code == CLI_OK && some_missing ? CLI_DAMAGED : code;
}
