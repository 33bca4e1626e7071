/* SPDX-License-Identifier: Apache-2.0 */
/* A target that takes segments by HTTP: PUT of URL/SERVICE/DATE/HOST/PID/FILE. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ship/http.h"
#include "ship/key.h"
#include "ship/url.h"

struct put_target {
	struct weft__http *http;
	char base[1024];  /* without a '/' at its end */
	char query[1024]; /* with its '?'; "" */
	uint64_t timeout_ns;
};

static int put_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	struct put_target *put = weft__calloc(1, sizeof(*put));
	size_t n = strcspn(opts->url, "?");

	if (!put)
		return weft__fail(err, -ENOMEM, "out of memory");
	t->state = put;
	if (n >= sizeof(put->base) || strlen(opts->url + n) >= sizeof(put->query))
		return weft__fail(err, -WEFT_E_OPTION, "%s: the URL is too long", t->shown);
	snprintf(put->query, sizeof(put->query), "%s", opts->url + n);
	while (n && opts->url[n - 1] == '/')
		n--;
	memcpy(put->base, opts->url, n);
	put->timeout_ns = opts->timeout_ns;
	return weft__http_open(&put->http, opts->stop, err);
}

static void put_send(struct weft__target *t, const struct weft__parcel *parcel, struct weft__verdict *ret)
{
	struct put_target *put = t->state;
	struct weft__http_request request = {
		.method = "PUT",
		.headers = {"Content-Type: application/vnd.weft.segment"},
		.n_headers = 1,
		.fd = parcel->fd,
		.body_bytes = parcel->bytes,
		.timeout_ns = put->timeout_ns,
	};
	struct weft__http_reply reply = {0};
	struct weft__buf url = {0}, extra = {0};
	struct weft_error err = {0};
	char key[KEY_BYTES];
	int r = weft__key(parcel, "", key, sizeof(key));

	weft__buf_put(&url, put->base, strlen(put->base));
	weft__buf_u8(&url, '/');
	weft__url_encode(&url, key, 1);
	weft__buf_put(&url, put->query, strlen(put->query) + 1);
	weft__http_extra(&request, &extra);
	if (r || url.oom || extra.oom) {
		weft__verdict(ret, PARCEL_RETRY, "%s", weft_strerror(r ? r : -ENOMEM));
	} else {
		request.url = (const char *)url.bytes;
		r = weft__http_do(put->http, &request, &reply, &err);
		weft__http_verdict(r, &reply, &err, ret);
		weft__http_reply_fini(&reply);
	}
	weft__buf_free(&url);
	weft__buf_free(&extra);
}

static int put_reach(struct weft__target *t, struct weft_error *err)
{
	struct put_target *put = t->state;

	return weft__http_reach(put->http, put->base, put->timeout_ns, err);
}

static void put_close(struct weft__target *t)
{
	struct put_target *put = t->state;

	if (put)
		weft__http_close(put->http);
	weft__free(put);
}

const struct weft__target_kind weft__target_put = {"http",    "PUT by HTTP", put_open, put_send,
						   put_close, TARGET_PLAIN,  put_reach};
const struct weft__target_kind weft__target_puts = {"https",   "PUT by HTTPS", put_open, put_send,
						    put_close, TARGET_PLAIN,   put_reach};
