/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/cloud.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

static int do_request(struct weft__http *http, struct weft__http_request *request, struct weft__buf *ret,
		      struct weft_error *err)
{
	struct weft__http_reply reply;
	int r;

	request->direct = 1;
	request->hint = 1;
	r = weft__http_do(http, request, &reply, err);
	if (r)
		return r;
	if (reply.status != 200) {
		weft__http_reply_fini(&reply);
		return weft__fail(err, -EIO, "status %ld", reply.status);
	}
	*ret = reply.body;
	return 0;
}

int weft__cloud_get(struct weft__http *http, const char *url, const char *header, struct weft__buf *ret,
		    struct weft_error *err)
{
	struct weft__http_request request = {.method = "GET", .url = url, .headers = {header}, .n_headers = !!header};

	return do_request(http, &request, ret, err);
}

int weft__cloud_imds(struct weft__http *http, const char *path, struct weft__buf *ret, struct weft_error *err)
{
	const char *at = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), *off = getenv("AWS_EC2_METADATA_DISABLED");
	struct weft__http_request request = {
		.method = "PUT",
		.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 300"},
		.n_headers = 1,
	};
	struct weft__buf token = {0};
	char url[600], header[400];
	int r;

	if (off && !strcasecmp(off, "true"))
		return weft__fail(err, -ENODEV, "AWS_EC2_METADATA_DISABLED is set");
	if (!at || !*at)
		at = "http://169.254.169.254";
	snprintf(url, sizeof(url), "%.300s%slatest/api/token", at, at[strlen(at) - 1] == '/' ? "" : "/");
	request.url = url;
	r = do_request(http, &request, &token, err);
	if (r)
		return r == -ECANCELED ? r : weft__fail(err, -ENODEV, "there is no metadata service of EC2");
	snprintf(header, sizeof(header), "X-aws-ec2-metadata-token: %.300s", (char *)token.bytes);
	weft__buf_free(&token);
	snprintf(url, sizeof(url), "%.300s%s%.200s", at, at[strlen(at) - 1] == '/' ? "" : "/", path);
	return weft__cloud_get(http, url, header, ret, err);
}
