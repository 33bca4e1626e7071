/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int weft__frame_add(struct weft__symbol_env *env, struct weft__frame_list *out, const char *raw, const char *file,
		    uint32_t line, uint64_t offset)
{
	const char *function = weft__texts_demangled(&env->texts, raw);

	if (!function)
		return -ENOMEM;
	if (out->n == WEFT__FRAMES_MAX)
		out->n--;
	out->at[out->n++] =
		(struct weft__symbol){.function = function, .raw = raw, .file = file, .line = line, .offset = offset};
	return 1;
}

void weft__symbol_why(struct weft__symbol_env *env, struct weft__symbol_entry *module, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (module->why)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	module->why = weft__texts_add(&env->texts, text);
}
