/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/reasons.h"

#include <string.h>

#include "analyze/label.h"

const char *weft__no_polls(const struct weft__result *r)
{
	if (r->polls.n > 0)
		return NULL;
	return r->n_kind[WEFT_KIND_POLL_BEGIN] + r->n_kind[WEFT_KIND_POLL_END] + r->n_kind[WEFT_KIND_POLL_NEXT] +
			       r->n_kind[WEFT_KIND_POLL] + r->n_kind[WEFT_KIND_POLL_COUNT]
		       ? "no poll that was asked for ended here"
		       : "no poll events";
}

const char *weft__no_delays(const struct weft__result *r)
{
	if (r->delays.n > 0)
		return NULL;
	if (r->reported.n > 0)
		return "not all polls are recorded one by one, so that which wake was whose is not known";
	return r->n_kind[WEFT_KIND_WAKE] == 0 ? "no wake events" : "no poll that was asked for follows a wake";
}

const char *weft__no_busy(const struct weft__result *r, const struct weft__lane *lane)
{
	if (lane->observed_ns == 0)
		return "no time in which the thread was observed";
	if (lane->reported.n > 0 || lane->counted)
		return "not all polls are recorded one by one";
	return r->n_kind[WEFT_KIND_POLL_BEGIN] + r->n_kind[WEFT_KIND_POLL_NEXT] == 0 && lane->busy_ns == 0
		       ? "no poll events"
		       : NULL;
}

const char *weft__no_parked(const struct weft__lane *lane)
{
	if (lane->observed_ns == 0)
		return "no time in which the thread was observed";
	return lane->n_park_events == 0 && lane->parked_ns == 0 ? "no park events" : NULL;
}

const char *weft__no_cpu(const struct weft__lane *lane)
{
	return lane->sched_ns == 0 ? "fewer than two readings of the thread's CPU time" : NULL;
}

const char *weft__no_local_queue(const struct weft__lane *lane)
{
	return lane->depths.n == 0 ? "the runtime does not tell the depth of local queues" : NULL;
}

const char *weft__no_global_queue(const struct weft__result *r)
{
	return r->custom.n_queues == 0 ? "no queue events: the runtime has no queue callback" : NULL;
}

const char *weft__no_alive(const struct weft__result *r)
{
	return r->task.untracked ? "more tasks at one time than the analysis keeps" : NULL;
}

const char *weft__no_samples(const struct weft__result *r, const struct weft__names *names)
{
	const char *engine = weft__names_fact(names, "sample.engine"), *why;

	if (r->samples.all.n > 0)
		return NULL;
	if (r->samples.left_out.n > 0)
		return "no sample that was asked for";
	why = weft__names_fact(names, "degraded.sampling");
	if (why && why[0])
		return why;
	if (!engine || !engine[0] || strcmp(engine, "off") == 0 || strcmp(engine, "none") == 0)
		return "sampling was off";
	return r->n_events ? "no thread used enough CPU for a sample" : "no events here";
}

const char *weft__no_measured(const struct weft__sampled_thread *thread)
{
	return thread->measured_span_ns == 0 ? "fewer than two readings of the thread's CPU time" : NULL;
}

/* Waits are reported by those who wait, whatever is known of switches: none is none. */
const char *weft__no_part(const struct weft__names *names, const struct weft__split *split, enum weft__part part,
			  const char *no_switches)
{
	const char *wait_ns = weft__names_fact(names, "wait.ns");

	if (!no_switches || split->ns[part] || part == WEFT__NOT_MEASURED)
		return NULL;
	if (part != WEFT__WAITING)
		return no_switches;
	return wait_ns && strcmp(wait_ns, "off") == 0 ? "waits were not recorded" : NULL;
}

bool weft__only_ticks(const struct weft__result *r, const struct weft__names *names)
{
	size_t i, ticks = 0;

	if (r->lane.n_locations == 0 || !weft__label_is_loop(names, r->lane.locations[0].id))
		return false;
	for (i = 0; i < r->lane.n_lanes; i++) {
		if (r->lane.lanes[i].polls.n && !weft__label_loops(names, r->lane.lanes[i].worker))
			return false;
		ticks += r->lane.lanes[i].polls.n > 0;
	}
	return ticks > 0;
}

bool weft__detects(const struct weft__names *names)
{
	const char *detector = weft__names_fact(names, "detector");

	return detector && strcmp(detector, "rseq") == 0;
}

const char *weft__switch_why(const struct weft__names *names)
{
	const char *why = weft__names_fact(names, "degraded.switch");

	return why && why[0] ? why : weft__names_fact(names, "switch.spared");
}

const char *weft__no_switches(const struct weft__result *r, const struct weft__names *names)
{
	const char *why = weft__switch_why(names);

	if (r->n_kind[WEFT_KIND_OFFCPU] || weft__detects(names))
		return NULL;
	return why ? why : "the threads' switches were not recorded";
}
