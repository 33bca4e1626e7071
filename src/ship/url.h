/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of targets: their parts, percent-encoding, and how they are shown without secrets. */
#ifndef WEFT_SHIP_URL_H
#define WEFT_SHIP_URL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "weft/error.h"

#define URL_QUERIES 16

struct weft__url {
	char scheme[32];
	char authority[512]; /* host and port, with user and password if there are some */
	char path[1024];     /* decoded; "" or begins with '/' */
	struct {
		char key[32];
		char value[512]; /* decoded */
	} query[URL_QUERIES];
	uint32_t n_queries;
};

/* 0, or -WEFT_E_OPTION with a message that has no secrets. */
int weft__url_parse(struct weft__url *url, const char *text, struct weft_error *err);
/* The value behind `key`; NULL: there is none. */
const char *weft__url_query(const struct weft__url *url, const char *key);

/* Appends `text`, percent-encoded as S3 wants it: all but letters, digits and "-._~", and '/' if `slash`. */
void weft__url_encode(struct weft__buf *to, const char *text, int slash);
/* `text` without user, password and query, for messages. */
void weft__url_show(const char *text, char *to, size_t bytes);
/* Eight hexadecimal digits that stand for `text`. */
void weft__url_tag(const char *text, char tag[9]);

#endif
