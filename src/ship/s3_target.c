/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket as a target: PUT of each segment. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ship/key.h"
#include "ship/s3.h"

static int s3_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	struct weft__s3 *s3 = weft__calloc(1, sizeof(*s3));
	int r;

	if (!s3)
		return weft__fail(err, -ENOMEM, "out of memory");
	t->state = s3;
	r = weft__s3_open(s3, opts->url, opts->stop, err);
	s3->timeout_ns = opts->timeout_ns;
	return r;
}

static void s3_send(struct weft__target *t, const struct weft__parcel *parcel, struct weft__verdict *ret)
{
	struct weft__s3 *s3 = t->state;
	char key[KEY_BYTES], code[64];
	struct weft__s3_request request = {
		.method = "PUT",
		.key = key,
		.query = "",
		.type = parcel->type ? parcel->type : PARCEL_TYPE,
		.fd = parcel->fd,
		.bytes = parcel->bytes,
	};
	struct weft__http_reply reply = {0};
	struct weft_error err = {0};
	int r = weft__key(parcel, s3->prefix, key, sizeof(key));

	if (r) {
		weft__verdict(ret, PARCEL_REFUSED, "its key is too long");
		return;
	}
	r = weft__s3_do(s3, &request, &reply, &err);
	weft__http_verdict(r, &reply, &err, ret);
	if (!r && ret->outcome != PARCEL_SENT) {
		int passing = weft__s3_code(s3, &reply, code);
		uint64_t after = ret->retry_after_ns;

		if (code[0])
			weft__verdict(ret, passing ? PARCEL_RETRY : ret->outcome, "status %ld: %s", reply.status, code);
		ret->retry_after_ns = after;
	}
	weft__http_reply_fini(&reply);
}

/* A bucket that refuses shows only when something is put there. */
static int s3_reach(struct weft__target *t, struct weft_error *err)
{
	struct weft__s3 *s3 = t->state;
	int r = weft__credentials_get(s3->http, &s3->credentials, err);

	return r ? r : weft__http_reach(s3->http, s3->endpoint, s3->timeout_ns, err);
}

static void s3_close(struct weft__target *t)
{
	if (t->state)
		weft__s3_close(t->state);
	weft__free(t->state);
}

const struct weft__target_kind weft__target_s3 = {"s3",     "a bucket of S3", s3_open, s3_send,
						  s3_close, TARGET_PLAIN,     s3_reach};
