/* SPDX-License-Identifier: Apache-2.0 */
/* Off-CPU sampling: from the moments at which a thread got and left the CPU, samples of the time in which it had
 * none, as many a second as a sampler of its CPU time takes. Sleeps are summed, however short; each time the sum
 * passes a multiple of the interval, that is a sample. Nothing here allocates or knows files: it serves analysis and
 * a live recorder alike.
 *
 *     struct weft__offcpu thread = {.interval_ns = 10000000};
 *     weft__offcpu_out(&thread, t0);
 *     if (weft__offcpu_in(&thread, t1, &group))
 *             group.count samples between group.begin_ns and group.end_ns */
#ifndef WEFT_ANALYZE_OFFCPU_H
#define WEFT_ANALYZE_OFFCPU_H

#include <stdbool.h>
#include <stdint.h>

enum weft__offcpu_state { OFFCPU_UNKNOWN, OFFCPU_ON, OFFCPU_OFF };

/* One thread. Zero but for the interval, to begin with. */
struct weft__offcpu {
	uint64_t interval_ns;
	enum weft__offcpu_state state;
	uint64_t since_ns; /* on: time up to here is in on_ns; off: when it left */
	uint64_t on_ns;    /* CPU time that no sample has claimed */
	uint64_t off_ns;   /* time without CPU that is in no group: less than the interval */
};

struct weft__offcpu_group {
	uint64_t begin_ns; /* of the first sample, */
	uint64_t end_ns;   /* and of the last */
	uint64_t count;    /* samples, each of the interval's weight */
	uint64_t cpu_ns;   /* CPU time before it that no other sample has claimed */
};

/* Times do not fall; one that does counts as the one before. What does not fit, such as leaving twice, changes
 * nothing. */

/* The thread left the CPU. */
void weft__offcpu_out(struct weft__offcpu *thread, uint64_t now_ns);
/* The thread got the CPU. True when that made a group. */
bool weft__offcpu_in(struct weft__offcpu *thread, uint64_t now_ns, struct weft__offcpu_group *group);
/* The thread was off the CPU in a wait, which is counted by itself: only the CPU time before that counts here. */
void weft__offcpu_waited(struct weft__offcpu *thread, uint64_t begin_ns, uint64_t end_ns);
/* A sample of the thread on the CPU, which says that it got it if that was not known: true when that made a group.
 * *cpu_ns is the CPU time that the sample claims. */
bool weft__offcpu_sample(struct weft__offcpu *thread, uint64_t now_ns, struct weft__offcpu_group *group,
			 uint64_t *cpu_ns);

#endif
