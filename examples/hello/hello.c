/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a program does to be recorded: a loop, here with one worker, that says which task it runs and when. */
#include <stdio.h>
#include <weft/weft.h>

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
	struct weft_recorder *rec = NULL;
	struct weft_error err;
	uint64_t task;

	opts.dir = argc > 1 ? argv[1] : "hello-trace";
	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "hello: %s\n", err.msg);
		return 1;
	}
	weft_worker_enter(weft_runtime_add(WEFT_OPTIONS(weft_runtime_opts, .name = "hello"), NULL), 0, NULL);
	for (task = 1; task <= 100; task++) {
		weft_task_spawn(task, WEFT_HERE("say_hello"));
		weft_poll_begin(task, WEFT_DEPTH_UNKNOWN);
		printf("hello from task %d\n", (int)task);
		weft_poll_end();
		weft_task_end(task);
	}
	if (weft_recorder_close(rec, &err) < 0) {
		fprintf(stderr, "hello: %s\n", err.msg);
		return 1;
	}
	return 0;
}
