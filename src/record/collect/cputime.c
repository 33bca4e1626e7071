/* SPDX-License-Identifier: Apache-2.0 */
/* What the process used of the CPU, and what samples stand for, as events: a report holds one against the other. Not
 * worth a wakeup; done if the collector is awake. */
#include "record/collect/collector.h"
#include "record/source.h"
#include "weft/event.h"

#define READ_NS UINT64_C(1000000000)

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* 0: nobody takes samples. */
static int cputime_read(struct weft__source_cpu *ret)
{
	const struct weft__source *s;
	uint32_t i = 0;

	while ((s = weft__source_next(&i)))
		if (s->cpu)
			return s->cpu(ret);
	return 0;
}

static void cputime_report(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__cputime *last = &c->cputime;
	struct weft__source_cpu now;

	if (!cputime_read(&now))
		return;

	/* Another recording: what was used between the two is not in either. */
	if (last->at_ns && last->seen.run == now.run)
		weft__costs_event(&c->costs, &(struct weft__cost){now_ns,
								  WEFT_KIND_CPU,
								  {more(now_ns, last->at_ns),
								   more(now.program_ns, last->seen.program_ns),
								   more(now.sampled_ns, last->seen.sampled_ns),
								   more(now.unhit, last->seen.unhit),
								   more(now.unhit_ns, last->seen.unhit_ns)}});
	last->seen = now;
	last->at_ns = now_ns;
}

void weft__cputime_tend(struct weft__collector *c, uint64_t now_ns)
{
	uint64_t pace_ns = c->calm.on ? CALM_REPORT_NS : READ_NS;

	if (weft_gate_on() && (!c->cputime.at_ns || now_ns >= c->cputime.at_ns + pace_ns))
		cputime_report(c, now_ns);
}

void weft__cputime_report(struct weft__collector *c)
{
	if (c->cputime.at_ns)
		cputime_report(c, weft__clock_mono());
}
