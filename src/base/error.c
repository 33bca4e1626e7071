/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"

const char *weft_version(void)
{
	return WEFT_VERSION_STRING;
}

const char *weft_strerror(int code)
{
	const char *text;

	switch (-code) {
#define X(name, value, message)                                                                                        \
	case value:                                                                                                    \
		return message;
		WEFT_ERROR_MAP(X)
#undef X
	}
	if (code >= 0)
		return "success";
	text = strerrordesc_np(-code);
	return text ? text : "unknown error";
}

int weft__fail(struct weft_error *err, int code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return code;
	err->code = code;
	va_start(args, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, args);
	va_end(args);
	return code;
}

static weft_log_fn *log_fn;
static enum weft_log_level log_most;
static void *log_data;

void weft_set_log(weft_log_fn *fn, enum weft_log_level most, void *data)
{
	store_release(&log_fn, (weft_log_fn *)NULL);
	store_relaxed(&log_most, most);
	store_relaxed(&log_data, data);
	store_release(&log_fn, fn);
}

void weft__log(enum weft_log_level level, const char *fmt, ...)
{
	weft_log_fn *fn = load_acquire(&log_fn);
	char msg[600];
	va_list args;

	if (!fn || level > load_relaxed(&log_most))
		return;
	va_start(args, fmt);
	vsnprintf(msg, sizeof(msg), fmt, args);
	va_end(args);
	fn(level, msg, load_relaxed(&log_data));
}
