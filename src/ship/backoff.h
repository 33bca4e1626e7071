/* SPDX-License-Identifier: Apache-2.0 */
/* When a target that failed is tried again: after a second, then after twice as long each time, up to five minutes,
 * and later by chance, so that many processes do not come at the same moment. What the target asks for (Retry-After)
 * is obeyed, up to an hour. After BACKOFF_BREAKS failures in a row the circuit is open: nothing but one try at a time
 * goes there until one succeeds. Clock and randomness are the caller's. */
#ifndef WEFT_SHIP_BACKOFF_H
#define WEFT_SHIP_BACKOFF_H

#include <stdint.h>

#define BACKOFF_FIRST_NS UINT64_C(1000000000)
#define BACKOFF_MOST_NS (300 * UINT64_C(1000000000))
#define BACKOFF_ASKED_MOST_NS (3600 * UINT64_C(1000000000))
#define BACKOFF_BREAKS 5

struct weft__backoff {
	uint32_t failures; /* in a row */
	uint64_t until_ns; /* not before */
	uint64_t random;   /* state of the generator; any start */
};

/* Answers when to try again. */
static inline uint64_t weft__backoff_fail(struct weft__backoff *b, uint64_t now_ns, uint64_t asked_ns)
{
	uint64_t wait = b->failures < 20 ? BACKOFF_FIRST_NS << b->failures : BACKOFF_MOST_NS;

	if (wait > BACKOFF_MOST_NS)
		wait = BACKOFF_MOST_NS;
	b->failures++;
	b->random = b->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	wait = wait / 2 + (b->random >> 33) % (wait / 2 + 1);
	if (asked_ns > BACKOFF_ASKED_MOST_NS)
		asked_ns = BACKOFF_ASKED_MOST_NS;
	if (wait < asked_ns)
		wait = asked_ns;
	b->until_ns = now_ns + wait;
	return b->until_ns;
}

static inline void weft__backoff_good(struct weft__backoff *b)
{
	b->failures = 0;
	b->until_ns = 0;
}

static inline int weft__backoff_open(const struct weft__backoff *b)
{
	return b->failures >= BACKOFF_BREAKS;
}

#endif
