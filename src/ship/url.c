/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/url.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `n` bytes of text, decoded. 0, or -1: too long, not well formed, or with a zero byte. */
static int decode(const char *text, size_t n, char *to, size_t bytes)
{
	size_t i, at = 0;

	for (i = 0; i < n; i++) {
		char c = text[i];

		if (c == '%') {
			int high = n - i > 2 ? hex_digit(text[i + 1]) : -1;
			int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

			if (low < 0 || !(high | low))
				return -1;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (at + 1 >= bytes)
			return -1;
		to[at++] = c;
	}
	to[at] = 0;
	return 0;
}

static int parse_query(struct weft__url *url, const char *at)
{
	while (*at) {
		size_t n = strcspn(at, "&"), key = strcspn(at, "=&");
		const char *value = key < n ? at + key + 1 : at + n;

		if (url->n_queries == URL_QUERIES ||
		    decode(at, key, url->query[url->n_queries].key, sizeof(url->query[0].key)) ||
		    decode(value, n - (size_t)(value - at), url->query[url->n_queries].value,
			   sizeof(url->query[0].value)))
			return -1;
		url->n_queries++;
		at += n + (at[n] == '&');
	}
	return 0;
}

int weft__url_parse(struct weft__url *url, const char *text, struct weft_error *err)
{
	const char *colon = strstr(text, "://"), *at, *query;
	size_t host;
	char shown[256];

	memset(url, 0, sizeof(*url));
	weft__url_show(text, shown, sizeof(shown));
	if (!colon || colon == text || (size_t)(colon - text) >= sizeof(url->scheme))
		return weft__fail(err, -WEFT_E_OPTION, "%s: not a URL; give for example s3://BUCKET/PREFIX", shown);
	memcpy(url->scheme, text, (size_t)(colon - text));
	at = colon + 3;
	host = strcspn(at, "/?");
	if (host >= sizeof(url->authority))
		return weft__fail(err, -WEFT_E_OPTION, "%s: the host is too long", shown);
	memcpy(url->authority, at, host);
	at += host;
	query = at + strcspn(at, "?");
	if (decode(at, (size_t)(query - at), url->path, sizeof(url->path)) || (*query && parse_query(url, query + 1)))
		return weft__fail(err, -WEFT_E_OPTION,
				  "%s: the path or what is behind '?' is too long or not well formed", shown);
	return 0;
}

const char *weft__url_query(const struct weft__url *url, const char *key)
{
	uint32_t i;

	for (i = 0; i < url->n_queries; i++)
		if (!strcmp(url->query[i].key, key))
			return url->query[i].value;
	return NULL;
}

void weft__url_encode(struct weft__buf *to, const char *text, int slash)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	static const char digits[] = "0123456789ABCDEF";

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (strchr(plain, c) || (slash && c == '/')) {
			weft__buf_u8(to, c);
			continue;
		}
		weft__buf_u8(to, '%');
		weft__buf_u8(to, (uint8_t)digits[c >> 4]);
		weft__buf_u8(to, (uint8_t)digits[c & 15]);
	}
}

void weft__url_show(const char *text, char *to, size_t bytes)
{
	const char *host = strstr(text, "://"), *end, *secret;

	host = host ? host + 3 : text;
	end = host + strcspn(host, "/?");
	secret = memrchr(host, '@', (size_t)(end - host));
	snprintf(to, bytes, "%.*s%.*s", (int)(host - text), text, (int)strcspn(secret ? secret + 1 : host, "?"),
		 secret ? secret + 1 : host);
}

/* FNV-1a. */
void weft__url_tag(const char *text, char tag[9])
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
	snprintf(tag, 9, "%08x", (unsigned)(hash ^ hash >> 32));
}
