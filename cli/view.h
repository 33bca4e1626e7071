/* SPDX-License-Identifier: Apache-2.0 */
/* weft view: a page about segments, served on 127.0.0.1 (view_server.c) or written to one file (view_html.c). Both have
 * the segments from view_files.c and names of functions from view_names.c. */
#ifndef WEFT_CLI_VIEW_H
#define WEFT_CLI_VIEW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/intern.h"
#include "view_bundle.h"

/* A segment that the command line names, or that lies in a directory that it names. Its place in the list stays. */
struct view_segment {
	char *path;
	const char *name; /* of the file */
	uint64_t bytes, device, inode, changed_ns;
	uint64_t events, first_ns, last_ns;
	bool there, was_there; /* now, and when it was looked before */
	bool named;            /* by the command line, perhaps by a link; else it lies in a directory */
	bool readable;         /* as a segment */
	bool live;             /* a living process writes it */
};

struct view_files {
	char **paths;
	int n_paths;
	struct view_segment *at;
	size_t n, cap;
	struct weft__intern by_path; /* numbers from 1 */
	uint64_t turns;              /* changes when anything does */
	pthread_mutex_t lock;
};

/* Looks what is there now. 0, or -ENOMEM. */
int view_files_look(struct view_files *files);
/* The list as JSON, as viewer/src/engine/source.ts has it (Manifest). */
int view_files_json(struct view_files *files, FILE *out);
/* A descriptor of a segment of the list and how much of it is given, or a negative error. Of a file that is no segment
 * that is its beginning, from which the page says what is wrong with it. */
int view_files_open(struct view_files *files, size_t index, uint64_t *bytes);
void view_files_fini(struct view_files *files);

/* Names that segments do not have, in the format of viewer/wasm/names.c. 0 or a negative error. */
int view_names_write(struct view_files *files, FILE *out);

/* A file of the bundle, or NULL. */
const struct view_file *view_bundle_find(const char *name);
/* Its content, for free(); NULL: out of memory. */
char *view_bundle_plain(const struct view_file *file);

/* view_request.c: whether a request may be answered, by what it says; nothing of it is trusted. */
#define VIEW_TOKEN 32 /* hex digits */
enum view_verdict { VIEW_ALLOWED, VIEW_BAD_HOST, VIEW_BAD_ORIGIN, VIEW_BAD_TOKEN };
struct view_request {
	const char *path, *host, *origin; /* host and origin: NULL when not there */
};
/* `*rest` is what is behind the token and a slash. */
enum view_verdict view_request_judge(const struct view_request *request, const char *token, unsigned port,
				     const char **rest);
/* "bytes=A-B", "bytes=A-" or "bytes=-N" of a file: 1 with what is asked for, 0 when there is no such header or it is to
 * be ignored, -1 when it cannot be satisfied. */
int view_request_range(const char *range, uint64_t size, uint64_t *from, uint64_t *bytes);
/* "file/12" as 12; false: it is none. */
bool view_request_file(const char *rest, uint64_t *index);

/* view_query.c: SQL over the segments. */
#define VIEW_SQL_BYTES 65536 /* of a statement */
struct view_query;
struct view_query *view_query_new(struct view_files *files); /* NULL: out of memory */
/* Writes {columns, rows, truncated}, or {error, offset} when the statement is wrong or refused, or takes too long. 0,
 * -EBUSY while another statement runs, or -ENOMEM. Any thread may call it. */
int view_query_run(struct view_query *query, const char *sql, FILE *out);
void view_query_end(struct view_query *query); /* what runs stops soon; any thread */
void view_query_free(struct view_query *query);
/* The saved questions of weft query: [{name, what, sql}]. */
void view_query_saved(FILE *out);

/* view_server.c. Serves until a signal asks for the end. Answers an exit status. */
struct view_server_opts {
	struct view_files *files;
	unsigned port; /* 0: any */
	bool open;     /* the browser */
};
int view_serve(const struct view_server_opts *opts);

/* view_browser.c. Opens the address in the browser, where there is a display. The address has the token, and what a
 * program is started with can be read by all users: so the browser is given a file of this user's that leads there. */
struct view_browser {
	int fd; /* of the directory of the file; -1: there is none */
	char file[64];
	int parent;    /* of a directory that was made for the file; -1: none was */
	char made[32]; /* its name there, which is to be removed; "": none */
};
void view_browser_open(struct view_browser *browser, const char *url);
void view_browser_close(struct view_browser *browser);

/* view_html.c. Answers an exit status. */
int view_write_html(struct view_files *files, const char *path);

#endif
