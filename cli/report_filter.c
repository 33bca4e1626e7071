/* SPDX-License-Identifier: Apache-2.0 */
/* What the options that choose by name have to choose from: a name that nothing has is reported with those that there
 * are. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "report.h"

struct search {
	const char *pattern;
	struct report_names *others;
};

/* Whether it is the one; otherwise among those that might have been meant. */
static bool look(const struct search *search, const char *name)
{
	struct report_names *others = search->others;
	size_t i;

	if (fnmatch(search->pattern, name, 0) == 0)
		return true;
	for (i = 0; i < others->n; i++)
		if (strncmp(others->at[i], name, sizeof(others->at[i]) - 1) == 0)
			return false;
	if (others->n < REPORT_NAMES && name[0])
		snprintf(others->at[others->n++], sizeof(others->at[0]), "%s", name);
	return false;
}

static bool any_location(const struct weft__names *names, const struct search *search)
{
	const struct weft_location_def *at = names->locations.rows;
	size_t i;

	for (i = 0; i < names->locations.n; i++)
		if (look(search, weft__label_location(names, at[i].id)))
			return true;
	return false;
}

static bool any_thread(const struct weft__names *names, const struct search *search)
{
	const struct weft_thread *at = names->threads.rows;
	char label[WEFT__LABEL_BYTES], tid[16];
	size_t i;

	for (i = 0; i < names->threads.n; i++) {
		snprintf(tid, sizeof(tid), "%u", at[i].tid);
		weft__label_thread(names, at[i].id, label, sizeof(label));
		if (fnmatch(search->pattern, label, 0) == 0 || strcmp(search->pattern, tid) == 0 ||
		    look(search, at[i].name))
			return true;
	}
	return false;
}

static bool any_worker(const struct weft__names *names, const struct search *search)
{
	const struct weft_worker *at = names->workers.rows;
	const struct weft_thread *thread = names->threads.rows;
	char label[WEFT__LABEL_BYTES];
	size_t i;

	for (i = 0; i < names->workers.n; i++)
		if (look(search, weft__label_lane(names, at[i].id, 0, label, sizeof(label))))
			return true;
	/* Threads that are no worker have rows beside them. */
	for (i = 0; i < names->threads.n; i++) {
		weft__label_thread(names, thread[i].id, label, sizeof(label));
		if (names->workers.n ? fnmatch(search->pattern, label, 0) == 0 : look(search, label))
			return true;
	}
	return false;
}

bool report_has_name(const struct weft__names *names, enum report_names_of of, const char *pattern,
		     struct report_names *others)
{
	struct search search = {pattern, others};

	if (pattern[0] == '(') /* what has no name of its own */
		return true;
	switch (of) {
	case REPORT_LOCATIONS:
		return any_location(names, &search);
	case REPORT_WORKERS:
		return any_worker(names, &search);
	case REPORT_THREADS:
		return any_thread(names, &search);
	}
	return true;
}
