/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/s3.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "ship/crypt.h"
#include "ship/sigv4.h"
#include "ship/xml.h"

static const char empty_sha256[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/* The endpoint that URL or environment name; NULL: that of AWS. */
static const char *find_endpoint(const struct weft__url *url)
{
	static const char *const names[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"};
	const char *given = weft__url_query(url, "endpoint");
	size_t i;

	for (i = 0; !given && i < 2; i++) {
		given = getenv(names[i]);
		given = given && *given ? given : NULL;
	}
	return given;
}

static int set_endpoint(struct weft__s3 *s3, const struct weft__url *url, struct weft_error *err)
{
	const char *endpoint = find_endpoint(url), *style = weft__url_query(url, "style"), *host;
	int by_path = style ? !strcmp(style, "path") : endpoint || strchr(s3->bucket, '.');
	char aws[160];
	size_t n;

	snprintf(aws, sizeof(aws), "https://s3.%s.amazonaws.com", s3->region);
	endpoint = endpoint ? endpoint : aws;
	host = strstr(endpoint, "://");
	if (!host || (strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0))
		return weft__fail(err, -WEFT_E_OPTION, "endpoint=%s: give a URL, as http://127.0.0.1:9000", endpoint);
	if (style && strcmp(style, "path") != 0 && strcmp(style, "host") != 0)
		return weft__fail(err, -WEFT_E_OPTION, "style=%s: give path or host", style);
	n = (size_t)(host + 3 - endpoint);
	host += 3;
	snprintf(s3->host, sizeof(s3->host), "%s%s%.*s", by_path ? "" : s3->bucket, by_path ? "" : ".",
		 (int)strcspn(host, "/"), host);
	snprintf(s3->endpoint, sizeof(s3->endpoint), "%.*s%.280s", (int)n, endpoint, s3->host);
	if (by_path)
		snprintf(s3->base, sizeof(s3->base), "/%s", s3->bucket);
	return 0;
}

int weft__s3_open(struct weft__s3 *s3, const char *text, const uint32_t *stop, struct weft_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	const char *region, *owner;
	struct weft__url url;
	size_t n;
	int r = weft__url_parse(&url, text, err);

	memset(s3, 0, sizeof(*s3));
	if (r)
		return r;
	n = strlen(url.authority);
	if (n < 3 || n > 63 || strspn(url.authority, allowed) != n)
		return weft__fail(err, -WEFT_E_OPTION, "s3://%.64s: not the name of a bucket", url.authority);
	snprintf(s3->bucket, sizeof(s3->bucket), "%.63s", url.authority);
	snprintf(s3->prefix, sizeof(s3->prefix), "%s", url.path + strspn(url.path, "/"));
	for (n = strlen(s3->prefix); n && s3->prefix[n - 1] == '/'; n--)
		s3->prefix[n - 1] = 0;
	region = weft__url_query(&url, "region");
	owner = weft__url_query(&url, "owner");
	if (region)
		snprintf(s3->region, sizeof(s3->region), "%s", region);
	else
		weft__credentials_region(s3->region, sizeof(s3->region));
	if (!s3->region[0])
		snprintf(s3->region, sizeof(s3->region), "us-east-1");
	snprintf(s3->owner, sizeof(s3->owner), "%s", owner ? owner : "");
	r = set_endpoint(s3, &url, err);
	return r ? r : weft__http_open(&s3->http, stop, err);
}

void weft__s3_close(struct weft__s3 *s3)
{
	weft__http_close(s3->http);
	weft__credentials_drop(&s3->credentials);
}

/* Headers that are signed, as they are sent. */
struct signed_headers {
	char date[17];
	char sha256[SHA256_HEX];
	struct weft__buf lines; /* "name: value", each with a zero byte */
};

static void add_header(struct weft__sigv4 *sign, const char *name, const char *value)
{
	if (!*value)
		return;
	sign->headers[sign->n_headers].name = name;
	sign->headers[sign->n_headers++].value = value;
}

/* All but the host, which libcurl sends. */
static void put_lines(struct weft__buf *lines, const struct weft__sigv4 *sign, const char *authorization,
		      const char *type)
{
	uint32_t i;

	for (i = 1; i < sign->n_headers; i++) {
		weft__buf_put(lines, sign->headers[i].name, strlen(sign->headers[i].name));
		weft__buf_put(lines, ": ", 2);
		weft__buf_put(lines, sign->headers[i].value, strlen(sign->headers[i].value) + 1);
	}
	weft__buf_put(lines, "Authorization: ", 15);
	weft__buf_put(lines, authorization, strlen(authorization) + 1);
	if (type) {
		weft__buf_put(lines, "Content-Type: ", 14);
		weft__buf_put(lines, type, strlen(type) + 1);
	}
}

static int sign_request(struct weft__s3 *s3, const struct weft__s3_request *q, const char *path,
			struct signed_headers *h, struct weft_error *err)
{
	time_t now = time(NULL) + s3->skew_s;
	struct weft__sigv4 sign = {.method = q->method,
				   .path = path,
				   .query = q->query,
				   .payload = h->sha256,
				   .date = h->date,
				   .region = s3->region,
				   .service = "s3",
				   .key_id = s3->credentials.key_id,
				   .secret = s3->credentials.secret};
	char authorization[SIGV4_BYTES];
	struct tm tm;
	int r = 0;

	gmtime_r(&now, &tm);
	strftime(h->date, sizeof(h->date), "%Y%m%dT%H%M%SZ", &tm);
	if (q->bytes)
		r = weft__sha256_fd(q->fd, q->bytes, h->sha256, err);
	else
		snprintf(h->sha256, sizeof(h->sha256), "%s", empty_sha256);
	add_header(&sign, "host", s3->host);
	add_header(&sign, "x-amz-content-sha256", h->sha256);
	add_header(&sign, "x-amz-date", h->date);
	add_header(&sign, "x-amz-expected-bucket-owner", s3->owner);
	add_header(&sign, "x-amz-security-token", s3->credentials.token);
	if (!r)
		r = weft__sigv4(&sign, authorization, err);
	if (!r)
		put_lines(&h->lines, &sign, authorization, q->type);
	if (!r && h->lines.oom)
		r = weft__fail(err, -ENOMEM, "out of memory");
	return r;
}

static void split_lines(struct weft__http_request *request, const struct weft__buf *lines)
{
	const char *at = (const char *)lines->bytes, *end = at + lines->n;

	for (; at < end && request->n_headers < HTTP_HEADERS; at += strlen(at) + 1)
		request->headers[request->n_headers++] = at;
}

int weft__s3_do(struct weft__s3 *s3, const struct weft__s3_request *q, struct weft__http_reply *reply,
		struct weft_error *err)
{
	struct weft__http_request request = {.method = q->method,
					     .fd = q->fd,
					     .body_bytes = q->bytes,
					     .to_fd = q->to_fd,
					     .timeout_ns = s3->timeout_ns};
	struct signed_headers h = {0};
	struct weft__buf path = {0}, url = {0};
	int r = weft__credentials_get(s3->http, &s3->credentials, err);

	memset(reply, 0, sizeof(*reply));
	if (r)
		return r;
	weft__buf_put(&path, s3->base, strlen(s3->base));
	weft__buf_u8(&path, '/');
	weft__url_encode(&path, q->key, 1);
	weft__buf_u8(&path, 0);
	weft__buf_put(&url, s3->endpoint, strlen(s3->endpoint));
	weft__buf_put(&url, path.bytes, path.n ? path.n - 1 : 0);
	if (*q->query)
		weft__buf_u8(&url, '?');
	weft__buf_put(&url, q->query, strlen(q->query) + 1);
	r = path.oom || url.oom ? weft__fail(err, -ENOMEM, "out of memory")
				: sign_request(s3, q, (const char *)path.bytes, &h, err);
	if (!r) {
		split_lines(&request, &h.lines);
		request.url = (const char *)url.bytes;
		r = weft__http_do(s3->http, &request, reply, err);
	}
	if (h.lines.bytes)
		explicit_bzero(h.lines.bytes, h.lines.n);
	weft__buf_free(&h.lines);
	weft__buf_free(&path);
	weft__buf_free(&url);
	return r;
}

static void correct_clock(struct weft__s3 *s3, const char *date)
{
	struct tm tm = {0};

	if (strptime(date, "%a, %d %b %Y %H:%M:%S", &tm))
		s3->skew_s = (int64_t)timegm(&tm) - (int64_t)time(NULL);
}

int weft__s3_code(struct weft__s3 *s3, const struct weft__http_reply *reply, char code[64])
{
	static const char *const passing[] = {
		"ExpiredToken",   "InvalidToken", "TokenRefreshRequired",      "RequestTimeout",
		"IncompleteBody", "BadDigest",    "XAmzContentSHA256Mismatch", "RequestTimeTooSkewed"};
	size_t i;

	code[0] = 0;
	if (!reply->body.bytes || !weft__xml_text((const char *)reply->body.bytes, NULL, "Code", code, 64))
		code[0] = 0;
	if (!strcmp(code, "RequestTimeTooSkewed"))
		correct_clock(s3, reply->date);
	if (reply->status == 401 || reply->status == 403 || strstr(code, "Token"))
		weft__credentials_drop(&s3->credentials);
	for (i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (!strcmp(code, passing[i]))
			return 1;
	return 0;
}
