/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket of S3, or of a store that speaks it: s3://BUCKET/PREFIX?region=R&endpoint=URL&style=path|host&owner=ID */
#ifndef WEFT_SHIP_S3_H
#define WEFT_SHIP_S3_H

#include "ship/credentials.h"
#include "ship/http.h"
#include "ship/url.h"

struct weft__s3 {
	struct weft__http *http;
	struct weft__credentials credentials;
	char bucket[64];
	char prefix[1024];  /* without '/' at both ends */
	char endpoint[300]; /* scheme and host */
	char host[300];     /* as in the header */
	char base[80];      /* of paths: "" or "/BUCKET" */
	char region[64];
	char owner[32]; /* expected; "" */
	int64_t skew_s; /* of this machine's clock */
	uint64_t timeout_ns;
};

/* 0 or a negative error. Nothing is connected to. */
int weft__s3_open(struct weft__s3 *s3, const char *url, const uint32_t *stop, struct weft_error *err);
void weft__s3_close(struct weft__s3 *s3);

struct weft__s3_request {
	const char *method;
	const char *key;   /* "" for the bucket */
	const char *query; /* encoded and sorted; "" */
	const char *type;  /* of the content; NULL */
	int fd;
	uint64_t bytes; /* of fd, to be sent */
	int to_fd;      /* not 0: where the object goes */
};
/* As weft__http_do. */
int weft__s3_do(struct weft__s3 *s3, const struct weft__s3_request *request, struct weft__http_reply *reply,
		struct weft_error *err);
/* What S3 says in a reply that is no success: its code ("AccessDenied"), or "". Credentials that were refused are
 * forgotten, and a clock that is wrong is corrected. 1: it is worth another try. */
int weft__s3_code(struct weft__s3 *s3, const struct weft__http_reply *reply, char code[64]);

struct weft__s3_object {
	char key[1100];
	uint64_t bytes;
	char time[32];
};
/* Calls `fn` for each object below `prefix`, by name, until it answers another than 0. 0, what it answered, or a
 * negative error. */
int weft__s3_list(struct weft__s3 *s3, const char *prefix, int (*fn)(const struct weft__s3_object *, void *),
		  void *data, struct weft_error *err);
/* Reads one page of a list: 1 when there is another, whose token is in `next`. */
int weft__s3_page(const char *body, char *next, size_t next_bytes, int (*fn)(const struct weft__s3_object *, void *),
		  void *data, int *stop);

#endif
