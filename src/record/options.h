/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a recorder: checked, completed, copied; from a struct and from the environment. CALLER. */
#ifndef WEFT_RECORD_OPTIONS_H
#define WEFT_RECORD_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "weft/recorder.h"

#define LABELS_MAX 64

/* A line of options.list. */
enum weft__option_type { OPTION_TYPE_TEXT, OPTION_TYPE_LIST, OPTION_TYPE_U64, OPTION_TYPE_U32, OPTION_TYPE_I32 };
enum weft__option_form {
	OPTION_FORM_NONE,
	OPTION_FORM_TEXT,
	OPTION_FORM_NUMBER,
	OPTION_FORM_MS,
	OPTION_FORM_SECONDS,
	OPTION_FORM_OCTAL,
	OPTION_FORM_SIGNAL,
	OPTION_FORM_LABELS,
	OPTION_FORM_WORDS
};
enum { OPTION_RULE_OFF = 1, OPTION_RULE_POW2 = 2 };

struct weft__option {
	const char *name;
	const char *variable; /* NULL: none */
	size_t at;            /* in struct weft_recorder_opts */
	enum weft__option_type type;
	enum weft__option_form form; /* of the variable */
	uint32_t rules;
	uint64_t fallback; /* in place of 0 */
	uint64_t least;
	uint64_t most;     /* 0: no limit */
	const char *words; /* most + 1 of them, each with its zero byte */
};

/* `o` holds the options with no field left at "default"; the strings are owned. */
struct weft__options {
	struct weft_recorder_opts o;
	char *dir;
	char *name;
	char *event;
	char *ship_to;
	char *off_file;
	char *service; /* of OTEL_RESOURCE_ATTRIBUTES; NULL: none */
	char *config;  /* the text of the configuration file; NULL: there is none */
	char *labels[LABELS_MAX + 1];
};

/* Takes what a caller of any version gave, or NULL: fewer bytes are defaults, more bytes must be zero. 0,
 * -WEFT_E_OPTION or -E2BIG. */
int weft__options_take(struct weft_recorder_opts *o, const struct weft_recorder_opts *given, struct weft_error *err);
/* 0, -WEFT_E_OPTION, -E2BIG or -ENOMEM. */
int weft__options_init(struct weft__options *options, const struct weft_recorder_opts *given, struct weft_error *err);
/* Makes the directory, and its name one that a change of directory does not change. 0 or a negative error. */
int weft__options_dir(struct weft__options *options, struct weft_error *err);
void weft__options_fini(struct weft__options *options);

/* Lines of the list, by number; NULL behind the last. What a field of a number holds, and whether it is allowed. */
const struct weft__option *weft__option_at(size_t i);
int weft__option_is_number(const struct weft__option *option);
uint64_t weft__option_get(const struct weft_recorder_opts *o, const struct weft__option *option);
void weft__option_set(struct weft_recorder_opts *o, const struct weft__option *option, uint64_t value);
int weft__option_check(const struct weft_recorder_opts *o, const struct weft__option *option, struct weft_error *err);

/* options_env.c. Variables over `opts`, and lines of the configuration file (config.c) where neither says anything. A
 * value that is not allowed is logged and passed over. Strings that it sets live until the environment changes; those
 * of the file, and labels, in `store`. 0 or -ENOMEM. */
int weft__options_env(struct weft_recorder_opts *opts, struct weft__options *store, struct weft_error *err);
/* What environment or file say of an option; NULL: nothing. `*from` is then where that is. */
const char *weft__option_text(const struct weft__option *option, const struct weft__options *store, const char **from);
/* Takes it. 0, or -WEFT_E_OPTION with what is wrong. */
int weft__option_take(struct weft_recorder_opts *opts, const struct weft__option *option, const char *text,
		      struct weft_error *err);

/* options_others.c. What the variables of OpenTelemetry and Datadog say, where weft's own say nothing: attributes
 * become labels behind those that are there. 0 or -ENOMEM. */
/* The value of service.name there; the caller's, NULL: none. */
char *weft__others_service(void);
int weft__others_take(struct weft_recorder_opts *opts, struct weft__options *store, struct weft_error *err);
/* The name of the service in these; NULL: none. `*from` is then the variable. */
const char *weft__others_name(const struct weft__options *store, const char **from);

/* config.c. The path of the configuration file: WEFT_CONFIG, else /etc/weft.conf. */
const char *weft__config_path(void);
/* Reads it, for weft__config_get. NULL with a reason when it may not be
 * used, without one when there is none. The caller's. */
char *weft__config_read(struct weft_error *err);
/* The value of a variable in that; NULL: it has none. */
const char *weft__config_get(const char *config, const char *variable);
/* The name in the next line that sets something, as it is written there, from *at on (NULL at first), which is moved
 * behind that line. False: there is none. */
int weft__config_next(const char *config, const char **at, char *name, size_t bytes);

#endif
