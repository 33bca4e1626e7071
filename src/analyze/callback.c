/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/callback.h"

#include <string.h>

#include "base/alloc.h"

static const struct weft__callback callbacks[] = {
	{"uv__run_timers", "timer", "a timer"},
	{"uv__run_check", "check", "a check handle (node: setImmediate)"},
	{"uv__run_idle", "idle", "an idle handle"},
	{"uv__run_prepare", "prepare", "a prepare handle"},
	{"uv__run_closing_handles", "close", "a handle that was closed"},
	{"uv__server_io", "connection", "a new connection"},
	{"uv__stream_io", "socket", "a TCP socket, pipe or terminal"},
	{"uv__udp_io", "datagram", "a UDP socket"},
	{"uv__poll_io", "poll", "a poll handle"},
	{"uv__signal_event", "signal", "a signal"},
	{"uv__inotify_read", "file_event", "a file event"},
	{"uv__work_done", "work", "work that the thread pool had done"},
	{"uv__async_io", "async", "an async handle"},
};

#define N_CALLBACKS (sizeof(callbacks) / sizeof(callbacks[0]))

/* The innermost: work that is done comes by an async handle. */
static size_t find(const struct weft__frames *frames, uint32_t stack, struct weft__line_list *lines)
{
	size_t i, k;

	if (weft__frames_lines(frames, stack, 0, lines) < 0)
		return N_CALLBACKS;
	for (i = 0; i < lines->n; i++)
		for (k = 0; k < N_CALLBACKS; k++)
			if (strcmp(frames->functions[lines->at[i].function].name, callbacks[k].function) == 0)
				return k;
	return N_CALLBACKS;
}

/* uv_run, and nothing between it and the program that has a name of libuv's own. */
static bool only_uv_run(const struct weft__frames *frames, uint32_t stack, struct weft__line_list *lines)
{
	bool is = false;
	size_t i;

	if (weft__frames_lines(frames, stack, 0, lines) < 0)
		return false;
	for (i = 0; i < lines->n; i++) {
		const char *name = frames->functions[lines->at[i].function].name;

		if (strncmp(name, "uv__", 4) == 0)
			return false;
		is = is || strcmp(name, "uv_run") == 0;
	}
	return is;
}

bool weft__callback_unnamed(const struct weft__frames *frames, const struct weft__poll *poll)
{
	const struct weft__breakdown *breakdown = &poll->breakdown;
	struct weft__line_list lines = {0};
	bool is = false;
	size_t i;

	for (i = 0; !is && i < poll->n_stacks; i++)
		is = only_uv_run(frames, poll->stacks[i].stack, &lines);
	for (i = 0; !is && breakdown->known && i < breakdown->n_causes; i++)
		is = only_uv_run(frames, breakdown->causes[i].stack, &lines);
	weft__free(lines.at);
	return is;
}

const struct weft__callback *weft__callback_of(const struct weft__frames *frames, const struct weft__poll *poll)
{
	const struct weft__breakdown *breakdown = &poll->breakdown;
	uint64_t ns[N_CALLBACKS + 1] = {0};
	struct weft__line_list lines = {0};
	size_t i, best = 0;

	for (i = 0; i < poll->n_stacks; i++)
		ns[find(frames, poll->stacks[i].stack, &lines)] += poll->stacks[i].weight.ns;
	for (i = 0; breakdown->known && i < breakdown->n_causes; i++)
		ns[find(frames, breakdown->causes[i].stack, &lines)] += breakdown->causes[i].ns;
	weft__free(lines.at);
	for (i = 0; i < N_CALLBACKS; i++)
		best = ns[i] > ns[best] ? i : best;
	return ns[best] ? &callbacks[best] : NULL;
}
