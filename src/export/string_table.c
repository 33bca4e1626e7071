/* SPDX-License-Identifier: Apache-2.0 */
#include "export/string_table.h"

#include <string.h>

#include "export/proto.h"

uint32_t weft__string_add(struct weft__strings *strings, const char *text, size_t n)
{
	char copy[512];
	uint32_t at;

	if (n >= sizeof(copy))
		n = sizeof(copy) - 1;
	memcpy(copy, text, n);
	copy[n] = 0;
	at = weft__keys_find(strings->known, copy, n + 1);
	if (at != WEFT__MAP_NONE)
		return at;
	if (weft__keys_add(&strings->more, copy, n + 1, &at) < 0) {
		strings->oom = true;
		return 0;
	}
	return (uint32_t)strings->known->n + at;
}

uint32_t weft__string_name(struct weft__strings *strings, const char *text)
{
	return weft__string_add(strings, text, strlen(text));
}

const char *weft__string_at(const struct weft__strings *strings, uint32_t number)
{
	if (number < strings->known->n)
		return weft__keys_at(strings->known, number, NULL);
	return weft__keys_at(&strings->more, number - (uint32_t)strings->known->n, NULL);
}

static void write_keys(const struct weft__keys *keys, struct weft__buf *out, uint32_t field)
{
	uint32_t i;

	for (i = 0; i < keys->n; i++) {
		size_t n;
		const char *of = weft__keys_at(keys, i, &n);

		proto_put_bytes(out, field, of, n - 1);
	}
}

void weft__strings_write(const struct weft__strings *strings, struct weft__buf *out, uint32_t field)
{
	write_keys(strings->known, out, field);
	write_keys(&strings->more, out, field);
}
