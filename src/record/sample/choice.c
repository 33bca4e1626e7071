/* SPDX-License-Identifier: Apache-2.0 */
/* Which engine samples, and why. CALLER, and COLLECTOR under the engine's lock.
 *
 * The choice is made at open, where the machine is asked what it allows, so that the segment's facts are right from
 * the first one on; when that does not work any more later, there is another choice, and the facts are reported
 * again. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "record/sample/meter.h"
#include "record/sample/precise.h"
#include "record/sample/state.h"

#define NET_ROOM 640 /* bytes of stack that the net's handler takes in a thread that has a timer */

static struct {
	char why[ENGINE_WHY_BYTES];      /* this engine */
	char degraded[ENGINE_WHY_BYTES]; /* what could not be had; "": all could */
	char event[32];
} engine_choice;

static void degrade(const char *text)
{
	size_t n = strlen(engine_choice.degraded);

	if (strstr(engine_choice.degraded, text))
		return;
	snprintf(engine_choice.degraded + n, sizeof(engine_choice.degraded) - n, "%s%s", n ? "; " : "", text);
}

/* The timer has neither kernel frames nor events other than time. */
static void choose_timer(const char *why)
{
	snprintf(engine_choice.why, sizeof(engine_choice.why), "%s", why);
	weft__engine.ops = &weft__timer_ops;
	weft__engine.kernel = 0;
	weft__engine.tick_ns = 0;
	weft__engine.event = "cpu-clock";
}

/* Where perf events cannot be had, there are timers alone. */
static void choose_both(uint64_t budget_ppm)
{
	char why[ENGINE_WHY_BYTES] = "perf events for threads that rarely switch, no cost at the switches of others",
	     no[128] = "";

	if (weft__precise_probe(budget_ppm, no, sizeof(no)) < 0)
		snprintf(why, sizeof(why), "%s", no);
	choose_timer(why);
}

/* What was asked for, and then with less and less of it. */
static void choose_perf(const struct weft_recorder_opts *opts, const char *why)
{
	char no[ENGINE_WHY_BYTES / 2] = "";

	weft__engine.ops = &weft__perf_ops;
	snprintf(engine_choice.why, sizeof(engine_choice.why), "%s", why);
	for (int less = 0; less < 4; less++) {
		int clock_left = less & 2 || !strcmp(engine_choice.event, "cpu-clock");

		if ((less & 1 && !opts->sample_kernel) || (less & 2 && !strcmp(engine_choice.event, "cpu-clock")))
			continue;
		/* At a rate that the timer can do, frames or an event that are not to be had leave nothing to want
		 * perf for. */
		if (less & 1 && clock_left && opts->sample_engine != WEFT_ENGINE_PERF &&
		    opts->sample_hz <= weft__machine_tick_hz())
			continue;
		weft__engine.kernel = opts->sample_kernel && !(less & 1);
		weft__engine.event = less & 2 ? "cpu-clock" : engine_choice.event;
		if (weft__perf_ops.probe(no, sizeof(no)) == 0)
			return;
		degrade(no);
	}
	choose_timer(opts->sample_kernel ? "perf events with what was asked for cannot be had"
					 : "perf events cannot be had");
}

/* Where events are there for the rate alone, timers give as many samples as there are ticks. Who wants kernel
 * frames, another event or this engine by name gets nothing else. */
static void ride(uint32_t tick_hz)
{
	if (weft__engine.ops == &weft__perf_ops && !strcmp(weft__engine.event, "cpu-clock") &&
	    weft__timer_ops.probe(NULL, 0) == 0)
		weft__engine.tick_ns = 1000000000u / tick_hz;
}

/* What to say when the timer cannot fire as often as it should. */
static int rate_note(char *text, size_t bytes)
{
	uint32_t tick = weft__machine_tick_hz();

	snprintf(text, bytes, "at most %u samples a second: the timer engine rides the kernel's tick", tick);
	return weft__engine.hz > tick;
}

void weft__choice_make(const struct weft_recorder_opts *opts, const char *event, int is_clock)
{
	char text[128];
	uint32_t tick = weft__machine_tick_hz();

	memset(&engine_choice, 0, sizeof(engine_choice));
	weft__precise_none();
	weft__engine.tick_ns = 0;
	snprintf(engine_choice.event, sizeof(engine_choice.event), "%s", event);
	weft__engine.event = engine_choice.event;
	if (opts->sample_engine == WEFT_ENGINE_TIMER)
		choose_timer("asked for");
	else if (opts->sample_engine == WEFT_ENGINE_PERF)
		choose_perf(opts, "asked for");
	else if (opts->sample_kernel)
		choose_perf(opts, "kernel frames were asked for");
	else if (!is_clock)
		choose_perf(opts, "the event is not a clock");
	else if (opts->sample_hz > tick)
		choose_perf(opts, "the rate is above the kernel's tick");
	else
		choose_both(opts->budget_ppm);
	if (opts->sample_engine == WEFT_ENGINE_AUTO && !weft__engine.kernel && opts->sample_hz > tick)
		ride(tick);
	if (weft__engine.ops != &weft__timer_ops)
		return;
	if (opts->sample_engine == WEFT_ENGINE_TIMER && (opts->sample_kernel || !is_clock))
		degrade("the timer engine samples CPU time and user stacks only");
	if (rate_note(text, sizeof(text)))
		degrade(text);
	if (weft__timer_ops.probe(NULL, 0) < 0)
		degrade("CPU-time timers cannot be made");
}

void weft__choice_degrade(const char *text)
{
	if (strstr(engine_choice.degraded, text))
		return;
	degrade(text);
	weft__source_changed();
}

void weft__choice_fall_back(const char *why, const char *degraded)
{
	char text[128];

	choose_timer(why);
	degrade(degraded);
	if (rate_note(text, sizeof(text)))
		degrade(text);
	weft__source_changed();
}

void weft__choice_walk(const char *degraded)
{
	weft__engine.tick_ns = 0;
	degrade(degraded);
	weft__source_changed();
}

static void sample_fact(struct weft__defs *defs, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	weft__defs_fact(defs, key, text);
}

void weft__choice_facts(struct weft__defs *defs)
{
	int refused = weft__tables_refused();
	char text[128];

	if (!weft__engine.ops) {
		weft__defs_fact(defs, "sample.engine", "off");
		return;
	}
	weft__defs_fact(defs, "sample.engine", weft__engine.ops->name);
	weft__defs_fact(defs, "sample.event", weft__engine.event);
	sample_fact(defs, "sample.hz", weft__engine.hz);
	sample_fact(defs, "sample.period_ns", weft__engine.chosen_ns);
	sample_fact(defs, "sample.tick_hz", weft__engine.tick_ns ? weft__machine_tick_hz() : 0);
	if (weft__engine.ops == &weft__perf_ops && weft__meter_interrupt_ns())
		sample_fact(defs, "sample.interrupt_ns", weft__meter_interrupt_ns());
	sample_fact(defs, "kernel.tick_hz", weft__machine_tick_hz());
	weft__defs_fact(defs, "sample.precise", weft__precise_on() ? "1" : "0");
	weft__defs_fact(defs, "sample.kernel", weft__engine.kernel ? "1" : "0");
	weft__defs_fact(defs, "sample.why", engine_choice.why);
	if (engine_choice.degraded[0])
		weft__defs_fact(defs, "degraded.sampling", engine_choice.degraded);
	if (access("/proc/self/maps", R_OK) < 0) {
		snprintf(text, sizeof(text),
			 "stacks of samples and waits are their innermost frame at most: no /proc/self/maps (%s)",
			 weft_strerror(-errno));
		weft__defs_fact(defs, "degraded.stacks", text);
	}
	if (refused) {
		snprintf(text, sizeof(text), "whoever needs unwind tables waits for them: no thread to make them: %s",
			 weft_strerror(refused));
		weft__defs_fact(defs, "degraded.tables", text);
	}
}

int weft__engine_shares_files(void)
{
	return weft__engine.ops == &weft__perf_ops && weft__engine.kernel;
}

uint32_t weft__engine_hz(void)
{
	return weft__engine.ops ? weft__engine.hz : 0;
}

int weft__choice_net(void)
{
	unsigned long frame = getauxval(AT_MINSIGSTKSZ) - weft__machine_unused_frame();

	weft__engine.stack_least = 2 * frame + NET_ROOM;
	/* Events that are inherited need none. */
	return (weft__engine.ops == &weft__timer_ops || weft__engine.kernel) && weft__machine_kernel(6, 4) &&
	       weft__engine.stack_least <= 8192;
}
