/* SPDX-License-Identifier: Apache-2.0 */
/* Where `weft run` finds the program and the library it puts into it. */
#ifndef WEFT_CLI_RUN_H
#define WEFT_CLI_RUN_H

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

#endif
