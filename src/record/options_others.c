/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that other tools have made usual: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES of OpenTelemetry,
 * DD_SERVICE, DD_ENV, DD_VERSION and DD_TAGS of Datadog. weft's own go before them, and OpenTelemetry's before
 * Datadog's. CALLER. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "record/options.h"

#define PAIR_BYTES 1024

static const char *set(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One key and its value, from a list with commas; percent-encoded when `coded`. Answers where the next one is; NULL
 * when there is none. What is no pair, or too long, has an empty key. */
static const char *next_pair(const char *at, char between, int coded, char *key, char *value)
{
	char *to = key;
	size_t n = 0;

	key[0] = value[0] = 0;
	if (!at || !*at)
		return NULL;
	while (*at == ' ')
		at++;
	for (; *at && *at != ','; at++) {
		char c = *at;

		if (to == key && c == between) {
			to[n] = 0;
			to = value;
			n = 0;
			continue;
		}
		if (coded && c == '%' && hex(at[1]) >= 0 && hex(at[2]) >= 0) {
			c = (char)(hex(at[1]) << 4 | hex(at[2]));
			at += 2;
		}
		if (n + 1 < PAIR_BYTES && (unsigned char)c >= ' ')
			to[n++] = c;
	}
	to[n] = 0;
	if (to == key)
		key[0] = 0;
	return at + (*at == ',');
}

char *weft__others_service(void)
{
	const char *at = set("OTEL_RESOURCE_ATTRIBUTES");
	char key[PAIR_BYTES], value[PAIR_BYTES];

	while ((at = next_pair(at, '=', 1, key, value)))
		if (!strcmp(key, "service.name") && *value)
			return weft__strdup(value);
	return NULL;
}

const char *weft__others_name(const struct weft__options *store, const char **from)
{
	*from = "OTEL_SERVICE_NAME";
	if (set(*from))
		return set(*from);
	*from = "OTEL_RESOURCE_ATTRIBUTES";
	if (store->service)
		return store->service;
	*from = "DD_SERVICE";
	return set(*from);
}

/* Adds key=value, unless there is one with that key. */
static int add_label(struct weft__options *store, const char *key, const char *value)
{
	size_t n = 0, k = strlen(key), bytes = k + strlen(value) + 2;

	if (!*key || !*value)
		return 0;
	for (; n < LABELS_MAX && store->labels[n]; n++)
		if (!strncmp(store->labels[n], key, k) && store->labels[n][k] == '=')
			return 0;
	if (n == LABELS_MAX)
		return 0;
	store->labels[n] = weft__alloc(bytes);
	if (!store->labels[n])
		return -ENOMEM;
	snprintf(store->labels[n], bytes, "%s=%s", key, value);
	return 0;
}

/* Attributes by the names that weft has for them. */
static const char *known_as(const char *key)
{
	if (!strcmp(key, "deployment.environment.name") || !strcmp(key, "deployment.environment"))
		return "env";
	if (!strcmp(key, "service.version"))
		return "version";
	return strcmp(key, "service.name") != 0 ? key : "";
}

static int add_list(struct weft__options *store, const char *variable, char between, int coded)
{
	const char *at = set(variable);
	char key[PAIR_BYTES], value[PAIR_BYTES];
	int r = 0;

	while (!r && (at = next_pair(at, between, coded, key, value)))
		r = add_label(store, known_as(key), value);
	return r;
}

/* Labels of the program are the caller's memory: they are copied, so that others can stand behind them. */
static int copy_given(const struct weft_recorder_opts *opts, struct weft__options *store)
{
	size_t i;

	if (!opts->labels || opts->labels == (const char *const *)store->labels)
		return 0;
	for (i = 0; i < LABELS_MAX && opts->labels[i]; i++) {
		store->labels[i] = weft__strdup(opts->labels[i]);
		if (!store->labels[i])
			return -ENOMEM;
	}
	return 0;
}

int weft__others_take(struct weft_recorder_opts *opts, struct weft__options *store, struct weft_error *err)
{
	int r = 0;

	if (!set("OTEL_RESOURCE_ATTRIBUTES") && !set("DD_ENV") && !set("DD_VERSION") && !set("DD_TAGS"))
		return 0;
	r = copy_given(opts, store);
	if (!r)
		r = add_list(store, "OTEL_RESOURCE_ATTRIBUTES", '=', 1);
	if (!r && set("DD_ENV"))
		r = add_label(store, "env", set("DD_ENV"));
	if (!r && set("DD_VERSION"))
		r = add_label(store, "version", set("DD_VERSION"));
	if (!r)
		r = add_list(store, "DD_TAGS", ':', 0);
	if (r)
		return weft__fail(err, r, "out of memory");
	if (store->labels[0])
		opts->labels = (const char *const *)store->labels;
	return 0;
}
