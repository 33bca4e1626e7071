/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes and their workers. A process may have many runtimes, each with a name and its own workers. A worker is known
 * by a process-wide id; the thread that is the worker is found once per thread and remembered, and so is the answer
 * "not a worker". Any thread may call these; none is async-signal-safe unless it says so. They work, and are
 * remembered, whether or not a recorder is open. */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "options.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_WORKER_NONE 0xffffu /* no worker, or not known which */

/* Answers which worker (0-based index in its runtime) the calling thread is, or -1 for none. Asked at most once per
 * thread, runtime and recording, on that thread, at its first event; must be async-signal-safe if the program emits
 * from signal handlers. */
typedef int weft_worker_fn(void *data);

/* Answers how many tasks wait in the runtime's global queue, or UINT64_MAX when that is not known now. Asked by the
 * collector thread every 10 ms while recording; must not block. */
typedef uint64_t weft_queue_fn(void *data);

struct weft_runtime_opts {
	size_t size;
	const char *name;       /* NULL: "runtime-N". One that ends with -pool or -blocking is of threads for work that
				 * may block: in the report their long polls harm only what waits behind them */
	weft_worker_fn *worker; /* NULL: threads say who they are with weft_worker_enter */
	weft_queue_fn *queue;   /* NULL: the global queue is not measured */
	void *data;             /* for both */
};

/* Adds a runtime. Returns its id (> 0), for the calls below, or 0 and why in `err`, which may be NULL: -WEFT_E_LIMIT
 * (64 runtimes, or no room for definitions), -ENOMEM, or -E2BIG and -EINVAL for options of another size. `opts` NULL
 * takes all defaults. */
WEFT_API uint32_t weft_runtime_add(const struct weft_runtime_opts *opts, struct weft_error *err);

/* Forgets the callbacks of a runtime; its id and name stay. Returns after a callback that runs has returned.
 * 0, or -EINVAL. */
WEFT_API int weft_runtime_del(uint32_t runtime);

/* Says what is not measured of a runtime, why, and what would change that, as one line for people: "polls of tasks
 * that weft_tokio::spawn did not spawn: build with --cfg tokio_unstable". Each segment has it from here on as the fact
 * degraded.runtime.ID, and the report shows it among what is missing. In the report a second text replaces the first,
 * and "" takes it back. For bindings. Returns 0; -EINVAL (no such runtime, NULL); -WEFT_E_LIMIT (no room for
 * definitions); -ENOMEM; and why in `err`, which may be NULL. */
WEFT_API int weft_runtime_not_measured(uint32_t runtime, const char *what, struct weft_error *err);

/* Makes the calling thread worker `index` of `runtime`. Returns the worker's process-wide id (1..65534), or 0 and
 * why in `err`, which may be NULL: -EINVAL (no such runtime), -WEFT_E_LIMIT, -ENOMEM. Calling it again with the same
 * arguments is free. */
WEFT_API uint32_t weft_worker_enter(uint32_t runtime, uint32_t index, struct weft_error *err);

/* The calling thread is no worker any more. */
WEFT_API void weft_worker_leave(void);

/* The id of worker `index` of `runtime`, for weft_wake. Registers it when it is new. Fails as weft_worker_enter
 * does. */
WEFT_API uint32_t weft_worker_id(uint32_t runtime, uint32_t index, struct weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
