/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to say about a trace as a whole: figures, its recordings, what could not be read. */
#include <stdio.h>

#include "view.h"

/* Decodes all events in order of time and does nothing with them: what parsing alone takes. */
VIEW_EXPORT double view_decode(void)
{
	const struct weft__record *run = NULL, *end = NULL;
	struct weft__merge *merge = NULL;
	double n = 0;
	size_t i;

	for (i = 0; i < view_trace.list.n; i++) {
		if (weft__merge_open(&merge, &view_trace.list.all[i], 0, UINT64_MAX) < 0)
			return -1;
		while (weft__merge_next(merge, &run, &end) > 0)
			n += (double)(end - run);
		(void)weft__merge_close(merge);
	}
	return n;
}

static uint64_t rows_bytes(void)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < WEFT__N_TABLES; i++)
		bytes += view_trace.stores[i].bytes;
	return bytes;
}

/* Figures of the trace, by number: events, bytes of the stores, length of slices that are kept, recordings. */
VIEW_EXPORT double view_figure(uint32_t what)
{
	switch (what) {
	case 0:
		return (double)view_trace.n_events;
	case 1:
		return (double)rows_bytes();
	case 2:
		return (double)view_trace.min_slice_ns;
	case 3:
		return (double)view_trace.list.n;
	default:
		return 0;
	}
}

/* What could not be read, a line each from 0 on, or NULL behind the last. Complete after the load. */
VIEW_EXPORT const char *view_problem(uint32_t i)
{
	const struct weft__recordings *list = &view_trace.list;
	char *to = view_trace.problem;
	size_t k, n;

	if (i < list->n_refused) {
		snprintf(to, sizeof(view_trace.problem), "%s: %s", list->refused[i].path, list->refused[i].why);
		return to;
	}
	i -= (uint32_t)list->n_refused;
	for (k = 0; k < list->n; k++)
		for (n = 0; n < list->all[k].n_files; n++) {
			const struct weft__file *file = &list->all[k].files[n];

			if ((file->status == 0 && file->damaged_places == 0) || i-- > 0)
				continue;
			snprintf(to, sizeof(view_trace.problem), "%s: %s", file->path,
				 file->status < 0 ? weft_strerror(file->status)
				 : file->damage   ? file->damage
						  : "damaged");
			return to;
		}
	return NULL;
}

/* Facts of a recording, in ns: 0 shift, 1 wall clock of its start, 2 its length, 3 its start on its own clock. */
VIEW_EXPORT double view_recording(uint32_t number, uint32_t what)
{
	const struct weft__recording *rec = &view_trace.list.all[number];

	if (number >= view_trace.list.n)
		return 0;
	return what == 0   ? (double)view_trace.shift_ns[number]
	       : what == 1 ? (double)rec->start_real_ns
	       : what == 3 ? (double)rec->start_ns
			   : (double)(rec->last_ns > rec->start_ns ? rec->last_ns - rec->start_ns : 0);
}
