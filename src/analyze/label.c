/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/label.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/frames.h"
#include "analyze/loss.h"
#include "weft/wait.h"

const char *weft__label_thread(const struct weft__names *names, uint32_t thread_id, char *buf, size_t bytes)
{
	const struct weft_thread *thread = weft__names_thread(names, thread_id);

	if (!thread)
		snprintf(buf, bytes, "thread %u", thread_id);
	else
		snprintf(buf, bytes, "%s(%u)", thread->name[0] ? thread->name : "thread", thread->tid);
	return buf;
}

const char *weft__label_lane(const struct weft__names *names, uint32_t worker, uint32_t thread_id, char *buf,
			     size_t bytes)
{
	const struct weft_worker *def;
	const struct weft_runtime_def *runtime;

	if (worker == WEFT__LANE_OTHER) {
		snprintf(buf, bytes, "(other threads)");
		return buf;
	}
	if (worker == WEFT_WORKER_NONE)
		return weft__label_thread(names, thread_id, buf, bytes);
	def = weft__names_worker(names, worker);
	runtime = def ? weft__names_runtime(names, def->runtime) : NULL;
	if (runtime)
		snprintf(buf, bytes, "%s/%u", runtime->name, def->index);
	else if (def)
		snprintf(buf, bytes, "runtime-%u/%u", def->runtime, def->index);
	else
		snprintf(buf, bytes, "worker-%u", worker);
	return buf;
}

static int ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

int weft__label_in_pool(const struct weft__names *names, uint32_t worker)
{
	const struct weft_worker *def = worker == WEFT_WORKER_NONE ? NULL : weft__names_worker(names, worker);
	const struct weft_runtime_def *runtime = def ? weft__names_runtime(names, def->runtime) : NULL;

	return runtime && (ends_with(runtime->name, "-blocking") || ends_with(runtime->name, "-pool"));
}

const char *weft__label_location(const struct weft__names *names, uint32_t location)
{
	const struct weft_location_def *def;

	switch (location) {
	case 0:
		return "(unknown)";
	case WEFT__LOCATION_UNSEEN:
		return "(spawned before recording)";
	case WEFT__LOCATION_UNTRACKED:
		return "(too many tasks)";
	case WEFT__LOCATION_OTHER:
		return "(other locations)";
	default:
		def = weft__names_location(names, location);
		return def ? def->name : "(undefined location)";
	}
}

bool weft__label_is_loop(const struct weft__names *names, uint32_t location)
{
	const struct weft_location_def *at = weft__names_location(names, location);
	size_t n = at ? strlen(at->name) : 0;

	return n >= 4 && !at->file[0] && strcmp(at->name + n - 4, "loop") == 0;
}

bool weft__label_loops(const struct weft__names *names, uint32_t worker)
{
	const struct weft_worker *def = weft__names_worker(names, worker);
	const struct weft_runtime_def *runtime = def ? weft__names_runtime(names, def->runtime) : NULL;

	return runtime && strcmp(runtime->name, "loop") == 0;
}

bool weft__label_is_tick(const struct weft__names *names, uint32_t worker, uint32_t location)
{
	return weft__label_loops(names, worker) && weft__label_is_loop(names, location);
}

const char *weft__label_file(const struct weft__names *names, uint32_t location, char *buf, size_t bytes)
{
	const struct weft_location_def *def = weft__names_location(names, location);

	buf[0] = 0;
	if (def && def->file[0] && def->line)
		snprintf(buf, bytes, "%s:%u", def->file, def->line);
	else if (def && def->file[0])
		snprintf(buf, bytes, "%s", def->file);
	return buf;
}

const char *weft__label_reason(uint32_t reason)
{
	return weft__loss_reason(reason)->name;
}

const char *weft__label_wait(uint32_t what)
{
	static const char *const names[] = {
		[0] = "short waits",
		[WEFT_WAIT_CALL] = "call",
		[WEFT_WAIT_LOCK] = "lock",
		[WEFT_WAIT_RWLOCK] = "read-write lock",
		[WEFT_WAIT_CONDITION] = "condition",
		[WEFT_WAIT_SEMAPHORE] = "semaphore",
		[WEFT_WAIT_RUNTIME] = "runtime lock",
		[WEFT_WAIT_GC] = "garbage collection",
		[WEFT_WAIT_PAUSE] = "pause",
		[WEFT_WAIT_THREAD] = "end of a thread",
		[WEFT_WAIT_OTHER] = "other",
	};

	return what < sizeof(names) / sizeof(names[0]) ? names[what] : "other";
}

const char *weft__label_cost(size_t what)
{
	static const char *const names[] = {
		[WEFT_COST_COLLECTOR] = "collector", [WEFT_COST_SAMPLES] = "samples",
		[WEFT_COST_SWITCH] = "switches",     [WEFT_COST_WALL] = "wall samples",
		[WEFT_COST_WAITS] = "waits",         [WEFT_COST_TABLES] = "unwind tables",
		[WEFT_COST_SYMBOLS] = "symbols",     [WEFT_COST_EVENTS] = "events",
		[WEFT_COST_SHIP] = "reporters",
	};

	return what < sizeof(names) / sizeof(names[0]) && names[what] ? names[what] : "other";
}

bool weft__label_is_call(const char *name)
{
	static const char *const of[] = {"pthread_", "sem_", "mtx_", "cnd_", "thrd_", "futex"};
	size_t i;

	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (strncmp(name, of[i], strlen(of[i])) == 0)
			return true;
	return false;
}

static const char *article(uint32_t what)
{
	if (what == WEFT_WAIT_GC || what == WEFT_WAIT_OTHER)
		return "";
	return what == WEFT_WAIT_THREAD ? "the " : "a ";
}

static void label_call(const struct weft__names *names, const char *given, uint64_t object, char *buf, size_t bytes)
{
	const char *about = weft__names_string(names, (uint32_t)(object >> WEFT_WAIT_ABOUT_AT));
	char fd[16] = "";

	if (object == UINT64_MAX)
		about = NULL;
	else
		snprintf(fd, sizeof(fd), " fd %u", (uint32_t)object);
	about = about && about[0] ? about : NULL;
	snprintf(buf, bytes, "%s%s%s%s%s", given ? given : "a call of the system", fd, about ? " (" : "",
		 about ? about : "", about ? ")" : "");
}

const char *weft__label_waited(const struct weft__names *names, const struct weft__frames *frames, uint32_t what,
			       uint32_t name, uint64_t object, char *buf, size_t bytes)
{
	const char *given = weft__names_string(names, name), *variable = weft__frames_data(frames, object);
	char at[24] = "";

	if (given && !given[0])
		given = NULL;
	if (object)
		snprintf(at, sizeof(at), " at 0x%" PRIx64, object);
	if (what == WEFT_WAIT_CALL)
		label_call(names, given, object, buf, bytes);
	else if (given && !weft__label_is_call(given))
		snprintf(buf, bytes, "%s", given);
	else if (variable)
		snprintf(buf, bytes, "%s", variable);
	else
		snprintf(buf, bytes, "%s%s%s%s%s", article(what), weft__label_wait(what), at, given ? " in " : "",
			 given ? given : "");
	return buf;
}
