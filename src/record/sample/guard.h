/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what was missed while another handler had the signal. CALLER and COLLECTOR, under the engine's lock. */
#ifndef WEFT_SAMPLE_GUARD_H
#define WEFT_SAMPLE_GUARD_H

#include "weft/segment.h"

void weft__guard_open(void);
/* What the process has used of the CPU, without our own threads; about that, where many threads make it dear. */
uint64_t weft__guard_program(void);
uint64_t weft__guard_program_about(uint64_t now_ns);
/* The signal is ours, at this moment, when the program has used that. */
void weft__guard_good(uint64_t program_ns);
/* CALLER and COLLECTOR, under the engine's lock. Sampling begins, or ends: for weft__engine_cpu. */
void weft__guard_run(int on);
/* It is not: about how many samples there would have been since it was. */
void weft__guard_lost(void);
/* Without the lock. Whether there is something to report. */
int weft__guard_any(void);
/* 1: there is, once. */
int weft__guard_loss(struct weft_loss *ret);

#endif
