/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the collector still: it asks a runtime for the length of its queue, and the answer takes as long as the test
 * likes. */
#ifndef WEFT_TEST_STALL_H
#define WEFT_TEST_STALL_H

#include "session.h"

static int stall_wanted, stall_there;

static uint64_t stall_queue(void *data)
{
	(void)data;
	__atomic_store_n(&stall_there, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&stall_wanted, __ATOMIC_ACQUIRE))
		session_sleep_ns(MS / 10);
	__atomic_store_n(&stall_there, 0, __ATOMIC_RELEASE);
	return 0;
}

static int stall_runtime;

/* From here on the collector drains nothing. Needs a recorder that records. */
static inline void stall_begin(void)
{
	struct weft_runtime_opts opts = {sizeof(opts), "stall", NULL, stall_queue, NULL};

	__atomic_store_n(&stall_wanted, 1, __ATOMIC_RELEASE);
	stall_runtime = weft_runtime_add(&opts, NULL);
	CHECK(stall_runtime > 0);
	CHECK(WAIT_FOR(__atomic_load_n(&stall_there, __ATOMIC_ACQUIRE)));
}

static inline void stall_end(void)
{
	__atomic_store_n(&stall_wanted, 0, __ATOMIC_RELEASE);
	CHECK_EQ(weft_runtime_del(stall_runtime), 0);
}

#endif
