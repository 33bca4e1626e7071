/* SPDX-License-Identifier: Apache-2.0 */
/* A program for otel.py: it does what the lines on its standard input say and answers each with one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft/weft.h"

static void set_context(const char *label)
{
	const char *labels[] = {label, "tenant=blue", NULL};
	struct weft_context context = {
		.trace_hi = UINT64_C(0x0102030405060708),
		.trace_lo = UINT64_C(0x090a0b0c0d0e0f10),
		.span = UINT64_C(0x1112131415161718),
		.root = UINT64_C(0x2122232425262728),
		.endpoint = weft_endpoint("GET /users/:id"),
		.labels = weft_labels(labels, NULL),
		.flags = 1,
	};

	weft_context_set(&context);
}

/* The child answers instead of its parent, which waits for it. */
static int in_child(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid)
		return 1;
	waitpid(pid, &status, 0);
	return 0;
}

int main(void)
{
	static const char *const labels[] = {"deployment.environment.name=test", "service.version=1.2", NULL};
	struct weft_recorder_opts opts = {
		.size = sizeof(opts),
		.name = "shop",
		.labels = labels,
		.on_fork = WEFT_FORK_RESTART,
		.sample_hz = WEFT_OFF,
	};
	struct weft_recorder *rec;
	struct weft_error err;
	char line[256];

	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0); /* so that a child reads on where its parent was */
	for (;;) {
		printf("%d\n", (int)getpid());
		if (!fgets(line, sizeof(line), stdin))
			break;
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "set ", 4))
			set_context(line + 4);
		else if (!strcmp(line, "clear"))
			weft_context_clear();
		else if (!strcmp(line, "close"))
			weft_recorder_close(rec, NULL), rec = NULL;
		else if (!strcmp(line, "fork") && !in_child())
			continue;
		else if (!strcmp(line, "quit"))
			break;
	}
	weft_recorder_close(rec, NULL);
	return 0;
}
