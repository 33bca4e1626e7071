/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of callback a tick of an event loop was spent in, by the functions of the loop that are in its stacks. Now
 * libuv's, and so node's, where the file has names of functions that are not exported: the nodejs of NodeSource has,
 * Debian's libuv1 has them in its debug information. Context: CALLER. */
#ifndef WEFT_ANALYZE_CALLBACK_H
#define WEFT_ANALYZE_CALLBACK_H

#include "analyze/analysis.h"
#include "analyze/frames.h"

struct weft__callback {
	const char *function; /* that calls such callbacks */
	const char *name;     /* "timer" */
	const char *words;    /* "a timer" */
};

/* That of most of a poll's stacks, by their weight, and of the calls that it was blocked in; NULL: not known. */
const struct weft__callback *weft__callback_of(const struct weft__frames *frames, const struct weft__poll *poll);

#endif
