/* SPDX-License-Identifier: Apache-2.0 */
/* How long a poll or a wait was on the CPU. HOT, on the thread itself. account_hot.c says how. */
#ifndef WEFT_EVENT_ACCOUNT_H
#define WEFT_EVENT_ACCOUNT_H

#include <stdint.h>

struct ring_page;

/* Fields of poll_cpu and wait: each may be WEFT_NOT_MEASURED. */
struct weft__cpu_split {
	uint64_t cpu_ns;
	uint64_t ready_ns;  /* could have run, but had no CPU */
	uint64_t unsure_ns; /* in which it is not known how long it was on the CPU */
	/* poll_cpu: off the CPU in waits for locks and the like that are not reported by themselves */
	uint64_t waiting_ns;
};

/* CPU time that threads may take for readings between polls; they take from it, the collector adds to it
 * (collect/costs_events.c). */
struct weft__account_credit {
	_Alignas(64) int64_t ns;
};
extern struct weft__account_credit weft__account_credit;
#define WEFT__ACCOUNT_FREE INT64_MAX /* there is no limit */

/* A wait that lasted from `since` to `tick`: of one that is reported by itself, what it was spent on (`stayed`: it
 * never left the CPU); of a short one, a note that it left the CPU, and how long it did, in ns. */
void weft__account_wait(struct ring_page *ring, uint64_t since, uint64_t tick, int stayed, struct weft__cpu_split *ret);
uint64_t weft__account_short(uint64_t since, uint64_t tick, int is_call);
/* Whether the account goes beyond that end of a wait: of two that end at once the other was first, and since then the
 * detector says nothing of this one. */
int weft__account_is_past(uint64_t tick);
#define WEFT__SPLIT_FIELDS(split)                                                                                      \
	((uint64_t[WEFT_FIELDS_OF_POLL_CPU]){(split).cpu_ns, (split).ready_ns, (split).unsure_ns, (split).waiting_ns})
#define WEFT__SPLIT_UNKNOWN                                                                                            \
	((struct weft__cpu_split){WEFT_NOT_MEASURED, WEFT_NOT_MEASURED, WEFT_NOT_MEASURED, WEFT_NOT_MEASURED})
/* A poll begins in one that is open; the outermost has level 0. */
void weft__account_nested(struct ring_page *ring, uint32_t level, uint64_t tick);
/* The poll that began at `begin` (0, of one in another: not known) ends at `tick`. Answers 0 when it never left the
 * CPU. */
int weft__account_poll(struct ring_page *ring, uint32_t level, uint64_t begin, uint64_t tick,
		       struct weft__cpu_split *ret);
/* The same of one that left the CPU and is only counted: what comes later has to know. */
void weft__account_counted(struct ring_page *ring, uint32_t level, uint64_t begin, uint64_t tick);
/* Reads the CPU clock and the scheduler's counts. Answers 0 when the thread's wait for a CPU is not known. */
int weft__account_read(struct ring_page *ring, uint64_t tick, uint64_t *cpu_ns, uint64_t *ready_ns);

/* sched_hot.c. The time that the thread has waited for a CPU; 0: not known. The file that says so stays open for
 * threads that park, and from now on for one that `polls`; for others it is not read, or `once`. */
enum weft__sched_use { WEFT__SCHED_OPEN, WEFT__SCHED_POLLS, WEFT__SCHED_ONCE };
int weft__sched_ready(struct ring_page *ring, enum weft__sched_use use, uint64_t *ret);
/* The thread's CPU time and its wait for a CPU were read for another reason: recorded if they are due soon. */
void weft__sched_was_read(struct ring_page *ring, uint64_t tick, uint64_t cpu_ns, uint64_t wait_ns);

/* rseq.c. CALLER. Whether the kernel says when a thread leaves the CPU, and where; NULL, or why not. */
const char *weft__rseq_find(uint64_t *at, uint64_t *armed);

#endif
