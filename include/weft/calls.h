/* SPDX-License-Identifier: Apache-2.0 */
/* The emit functions as a table, for bindings that are loaded into a program at run time: extensions of interpreters.
 *
 * Under `weft run` the recorder is inside libweft-preload.so, which shows none of the functions, so that programs that
 * record themselves keep their own. It has this table instead, under the name weft_run_calls. A binding asks for that
 * first, and takes the table of the library that it is linked to when there is none:
 *
 *     const struct weft_calls *(*of_run)(void) = dlsym(RTLD_DEFAULT, "weft_run_calls");
 *     const struct weft_calls *calls = of_run ? of_run() : NULL;
 *     if (!calls)
 *             calls = weft_calls();          nobody else records: weft_recorder_open is up to the binding
 *     calls->wait_begin_of(thread, WEFT_WAIT_RUNTIME, name, object);
 *
 * Each member is the function of that name with weft_ before it. A table of an older weft is shorter: `size` says how
 * much is there. */
#ifndef WEFT_CALLS_H
#define WEFT_CALLS_H

#include "define.h"
#include "event.h"
#include "frame.h"
#include "runtime.h"
#include "span.h"
#include "wait.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_calls {
	size_t size;
	int (*recording)(void);
	uint64_t (*now_ticks)(void);
	uint32_t (*string)(const char *text);
	uint32_t (*location)(const char *name, const char *file, uint32_t line);
	uint32_t (*event_define)(const char *name, const struct weft_field *fields, size_t n_fields,
				 struct weft_error *err);
	void (*event)(uint32_t kind, const uint64_t *fields, uint32_t n_fields);
	uint64_t (*wait_self)(void);
	void (*wait_begin)(uint32_t what, uint32_t name, uint64_t object);
	void (*wait_end)(uint32_t what, uint64_t object);
	void (*wait_begin_of)(uint64_t thread, uint32_t what, uint32_t name, uint64_t object);
	void (*wait_end_of)(uint64_t thread, uint32_t what, uint64_t object);
	uint64_t (*wait_since)(void);
	void (*waited)(uint32_t what, uint32_t name, uint64_t object, uint32_t holder, uint64_t since);
	void (*lock_held)(uint64_t object);
	void (*lock_released)(uint64_t object);
	void (*lock_watch)(uint64_t object);
	void (*lock_unwatch)(uint64_t object);
	uint32_t (*runtime_add)(const struct weft_runtime_opts *opts, struct weft_error *err);
	int (*runtime_not_measured)(uint32_t runtime, const char *what, struct weft_error *err);
	uint32_t (*worker_enter)(uint32_t runtime, uint32_t index, struct weft_error *err);
	void (*worker_leave)(void);
	void (*task_spawn)(uint64_t task, uint32_t location);
	void (*task_end)(uint64_t task);
	void (*wake)(uint64_t task, uint32_t worker);
	void (*poll_begin)(uint64_t task, uint32_t depth);
	void (*poll_end)(void);
	void (*park)(uint32_t depth);
	void (*unpark)(uint32_t depth);
	uint32_t (*endpoint)(const char *text);
	uint32_t (*labels)(const char *const *labels, struct weft_error *err);
	void (*context_set)(const struct weft_context *next);
	void (*context_get)(struct weft_context *ret);
	void (*alloc)(uint32_t name, uint64_t count, uint64_t bytes);
	int (*frames_set)(const char *runtime, weft_frames_fn *fn, void *data);
	void (*frame_name)(uint32_t number, uint32_t location);
};

/* The table of this library. Never NULL, static storage. Any thread; async-signal-safe. */
WEFT_API const struct weft_calls *weft_calls(void);

#ifdef __cplusplus
}
#endif
#endif
