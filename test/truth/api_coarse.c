/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime with libweft that polls far more often than the budget allows to record: short polls are counted, to the
 * last one, and the long ones among them are whole. */
#include "truth.h"
#include <weft/weft.h>

static long long polls;

static void park(int64_t ns)
{
	weft_park(0);
	truth_nap(ns);
	weft_unpark(0);
}

static void flood(int n)
{
	for (int i = 0; i < n; i++, polls++) {
		weft_wake((uint64_t)i % 500, WEFT_WORKER_NONE);
		weft_poll_begin((uint64_t)i % 500, 1);
		weft_poll_end();
		if (i % 300 == 299) /* so that no ring is full on a busy machine */
			park(MS / 4);
	}
}

static void long_poll(uint64_t task)
{
	struct truth_poll *poll;

	polls++;
	weft_poll_begin(task, WEFT_DEPTH_UNKNOWN);
	poll = truth_begin("long");
	truth_burn(50 * MS);
	truth_end(poll);
	weft_poll_end();
}

int main(void)
{
	struct weft_runtime_opts loop = {.size = sizeof(loop), .name = "truth"};
	struct weft_recorder *rec = NULL;
	int64_t until = truth_wall() + 30000 * MS;
	struct weft_error err;

	if (weft_recorder_open_env(&rec, NULL, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	weft_worker_enter(weft_runtime_add(&loop, NULL), 0, NULL);
	while (!(weft_gate_on() & WEFT_GATE_SLOW) && truth_wall() < until)
		flood(3000);
	for (int i = 0; i < 6; i++) {
		flood(21000);
		park(12 * MS);
		long_poll(1000 + (uint64_t)i);
	}
	truth_note("\"polls_counted\": %lld", polls);
	truth_print();
	return weft_recorder_close(rec, NULL) < 0;
}
