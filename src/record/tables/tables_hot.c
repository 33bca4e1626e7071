/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomic.h"
#include "record/tables/tables.h"

struct weft__unwinding weft__unwinding;

void weft__tables_want(void)
{
	if (!load_relaxed(&weft__unwinding.wanted))
		store_relaxed(&weft__unwinding.wanted, 1u);
}
