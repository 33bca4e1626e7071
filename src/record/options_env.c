/* SPDX-License-Identifier: Apache-2.0 */
/* Options from variables of the environment and from the configuration file. CALLER. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "record/options.h"

#define MS UINT64_C(1000000)
#define MIB UINT64_C(1048576)

/* A number with an optional K, M or G; times `unit`. */
static int env_number(const char *name, const char *text, uint64_t unit, uint64_t max, uint64_t *ret,
		      struct weft_error *err)
{
	unsigned long long v;
	uint64_t scale = 1;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'k')
		scale = 1024;
	else if (*end == 'M' || *end == 'm')
		scale = MIB;
	else if (*end == 'G' || *end == 'g')
		scale = 1024 * MIB;
	if (scale > 1)
		end++;
	if (errno || end == text || *end || *text == '-' || v > max / scale / unit)
		return weft__fail(err, -WEFT_E_OPTION,
				  "%s=%s: give a whole number, with K, M or G behind it if you like", name, text);
	*ret = (uint64_t)v * scale * unit;
	return 0;
}

/* One of the words of an option: its value is which. */
static int env_word(const struct weft__option *option, const char *text, uint64_t *ret, struct weft_error *err)
{
	const char *word = option->words;
	char all[64] = ""; /* which the few short words fit */
	size_t n = 0;
	uint64_t i;

	for (i = 0; i <= option->most; i++, word += strlen(word) + 1) {
		if (!strcmp(text, word)) {
			*ret = i;
			return 0;
		}
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", word);
	}
	return weft__fail(err, -WEFT_E_OPTION, "%s=%s: give one of %s", option->variable, text, all);
}

static int env_mode(const char *name, const char *text, uint64_t *ret, struct weft_error *err)
{
	char *end;
	unsigned long v = strtoul(text, &end, 8);

	if (*end || *text == '-' || v > 07777)
		return weft__fail(err, -WEFT_E_OPTION, "%s=%s: give 0600, or 0640", name, text);
	*ret = v;
	return 0;
}

/* A number, or a name with or without its SIG. */
static int env_signal(const char *name, const char *text, uint64_t *ret, struct weft_error *err)
{
	struct weft_error number;
	const char *known;
	int i, r;

	for (i = 1; i <= SIGSYS; i++) {
		known = sigabbrev_np(i);
		if (known && !strcmp(strncmp(text, "SIG", 3) ? text : text + 3, known)) {
			*ret = (uint64_t)i;
			return 0;
		}
	}
	r = env_number(name, text, 1, UINT32_MAX, ret, &number);
	return r ? weft__fail(err, r, "%s=%s: give the number of a signal, or its name, such as USR2", name, text) : 0;
}

/* Labels that are none are left out, with a word about it. */
static int take_labels(struct weft_recorder_opts *opts, struct weft__options *store, const char *text,
		       struct weft_error *err)
{
	size_t n = 0;

	while (*text) {
		size_t length = strcspn(text, ",");
		char *label = NULL;

		if (n == LABELS_MAX || !memchr(text, '=', length)) {
			weft__log(WEFT_LOG_WARN, "WEFT_LABELS: \"%.*s\" is left out: at most %d labels, each key=value",
				  (int)length, text, LABELS_MAX);
		} else {
			label = weft__alloc(length + 1);
			if (!label)
				return weft__fail(err, -ENOMEM, "out of memory");
			memcpy(label, text, length);
			label[length] = 0;
			store->labels[n++] = label;
		}
		text += length + (text[length] == ',');
	}
	if (n)
		opts->labels = (const char *const *)store->labels;
	return 0;
}

/* One variable that is set, and is neither a text nor labels. A rate of 0 is none, since 0 in its field is the
 * default. */
static int env_value(const struct weft__option *option, const char *text, uint64_t *ret, struct weft_error *err)
{
	uint64_t unit = option->form == OPTION_FORM_MS ? MS : option->form == OPTION_FORM_SECONDS ? 1000 * MS : 1;
	uint64_t most = option->type == OPTION_TYPE_U64 ? UINT64_MAX : UINT32_MAX;

	if (option->rules & OPTION_RULE_OFF &&
	    (!strcmp(text, "off") ||
	     (option->at == offsetof(struct weft_recorder_opts, sample_hz) && !strcmp(text, "0")))) {
		*ret = WEFT_OFF;
		return 0;
	}
	switch (option->form) {
	case OPTION_FORM_WORDS:
		return env_word(option, text, ret, err);
	case OPTION_FORM_OCTAL:
		return env_mode(option->variable, text, ret, err);
	case OPTION_FORM_SIGNAL:
		return env_signal(option->variable, text, ret, err);
	default:
		return env_number(option->variable, text, unit, most, ret, err);
	}
}

const char *weft__option_text(const struct weft__option *option, const struct weft__options *store, const char **from)
{
	const char *text = option->variable ? getenv(option->variable) : NULL;

	*from = "environment";
	if (text && *text)
		return text;
	text = option->variable ? weft__config_get(store->config, option->variable) : NULL;
	*from = weft__config_path();
	if ((!text || !*text) && option->at == offsetof(struct weft_recorder_opts, name))
		text = weft__others_name(store, from);
	return text && *text ? text : NULL;
}

int weft__option_take(struct weft_recorder_opts *opts, const struct weft__option *option, const char *text,
		      struct weft_error *err)
{
	struct weft_recorder_opts was = *opts;
	struct weft_error range = {0};
	uint64_t value = 0;
	int r;

	if (option->form == OPTION_FORM_TEXT) {
		memcpy((char *)opts + option->at, &text, sizeof(text));
		return 0;
	}
	r = env_value(option, text, &value, err);
	if (r)
		return r;
	weft__option_set(opts, option, value);
	r = weft__option_is_number(option) ? weft__option_check(opts, option, &range) : 0;
	if (!r)
		return 0;
	*opts = was;
	return weft__fail(err, r, "%s=%.60s: %.400s", option->variable, text, range.msg);
}

/* Whether the program has set it. */
static int is_set(const struct weft_recorder_opts *opts, const struct weft__option *option)
{
	const void *text;

	if (weft__option_is_number(option) || option->type == OPTION_TYPE_I32)
		return weft__option_get(opts, option) != 0;
	memcpy(&text, (const char *)opts + option->at, sizeof(text));
	return text != NULL;
}

int weft__options_env(struct weft_recorder_opts *opts, struct weft__options *store, struct weft_error *err)
{
	const struct weft__option *option;
	struct weft_error why = {0};
	size_t i;
	int r;

	store->config = weft__config_read(&why);
	if (why.msg[0])
		weft__log(WEFT_LOG_WARN, "%s", why.msg);
	store->service = weft__others_service();
	for (i = 0; (option = weft__option_at(i)); i++) {
		const char *from, *text = weft__option_text(option, store, &from);

		if (!text || (is_set(opts, option) && strcmp(from, "environment") != 0))
			continue;
		if (option->form == OPTION_FORM_LABELS) {
			r = take_labels(opts, store, text, err);
			if (r)
				return r;
		} else if (weft__option_take(opts, option, text, &why) < 0) {
			weft__log(WEFT_LOG_WARN, "%s; it is left at its default (from: %s)", why.msg, from);
		}
	}
	return weft__others_take(opts, store, err);
}
