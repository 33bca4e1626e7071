/* SPDX-License-Identifier: Apache-2.0 */
/* Where `weft run` finds the program and the library it puts into it. */
#ifndef WEFT_CLI_RUN_H
#define WEFT_CLI_RUN_H

#include <sys/types.h>

/* Beside those of the program; as env(1), nohup(1) and timeout(1) have them. */
enum run_exit {
	RUN_FAILED = 125,
	RUN_CANNOT = 126,
	RUN_NOT_FOUND = 127,
};

/* The file that COMMAND means, as a shell finds it, into `file` of PATH_MAX bytes. 0, or an exit code after saying why it cannot
 * be run or recorded. */
int run_find(const char *command, char *file);

/* The path of libweft-preload.so, likewise. */
int run_find_library(char *path);

/* run_short.c: processes that end before weft starts in them. They write to a file, which they do not make, and children of fork to a page
 * (base/short.h): without these they are not counted. */
void run_short_open(const char *dir);
/* In the child that will be the program: where the page is, of the process SELF. */
void run_short_environment(pid_t self);
/* The program has ended: what is in the page goes to the file. */
void run_short_close(const char *dir);

#endif
