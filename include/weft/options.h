/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of options begin with their size, so that they can grow: a library takes those of older and of newer
 * programs. These macros fill in the size and leave everything else at 0, which is the default.
 *
 *     struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);     C and C++
 *     opts.dir = "/var/lib/server/weft";
 *
 *     weft_runtime_add(WEFT_OPTIONS(weft_runtime_opts, .name = "http"), NULL);    C
 *
 * The same is for structs that the library fills (weft_recorder_stats). */
#ifndef WEFT_OPTIONS_H
#define WEFT_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* In place of a rate, a limit or a time: none, never. */
#define WEFT_OFF UINT64_MAX

#ifdef __cplusplus
template <typename Options> static inline Options weft_options_sized(void)
{
	Options options = Options();

	options.size = sizeof(Options);
	return options;
}
#define WEFT_OPTIONS_INIT(type) weft_options_sized<struct type>()
#else
#define WEFT_OPTIONS_INIT(type)                                                                                        \
	{                                                                                                              \
		.size = sizeof(struct type)                                                                            \
	}
/* A pointer to options that live as long as the block that they stand in. */
#define WEFT_OPTIONS(type, ...) (&(struct type){.size = sizeof(struct type), __VA_ARGS__})
#endif

#endif
