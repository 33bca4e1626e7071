/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
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

	if (!colon && (*url == '/' || *url == '.'))
		return &weft__target_file;
	for (i = 0; colon && i < N_KINDS; i++)
		if (strlen(kinds[i]->scheme) == n && !strncmp(url, kinds[i]->scheme, n))
			return is_whole(kinds[i], url + n) ? kinds[i] : NULL;
	return NULL;
}

int weft__target_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	char schemes[200] = "";
	size_t i, at = 0;

	memset(t, 0, sizeof(*t));
	weft__url_show(opts->url, t->shown, sizeof(t->shown));
	weft__url_tag(opts->url, t->tag);
	t->kind = opts->fn ? &weft__target_call : find_kind(opts->url);
	if (t->kind)
		return t->kind->open(t, opts, err);
	for (i = 0; i < N_KINDS; i++)
		at += (size_t)snprintf(schemes + at, sizeof(schemes) - at, "%s%s%s", i ? ", " : "", kinds[i]->scheme,
				       kinds[i]->over == TARGET_OVER_HTTP ? "+http" : "");
	return weft__fail(err, -WEFT_E_OPTION, "%s: there is no such target; give a path, or a URL with one of %s",
			  t->shown, schemes);
}

void weft__target_close(struct weft__target *t)
{
	if (t->kind)
		t->kind->close(t);
	t->kind = NULL;
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
