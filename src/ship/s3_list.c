/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a bucket (ListObjectsV2). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ship/s3.h"
#include "ship/xml.h"

int weft__s3_page(const char *body, char *next, size_t next_bytes, int (*fn)(const struct weft__s3_object *, void *),
		  void *data, int *stop)
{
	const char *at = body, *end;
	char more[8];

	while (!*stop && weft__xml_element(&at, &end, "Contents")) {
		struct weft__s3_object object = {0};
		char bytes[32] = "";

		if (weft__xml_text(at, end, "Key", object.key, sizeof(object.key))) {
			weft__xml_text(at, end, "Size", bytes, sizeof(bytes));
			weft__xml_text(at, end, "LastModified", object.time, sizeof(object.time));
			object.bytes = strtoull(bytes, NULL, 10);
			*stop = fn(&object, data);
		}
		at = end;
	}
	return weft__xml_text(body, NULL, "IsTruncated", more, sizeof(more)) && !strcmp(more, "true") &&
	       weft__xml_text(body, NULL, "NextContinuationToken", next, next_bytes);
}

/* Parameters by name, as the signature wants them. */
static void put_query(struct weft__buf *query, const char *token, const char *prefix)
{
	weft__buf_clear(query);
	if (*token) {
		weft__buf_put(query, "continuation-token=", 19);
		weft__url_encode(query, token, 0);
		weft__buf_u8(query, '&');
	}
	weft__buf_put(query, "list-type=2&prefix=", 19);
	weft__url_encode(query, prefix, 0);
	weft__buf_u8(query, 0);
}

int weft__s3_list(struct weft__s3 *s3, const char *prefix, int (*fn)(const struct weft__s3_object *, void *),
		  void *data, struct weft_error *err)
{
	struct weft__buf query = {0};
	char token[2048] = "", code[64];
	int r = 0, stop = 0, more = 1;

	while (more && !stop && !r) {
		struct weft__s3_request request = {.method = "GET", .key = ""};
		struct weft__http_reply reply;

		put_query(&query, token, prefix);
		if (query.oom) {
			r = weft__fail(err, -ENOMEM, "out of memory");
			break;
		}
		request.query = (const char *)query.bytes;
		r = weft__s3_do(s3, &request, &reply, err);
		if (r)
			break;
		if (reply.status == 200) {
			more = weft__s3_page((const char *)reply.body.bytes, token, sizeof(token), fn, data, &stop);
		} else {
			weft__s3_code(s3, &reply, code);
			r = weft__fail(err, -EIO, "s3://%s: status %ld: %s", s3->bucket, reply.status, code);
		}
		weft__http_reply_fini(&reply);
	}
	weft__buf_free(&query);
	return r ? r : stop;
}
