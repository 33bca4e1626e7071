/* SPDX-License-Identifier: Apache-2.0 */
/* Where sealed segments go: beside the URLs in the option ship_to, to a function of the program. And how the agent is.
 *
 * weft-agent(7) says what is sent when, and what happens while a target cannot be reached. */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_recorder;

/* A sealed segment, for the time of the call. */
struct weft_report {
	size_t size; /* of this struct in the library: fields behind it are not there */
	const char *path;
	const char *name; /* of the file, without its directory; no other segment has it */
	uint64_t bytes;
	int fd;                  /* open for reading, at offset 0; the library closes it */
	uint32_t tries;          /* how often it was given to this function before */
	uint64_t retry_after_ns; /* the function may set it, when it fails: not before that */
};

/* Takes a segment: reads or copies it. Returns 0 when it is done with it; a negative error when it is to be called
 * again later, with the same segment; or 1 when it does not want it. Called on a thread of weft's own, one segment
 * at a time, oldest first. It may take its time, but after weft_recorder_stop began it has only what is left of
 * ship_wait_ns until the program goes on without it. */
typedef int weft_report_fn(struct weft_report *report, void *data);

/* Gives each sealed segment to `fn`, too. `name` stands for it in messages and in the names of the small files that
 * say what it has had: letters, digits, '-' and '_'; the same name in the next process means the same receiver, which
 * goes on where this one ended. Before the first weft_recorder_start; up to 8 targets in all. Needs the option dir.
 * Any thread. NULL `rec`: 0. Returns 0; -EINVAL for a name that is not allowed; -WEFT_E_STATE once it was started;
 * -WEFT_E_LIMIT; -ENOMEM. */
WEFT_API int weft_recorder_report_to(struct weft_recorder *rec, const char *name, weft_report_fn *fn, void *data,
				     struct weft_error *err);

/* How the recorder and its targets are. `size` is set by the caller; the rest is filled up to it. */
struct weft_health {
	size_t size;
	uint32_t ok;           /* 1: it does what was asked for; 0: `why` says what it does not do */
	uint32_t state;        /* enum weft_recorder_state */
	uint32_t targets;      /* where segments are to go */
	uint32_t failing;      /* of these, whose last try failed */
	uint64_t sent;         /* segments that a target took, since open; one for each target */
	uint64_t bytes;        /* of these */
	uint64_t retries;      /* tries that failed and will be made again */
	uint64_t refused;      /* segments that a target will not take */
	uint64_t waiting;      /* segments that a target does not have yet, as of the last look; one for each target */
	uint64_t sent_real_ns; /* when a target last took one, CLOCK_REALTIME; 0: never */
	char why[200];         /* the first thing that is not as it should be; "" when all is well */
	uint32_t passed;       /* of enum weft_check, what the self-check after the start found to work */
	uint32_t failed;       /* and what not; it was logged, too */
};

/* What a recorder finds out about itself in its first seconds, on its own threads. Bits. */
enum weft_check {
	WEFT_CHECK_SEGMENT = 1, /* a segment can be written to the directory and read again */
	WEFT_CHECK_SAMPLES = 2, /* samples are taken while the program uses CPU time */
	WEFT_CHECK_TARGETS = 4  /* all targets can be connected to */
};

/* Fills `health`. NULL `rec`: nothing is recorded, and `ok` is 0. Any thread. Returns 0 or -EINVAL. */
WEFT_API int weft_recorder_health(struct weft_recorder *rec, struct weft_health *health);

#ifdef __cplusplus
}
#endif
#endif
