/* SPDX-License-Identifier: Apache-2.0 */
/* Where `weft run` finds the program and the library it puts into it, and the directory it records into. */
#ifndef WEFT_CLI_RUN_H
#define WEFT_CLI_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/own.h"

/* Beside those of the program; as env(1), nohup(1) and timeout(1) have them. */
enum run_exit {
	RUN_FAILED = 125,
	RUN_CANNOT = 126,
	RUN_NOT_FOUND = 127,
};

/* The file that COMMAND means, as a shell finds it, into `file` of PATH_MAX bytes. 0, or an exit code after saying
 * why it cannot be run or recorded. */
int run_find(const char *command, char *file);

/* The path of libweft-preload.so, likewise. */
int run_find_library(char *path);

/* run_dir.c: the directory of the recording, by its descriptor. */
struct run_dir {
	char path[PATH_MAX]; /* absolute: the program may change its directory */
	int fd;              /* O_PATH */
	struct weft__own own;
	int parent;    /* of a temporary one; -1: it is kept */
	char name[24]; /* there */
};
/* PATH; or, without it, weft-KEPT-PID here; without both a temporary one. 0, or CLI_FAILED after saying why. */
int run_dir_make(struct run_dir *dir, const char *path, const char *kept);
/* Whether its path still leads to it. */
bool run_dir_same(const struct run_dir *dir);
/* Whether there is a name that ends so. */
bool run_dir_has(const struct run_dir *dir, const char *end);
/* How many processes still record there, by the links to their rings; which ones: "12, 15". */
size_t run_dir_still(const struct run_dir *dir, char *pids, size_t bytes);
/* A temporary one, with all that is in it; follows no links. */
void run_dir_remove(const struct run_dir *dir);

/* run_short.c: processes that end before weft starts in them. They write to a file, which they do not make, and
 * children of fork to a page (base/short.h): without these they are not counted. */
void run_short_open(const struct run_dir *dir);
/* In the child that will be the program: where the page is, of the process SELF. */
void run_short_environment(pid_t self);
/* run_ruby.c: has Ruby load the gem, if it is installed. */
void run_ruby_environment(void);
/* The program has ended: what is in the page goes to the file. */
void run_short_close(const struct run_dir *dir);
/* Whether the file says anything. */
bool run_short_any(const struct run_dir *dir);

#endif
