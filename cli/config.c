/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/json.h"
#include "cli.h"
#include "print.h"
#include "record/options.h"
#include "ship/ship.h"
#include "ship/url.h"

const char cli_config_help[] =
	"usage: weft config [--json] [--all]\n"
	"\n"
	"Prints the options that a recorder takes here, and where each comes from: the environment, the configuration "
	"file\n"
	"(WEFT_CONFIG, else /etc/weft.conf) or a default. Values that are not allowed are named. What a program sets\n"
	"itself goes before the file, and is not seen here.\n"
	"\n"
	"  --all        also those that are left at their defaults\n"
	"  --json       one JSON document, with all of them\n"
	"  -h, --help\n"
	"\n"
	"exit status: 0 done, 1 a value is not allowed, or the file has a name that is no option, 2 wrong usage\n";

enum { OPT_ALL = 1000 };

struct listing {
	struct weft__json *json; /* or NULL */
	bool all;
	int n_bad;
};

/* Each URL without its secrets. */
static void show_urls(const char *text, char *to, size_t bytes)
{
	size_t at = 0;

	to[0] = 0;
	while (*(text += strspn(text, " \t\n"))) {
		size_t n = strcspn(text, " \t\n");
		char one[600], shown[600];

		snprintf(one, sizeof(one), "%.*s", (int)(n < 590 ? n : 590), text);
		weft__url_show(one, shown, sizeof(shown));
		at += (size_t)snprintf(to + at, at < bytes ? bytes - at : 0, "%s%s", at ? " " : "", shown);
		if (at >= bytes)
			return;
		text += n;
	}
}

/* A number as its variable is written. */
static void show_number(const struct weft__option *option, uint64_t value, char *to, size_t bytes)
{
	const char *word = option->words;
	uint64_t i;

	if (value == WEFT_OFF && option->rules & OPTION_RULE_OFF) {
		snprintf(to, bytes, "off");
	} else if (option->form == OPTION_FORM_WORDS && value <= option->most) {
		for (i = 0; i < value; i++)
			word += strlen(word) + 1;
		snprintf(to, bytes, "%s", word);
	} else if (option->form == OPTION_FORM_OCTAL) {
		snprintf(to, bytes, "%04" PRIo64, value);
	} else {
		uint64_t unit = option->form == OPTION_FORM_MS        ? 1000000
				: option->form == OPTION_FORM_SECONDS ? 1000000000
								      : 1;

		snprintf(to, bytes, "%" PRIu64, value / unit);
	}
}

static void show_value(const struct weft__option *option, const struct weft_recorder_opts *o, const char *text,
		       char *to, size_t bytes)
{
	const char *field;

	if (weft__option_is_number(option)) {
		show_number(option, weft__option_get(o, option), to, bytes);
		return;
	}
	if (option->type == OPTION_TYPE_TEXT) {
		memcpy(&field, (const char *)o + option->at, sizeof(field));
		text = field;
	}
	if (text && !strcmp(option->variable, "WEFT_SHIP_TO"))
		show_urls(text, to, bytes);
	else
		snprintf(to, bytes, "%s", text ? text : "");
}

static void print_one(struct listing *l, const struct weft__option *option, const char *value, const char *from,
		      const char *bad)
{
	if (l->json) {
		weft__json_begin(l->json, NULL, '{');
		weft__json_text(l->json, "variable", option->variable);
		weft__json_text(l->json, "field", option->name);
		weft__json_text(l->json, "value", value);
		weft__json_text(l->json, "from", from);
		weft__json_text(l->json, "error", bad);
		weft__json_end(l->json, '}');
	} else if (l->all || strcmp(from, "default") != 0) {
		printf("%-28s %-24s %s\n", option->variable, value[0] ? cli_safe(value) : "-", from);
	}
	if (bad) {
		l->n_bad++;
		cli_warn("%s", bad);
	}
}

/* A target that there is none of. The first is enough. */
static bool targets_are_bad(const char *text, struct weft_error *err)
{
	bool bad = false;

	while (!bad && *(text += strspn(text, " \t\n"))) {
		size_t n = strcspn(text, " \t\n");
		char one[2048];

		snprintf(one, sizeof(one), "%.*s", (int)(n < sizeof(one) ? n : sizeof(one) - 1), text);
		bad = weft__target_check(one, err) < 0;
		text += n;
	}
	return bad;
}

static bool is_option(const char *name)
{
	static const char *const others[] = {"WEFT_OFF",          "WEFT_CONFIG",
					     "WEFT_SHIP_HEADERS", "WEFT_START_AFTER_MS",
					     "WEFT_BLOCK_MS",     "WEFT_RUBY_ALLOC",
					     "WEFT_RUBY_FRAMES",  "WEFT_RUBY_VERBOSE"};
	const struct weft__option *option;
	size_t i;

	for (i = 0; (option = weft__option_at(i)); i++)
		if (option->variable &&
		    (!strcasecmp(option->variable, name) || !strcasecmp(option->variable + 5, name)))
			return true;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(others[i], name))
			return true;
	return false;
}

/* Names that nothing takes: mostly an option that is misspelt. In the environment others may have names of their own
 * that begin so, so there it is no failure. */
static void warn_of_names(struct listing *l, const char *config)
{
	const char *at = NULL, *equals, *off = getenv("WEFT_OFF");
	char name[200];
	char **one;

	while (weft__config_next(config, &at, name, sizeof(name)))
		if (!is_option(name)) {
			cli_warn("%s: %s is no option", weft__config_path(), cli_safe(name));
			l->n_bad++;
		}
	for (one = environ; *one; one++) {
		equals = strchr(*one, '=');
		if (strncmp(*one, "WEFT_", 5) != 0 || !equals || !strncmp(*one, "WEFT_PRELOAD_", 13))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(equals - *one), *one);
		if (!is_option(name))
			cli_warn("%s is no option", cli_safe(name));
	}
	if (off && !strcmp(off, "1"))
		cli_warn("WEFT_OFF=1: nothing is recorded");
}

static int list_options(struct listing *l)
{
	struct weft__options store = {0}, full = {0};
	struct weft_recorder_opts given = {.size = sizeof(given)};
	const struct weft__option *option;
	struct weft_error err = {0};
	size_t i;

	if (weft__options_env(&given, &store, &err) < 0 || weft__options_init(&full, &given, &err) < 0) {
		weft__options_fini(&store);
		return cli_fail("%s", err.msg);
	}
	for (i = 0; (option = weft__option_at(i)); i++) {
		struct weft_recorder_opts scratch = {.size = sizeof(scratch)};
		const char *from = NULL, *text = option->variable ? weft__option_text(option, &store, &from) : NULL;
		char value[2048];
		bool bad = text && option->form != OPTION_FORM_LABELS &&
			   weft__option_take(&scratch, option, text, &err) < 0;
		bool bad_target = !bad && text && option->variable && !strcmp(option->variable, "WEFT_SHIP_TO") &&
				  targets_are_bad(text, &err);

		if (!option->variable)
			continue;
		show_value(option, &full.o, text, value, sizeof(value));
		print_one(l, option, value, text && !bad ? from : "default", bad || bad_target ? err.msg : NULL);
	}
	warn_of_names(l, store.config);
	weft__options_fini(&store);
	weft__options_fini(&full);
	return l->n_bad ? CLI_FAILED : CLI_OK;
}

int cli_config(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, CLI_OPT_JSON},
		{"all", no_argument, NULL, OPT_ALL},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {NULL, longs, cli_config_help, NULL};
	struct weft__json json = {.out = stdout};
	struct listing listing = {0};
	int code = CLI_OK, c;

	while ((c = cli_option(&of, argc, argv, &code)) != -1) {
		if (c == CLI_OPT_JSON)
			listing.json = &json;
		else
			listing.all = true;
	}
	if (code != CLI_OK)
		return code == CLI_DONE ? CLI_OK : code;
	if (optind < argc)
		return cli_usage(argv[0], "'%s': it takes no arguments", argv[optind]);
	if (listing.json) {
		weft__json_begin(&json, NULL, '{');
		weft__json_u64(&json, "version", 1);
		weft__json_begin(&json, "options", '[');
	}
	code = list_options(&listing);
	if (listing.json) {
		weft__json_end(&json, ']');
		weft__json_end(&json, '}');
	}
	return code;
}
