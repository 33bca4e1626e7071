/* SPDX-License-Identifier: Apache-2.0 */
/* Arms the detector of weft/ring.h, which says whether the calling thread has left the CPU since. HOT. */
#ifndef WEFT_EVENT_DETECTOR_H
#define WEFT_EVENT_DETECTOR_H

#include <stdint.h>

#include "base/atomic.h"
#include "weft/event.h"

static inline void weft__detector_arm(uint64_t word)
{
	uint64_t at = load_relaxed(&weft_gate.rseq_at);

#if defined(__x86_64__)
	__asm__ volatile("movq %0, %%fs:(%1)" : : "r"(word), "r"(at) : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mrs x9, tpidr_el0\n\tstr %0, [x9, %1]" : : "r"(word), "r"(at) : "x9", "memory");
#else
	(void)word, (void)at;
#endif
}

#endif
