/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/json.h"
#include "cli.h"
#include "print.h"
#include "ship/s3.h"

const char cli_ls_help[] = "usage: weft ls [--json] s3://BUCKET/PREFIX...\n"
			   "\n"
			   "Lists what is in a bucket below a prefix: time, bytes and URL of each object. Credentials "
			   "are found as weft push\n"
			   "finds them. Behind '?' may be region=, endpoint=, style=path|host and owner=, as there.\n"
			   "All commands that read segments take such a URL.\n"
			   "\n"
			   "  --json       one JSON document\n"
			   "  -h, --help\n"
			   "\n"
			   "example:\n"
			   "  weft ls 's3://profiles/web/2026-11-18?region=eu-central-1'\n"
			   "\n"
			   "exit status: 0 done, 1 failed, 2 wrong usage\n";

struct listing {
	struct weft__json *json; /* or NULL */
	const char *bucket;
};

static int show(const struct weft__s3_object *object, void *data)
{
	struct listing *listing = data;
	char url[1300];

	snprintf(url, sizeof(url), "s3://%s/%s", listing->bucket, object->key);
	if (listing->json) {
		weft__json_begin(listing->json, NULL, '{');
		weft__json_text(listing->json, "url", url);
		weft__json_u64(listing->json, "bytes", object->bytes);
		weft__json_text(listing->json, "time", object->time);
		weft__json_end(listing->json, '}');
	} else {
		printf("%-24s %12" PRIu64 "  %s\n", cli_safe(object->time), object->bytes, cli_safe(url));
	}
	return 0;
}

static int list_one(const char *url, struct weft__json *json)
{
	struct weft_error err = {0};
	struct weft__s3 s3;
	struct listing listing = {json, s3.bucket};
	int r;

	if (strncmp(url, "s3://", 5) != 0)
		return cli_fail("%s: give a URL of a bucket: s3://BUCKET/PREFIX", url);
	r = weft__s3_open(&s3, url, NULL, &err);
	if (!r)
		r = weft__s3_list(&s3, s3.prefix, show, &listing, &err);
	weft__s3_close(&s3);
	return r < 0 ? cli_fail("%s", err.msg) : CLI_OK;
}

int cli_ls(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, CLI_OPT_JSON},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {NULL, longs, cli_ls_help, "no URL given: name a bucket, s3://BUCKET/PREFIX"};
	struct weft__json json = {.out = stdout}, *as_json = NULL;
	int code = CLI_OK, i;

	while (cli_option(&of, argc, argv, &code) == CLI_OPT_JSON)
		as_json = &json;
	if (code != CLI_OK)
		return code == CLI_DONE ? CLI_OK : code;
	if (as_json) {
		weft__json_begin(&json, NULL, '{');
		weft__json_u64(&json, "version", 1);
		weft__json_begin(&json, "objects", '[');
	}
	for (i = optind; i < argc; i++)
		if (list_one(argv[i], as_json) != CLI_OK)
			code = CLI_FAILED;
	if (as_json) {
		weft__json_end(&json, ']');
		weft__json_end(&json, '}');
	}
	return code;
}
