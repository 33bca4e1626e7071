/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime with libweft: polls that compute and sleep, parks between them; polls in polls; two workers; and polls
 * that only block, which wall samples catch. */
/* run: api_polls plain */
/* run: api_nested nested */
/* run: api_two_workers workers */
/* run: api_caught_blocked caught */
/* run: api_slow_mode slow */
#include "truth.h"
#include <pthread.h>
#include <weft/weft.h>

static const char *how;
static int runtime;

static int is(const char *name)
{
	return !strcmp(how, name);
}

static void one_poll(uint64_t task)
{
	struct truth_poll *poll, *inner;

	weft_task_spawn(task, WEFT_HERE("one_poll"));
	weft_poll_begin(task, WEFT_DEPTH_UNKNOWN);
	poll = truth_begin(how);
	truth_burn(is("caught") ? MS / 10 : 3 * MS);
	if (is("nested")) {
		weft_poll_begin(task + 1000, WEFT_DEPTH_UNKNOWN);
		inner = truth_begin("inner");
		truth_burn(2 * MS);
		truth_nap(4 * MS);
		truth_end(inner);
		weft_poll_end();
	}
	truth_nap(is("caught") ? 400 * MS : is("slow") ? 40 * MS : 5 * MS);
	truth_end(poll);
	weft_poll_end();
	weft_task_end(task);
}

static void *worker(void *arg)
{
	int index = (int)(intptr_t)arg, i;

	weft_worker_enter(runtime, index, NULL);
	for (i = 0; i < (is("caught") ? 3 : 8); i++) {
		one_poll((uint64_t)(1 + i + 100 * index));
		weft_park(0);
		truth_nap(MS);
		weft_unpark(0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct weft_runtime_opts loop = {.size = sizeof(loop), .name = "truth"};
	struct weft_recorder *rec = NULL;
	struct weft_error err;
	pthread_t thread;

	how = argc > 1 ? argv[1] : "plain";
	if (is("caught") || is("slow"))
		setenv("WEFT_POLLS", how, 1);
	if (is("caught"))
		setenv("WEFT_WALL_HZ", "10", 1);
	if (weft_recorder_open_env(&rec, NULL, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	runtime = weft_runtime_add(&loop, NULL);
	if (is("workers"))
		pthread_create(&thread, NULL, worker, (void *)1);
	worker(NULL);
	if (is("workers"))
		pthread_join(thread, NULL);
	truth_print();
	return weft_recorder_close(rec, NULL) < 0;
}
