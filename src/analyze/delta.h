/* SPDX-License-Identifier: Apache-2.0 */
/* The two times that belong to a sample of a thread: the CPU time that it stands for, which is its weight, and the
 * time that has passed since the thread's sample before it, of which the CPU time is a part. Nothing here allocates
 * or knows files.
 *
 *     struct weft__delta thread = {0};
 *     weft__delta_from(&thread, thread_begin_ns);
 *     wall_ns = weft__delta_sample(&thread, sample_ns); */
#ifndef WEFT_ANALYZE_DELTA_H
#define WEFT_ANALYZE_DELTA_H

#include <stdbool.h>
#include <stdint.h>

/* One thread; zero to begin with. */
struct weft__delta {
	uint64_t since_ns;
	bool known;
};

/* The thread's time counts from here on: it began, or events were missing up to now. */
void weft__delta_from(struct weft__delta *thread, uint64_t now_ns);
/* A sample. Answers the time since the one before, or since weft__delta_from when that was later; 0 for the first of
 * a thread of which no begin is known. Times do not fall; one that does counts as the one before. */
uint64_t weft__delta_sample(struct weft__delta *thread, uint64_t now_ns);

#endif
