/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of callback a tick of an event loop was spent in, by the functions of the loop that are in its stacks. Now
 * libuv's, and so node's, where the file has names of functions that are not exported: the nodejs of NodeSource has,
 * Debian's libuv1 has them in its debug information. Context: CALLER. */
#ifndef WEFT_ANALYZE_CALLBACK_H
#define WEFT_ANALYZE_CALLBACK_H

#include <stdbool.h>

#include "analyze/analysis.h"
#include "analyze/frames.h"

struct weft__callback {
	const char *function; /* that calls such callbacks */
	const char *name;     /* "timer" */
	const char *words;    /* "a timer" */
};

/* What a title says when the loop is libuv's and none of its stacks has such a function. */
#define WEFT__CALLBACK_UNNAMED "libuv (kind not known: its functions have no names here)"

/* That of most of a poll's stacks, by their weight, and of the calls that it was blocked in; NULL: not known. */
const struct weft__callback *weft__callback_of(const struct weft__frames *frames, const struct weft__poll *poll);

/* Whether libuv ran it, and has no names: uv_run is exported, and has one where other functions have none. */
bool weft__callback_unnamed(const struct weft__frames *frames, const struct weft__poll *poll);

#endif
