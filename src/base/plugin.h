/* SPDX-License-Identifier: Apache-2.0 */
/* What libweft promises its plugins, and they it. The library opens libweft-symbolize.so only when names are wanted
 * inside the process: it brings elfutils with it, which an application should not have to load for being recorded. And
 * libweft-ship.so only when segments are to be sent: it opens libcurl. */
#ifndef WEFT_BASE_PLUGIN_H
#define WEFT_BASE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "weft/hooks.h"
#include "weft/report.h"

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

#define WEFT_SHIP_ABI 1
#define WEFT_SHIP_FILE "libweft-ship.so"
#define WEFT_SHIP_ENTRY "weft_ship_plugin"

/* One place where sealed segments go. What is pointed to stays as long as it is open. */
struct weft_ship_target {
	const char *dir;             /* where segments are */
	const char *url;             /* or the name of the user's function */
	const char *const *all_urls; /* of all targets; NULL-terminated */
	uint64_t age_ns, timeout_ns;
	int delete;           /* segments that all targets have */
	const uint32_t *stop; /* not 0: come back soon */
	weft_report_fn *fn;   /* the user's; NULL: a URL */
	void *data;
	weft_log_fn *log;
};

struct weft_ship_state {
	uint64_t sent, bytes, retries, refused, waiting, sent_real_ns;
	uint32_t failing;
	uint32_t busy; /* another process sends what is there */
	char why[240];
};

/* All calls for one target come from one thread. */
struct weft_ship_plugin {
	uint32_t abi;
	int (*open)(void **ret, const struct weft_ship_target *target, char *why, size_t why_bytes);
	/* Sends what waits. Answers when it is due again, CLOCK_MONOTONIC. */
	uint64_t (*turn)(void *state, uint64_t now_ns);
	void (*state)(void *state, struct weft_ship_state *ret);
	void (*close)(void *state);
	/* What the machine is, by the services beside it; `stop` as above. May take some seconds. */
	void (*host)(const uint32_t *stop, void (*fn)(const char *key, const char *value, void *data), void *data);
};

typedef const struct weft_ship_plugin *weft_ship_plugin_fn(void);

#endif
