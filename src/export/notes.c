/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile does not have, as comments in it: a reader must not take "not recorded" for "did not happen". */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "export/aggregate.h"

static bool wanted(const struct weft__aggregate *agg, uint32_t what)
{
	return !agg->opts->what || agg->opts->what & what;
}

static bool is_fact(const struct weft__recording *rec, const char *key, const char *value)
{
	const char *fact = weft__names_fact(&rec->names, key);

	return fact && strcmp(fact, value) == 0;
}

static int note_samples(struct weft__aggregate *agg, const struct weft__result *result)
{
	const char *engine = weft__names_fact(&agg->rec->names, "sample.engine");

	if (!engine || !engine[0] || strcmp(engine, "off") == 0 || strcmp(engine, "none") == 0)
		return weft__aggregate_comment(agg, "cpu: not measured, sampling was off");
	if (result->loss.samples &&
	    weft__aggregate_comment(agg, "cpu: %" PRIu64 " samples were lost", result->loss.samples) < 0)
		return -ENOMEM;
	return result->samples.beyond_rows.n
		       ? weft__aggregate_comment(agg, "cpu: %" PRIu64 " samples have too many different stacks",
						 result->samples.beyond_rows.n)
		       : 0;
}

static int note_off(struct weft__aggregate *agg, const struct weft__result *result)
{
	uint64_t span_ns = result->off.switch_span_ns, missing_ns = result->off.switch_missing_ns;

	if (result->n_kind[WEFT_KIND_OFFCPU] == 0)
		return weft__aggregate_comment(agg, "offcpu: not measured, no context switches were recorded");
	if (agg->opts->min_poll_ns)
		return weft__aggregate_comment(agg, "offcpu: left out, it is not known by poll");
	return missing_ns && span_ns
		       ? weft__aggregate_comment(agg,
						 "offcpu: context switches were recorded in %.1f %% of the time only",
						 100.0 * (double)(span_ns - missing_ns) / (double)span_ns)
		       : 0;
}

static int note_waits(struct weft__aggregate *agg, const struct weft__result *result)
{
	if (is_fact(agg->rec, "wait.ns", "off"))
		return weft__aggregate_comment(agg, "wait: not measured, waits were not recorded");
	return result->wait.n_mixed
		       ? weft__aggregate_comment(agg,
						 "wait: %" PRIu64 " short waits, %" PRIu64
						 " ns, are left out: they are only known in sums with others",
						 result->wait.n_mixed, result->wait.mixed_ns)
		       : 0;
}

static int note_polls(struct weft__aggregate *agg, const struct weft__result *result)
{
	if (!result->works)
		return weft__aggregate_comment(agg, "poll: not measured, no thread polls");
	return result->counted || result->detail.polls_untimed
		       ? weft__aggregate_comment(
				 agg, "poll: short polls were only counted at times; polls and poll are of those that "
				      "were recorded one by one")
		       : 0;
}

/* Parts that turned themselves off, as the segment says. */
static int note_degraded(struct weft__aggregate *agg)
{
	const struct weft__names *names = &agg->rec->names;
	size_t i;

	for (i = 0; i < names->n_facts; i++)
		if (strncmp(names->facts[i].key, "degraded.", 9) == 0 && names->facts[i].value[0] &&
		    weft__aggregate_comment(agg, "%.60s: %.500s", names->facts[i].key, names->facts[i].value) < 0)
			return -ENOMEM;
	return 0;
}

int weft__aggregate_notes(struct weft__aggregate *agg, const struct weft__result *result)
{
	int rc = wanted(agg, WEFT__EXPORT_CPU) ? note_samples(agg, result) : 0;

	if (rc == 0 && wanted(agg, WEFT__EXPORT_WALL) && agg->no_wall)
		rc = weft__aggregate_comment(agg, "wall: left out, it is not known by poll or request");
	if (rc == 0 && wanted(agg, WEFT__EXPORT_OFFCPU))
		rc = note_off(agg, result);
	if (rc == 0 && wanted(agg, WEFT__EXPORT_WAIT))
		rc = note_waits(agg, result);
	if (rc == 0 && wanted(agg, WEFT__EXPORT_POLL))
		rc = note_polls(agg, result);
	if (rc == 0 && result->loss.events)
		rc = weft__aggregate_comment(agg, "lost: %" PRIu64 " events", result->loss.events);
	return rc == 0 ? note_degraded(agg) : rc;
}
