/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of AWS, from the first of: variables of the environment, a web identity (AWS_WEB_IDENTITY_TOKEN_FILE),
 * profile files (~/.aws), the container's service, the role of the EC2 instance. They are never logged. */
#ifndef WEFT_SHIP_CREDENTIALS_H
#define WEFT_SHIP_CREDENTIALS_H

#include "ship/http.h"

struct weft__credentials {
	char key_id[160];
	char secret[160];
	char token[4096];       /* "" when there is none */
	uint64_t until_real_ns; /* 0: for good */
	const char *from;       /* where they were found, for messages; NULL: there are none */
};

/* 0 when there are some, which are good for some minutes at least; else they are looked for. A negative error, with
 * what to do. */
int weft__credentials_get(struct weft__http *http, struct weft__credentials *c, struct weft_error *err);
/* Forgets them: they were refused. */
void weft__credentials_drop(struct weft__credentials *c);
/* The region that environment or profile files name; "" when none do. */
void weft__credentials_region(char *to, size_t bytes);
/* Fills `c` from a JSON document with AccessKeyId, SecretAccessKey, Token and Expiration. 0 or -EIO. */
int weft__credentials_json(struct weft__credentials *c, const char *text, struct weft_error *err);

#endif
