/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread/thread.h"
#include "weft/event.h"

struct weft__own_threads weft__own_threads;
int weft__threads_announced;

uint32_t weft__random(uint32_t below)
{
	static uint64_t state;
	uint64_t v = __atomic_add_fetch(&state, weft_tick(1) | 1, __ATOMIC_RELAXED);

	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	v ^= v >> 31;
	return below ? (uint32_t)((v >> 32) * below >> 32) : 0;
}
