/* SPDX-License-Identifier: Apache-2.0 */
/* What the page selects, number by number. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

struct view_selection view_selection = {.recording = -1};

VIEW_EXPORT void view_selection_clear(void)
{
	view_selection = (struct view_selection){.from_ns = NAN,
						 .to_ns = NAN,
						 .recording = -1,
						 .task = VIEW_NULL,
						 .location = VIEW_NULL,
						 .poll = VIEW_NULL};
}

/* By number: 0 from, 1 to, 2 recording, 3 task, 4 location, 5 poll, 6 shortest poll, 7 one more thread, then 8 one more
 * worker. */
VIEW_EXPORT int view_selection_set(uint32_t what, double value)
{
	struct view_selection *sel = &view_selection;
	size_t most = sizeof(sel->ids) / sizeof(sel->ids[0]);

	switch (what) {
	case 0:
		sel->from_ns = value;
		break;
	case 1:
		sel->to_ns = value;
		break;
	case 2:
		sel->recording = (int64_t)value;
		break;
	case 3:
		sel->task = (int64_t)value;
		break;
	case 4:
		sel->location = (int64_t)value;
		break;
	case 5:
		sel->poll = (int64_t)value;
		break;
	case 6:
		sel->min_poll_ns = (int64_t)value;
		break;
	default:
		if (sel->n_threads + sel->n_workers == most || (what == 7 && sel->n_workers))
			return -EINVAL;
		sel->ids[sel->n_threads + sel->n_workers] = (int64_t)value;
		sel->n_threads += what == 7;
		sel->n_workers += what == 8;
	}
	return 0;
}

/* 0: a span, as hex digits; 1: a label, "key=value". */
VIEW_EXPORT void view_selection_text(uint32_t what, const char *text)
{
	if (what == 0) {
		view_selection.span = strtoull(text, NULL, 16);
		return;
	}
	strncpy(view_selection.label, text, sizeof(view_selection.label) - 1);
	view_selection.label[sizeof(view_selection.label) - 1] = 0;
}
