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

/* Variables over `opts`. Strings that it sets live until the environment changes; labels in `labels`. 0 or
 * -WEFT_E_OPTION. */
int weft__options_env(struct weft_recorder_opts *opts, struct weft__options *labels, struct weft_error *err);

#endif
