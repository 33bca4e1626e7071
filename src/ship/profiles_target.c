/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that take profiles: Pyroscope, Parca, Datadog, and whatever takes OTLP. A segment is one request. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ship/profile_pool.h"
#include "ship/profiles.h"
#include "ship/url.h"
#include "weft/version.h"

enum backend { PYROSCOPE, PARCA, DATADOG, OTLP };

struct profiles {
	enum backend backend;
	struct weft__http *http;
	struct weft__pool_user user;
	int joined;
	char url[1200];
	char key[160]; /* header with Datadog's key; "" */
	uint64_t timeout_ns;
};

/* Where profiles go when the URL has no path of its own. */
static const char *const paths[] = {
	[PYROSCOPE] = "/push.v1.PusherService/Push",
	[PARCA] = "/api/profiles/writeraw",
	[DATADOG] = "/profiling/v1/input",
	[OTLP] = "/v1development/profiles",
};

#define MULTIPART "Content-Type: multipart/form-data; boundary=" DATADOG_BOUNDARY
static const char *const types[] = {
	[PYROSCOPE] = "Content-Type: application/json",
	[PARCA] = "Content-Type: application/json",
	[DATADOG] = MULTIPART,
	[OTLP] = "Content-Type: application/x-protobuf",
};

/* What of a segment each takes. */
static const uint32_t forms[] = {
	[PYROSCOPE] = 1u << WEFT__FORM_SERIES,
	[PARCA] = 1u << WEFT__FORM_PPROF,
	[DATADOG] = 1u << WEFT__FORM_PPROF | 1u << WEFT__FORM_PROVENANCE,
	[OTLP] = 1u << WEFT__FORM_OTLP,
};

/* "pyroscope+http://HOST" is http://HOST/push..., and "datadog://SITE" the intake of that site. */
static int make_url(struct profiles *p, const char *given, const char *shown, struct weft_error *err)
{
	const char *plus = strchr(given, '+'), *colon = strstr(given, "://"), *key;
	const char *rest = plus && plus < colon ? plus + 1 : NULL, *slash;
	int n;

	if (!rest) {
		key = getenv("DD_API_KEY");
		if (!key || !*key || strlen(key) > 100)
			return weft__fail(err, -WEFT_E_OPTION, "%s: DD_API_KEY is not set", shown);
		snprintf(p->key, sizeof(p->key), "DD-API-KEY: %s", key);
		n = snprintf(p->url, sizeof(p->url), "https://intake.profile.%s/api/v2/profile", colon + 3);
	} else {
		slash = strchr(strstr(rest, "://") + 3, '/');
		n = snprintf(p->url, sizeof(p->url), "%s%s", rest,
			     !slash || !slash[1] ? paths[p->backend] + (slash != NULL) : "");
	}
	return n < 0 || (size_t)n >= sizeof(p->url) ? weft__fail(err, -WEFT_E_OPTION, "%s: the URL is too long", shown)
						    : 0;
}

static int open_backend(struct weft__target *t, const struct weft__target_opts *opts, enum backend backend,
			struct weft_error *err)
{
	struct profiles *p = weft__calloc(1, sizeof(*p));
	int r;

	if (!p)
		return weft__fail(err, -ENOMEM, "out of memory");
	t->state = p;
	p->backend = backend;
	p->timeout_ns = opts->timeout_ns;
	r = make_url(p, opts->url, t->shown, err);
	if (r)
		return r;
	p->user = (struct weft__pool_user){
		.forms = forms[backend], .encoders = weft__profiles_open(err), .stop = opts->stop};
	if (!p->user.encoders)
		return -ENOENT;
	p->joined = weft__pool_join(&p->user) == 0;
	if (!p->joined)
		return weft__fail(err, -WEFT_E_LIMIT, "%s: too many targets take profiles", t->shown);
	return weft__http_open(&p->http, opts->stop, err);
}

static int pyroscope_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	return open_backend(t, opts, PYROSCOPE, err);
}

static int parca_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	return open_backend(t, opts, PARCA, err);
}

static int datadog_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	return open_backend(t, opts, DATADOG, err);
}

static int otlp_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	return open_backend(t, opts, OTLP, err);
}

/* The body of the request. 0; 1: the segment has nothing of the kind; or a negative error. */
static int make_body(const struct profiles *p, const struct weft__parcel *parcel, const struct weft__pooled *made,
		     struct weft__buf *body, struct weft_error *err)
{
	const enum weft__export_form form = p->backend == OTLP        ? WEFT__FORM_OTLP
					    : p->backend == PYROSCOPE ? WEFT__FORM_SERIES
								      : WEFT__FORM_PPROF;
	const struct weft__bytes *profile = weft__pooled_bytes(made, form);

	if (!profile->n_rows)
		return 1;
	if (p->backend == PYROSCOPE)
		weft__body_pyroscope(body, parcel, profile);
	else if (p->backend == PARCA)
		weft__body_parca(body, parcel, profile);
	else if (p->backend == DATADOG)
		weft__body_datadog(body, parcel, profile, weft__pooled_bytes(made, WEFT__FORM_PROVENANCE));
	else
		weft__buf_put(body, profile->at, profile->n);
	return body->oom ? weft__fail(err, -ENOMEM, "out of memory") : 0;
}

static void send_body(struct profiles *p, const struct weft__buf *body, struct weft__verdict *ret)
{
	struct weft__http_request request = {
		.method = "POST",
		.url = p->url,
		.headers = {types[p->backend]},
		.n_headers = 1,
		.body = body->bytes,
		.body_bytes = body->n,
		.timeout_ns = p->timeout_ns,
	};
	struct weft__http_reply reply = {0};
	struct weft__buf extra = {0};
	struct weft_error err = {0};
	int r;

	if (p->backend == DATADOG) {
		request.headers[request.n_headers++] = "DD-EVP-ORIGIN: weft";
		request.headers[request.n_headers++] = "DD-EVP-ORIGIN-VERSION: " WEFT_VERSION_STRING;
	}
	if (p->key[0])
		request.headers[request.n_headers++] = p->key;
	weft__http_extra(&request, &extra);
	r = weft__http_do(p->http, &request, &reply, &err);
	weft__http_verdict(r, &reply, &err, ret);
	weft__http_reply_fini(&reply);
	weft__buf_free(&extra);
}

static void profiles_send(struct weft__target *t, const struct weft__parcel *parcel, struct weft__verdict *ret)
{
	struct profiles *p = t->state;
	struct weft__pooled *made = NULL;
	struct weft__buf body = {0};
	struct weft_error err = {0};
	int r = weft__pool_get(&p->user, parcel, &made, &err);

	if (r == 0)
		r = make_body(p, parcel, made, &body, &err);
	if (r == -ECANCELED)
		weft__verdict(ret, PARCEL_STOPPED, "%s", "");
	else if (r == -ENOMEM)
		weft__verdict(ret, PARCEL_RETRY, "out of memory");
	else if (r < 0)
		weft__verdict(ret, PARCEL_REFUSED, "%s", err.msg);
	else if (r)
		weft__verdict(ret, PARCEL_SENT, "%s", ""); /* there is no profile in it */
	else
		send_body(p, &body, ret);
	weft__buf_free(&body);
	if (made)
		weft__pool_put(&p->user, made, ret->outcome == PARCEL_SENT || ret->outcome == PARCEL_REFUSED);
}

static int profiles_reach(struct weft__target *t, struct weft_error *err)
{
	struct profiles *p = t->state;

	return weft__http_reach(p->http, p->url, p->timeout_ns, err);
}

static void profiles_close(struct weft__target *t)
{
	struct profiles *p = t->state;

	if (p) {
		if (p->joined)
			weft__pool_leave(&p->user);
		weft__http_close(p->http);
		explicit_bzero(p->key, sizeof(p->key));
	}
	weft__free(p);
}

const struct weft__target_kind weft__target_pyroscope = {
	"pyroscope", "Pyroscope", pyroscope_open, profiles_send, profiles_close, TARGET_OVER_HTTP, profiles_reach};
const struct weft__target_kind weft__target_parca = {"parca",        "Parca",          parca_open,    profiles_send,
						     profiles_close, TARGET_OVER_HTTP, profiles_reach};
const struct weft__target_kind weft__target_datadog = {"datadog",      "Datadog",     datadog_open,  profiles_send,
						       profiles_close, TARGET_EITHER, profiles_reach};
const struct weft__target_kind weft__target_otlp = {"otlp",         "OTLP",           otlp_open,     profiles_send,
						    profiles_close, TARGET_OVER_HTTP, profiles_reach};
