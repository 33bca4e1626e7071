/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "ship/bundle.h"
#include "ship/ship.h"
#include "ship/url.h"

/* A new kind of target is a line here. */
static const struct weft__target_kind *const kinds[] = {
	&weft__target_s3,        &weft__target_put,   &weft__target_puts,    &weft__target_file,
	&weft__target_pyroscope, &weft__target_parca, &weft__target_datadog, &weft__target_otlp,
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* What is behind the scheme in a URL of that kind. */
static int is_whole(const struct weft__target_kind *kind, const char *rest)
{
	if (!strncmp(rest, "://", 3))
		return kind->over != TARGET_OVER_HTTP;
	return kind->over != TARGET_PLAIN && (!strncmp(rest, "+http://", 8) || !strncmp(rest, "+https://", 9));
}

static const struct weft__target_kind *find_kind(const char *url)
{
	const char *colon = strstr(url, "://");
	size_t n = strcspn(url, "+:"), i;

	if (!colon && !strchr(url, ':'))
		return &weft__target_file;
	for (i = 0; colon && i < N_KINDS; i++)
		if (strlen(kinds[i]->scheme) == n && !strncmp(url, kinds[i]->scheme, n))
			return is_whole(kinds[i], url + n) ? kinds[i] : NULL;
	return NULL;
}

/* layout=rust-agent and group=NAME, of buckets and directories. */
static int set_layout(struct weft__target *t, const char *text, struct weft_error *err)
{
	const char *layout, *group;
	struct weft__url url;

	if ((t->kind != &weft__target_s3 && t->kind != &weft__target_file) || !strstr(text, "://") ||
	    weft__url_parse(&url, text, err) < 0)
		return 0; /* who opens it says what is wrong with it */
	layout = weft__url_query(&url, "layout");
	group = weft__url_query(&url, "group");
	t->bundles = layout && !strcmp(layout, "rust-agent");
	if (layout && !t->bundles && strcmp(layout, "weft") != 0)
		return weft__fail(err, -WEFT_E_OPTION, "layout=%s: give weft or rust-agent", layout);
	snprintf(t->group, sizeof(t->group), "%s", group ? group : "");
	return 0;
}

static int no_such_kind(const char *shown, struct weft_error *err)
{
	char schemes[200] = "";
	size_t i, at = 0;

	for (i = 0; i < N_KINDS; i++)
		at += (size_t)snprintf(schemes + at, sizeof(schemes) - at, "%s%s%s", i ? ", " : "", kinds[i]->scheme,
				       kinds[i]->over == TARGET_OVER_HTTP ? "+http" : "");
	return weft__fail(err, -WEFT_E_OPTION, "%s: there is no such target; give a path, or a URL with one of %s",
			  shown, schemes);
}

int weft__target_check(const char *url, struct weft_error *err)
{
	char shown[256];

	weft__url_show(url, shown, sizeof(shown));
	return find_kind(url) ? 0 : no_such_kind(shown, err);
}

int weft__target_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	memset(t, 0, sizeof(*t));
	weft__url_show(opts->url, t->shown, sizeof(t->shown));
	weft__url_tag(opts->url, t->tag);
	t->kind = opts->fn ? &weft__target_call : find_kind(opts->url);
	if (!t->kind)
		return no_such_kind(t->shown, err);
	if (!opts->fn && set_layout(t, opts->url, err) < 0)
		return -WEFT_E_OPTION;
	return t->kind->open(t, opts, err);
}

void weft__target_close(struct weft__target *t)
{
	if (t->kind)
		t->kind->close(t);
	t->kind = NULL;
}

static void send_bundle(struct weft__target *t, const struct weft__parcel *parcel, struct weft__verdict *ret)
{
	char name[BUNDLE_NAME];
	struct weft__parcel bundle = *parcel;
	int r = weft__bundle_name(parcel->segment, t->group, name);

	bundle.name = bundle.key = name;
	bundle.type = BUNDLE_TYPE;
	bundle.fd = r ? r : weft__bundle_make(parcel, &bundle.bytes);
	if (bundle.fd < 0) {
		weft__verdict(ret, bundle.fd == -EFBIG || r ? PARCEL_REFUSED : PARCEL_RETRY, "cannot make %s: %s", name,
			      weft_strerror(bundle.fd));
		return;
	}
	t->kind->send(t, &bundle, ret);
	close(bundle.fd);
}

void weft__target_send(struct weft__target *t, const struct weft__parcel *parcel, struct weft__verdict *ret)
{
	if (t->bundles)
		send_bundle(t, parcel, ret);
	else
		t->kind->send(t, parcel, ret);
}

enum weft__outcome weft__verdict(struct weft__verdict *v, enum weft__outcome outcome, const char *fmt, ...)
{
	va_list args;

	memset(v, 0, sizeof(*v));
	v->outcome = outcome;
	va_start(args, fmt);
	vsnprintf(v->why, sizeof(v->why), fmt, args);
	va_end(args);
	return outcome;
}
