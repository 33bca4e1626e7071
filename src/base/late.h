/* SPDX-License-Identifier: Apache-2.0 */
/* What the preload library finds out while it records, behind the recorder's public headers: what a descriptor is, and
 * what of the program cannot be seen. Both pointers are set before the recorder is opened, or stay NULL. */
#ifndef WEFT_BASE_LATE_H
#define WEFT_BASE_LATE_H

#include <stddef.h>
#include <stdint.h>

/* HOT; record/wait/wait_hot.c. A call of the calling thread is over, and was about `fd`: what that is, as the id of
 * a string; 0: not known. */
extern uint32_t (*weft__late_describe)(uint32_t name, int fd);
/* COLLECTOR, once a second or so, and CALLER at stop: defines such strings, and looks for what cannot be seen. */
extern void (*weft__late_tend)(void);

/* Any thread, not in handlers; record/event/registry.c. Ids of `n` strings that may be in events now and are defined
 * later, for texts that are met where nothing can be allocated; the first of them, or 0. */
uint32_t weft__late_strings(uint32_t n);
/* The text of one of them, once. 0 or -errno. */
int weft__late_string(uint32_t id, const char *text);

/* Any thread, not in handlers. What readers are to know of the program's loops (degraded.loops); "" when there is
 * nothing. Readers copy it, and see by the number whether it is another. */
void weft__late_note(const char *text);
uint32_t weft__late_noted(char *to, size_t bytes);

/* CALLER. When the recorder is opened: how long the process had lived and what CPU time it had used; 0: since it
 * began. */
extern uint64_t weft__late_start_ns, weft__late_start_cpu_ns;
/* A child of fork does not begin again by itself: the preload library does so later, by weft__recorder_restart. */
extern int weft__late_restarts;
/* The thread that starts the recorder, which is ours; 0: there is none any more. */
extern uint32_t weft__late_tid;
/* From that thread, when the recorder is started and nobody waits for it; record/tables/tables.c. Waits for a moment
 * until stacks can be unwound. */
void weft__tables_started(void);

#endif
