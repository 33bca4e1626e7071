/* SPDX-License-Identifier: Apache-2.0 */
/* Whether samples can be believed: the process' CPU clock beside what they stand for, and whether work is in step
 * with the kernel's tick, at which timers sample. */
#include <stdlib.h>

#include "analyze/state.h"
#include "weft/recorder.h"

#define WAKES_LEAST 16  /* or they say nothing */
#define WAKES_MANY 4096 /* of which all are looked at; then some */
#define IN_STEP 0.5     /* how near to each other, from 0 (anywhere in a tick) to 1 (all at the same place) */
#define BURST_TICKS 4   /* work that is longer is met at many places */
#define PHASES 16

void weft__cpu_add(const struct weft__analysis_opts *opts, struct weft__result *result, const struct weft__event *ev)
{
	struct weft__cpu_clock *sum = &result->cpu_clock;

	if (ev->time_ns < opts->from_ns)
		return;
	sum->n++;
	sum->span_ns = weft__sum(sum->span_ns, WEFT_FIELD(ev, CPU, SPAN));
	sum->process_ns = weft__sum(sum->process_ns, WEFT_FIELD(ev, CPU, PROCESS));
	sum->sampled_ns = weft__sum(sum->sampled_ns, WEFT_FIELD(ev, CPU, SAMPLED));
	sum->threads = weft__sum(sum->threads, WEFT_FIELD(ev, CPU, THREADS));
	sum->threads_ns = weft__sum(sum->threads_ns, WEFT_FIELD(ev, CPU, UNSAMPLED));
}

uint64_t weft__tick_of(const struct weft__names *names)
{
	const char *hz = weft__names_fact(names, "kernel.tick_hz");
	unsigned long v = hz ? strtoul(hz, NULL, 10) : 0;

	return v && v <= 100000 ? 1000000000 / v : 0;
}

void weft__beat_wake(const struct weft__analysis_opts *opts, struct weft__thread *s, uint64_t time_ns)
{
	/* A circle of so many parts: cosines, and sines a quarter further. */
	static const double circle[PHASES] = {1,  0.9239,  0.7071,  0.3827,  0, -0.3827, -0.7071, -0.9239,
					      -1, -0.9239, -0.7071, -0.3827, 0, 0.3827,  0.7071,  0.9239};
	uint32_t at;

	if (!opts->tick_ns || (++s->beat.wakes > WAKES_MANY && s->beat.wakes % PHASES))
		return;
	at = (uint32_t)(time_ns % opts->tick_ns * PHASES / opts->tick_ns);
	s->beat.x += circle[at];
	s->beat.y += circle[(at + 3 * PHASES / 4) % PHASES];
	s->beat.seen++;
}

static bool in_step(const struct weft__analysis_opts *opts, const struct weft__beat *beat)
{
	double n = (double)beat->seen;

	return beat->seen >= WAKES_LEAST && beat->x * beat->x + beat->y * beat->y > IN_STEP * IN_STEP * n * n &&
	       (double)beat->ns < (double)beat->wakes * BURST_TICKS * (double)opts->tick_ns;
}

void weft__beat_sample(const struct weft__analysis_opts *opts, struct weft__result *result, struct weft__thread *s,
		       uint64_t ns, uint64_t engine)
{
	s->beat.ns = weft__sum(s->beat.ns, ns);
	if (engine == WEFT_ENGINE_TIMER && opts->tick_ns && in_step(opts, &s->beat))
		weft__weight_add(&result->samples.in_step, 1, ns);
}
