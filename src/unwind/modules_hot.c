/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomic.h"
#include "unwind/modules_state.h"

struct weft__modules_now weft__modules_now __attribute__((aligned(64)));

const struct weft__modules *weft__modules_enter(uint32_t *visit)
{
	*visit = load_relaxed(&weft__modules_now.phase);
	__atomic_fetch_add(&weft__modules_now.readers[*visit], 1, __ATOMIC_SEQ_CST);
	return load_seq_cst(&weft__modules_now.set);
}

void weft__modules_leave(uint32_t visit)
{
	__atomic_fetch_sub(&weft__modules_now.readers[visit], 1, __ATOMIC_SEQ_CST);
}
