/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints and labels. CALLER. Each is an interned string, and beside it, for the records that other profilers
 * read, the same as attributes: made once, found by the string's id without a lock, and never freed. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/place.h"
#include "record/wait/context.h"
#include "weft/define.h"

#define CONTEXT_LABELS_MAX 32
#define CONTEXT_LABELS_BYTES 4096
#define ATTR_VALUE_MAX 255
#define KEY_BYTES 64 /* longer ones are not published */

static pthread_mutex_t otel_mutex FORK_DATA = PTHREAD_MUTEX_INITIALIZER;
static char *otel_key_names[OTEL_KEYS_MAX] = {"datadog.local_root_span_id", "http.route"};
static uint32_t otel_n_keys = OTEL_KEY_LABELS;

void weft__otel_lock(void)
{
	pthread_mutex_lock(&otel_mutex);
}

void weft__otel_unlock(void)
{
	pthread_mutex_unlock(&otel_mutex);
}

int weft__otel_key(const char *name, size_t bytes)
{
	uint32_t i;

	for (i = 0; i < otel_n_keys; i++)
		if (strlen(otel_key_names[i]) == bytes && !memcmp(otel_key_names[i], name, bytes))
			return (int)i;
	if (otel_n_keys == OTEL_KEYS_MAX || bytes > KEY_BYTES)
		return -1;
	otel_key_names[otel_n_keys] = weft__calloc(1, bytes + 1);
	if (!otel_key_names[otel_n_keys])
		return -1;
	memcpy(otel_key_names[otel_n_keys], name, bytes);
	return (int)otel_n_keys++;
}

uint32_t weft__otel_keys(const char **names, uint32_t max)
{
	uint32_t i;

	for (i = 0; i < otel_n_keys && i < max; i++)
		names[i] = otel_key_names[i];
	return i;
}

static int attrs_set(uint32_t string, struct weft__otel_attrs *attrs)
{
	struct weft__otel_attrs **page = load_relaxed(&weft__otel_pages[string >> 8 & 255]);

	if (!page) {
		page = weft__calloc(256, sizeof(struct weft__otel_attrs *));
		if (!page)
			return 0;
		store_release(&weft__otel_pages[string >> 8 & 255], page);
	}
	store_release(&page[string & 255], attrs);
	return 1;
}

/* What is between `text` and `end`, as "key=value" separated by commas, or all of it as the value of `key`. */
static void attrs_fill(struct weft__otel_attrs *attrs, int key, const char *text)
{
	const char *end;

	for (; *text; text = *end ? end + 1 : end) {
		const char *value = text;
		size_t n;
		int number = key;

		end = key < 0 ? strchrnul(text, ',') : text + strlen(text);
		if (key < 0) {
			value = memchr(text, '=', (size_t)(end - text));
			number = weft__otel_key(text, (size_t)(value - text));
			value++;
		}
		n = (size_t)(end - value) < ATTR_VALUE_MAX ? (size_t)(end - value) : ATTR_VALUE_MAX;
		if (number < 0)
			continue;
		attrs->at[attrs->bytes++] = (uint8_t)number;
		attrs->at[attrs->bytes++] = (uint8_t)n;
		memcpy(attrs->at + attrs->bytes, value, n);
		attrs->bytes = (uint16_t)(attrs->bytes + n);
	}
}

/* Makes the attributes of a string, if there are none yet. `key`: -1 for labels. */
static void attrs_make(uint32_t string, int key, const char *text)
{
	struct weft__otel_attrs *attrs;
	uint32_t before;

	weft__otel_lock();
	before = otel_n_keys;
	if (!weft__otel_attrs(string)) {
		/* Number and length take no more room than comma and equals sign, of which one is missing. */
		attrs = weft__calloc(1, sizeof(*attrs) + strlen(text) + 2);
		if (attrs)
			attrs_fill(attrs, key, text);
		if (attrs && !attrs_set(string, attrs))
			weft__free(attrs);
		if (otel_n_keys != before)
			weft__otel_update();
	}
	weft__otel_unlock();
}

uint32_t weft_endpoint(const char *text)
{
	uint32_t id;

	if (!text || !*text)
		return 0;
	id = weft_string(text);
	if (id)
		attrs_make(id, OTEL_KEY_ENDPOINT, text);
	return id;
}

/* Puts labels[i] in its place among the `n` before it, sorted by key; one of the same key goes. Answers how many
 * there are then. */
static uint32_t labels_insert(const char **sorted, uint32_t n, const char *label)
{
	size_t bytes = strcspn(label, "=");
	uint32_t at = 0, i;

	while (at < n) {
		size_t other = strcspn(sorted[at], "=");
		int order = memcmp(sorted[at], label, other < bytes ? other : bytes);

		if (!order && other == bytes) {
			sorted[at] = label;
			return n;
		}
		if (order > 0 || (!order && other > bytes))
			break;
		at++;
	}
	for (i = n; i > at; i--)
		sorted[i] = sorted[i - 1];
	sorted[at] = label;
	return n + 1;
}

uint32_t weft_labels(const char *const *labels, struct weft_error *err)
{
	const char *sorted[CONTEXT_LABELS_MAX + 1];
	char text[CONTEXT_LABELS_BYTES];
	uint32_t id, i, n = 0;
	size_t at = 0;

	for (; labels && *labels; labels++) {
		if (!**labels || **labels == '=')
			continue;
		n = labels_insert(sorted, n, *labels);
		if (n > CONTEXT_LABELS_MAX) {
			weft__fail(err, -WEFT_E_LIMIT, "more than %d labels", CONTEXT_LABELS_MAX);
			return 0;
		}
	}
	for (i = 0; i < n; i++) {
		size_t begun = at, bytes = strlen(sorted[i]);

		if (at + bytes + 2 >= sizeof(text)) {
			weft__fail(err, -WEFT_E_LIMIT, "labels of more than %d bytes", CONTEXT_LABELS_BYTES - 1);
			return 0;
		}
		if (i)
			text[at++] = ',', begun++;
		for (const char *c = sorted[i]; *c; c++)
			text[at++] = *c == ',' ? '_' : *c;
		if (!memchr(text + begun, '=', at - begun))
			text[at++] = '=';
	}
	text[at] = 0;
	id = n ? weft_string(text) : 0;
	if (id)
		attrs_make(id, -1, text);
	else if (n)
		weft__fail(err, -WEFT_E_LIMIT, "no room for more strings");
	return id;
}
