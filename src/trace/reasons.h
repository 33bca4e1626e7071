/* SPDX-License-Identifier: Apache-2.0 */
/* Why a figure of a summary is not there; NULL when it is. Text, JSON and SQL all have it from here. Context:
 * CALLER. */
#ifndef WEFT_TRACE_REASONS_H
#define WEFT_TRACE_REASONS_H

#include "analyze/analysis.h"

/* There was nothing to measure. */
#define WEFT__NONE_HERE "none here"

const char *weft__no_polls(const struct weft__result *result);
const char *weft__no_delays(const struct weft__result *result);
const char *weft__no_busy(const struct weft__result *result, const struct weft__lane *lane);
const char *weft__no_parked(const struct weft__lane *lane);
const char *weft__no_cpu(const struct weft__lane *lane);
const char *weft__no_local_queue(const struct weft__lane *lane);
const char *weft__no_global_queue(const struct weft__result *result);
const char *weft__no_alive(const struct weft__result *result);
const char *weft__no_samples(const struct weft__result *result, const struct weft__names *names);
const char *weft__no_measured(const struct weft__sampled_thread *thread);
/* Of a part of polls' time, when `no_switches` is why switches are not known (NULL: they are). */
const char *weft__no_part(const struct weft__names *names, const struct weft__split *split, enum weft__part part,
			  const char *no_switches);
/* Why it is not known in general; of single polls the report knows more. */
const char *weft__no_switches(const struct weft__result *result, const struct weft__names *names);
/* Why not all context switches, or none, are recorded; NULL: it is not said. */
const char *weft__switch_why(const struct weft__names *names);
/* All polls are ticks of event loops that weft run found. */
bool weft__only_ticks(const struct weft__result *result, const struct weft__names *names);
/* Threads said how long their polls were on the CPU. */
bool weft__detects(const struct weft__names *names);

#endif
