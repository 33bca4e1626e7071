/* SPDX-License-Identifier: Apache-2.0 */
/* weft polls: long polls, each with its true length and the samples in it. polls.c reads them from
 * segments, polls_jfr.c from files of the Flight Recorder, and polls_print.c prints them. */
#ifndef WEFT_CLI_POLLS_H
#define WEFT_CLI_POLLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define POLLS_NONE INT64_MIN /* not measured */

enum { POLLS_ON_CPU, POLLS_BLOCKED, POLLS_WAITING, POLLS_PREEMPTED, POLLS_NOT_MEASURED, POLLS_PARTS };

/* What was found in a poll: samples of one stack, or time off the CPU. */
struct polls_hit {
	uint32_t poll; /* index */
	uint32_t recording;
	uint32_t stack, kernel; /* 0 and 0: only `name` says what it was */
	int64_t n, ns;          /* samples, and what they stand for; 0: not known */
	const char *state;      /* "on cpu", "blocked", ... */
	uint32_t functions;     /* inside: the same for stacks that look alike */
	const char *name;       /* of what was waited for; NULL: none */
};

struct polls_one {
	int64_t begin_ns, duration_ns; /* from the start of the recording */
	int64_t start_real_ns;         /* of the recording; 0: not known */
	int64_t parts[POLLS_PARTS];    /* POLLS_NONE: not measured */
	int64_t tid, task;
	uint64_t span;
	bool running;
	const char *thread, *worker, *location, *endpoint; /* NULL: none */
	size_t first, n_hits;                              /* in `hits`, heaviest first */
};

enum polls_sort { POLLS_BY_LENGTH, POLLS_BY_TIME, POLLS_BY_CPU };
enum polls_group {
	POLLS_EACH,
	POLLS_OF_LOCATION,
	POLLS_OF_THREAD,
	POLLS_OF_WORKER,
	POLLS_OF_ENDPOINT,
	POLLS_OF_FUNCTION
};

struct polls_opts {
	uint64_t min_ns, from_ns, to_ns; /* to_ns 0: no end */
	const char *worker, *thread, *location;
	enum polls_sort sort;
	enum polls_group group;
	size_t top, depth;
	bool json, no_symbols, top_given;
};

struct polls_names {
	const char **at;
	size_t n, cap;
};

struct polls {
	struct polls_one *at;
	size_t n, cap;
	struct polls_hit *hits;
	size_t n_hits, cap_hits;
	uint64_t n_beyond; /* more than are kept */
	/* The functions of a hit, leaf first. 0 or -ENOMEM. */
	int (*functions)(void *data, const struct polls_hit *hit, struct polls_names *ret);
	void *data;
	const char *source; /* what samples are: for people */
};

/* Each returns 0 or -ENOMEM. */
int polls_name(struct polls_names *names, const char *name);
int polls_add(struct polls *polls, const struct polls_one *one);
int polls_hit(struct polls *polls, const struct polls_hit *hit);
/* Whether a poll is asked for by its names. */
bool polls_asked(const struct polls_opts *opts, const struct polls_one *one, int64_t tid);
/* Puts hits below their polls, sorts and prints. A CLI_ code. */
int polls_print(struct polls *polls, const struct polls_opts *opts);
void polls_fini(struct polls *polls);

/* polls_jfr.c: files of the Flight Recorder, or directories that have them and no segments. A CLI_ code, `code` when
 * all is well; POLLS_NO_JFR: they are something else. */
#define POLLS_NO_JFR (-1)
int polls_jfr(int n, char **paths, const struct polls_opts *opts, int code);

#endif
