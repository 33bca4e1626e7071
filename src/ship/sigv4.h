/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of AWS, version 4. */
#ifndef WEFT_SHIP_SIGV4_H
#define WEFT_SHIP_SIGV4_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

#define SIGV4_HEADERS 12
#define SIGV4_BYTES 1024

struct weft__sigv4 {
	const char *method;
	const char *path;  /* encoded */
	const char *query; /* encoded and sorted; "" when there is none */
	struct {
		const char *name; /* in small letters */
		const char *value;
	} headers[SIGV4_HEADERS]; /* in any order; "host" and "x-amz-date" among them */
	uint32_t n_headers;
	const char *payload; /* SHA-256 of the body in hexadecimal digits */
	const char *date;    /* 20130524T000000Z */
	const char *region;
	const char *service;
	const char *key_id;
	const char *secret;
};

/* The value of the header Authorization. 0 or a negative error. */
int weft__sigv4(const struct weft__sigv4 *what, char to[SIGV4_BYTES], struct weft_error *err);

#endif
