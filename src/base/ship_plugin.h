/* SPDX-License-Identifier: Apache-2.0 */
/* What libweft and libweft-ship.so promise each other. The library opens that one only when segments are to be sent: it
 * opens libcurl. */
#ifndef WEFT_BASE_SHIP_PLUGIN_H
#define WEFT_BASE_SHIP_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "weft/hooks.h"
#include "weft/report.h"

#define WEFT_SHIP_ABI 2
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
	uint32_t reached; /* it was connected to, or has taken something */
	uint32_t busy;    /* another process sends what is there */
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
