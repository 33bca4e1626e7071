/* SPDX-License-Identifier: Apache-2.0 */
/* Perf events beside timers, thread by thread.
 *
 * A CPU-time timer is looked at when the kernel's tick comes, so its samples are in step with the tick. Work that is
 * in step with it, too (a task every 20 ms), is always met at the same place, or never. A perf event comes when its
 * time is up, but costs a microsecond or more at each context switch of its thread. So a thread whose switches are
 * few for what it computes has both: the event gives samples of its own code, the timer those of system calls, which
 * events leave out (perf_hot.c), and each stands for the CPU time since the one before. All other threads have the
 * timer alone. Which thread is which is looked at a few times a second. */
#ifndef WEFT_SAMPLE_PRECISE_H
#define WEFT_SAMPLE_PRECISE_H

#include <signal.h>
#include <stdint.h>

#include "record/sample/state.h"

/* CALLER, at open: whether such events can be had; `why` not. budget_ppm: as in the options. */
int weft__precise_probe(uint64_t budget_ppm, char *why, size_t bytes);
void weft__precise_none(void);
/* Any context. Whether they may be used. */
int weft__precise_on(void);
/* CALLER, when the engine starts. */
void weft__precise_start(void);
/* On the thread that has the files (weft__collector_switches): closes all of them, and opens no more. */
void weft__precise_stop(void);
/* In the child of a fork. */
void weft__precise_forked(void);
/* COLLECTOR, under the engine's lock. Answers when it wants to be called next. */
uint64_t weft__precise_look(uint64_t now_ns);
/* COLLECTOR. The period is another one. */
void weft__precise_pace(void);
/* CALLER and COLLECTOR. The thread's timer is all that it has from now on. */
void weft__precise_drop(struct weft__slot *slot);

/* HOT. What a signal of such an event stands for; of the timer of a thread that has such an event; and what of
 * before is still to be counted by the timer of one that had. */
void weft__precise_match(const siginfo_t *info, struct weft__hit *hit);
void weft__precise_ridden(struct weft__hit *hit);
uint64_t weft__precise_owed(struct weft__slot *slot);

/* COLLECTOR. CPU time and context switches of threads while they had an event, so far. */
void weft__precise_counts(uint64_t *cpu_ns, uint64_t *switches);

/* How a thread is: what it used and how often it was switched since the last look, of how long. */
struct weft__precise_seen {
	uint64_t cpu_ns, switches;
	uint64_t span_ns;
	int has; /* an event */
};
/* Whether it should have an event. others_ns: what the events of others add to context switches, in a second;
 * allowed_ns: what all of them may. */
int weft__precise_fits(const struct weft__precise_seen *seen, uint32_t switch_ns, double others_ns, double allowed_ns);

#endif
