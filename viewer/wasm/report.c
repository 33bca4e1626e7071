/* SPDX-License-Identifier: Apache-2.0 */
/* weft report --json in the browser: the same code, with the selection as its filters. It goes to stdout, which the
 * page gathers. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "cli.h"
#include "view.h"

/* A name as a pattern that only it fits. */
static void quote(char *to, size_t bytes, const char *name)
{
	size_t n = 0;

	for (; *name && n + 3 < bytes; name++) {
		if (strchr("*?[\\", *name))
			to[n++] = '\\';
		to[n++] = *name;
	}
	to[n] = 0;
}

static struct {
	char worker[512], thread[32], location[1024];
} names;

static uint64_t since_start(double ns, int64_t shift_ns)
{
	double at = ns - (double)shift_ns;

	return at <= 0 ? 0 : (uint64_t)at;
}

/* What of the selection the report can do, of one recording. False: nothing of it is selected. */
static bool choose(struct report_opts *opts, size_t number)
{
	const struct view_selection *sel = &view_selection;
	const struct weft__recording *rec = &view_trace.list.all[number];
	const uint64_t mask = (UINT64_C(1) << 44) - 1;
	char label[WEFT__LABEL_BYTES];

	if (sel->recording >= 0 && (size_t)sel->recording != number)
		return false;
	if (!isnan(sel->from_ns))
		opts->from_ns = since_start(sel->from_ns, view_trace.shift_ns[number]);
	if (!isnan(sel->to_ns)) {
		opts->to_ns = since_start(sel->to_ns, view_trace.shift_ns[number]);
		if (opts->to_ns <= opts->from_ns)
			return false;
	}
	if (sel->n_threads == 1 && sel->n_workers == 0) {
		const struct weft_thread *thread =
			weft__names_thread(&rec->names, (uint32_t)((uint64_t)sel->ids[0] & mask));

		if (!thread || (uint64_t)sel->ids[0] >> 44 != number)
			return false;
		snprintf(names.thread, sizeof(names.thread), "%" PRIu32, thread->tid);
		opts->analysis.thread = names.thread;
	}
	if (sel->n_workers == 1 && sel->n_threads == 0) {
		if ((uint64_t)sel->ids[0] >> 44 != number)
			return false;
		weft__label_lane(&rec->names, (uint32_t)((uint64_t)sel->ids[0] & mask), 0, label, sizeof(label));
		quote(names.worker, sizeof(names.worker), label);
		opts->analysis.worker = names.worker;
	}
	if (sel->location != VIEW_NULL) {
		if ((uint64_t)sel->location >> 44 != number)
			return false;
		quote(names.location, sizeof(names.location),
		      weft__label_location(&rec->names, (uint32_t)((uint64_t)sel->location & mask)));
		opts->analysis.location = names.location;
	}
	opts->analysis.span = sel->span;
	opts->analysis.label = sel->label[0] ? sel->label : NULL;
	return true;
}

/* One recording; 0 when nothing of it is selected, 1 when it was written, negative when it failed. */
VIEW_EXPORT int view_report(uint32_t number, uint32_t top)
{
	static const struct report_short shorts;
	struct report_opts opts = {.to_ns = UINT64_MAX, .shorts = &shorts, .json = true, .no_symbols = true};
	struct weft__recordings list = {0}, one = {.n = 1, .cap = 1};
	int code = CLI_FAILED;

	if (number >= view_trace.list.n || !choose(&opts, number))
		return 0;
	/* Opened anew: what it says of names and damage is about what it looked at. */
	if (view_reopen(&list) == 0 && number < list.n) {
		one.all = &list.all[number];
		opts.analysis.top = top;
		code = report_each_json(&one, &opts, CLI_OK);
		fflush(stdout);
	}
	weft__recordings_fini(&list);
	return code == CLI_FAILED ? -1 : 1;
}
