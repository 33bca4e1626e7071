/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the kernel says when a thread leaves the CPU is tried out, and the answer does not depend on luck. */
#include "record/event/account.h"
#include "weft_test.h"

#define TRIES 3000 /* a sleep of 1 ns does not leave the CPU once in 1,600 times */

TEST(a_sleep_that_ends_at_once_is_no_reason_to_say_that_there_is_no_detector)
{
	uint64_t at, armed;
	const char *why = NULL;
	int i, found = 0;

	for (i = 0; i < TRIES; i++) {
		const char *one = weft__rseq_find(&at, &armed);

		found += one == NULL;
		why = one ? one : why;
	}
	if (!found)
		SKIP(why);
	CHECK_EQ(found, TRIES);
}
