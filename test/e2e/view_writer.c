/* SPDX-License-Identifier: Apache-2.0 */
/* Records for tests of weft view: view_writer DIR SECONDS. Names are what a page must not run or show as anything but
 * text. A poll of 5 ms every 20 ms; prints "ready" once it records. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "weft/weft.h"

#define SCRIPT "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void burn(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts)};
	struct weft_runtime_opts runtime = {.size = sizeof(runtime), .name = SCRIPT};
	struct weft_context context = {.span = 0x1234};
	struct timespec rest = {0, 15000000};
	struct weft_recorder *recorder = NULL;
	struct weft_error err = {0};
	const char *const labels[] = {"tenant=<b>acme</b>", "kind=job", NULL};
	uint64_t end_ns, task = 1;
	uint32_t location;

	if (argc != 3)
		return 2;
	opts.dir = argv[1];
	if (weft_recorder_open(&recorder, &opts, &err) < 0 || weft_recorder_start(recorder, &err) < 0) {
		fprintf(stderr, "view_writer: %s\n", err.msg);
		return 1;
	}
	context.endpoint = weft_string("\"><svg onload=document.title='owned'>");
	context.labels = weft_labels(labels, NULL);
	location = weft_location("<b>job</b>&amp;" SCRIPT, "<i>file</i>.c", 7);
	weft_worker_enter(weft_runtime_add(&runtime, NULL), 0, NULL);
	puts("ready");
	fflush(stdout);
	for (end_ns = now_ns() + (uint64_t)(atof(argv[2]) * 1e9); now_ns() < end_ns; task++) {
		weft_task_spawn(task, location);
		weft_wake(task, 0);
		weft_poll_begin(task, 0);
		weft_context_set(&context);
		burn(5000000);
		weft_context_clear();
		weft_poll_end();
		weft_task_end(task);
		nanosleep(&rest, NULL);
	}
	return weft_recorder_close(recorder, NULL) < 0;
}
