/* SPDX-License-Identifier: Apache-2.0 */
/* What weft report says about CPU samples: golden text and JSON of a recording of two segments whose figures are worked out
 * by hand. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../analyze/code.h"
#include "../analyze/segfile.h"
#include "weft/recorder.h"

#define MS 1000000u
#define AT(ms) (SEGFILE_MONO + (ms)*MS)
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER

/* Worker demo/1 polls `echo` from 10 to 62 ms, across the border of the segments: 41 ms of CPU in three samples. Worker
 * demo/0 polls `accept` twice, shortly, with one sample of 10 ms in a poll of 4, and is sampled in between and parked. Thread io
 * never polls. */
static const struct segfile_event before[] = {
	EV(AT(1), 1, SPAWN, 1, 1),
	EV(AT(1), 1, SPAWN, 2, 2),
	EV(AT(5), 1, POLL_BEGIN, 1, 0),
	EV(AT(8), 1, SAMPLE, SAMPLE_OF(4, 10)),
	EV(AT(9), 1, POLL_END),
	EV(AT(12), 1, SAMPLE, SAMPLE_OF(5, 10)),
	EV(AT(14), 1, PARK, 0),
	EV(AT(16), 1, SAMPLE, SAMPLE_OF(5, 9)),
	EV(AT(10), 2, POLL_BEGIN, 2, 3),
	EV(AT(20), 2, SAMPLE, SAMPLE_OF(1, 20)),
	EV(AT(30), 2, SAMPLE, SAMPLE_OF(2, 10)),
};
static const struct segfile_event after[] = {
	EV(AT(50), 1, UNPARK, 0),
	EV(AT(52), 1, POLL_BEGIN, 1, 0),
	EV(AT(54), 1, POLL_END),
	EV(AT(40), 2, SAMPLE, SAMPLE_OF(3, 11)),
	EV(AT(62), 2, POLL_END),
	EV(AT(70), 3, SAMPLE, SAMPLE_OF(6, 30)),
};
static const struct segfile first = {5, 0, "4242", before, 11, NULL, 0, 0};
static const struct weft_loss losses[] = {{WEFT_LOSS_SAMPLE, 2, 3, AT(63), AT(64)},
					  {WEFT_LOSS_UNCOVERED, 0, 2, AT(63), AT(64)}};
static const struct segfile second = {5, 1, "4242", after, 6, losses, 2, 0};
static const char *const names[] = {"0.weft", "1.weft", NULL};

static char dir[256], out[262144];

static void define_code(struct weft__defs *defs, const struct segfile *file)
{
	(void)file;
	weft__defs_fact(defs, "sample.hz", "100");
	weft__defs_fact(defs, "sample.engine", "timer");
	weft__defs_fact(defs, "sample.why", "auto: 100 Hz is below the tick rate");
	code_define(defs);
	CODE_DEFINE_STACK(defs, 1, WEFT_STACK_COMPLETE, code_app(F_MATCH), code_app(F_DEFLATE), code_app(F_UPLOAD),
			  code_app(F_LOOP), code_app(F_MAIN), code_app(F_START));
	CODE_DEFINE_STACK(defs, 2, WEFT_STACK_COMPLETE, code_app(F_DEFLATE), code_app(F_UPLOAD), code_app(F_LOOP),
			  code_app(F_MAIN), code_app(F_START));
	CODE_DEFINE_STACK(defs, 3, WEFT_STACK_COMPLETE, code_app(F_CRC), code_app(F_UPLOAD), code_app(F_LOOP),
			  code_app(F_MAIN), code_app(F_START));
	CODE_DEFINE_STACK(defs, 4, WEFT_STACK_CUT, code_app(F_OUTER), code_app(F_LOOP));
	CODE_DEFINE_STACK(defs, 5, WEFT_STACK_COMPLETE | WEFT_STACK_FP, code_app(F_LOOP), code_app(F_MAIN),
			  code_app(F_START));
	CODE_DEFINE_STACK(defs, 6, WEFT_STACK_LOST, code_lib(0x4f20));
}

/* Runs `weft ARGUMENTS` in the directory of the test, both outputs in `out`. Answers its exit status, or -1 when a signal
 * ended it. */
static int run(const char *fmt, ...)
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

static bool begin(void)
{
	const char *build = getenv("WEFT_BUILD");
	char path[1024];

	snprintf(path, sizeof(path), "%s/weft", build ? build : "");
	if (!build || access(path, X_OK) != 0)
		return false;
	segfile_more = define_code;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&first, segfile_path(dir, "0.weft"));
	segfile_write(&second, segfile_path(dir, "1.weft"));
	segfile_more = NULL;
	return true;
}

#define BEGIN                                                                                                          \
	if (!begin())                                                                                                  \
	SKIP("there is no weft command in $WEFT_BUILD")

static bool says(const char *text)
{
	if (strstr(out, text))
		return true;
	printf("\tnot found: %s\n\tin: %s\n", text, out);
	return false;
}
TEST(show)
{
	BEGIN;
	CHECK_EQ(run("report ."), 0);
	fputs(out, stdout);
	CHECK_EQ(run("report --json . "), 0);
	fputs(out, stdout);
	says("");
	segfile_remove(dir, names);
}
