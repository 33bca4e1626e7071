/* SPDX-License-Identifier: Apache-2.0 */
/* Segment files, put together by the recording that they are parts of; a dump of a flight recorder is one for
 * itself. Files are opened one after the other to learn what they hold, and again to read their events, so that
 * memory does not grow with their number. Context: CALLER. */
#ifndef WEFT_ANALYZE_RECORDING_H
#define WEFT_ANALYZE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/frames.h"
#include "analyze/names.h"
#include "segment/event.h"
#include "weft/segment.h"

struct weft__file {
	char *path;
	struct weft_segment_info info;
	uint64_t device, inode;
	int status;              /* 0, or the error that kept it from being read the second time */
	uint32_t damaged_places; /* complete once events were read */
	uint64_t missing_bytes;
	char *damage; /* one line, or NULL */
};

struct weft__recording {
	uint8_t id[16];
	uint64_t dump;            /* number of the dump, from 1; 0: it is none */
	struct weft__file *files; /* by sequence */
	size_t n_files, cap_files;
	struct weft__names names;
	struct weft__frames frames;
	uint64_t start_ns; /* its first moment in these files: the time that others are relative to */
	uint64_t start_real_ns;
	uint64_t first_ns, last_ns; /* first and last event; 0 and 0 when there are none */
	uint64_t n_events, n_bytes, n_event_bytes;
	uint64_t missing_segments; /* numbers between the first and the last that no file has */
};

/* Times that people see are relative to the recording's start. Here, and nowhere else, they are made of those of
 * events, and back. Both stop at their ends. */
static inline uint64_t weft__recording_since(const struct weft__recording *rec, uint64_t time_ns)
{
	return time_ns > rec->start_ns ? time_ns - rec->start_ns : 0;
}

static inline uint64_t weft__recording_time(const struct weft__recording *rec, uint64_t since_ns)
{
	return since_ns > UINT64_MAX - rec->start_ns ? UINT64_MAX : rec->start_ns + since_ns;
}

/* A file that could not be used, and why. */
struct weft__refusal {
	char *path;
	int status;
	char *why;
};

struct weft__recordings {
	struct weft__recording *all; /* the one that started first comes first */
	size_t n, cap;
	struct weft__refusal *refused;
	size_t n_refused, cap_refused;
};

/* Adds a segment, or all *.weft and *.weft.active files of a directory. {0} is an empty list. A file that is no
 * segment is put in `refused`, as is one of two files that hold the same segment. Returns 0, -ENOMEM, or a negative
 * errno when `path` cannot be looked at. */
int weft__recordings_add(struct weft__recordings *list, const char *path, struct weft_error *err);

/* Puts everything in order, once all is added. */
void weft__recordings_settle(struct weft__recordings *list);
void weft__recordings_fini(struct weft__recordings *list);

/* How its functions get their names: in this boot of the machine that recorded it more is known of the kernel and
 * the process. */
void weft__recording_naming(const struct weft__recording *rec, bool no_symbols, struct weft__naming *ret);

/* Wants the names of all objects that waits were recorded for (frames.h). Reads every event. Returns 0 or -ENOMEM. */
int weft__recording_want_objects(struct weft__recording *rec);

/* Each event with from_ns <= time < to_ns, in order of time whatever file it is in. `event` may stop the reading with
 * a negative value, which is then returned. `progress`, when not NULL, is called now and then. Returns 0, -ENOMEM, or
 * what `fn` returned. A file that cannot be read any more has its `status` set. */
struct weft__events_ops {
	int (*event)(void *data, const struct weft__event *ev);
	void (*progress)(void *data, uint64_t n_events);
	void *data;
	/* Instead of `event`, when not NULL: some at once, all of one thread. */
	int (*run)(void *data, const struct weft__record *at, const struct weft__record *end);
};
int weft__recording_events(struct weft__recording *rec, uint64_t from_ns, uint64_t to_ns,
			   const struct weft__events_ops *ops);

/* The same, some events after the others: at least one, all of one thread. They are good until the next call. Returns
 * 1, 0 at the end, or -ENOMEM. */
struct weft__merge;
int weft__merge_open(struct weft__merge **ret, struct weft__recording *rec, uint64_t from_ns, uint64_t to_ns);
int weft__merge_next(struct weft__merge *merge, const struct weft__record **ret, const struct weft__record **end);
/* Notes what was damaged, in the files. NULL is allowed. Returns 0 or -ENOMEM. */
int weft__merge_close(struct weft__merge *merge);

#endif
