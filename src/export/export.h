/* SPDX-License-Identifier: Apache-2.0 */
/* Segments to the formats of other tools: one pure function each. It reads the files, sums what they hold by stack,
 * thread, labels and state, in bounded memory, and answers bytes.
 *
 *     struct weft__export_opts opts = {.tags = tags, .n_tags = n};
 *     rc = weft__export_pprof(&out, paths, n_paths, &opts, &err);
 *     ... out.at, out.n ...
 *     weft__export_free(&out);
 *
 * What runs inside an application (record/ship) has none of this linked in: it opens libweft-symbolize.so and calls the
 * same functions through struct weft_export_plugin. So this header includes nothing of the tree but public headers.
 * Context: CALLER, any thread, one call at a time for a plugin; never HOT. */
#ifndef WEFT_EXPORT_EXPORT_H
#define WEFT_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

/* What is summed. Each is one or two sample types of a profile. */
enum weft__export_what {
	WEFT__EXPORT_CPU = 1,    /* "cpu_samples" (count) and "cpu" (ns): CPU samples */
	WEFT__EXPORT_WALL = 2,   /* "wall" (ns): all time of threads, by samples, waits and switches */
	WEFT__EXPORT_OFFCPU = 4, /* "offcpu_intervals" (count) and "offcpu" (ns): context switches */
	WEFT__EXPORT_WAIT = 8,   /* "waits" (count) and "wait" (ns): locks, calls, runtimes */
	WEFT__EXPORT_POLL = 16,  /* "polls" (count) and "poll" (ns): polls, by what their time was spent on */
	WEFT__EXPORT_ALL = 31,
};

struct weft__export_tag {
	const char *key;   /* "service", "env", "version", "host", "runtime-id", or the user's own */
	const char *value; /* NULL: left out */
};

/* Zero and NULL mean the default: everything, with names, as gzip. */
struct weft__export_opts {
	uint32_t what;           /* bits of enum weft__export_what; 0: all. What nothing was recorded of is left out. */
	uint64_t from_ns, to_ns; /* of the recording's time, from its start on; 0: no bound */
	const char *worker;      /* shell patterns, as of `weft report`; NULL: all */
	const char *location;
	const char *thread;
	const char *endpoint;
	const char *label;           /* "key=value" */
	uint64_t span;               /* as span or local root; 0: any */
	uint64_t trace_hi, trace_lo; /* 0 and 0: any */
	uint64_t min_poll_ns;        /* only polls of at least this length, and what is in them */
	uint64_t pid;                /* only recordings of this process; 0: all */
	const struct weft__export_tag *tags;
	size_t n_tags;
	bool plain;         /* not compressed */
	bool no_symbols;    /* only names that the segments have: files of programs are not read */
	bool series;        /* pprof: for stores that make a series of each set of labels, as Pyroscope does: names are
			     * letters, digits and '_', and of spans and traces there is only span_id */
	bool no_contexts;   /* no labels of spans and traces: far fewer rows where every request has its own */
	bool no_debuginfod; /* no server is asked for debug info, even when DEBUGINFOD_URLS is set */
	uint64_t max_bytes; /* of memory for what is summed; 0: 64 MiB. What does not fit is in one row that says so. */
	void (*progress)(void *data, uint64_t n_events, uint64_t total);
	void *progress_data;
};

struct weft__bytes {
	uint8_t *at;
	size_t n;
	uint64_t start_unix_ns, end_unix_ns; /* of what is in it; 0: not known */
	uint64_t n_rows;                     /* samples in it; 0: there was nothing of what was asked for */
	uint64_t n_dropped;                  /* rows of the recording that did not fit: in the sums, without stacks */
};

/* Each returns 0 or a negative error, with a message. `out` is written on success only. */

/* Profile of google/pprof, compressed by gzip unless opts->plain. */
int weft__export_pprof(struct weft__bytes *out, const char *const *paths, size_t n,
		       const struct weft__export_opts *opts, struct weft_error *err);
/* OTLP, as body of POST /v1development/profiles: ExportProfilesServiceRequest of opentelemetry-proto v1.10.0 (and
 * 1.11.0, which has the same fields). */
int weft__export_otlp(struct weft__bytes *out, const char *const *paths, size_t n, const struct weft__export_opts *opts,
		      struct weft_error *err);
/* Stacks as lines "outermost;...;leaf COUNT". The count is of one of opts->what, CPU time in ns by default. */
int weft__export_folded(struct weft__bytes *out, const char *const *paths, size_t n,
			const struct weft__export_opts *opts, struct weft_error *err);
/* Which package each mapped file is of, as JSON: {"v1":[{"kind","name","version","paths"}]}. Not compressed. */
int weft__export_provenance(struct weft__bytes *out, const char *const *paths, size_t n,
			    const struct weft__export_opts *opts, struct weft_error *err);
/* What is made of one look at the segments: reading and summing up is most of the work. */
enum weft__export_form {
	WEFT__FORM_PPROF,      /* weft__export_pprof() */
	WEFT__FORM_SERIES,     /* the same with opts->series */
	WEFT__FORM_OTLP,       /* weft__export_otlp() with opts->plain */
	WEFT__FORM_PROVENANCE, /* weft__export_provenance() */
	WEFT__FORMS,
};
/* Those of `forms`, bits by enum weft__export_form, into out[]; the others become empty. Names that were found out are
 * kept for the next call, bounded, until weft__export_forget(). One call at a time. */
int weft__export_forms(struct weft__bytes out[WEFT__FORMS], uint32_t forms, const char *const *paths, size_t n,
		       const struct weft__export_opts *opts, struct weft_error *err);
void weft__export_forget(void);
/* NULL and empty ones are allowed. */
void weft__export_free(struct weft__bytes *bytes);

/* What libweft-symbolize.so exports for record/ship: `dlsym(so, WEFT_EXPORT_ENTRY)`. */
#define WEFT_EXPORT_ABI 2
#define WEFT_EXPORT_FILE "libweft-symbolize.so"
#define WEFT_EXPORT_ENTRY "weft_export_plugin"

typedef int weft__export_fn(struct weft__bytes *out, const char *const *paths, size_t n,
			    const struct weft__export_opts *opts, struct weft_error *err);
struct weft_export_plugin {
	uint32_t abi;
	uint32_t opts_bytes; /* sizeof(struct weft__export_opts): both sides are of one build */
	weft__export_fn *pprof, *otlp, *folded, *provenance;
	int (*forms)(struct weft__bytes out[WEFT__FORMS], uint32_t forms, const char *const *paths, size_t n,
		     const struct weft__export_opts *opts, struct weft_error *err);
	void (*forget)(void);
	void (*free)(struct weft__bytes *bytes);
};
typedef const struct weft_export_plugin *weft_export_plugin_fn(void);

#endif
