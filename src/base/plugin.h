/* SPDX-License-Identifier: Apache-2.0 */
/* What libweft and libweft-symbolize.so promise each other. The library opens that one only when names are wanted
 * inside the process: it brings elfutils with it, which an application should not have to load for being recorded. */
#ifndef WEFT_BASE_PLUGIN_H
#define WEFT_BASE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_SYMBOLIZE_ABI 1
#define WEFT_SYMBOLIZE_FILE "libweft-symbolize.so"
#define WEFT_SYMBOLIZE_ENTRY "weft_symbolize_plugin"

/* All calls come from one thread. Those that answer int: 0, or a negative error with a line about it in `why`. */
struct weft_symbolize_plugin {
	uint32_t abi;
	int (*open)(void **ret, char *why, size_t why_bytes);
	/* Puts names into the sealed segment at `path`, in place. */
	int (*run)(void *state, const char *path, char *why, size_t why_bytes);
	void (*close)(void *state);
};

/* The one thing that the plugin exports. */
typedef const struct weft_symbolize_plugin *weft_symbolize_plugin_fn(void);

#endif
