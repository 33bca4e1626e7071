/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the weft command that was built beside a test, in the test's directory. */
#ifndef WEFT_TEST_COMMAND_H
#define WEFT_TEST_COMMAND_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft_test.h"

static char dir[256], out[262144];

/* Runs `weft ARGUMENTS`, both outputs in `out`. Answers its exit status, or -1 when a signal ended it. */
__attribute__((format(printf, 1, 2))) static inline int run(const char *fmt, ...)
{
	char arguments[512], command[2048];
	va_list args;
	size_t n;
	FILE *pipe;
	int status;

	va_start(args, fmt);
	vsnprintf(arguments, sizeof(arguments), fmt, args);
	va_end(args);
	snprintf(command, sizeof(command), "cd '%s' && { '%s/weft' %s; } 2>&1", dir, getenv("WEFT_BUILD"), arguments);
	pipe = popen(command, "r");
	if (!CHECK(pipe != NULL))
		return -1;
	n = fread(out, 1, sizeof(out) - 1, pipe);
	out[n] = 0;
	status = pclose(pipe);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Whether there is a command to run. */
static inline bool command_there(void)
{
	const char *build = getenv("WEFT_BUILD");
	char path[1024];

	snprintf(path, sizeof(path), "%s/weft", build ? build : "");
	return build && access(path, X_OK) == 0;
}

static inline bool says(const char *text)
{
	if (strstr(out, text))
		return true;
	printf("\tnot found: %s\n\tin: %s\n", text, out);
	return false;
}

#endif
