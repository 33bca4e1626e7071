/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests, by libcurl, which is opened at the first one. TLS is verified; proxies are as the environment says;
 * redirects are not followed. */
#ifndef WEFT_SHIP_HTTP_H
#define WEFT_SHIP_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "ship/ship.h"

#define HTTP_HEADERS 24
#define HTTP_REPLY_MAX ((size_t)8 << 20)

struct weft__http_request {
	const char *method;
	const char *url;
	const char *headers[HTTP_HEADERS]; /* "Name: value" */
	uint32_t n_headers;
	const void *body; /* NULL: from fd, or none */
	uint64_t body_bytes;
	int fd;              /* when body_bytes, and body is NULL */
	int to_fd;           /* not 0: what a reply of 2xx says is written there */
	int direct;          /* never by a proxy */
	int hint;            /* 1: this is for a service that may not exist: short time-outs */
	uint64_t timeout_ns; /* 0: 30 s */
};

struct weft__http_reply {
	long status;
	uint64_t retry_after_ns;
	char date[40]; /* of the server: "" or as in the header */
	struct weft__buf body;
};

struct weft__http;

/* `stop`, when it is not NULL and becomes 1, ends a request soon. 0, -ENOENT when there is no libcurl, or -ENOMEM. */
int weft__http_open(struct weft__http **ret, const uint32_t *stop, struct weft_error *err);
void weft__http_close(struct weft__http *http);
/* Whether it is to stop. */
int weft__http_stopped(const struct weft__http *http);
/* Connects to the host of a URL, TLS included, and sends nothing. 0 or a negative error, as weft__http_do. */
int weft__http_reach(struct weft__http *http, const char *url, uint64_t timeout_ns, struct weft_error *err);
/* 0 when there was a reply, whatever it says: weft__http_reply_fini is the caller's then. Else a negative error, with
 * a message: -ECANCELED when it was stopped, -EIO for anything on the way. */
int weft__http_do(struct weft__http *http, const struct weft__http_request *request, struct weft__http_reply *reply,
		  struct weft_error *err);
void weft__http_reply_fini(struct weft__http_reply *reply);
/* What a reply or the lack of one means for a segment. `r` is what weft__http_do answered. */
void weft__http_verdict(int r, const struct weft__http_reply *reply, const struct weft_error *err,
			struct weft__verdict *ret);
/* Headers of WEFT_SHIP_HEADERS (NAME=VALUE,NAME=VALUE, percent-encoded) behind those of the request; the texts are
 * in `store`. */
void weft__http_extra(struct weft__http_request *request, struct weft__buf *store);

#endif
