/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/http.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "ship/curl.h"
#include "weft/version.h"

#define TURN_MS 50 /* how long it may take until a stop is noticed */
#define TIMEOUT_S 30
#define CONNECT_MS 10000L
#define HINT_MS 1000L /* for services that answer at once, if they are there */

struct weft__http {
	const struct weft__curl *curl;
	const uint32_t *stop;
	CURL *easy;
	CURLM *multi;
	char why[CURL_ERROR_SIZE];
};

/* One request that is under way. */
struct transfer {
	struct weft__http *http;
	const struct weft__http_request *request;
	struct weft__http_reply *reply;
	struct curl_slist *headers;
	uint64_t at; /* of the body */
};

int weft__http_open(struct weft__http **ret, const uint32_t *stop, struct weft_error *err)
{
	const struct weft__curl *curl = weft__curl_open(err);
	struct weft__http *http = curl ? weft__calloc(1, sizeof(*http)) : NULL;

	if (!http)
		return curl ? weft__fail(err, -ENOMEM, "out of memory") : -ENOENT;
	http->curl = curl;
	http->stop = stop;
	if (weft__curl_enter() == 0) {
		http->easy = curl->easy_init();
		http->multi = curl->multi_init();
		weft__curl_leave();
	}
	if (!http->easy || !http->multi) {
		weft__http_close(http);
		return weft__fail(err, -ENOMEM, "out of memory");
	}
	*ret = http;
	return 0;
}

void weft__http_close(struct weft__http *http)
{
	if (!http)
		return;
	if (weft__curl_enter() == 0) {
		if (http->easy)
			http->curl->easy_cleanup(http->easy);
		if (http->multi)
			http->curl->multi_cleanup(http->multi);
		weft__curl_leave();
	}
	weft__free(http);
}

static size_t give_body(char *to, size_t size, size_t n, void *data)
{
	struct transfer *t = data;
	uint64_t left = t->request->body_bytes - t->at;
	ssize_t got;

	n *= size;
	if (n > left)
		n = (size_t)left;
	if (!n)
		return 0;
	if (t->request->body) {
		memcpy(to, (const char *)t->request->body + t->at, n);
		got = (ssize_t)n;
	} else {
		got = pread(t->request->fd, to, n, (off_t)t->at);
	}
	if (got <= 0)
		return CURL_READFUNC_ABORT; /* it was cut meanwhile */
	t->at += (uint64_t)got;
	return (size_t)got;
}

/* A reply to be authenticated again, or a connection that was closed while it was idle. */
static int seek_body(void *data, curl_off_t offset, int origin)
{
	struct transfer *t = data;

	if (origin != SEEK_SET)
		return CURL_SEEKFUNC_CANTSEEK;
	t->at = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *data)
{
	struct transfer *t = data;
	long status = 0;

	n *= size;
	t->http->curl->getinfo(t->http->easy, CURLINFO_RESPONSE_CODE, &status);
	if (t->request->to_fd && status / 100 == 2)
		return write(t->request->to_fd, bytes, n) == (ssize_t)n ? n : 0;
	if (t->reply->body.n + n > HTTP_REPLY_MAX)
		return 0;
	weft__buf_put(&t->reply->body, bytes, n);
	return t->reply->body.oom ? 0 : n;
}

/* Seconds, or a date. */
static uint64_t retry_after(const char *text)
{
	struct tm tm = {0};
	char *end;
	unsigned long long seconds = strtoull(text, &end, 10);
	time_t at;

	if (end != text)
		return seconds > 86400 ? 86400 * UINT64_C(1000000000) : seconds * UINT64_C(1000000000);
	if (!strptime(text, "%a, %d %b %Y %H:%M:%S", &tm))
		return 0;
	at = timegm(&tm) - time(NULL);
	return at > 0 ? (uint64_t)at * UINT64_C(1000000000) : 0;
}

static int header_value(const char *line, size_t n, const char *name, char *to, size_t bytes)
{
	size_t at = strlen(name), end = n;

	if (n <= at || strncasecmp(line, name, at) != 0)
		return 0;
	while (at < n && line[at] == ' ')
		at++;
	while (end > at && (line[end - 1] == '\n' || line[end - 1] == '\r' || line[end - 1] == ' '))
		end--;
	snprintf(to, bytes, "%.*s", (int)(end - at < bytes ? end - at : bytes - 1), line + at);
	return 1;
}

static size_t take_header(char *line, size_t size, size_t n, void *data)
{
	struct transfer *t = data;
	char text[64];

	n *= size;
	if (header_value(line, n, "Retry-After:", text, sizeof(text)))
		t->reply->retry_after_ns = retry_after(text);
	header_value(line, n, "Date:", t->reply->date, sizeof(t->reply->date));
	return n;
}

static void set_limits(struct transfer *t)
{
	const struct weft__curl *curl = t->http->curl;
	CURL *easy = t->http->easy;
	uint64_t s = t->request->timeout_ns / 1000000000u;

	curl->setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, t->request->hint ? HINT_MS : CONNECT_MS);
	if (t->request->timeout_ns && t->request->timeout_ns < UINT64_C(10000000000))
		curl->setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(t->request->timeout_ns / 1000000u));
	if (t->request->hint)
		curl->setopt(easy, CURLOPT_TIMEOUT_MS, 2 * HINT_MS);
	curl->setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl->setopt(easy, CURLOPT_LOW_SPEED_TIME, t->request->timeout_ns ? (long)(s ? s : 1) : (long)TIMEOUT_S);
	if (t->request->direct)
		curl->setopt(easy, CURLOPT_PROXY, "");
}

static int set_body(struct transfer *t)
{
	const struct weft__http_request *q = t->request;
	const struct weft__curl *curl = t->http->curl;
	CURL *easy = t->http->easy;

	if (strcmp(q->method, "GET") == 0)
		return curl->setopt(easy, CURLOPT_HTTPGET, 1L);
	if (!q->body_bytes && strcmp(q->method, "PUT") != 0) {
		curl->setopt(easy, CURLOPT_POST, 1L);
		return curl->setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
	}
	curl->setopt(easy, CURLOPT_UPLOAD, 1L);
	curl->setopt(easy, CURLOPT_CUSTOMREQUEST, q->method);
	curl->setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->body_bytes);
	curl->setopt(easy, CURLOPT_READFUNCTION, give_body);
	curl->setopt(easy, CURLOPT_READDATA, t);
	curl->setopt(easy, CURLOPT_SEEKFUNCTION, seek_body);
	return curl->setopt(easy, CURLOPT_SEEKDATA, t);
}

/* A file of certificates that the user trusts, in place of the system's, by the names that other programs use. */
static const char *trusted_file(void)
{
	static const char *const names[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "AWS_CA_BUNDLE"};
	const char *path = NULL;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && (!path || !*path); i++)
		path = getenv(names[i]);
	return path && *path ? path : NULL;
}

static int set_up(struct transfer *t)
{
	const struct weft__http_request *q = t->request;
	const struct weft__curl *curl = t->http->curl;
	CURL *easy = t->http->easy;
	uint32_t i;

	curl->easy_reset(easy);
	for (i = 0; i < q->n_headers; i++) {
		struct curl_slist *more = curl->slist_append(t->headers, q->headers[i]);

		if (!more)
			return -ENOMEM;
		t->headers = more;
	}
	curl->setopt(easy, CURLOPT_URL, q->url);
	curl->setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl->setopt(easy, CURLOPT_USERAGENT, "weft/" WEFT_VERSION_STRING);
	curl->setopt(easy, CURLOPT_HTTPHEADER, t->headers);
	curl->setopt(easy, CURLOPT_ERRORBUFFER, t->http->why);
	curl->setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	curl->setopt(easy, CURLOPT_WRITEDATA, t);
	curl->setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	curl->setopt(easy, CURLOPT_HEADERDATA, t);
	curl->setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* not to wait for a resolver */
	if (trusted_file())
		curl->setopt(easy, CURLOPT_CAINFO, trusted_file());
	set_limits(t);
	if (!*q->method)
		return curl->setopt(easy, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK ? 0 : -ENOMEM;
	return set_body(t) == CURLE_OK ? 0 : -ENOMEM;
}

int weft__http_stopped(const struct weft__http *http)
{
	return weft__curl_exiting() || (http->stop && load_relaxed(http->stop));
}

/* What the one transfer came to. */
static int transfer_result(struct weft__http *http, struct weft_error *err)
{
	CURLMsg *message;
	int left;

	while ((message = http->curl->multi_read(http->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		if (message->data.result == CURLE_OK)
			return 0;
		return weft__fail(err, -EIO, "%s",
				  http->why[0] ? http->why : http->curl->strerror(message->data.result));
	}
	return weft__fail(err, -EIO, "the transfer ended without a result");
}

static int perform(struct weft__http *http, struct weft_error *err)
{
	int running = 1;

	while (running) {
		if (weft__http_stopped(http))
			return weft__fail(err, -ECANCELED, "stopped");
		if (http->curl->multi_perform(http->multi, &running) != CURLM_OK)
			return weft__fail(err, -EIO, "libcurl failed");
		if (running)
			http->curl->multi_poll(http->multi, NULL, 0, TURN_MS, NULL);
	}
	return transfer_result(http, err);
}

int weft__http_do(struct weft__http *http, const struct weft__http_request *request, struct weft__http_reply *reply,
		  struct weft_error *err)
{
	struct transfer t = {http, request, reply, NULL, 0};
	int r;

	memset(reply, 0, sizeof(*reply));
	if (weft__curl_enter() < 0)
		return weft__fail(err, -ECANCELED, "stopped");
	http->why[0] = 0;
	r = set_up(&t);
	if (r)
		weft__fail(err, r, "out of memory");
	if (!r && http->curl->multi_add(http->multi, http->easy) == CURLM_OK) {
		r = perform(http, err);
		http->curl->getinfo(http->easy, CURLINFO_RESPONSE_CODE, &reply->status);
		http->curl->multi_remove(http->multi, http->easy);
	}
	http->curl->slist_free(t.headers);
	weft__curl_leave();
	if (!r && !weft__buf_room(&reply->body, 1)) /* so that it ends in a zero byte */
		r = weft__fail(err, -ENOMEM, "out of memory");
	if (!r)
		reply->body.bytes[reply->body.n] = 0;
	if (r)
		weft__http_reply_fini(reply);
	return r;
}

int weft__http_reach(struct weft__http *http, const char *url, uint64_t timeout_ns, struct weft_error *err)
{
	struct weft__http_request request = {.method = "", .url = url, .timeout_ns = timeout_ns};
	struct weft__http_reply reply = {0};
	struct weft__http *other = NULL; /* whose connection is closed with it */
	int r = weft__http_open(&other, http->stop, err);

	if (r || !other)
		return r;
	r = weft__http_do(other, &request, &reply, err);
	if (!r)
		weft__http_reply_fini(&reply);
	weft__http_close(other);
	return r;
}

void weft__http_reply_fini(struct weft__http_reply *reply)
{
	weft__buf_free(&reply->body);
}

/* What will not be taken later either. All else may be mended there: credentials, a bucket that is not there yet. */
static int is_refusal(long status)
{
	static const long about_segment[] = {400, 405, 406, 410, 411, 413, 414, 415, 422, 431};
	size_t i;

	for (i = 0; i < sizeof(about_segment) / sizeof(about_segment[0]); i++)
		if (status == about_segment[i])
			return 1;
	return 0;
}

/* The first words of a reply, for a message: one line of what can be printed. */
static void excerpt(const struct weft__buf *body, char *to, size_t bytes)
{
	size_t i, n = 0;

	for (i = 0; i < body->n && n + 1 < bytes; i++) {
		char c = (char)body->bytes[i];

		if (c >= ' ' && c < 127)
			to[n++] = c;
		else if (n && to[n - 1] != ' ')
			to[n++] = ' ';
	}
	to[n] = 0;
}

void weft__http_verdict(int r, const struct weft__http_reply *reply, const struct weft_error *err,
			struct weft__verdict *ret)
{
	char words[140];

	if (r == -ECANCELED) {
		weft__verdict(ret, PARCEL_STOPPED, "stopped");
	} else if (r) {
		weft__verdict(ret, PARCEL_RETRY, "%s", err->msg);
	} else if (reply->status / 100 == 2) {
		weft__verdict(ret, PARCEL_SENT, "%s", "");
	} else {
		excerpt(&reply->body, words, sizeof(words));
		weft__verdict(ret, is_refusal(reply->status) ? PARCEL_REFUSED : PARCEL_RETRY, "status %ld: %s",
			      reply->status, words);
		ret->retry_after_ns = reply->retry_after_ns;
	}
}

void weft__http_extra(struct weft__http_request *request, struct weft__buf *store)
{
	const char *text = getenv("WEFT_SHIP_HEADERS"), *p;
	char *at;

	if (!text || !*text)
		return;
	for (p = text; *p; p += *p == '%' && p[1] && p[2] ? 3 : 1) {
		char hex[3] = {p[0] == '%' && p[1] ? p[1] : 0, p[0] == '%' && p[1] ? p[2] : 0, 0};

		if (*p == '%' && p[1] && p[2])
			weft__buf_u8(store, (uint8_t)strtoul(hex, NULL, 16));
		else if (*p == ',')
			weft__buf_u8(store, 0);
		else
			weft__buf_u8(store, (uint8_t)*p);
	}
	weft__buf_u8(store, 0);
	weft__buf_u8(store, 0);
	if (store->oom)
		return;
	for (at = (char *)store->bytes; *at && request->n_headers < HTTP_HEADERS; at += strlen(at) + 1) {
		char *equals = strchr(at, '=');

		/* "Name=value" becomes "Name:value". */
		if (equals && !strpbrk(at, "\r\n")) {
			*equals = ':';
			request->headers[request->n_headers++] = at;
		}
	}
}
