/* SPDX-License-Identifier: Apache-2.0 */
/* libiberty's demanglers are used through their callbacks, because a name of 200 bytes can ask for gigabytes:
 * substitutions double. Their state is on the stack, so when the text gets too long we jump out of the callback and
 * leave nothing behind. The stack is also why the length of what goes in has a limit: they take about 100 bytes of
 * it for each byte of the name. */
#include "symbol/demangle.h"

#include <demangle.h>
#include <setjmp.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

#define RAW_MAX 8192
#define TEXT_MAX 32768

struct sink {
	struct weft__buf buf;
	jmp_buf full;
};

static void put(const char *text, size_t n, void *opaque)
{
	struct sink *sink = opaque;

	if (sink->buf.n + n > TEXT_MAX)
		longjmp(sink->full, 1);
	weft__buf_put(&sink->buf, text, n);
	if (sink->buf.oom)
		longjmp(sink->full, 1);
}

static int run(struct sink *sink, const char *raw)
{
	if (setjmp(sink->full))
		return 0;
	/* Legacy Rust looks like C++, so Rust is asked first. */
	if (rust_demangle_callback(raw, 0, put, sink))
		return 1;
	weft__buf_clear(&sink->buf);
	return cplus_demangle_v3_callback(raw, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP, put, sink);
}

static char *without_version(const char *raw, size_t n)
{
	char *text = weft__alloc(n + 1);

	if (!text)
		return NULL;
	memcpy(text, raw, n);
	text[n] = 0;
	return text;
}

char *weft__demangle(const char *raw)
{
	size_t all = strlen(raw), n = strcspn(raw, "@");
	char *plain = NULL;
	struct sink *sink;
	int ok;

	if (n && n < all) {
		plain = without_version(raw, n);
		if (!plain)
			return NULL;
		raw = plain;
	}
	if (n > RAW_MAX || raw[0] != '_' || (raw[1] != 'Z' && raw[1] != 'R' && strncmp(raw, "__Z", 3) != 0))
		return plain;
	sink = weft__calloc(1, sizeof(*sink));
	if (!sink)
		return plain;
	ok = run(sink, raw);
	if (ok)
		weft__buf_u8(&sink->buf, 0);
	if (ok && !sink->buf.oom) {
		weft__free(plain);
		plain = (char *)sink->buf.bytes;
	} else {
		weft__buf_free(&sink->buf);
	}
	weft__free(sink);
	return plain;
}
