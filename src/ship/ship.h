/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed segments to where they are wanted: one ops struct for all kinds of targets, and what they are given.
 *
 *     spool.h     a directory of sealed segments, and what each target has of them, in small files beside them
 *     worker.h    one target: what waits for it, oldest first; tries again after failures (backoff.h)
 *     target.c    which kind of target a URL names; one file for each kind
 *     http.h      requests, by libcurl, which is opened when it is needed
 *     key.h       under which name a segment is stored
 *
 * Not in libweft.so: in the command, and in libweft-ship.so, which the recorder opens when there is a target. Context
 * of all of it: one thread for each target, weft's own or the command's; it may wait for disks and networks. */
#ifndef WEFT_SHIP_SHIP_H
#define WEFT_SHIP_SHIP_H

#include <stdint.h>

#include "weft/error.h"
#include "weft/report.h"
#include "weft/segment.h"

/* A segment that is to be sent. */
struct weft__parcel {
	int fd; /* for reading, at any offset */
	uint64_t bytes;
	const char *name; /* of the file, without its directory */
	const char *path;
	struct weft_segment *segment; /* its definitions */
	const char *key;              /* under which it is stored below the target's prefix; NULL: as key.h has it */
	const char *type;             /* of the content; NULL: a segment */
};

enum weft__outcome {
	PARCEL_SENT,
	PARCEL_RETRY,   /* the target cannot take it, or any other, now */
	PARCEL_REFUSED, /* this one is not to its liking */
	PARCEL_STOPPED, /* the thread is to end */
};

struct weft__verdict {
	enum weft__outcome outcome;
	uint64_t retry_after_ns; /* as the target asked; 0: it did not */
	char why[240];           /* one line, without secrets; "" when it was sent */
};

struct weft__target_opts {
	const char *url;
	uint64_t timeout_ns;  /* without any progress, a try has failed */
	const uint32_t *stop; /* not 0: come back soon */
	weft_report_fn *fn;   /* the user's own target, in place of a URL */
	void *data;
};

struct weft__target;

/* How URLs of a kind begin: "s3://", "parca+http://" or "parca+https://", or either. */
enum weft__target_over { TARGET_PLAIN, TARGET_OVER_HTTP, TARGET_EITHER };

/* A kind of target. */
struct weft__target_kind {
	const char *scheme; /* of its URLs, up to "://" or "+"; "" is a path */
	const char *what;   /* for people */
	/* -WEFT_E_OPTION with what is wrong with the URL; -ENOMEM; -ENOENT: a library is missing. Nothing is connected
	 * to yet. */
	int (*open)(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err);
	void (*send)(struct weft__target *t, const struct weft__parcel *parcel, struct weft__verdict *ret);
	void (*close)(struct weft__target *t);
	enum weft__target_over over;
	/* Whether it could be sent to now, without sending anything. 0 or a negative error with a message; NULL: that
	 * is not known before a segment is sent. */
	int (*reach)(struct weft__target *t, struct weft_error *err);
};

struct weft__target {
	const struct weft__target_kind *kind;
	char shown[256]; /* the URL without secrets, for messages */
	char tag[9];     /* of it, for file names: the same for the same URL */
	int bundles;     /* sent as bundle.h has it */
	char group[128]; /* of that; "": the name of the service */
	void *state;
};

#define PARCEL_TYPE "application/vnd.weft.segment"

extern const struct weft__target_kind weft__target_file, weft__target_s3, weft__target_put, weft__target_puts,
	weft__target_pyroscope, weft__target_parca, weft__target_datadog, weft__target_otlp, weft__target_call;

/* Whether a URL names a kind of target that there is; else -WEFT_E_OPTION with a message. Nothing is opened. */
int weft__target_check(const char *url, struct weft_error *err);
/* Opens the target that a URL names, or the user's own. 0 or a negative error. */
int weft__target_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err);
void weft__target_close(struct weft__target *t);
/* Sends one, as the target's kind does it and in the layout that its URL names. */
void weft__target_send(struct weft__target *t, const struct weft__parcel *parcel, struct weft__verdict *ret);

/* Fills a verdict; answers its outcome. */
enum weft__outcome weft__verdict(struct weft__verdict *v, enum weft__outcome outcome, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
