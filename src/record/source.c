/* SPDX-License-Identifier: Apache-2.0 */
#include "record/source.h"

#include <stdio.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/late.h"
#include "base/place.h"
#include "segment/defs.h"

static uint32_t source_version;

const struct weft__source *weft__source_next(uint32_t *i)
{
	while (*i < weft__sources.n) {
		uint32_t at = (*i)++;

		if (!(weft__sources.out & 1u << at))
			return weft__sources.all[at];
	}
	return NULL;
}

const struct weft__source *weft__source_back(uint32_t *i)
{
	while (*i > 0) {
		uint32_t at = --*i;

		if (!(weft__sources.out & 1u << at))
			return weft__sources.all[at];
	}
	return NULL;
}

void weft__source_changed(void)
{
	add_relaxed(&source_version, 1u);
}

uint32_t weft__sources_version(void)
{
	return load_relaxed(&source_version) + weft__late_noted(NULL, 0);
}

int weft__sources_open(const struct weft_recorder_opts *opts, struct weft_error *err)
{
	weft__sources.out = 0;
	for (uint32_t i = 0; i < weft__sources.n; i++) {
		const struct weft__source *s = weft__sources.all[i];
		int r = s->open ? s->open(opts, err) : 0;

		weft__sources.why[i] = r;
		if (r == -WEFT_E_OPTION) {
			while (i-- > 0)
				if (weft__sources.all[i]->close && !(weft__sources.out & 1u << i))
					weft__sources.all[i]->close(NULL);
			return r;
		}
		if (r < 0) {
			weft__sources.out |= 1u << i;
			weft__log(WEFT_LOG_WARN, "no %s: %s", s->what, weft_strerror(r));
		}
	}
	return 0;
}

void weft__sources_setup(struct weft__collector *c, const struct weft__timeline *line,
			 const struct weft_recorder_opts *opts)
{
	const struct weft__source *s;
	uint32_t i = 0;

	while ((s = weft__source_next(&i)))
		if (s->setup)
			s->setup(c, line, opts);
}

/* A recorder that cannot have one of them records all the same. */
void weft__sources_start(pthread_t collector)
{
	const struct weft__source *s;
	uint32_t i = 0;

	while ((s = weft__source_next(&i))) {
		int r = s->start ? s->start(collector) : 0;

		if (r)
			weft__log(WEFT_LOG_WARN, "no %s: %s", s->what, weft_strerror(r));
	}
}

void weft__sources_attach(pthread_t collector)
{
	const struct weft__source *s;
	uint32_t i = 0;

	while ((s = weft__source_next(&i)))
		if (s->attach)
			s->attach(collector);
}

void weft__sources_late(uint64_t from_ns, uint64_t to_ns)
{
	const struct weft__source *s;
	uint32_t i = 0;

	while ((s = weft__source_next(&i)))
		if (s->late)
			s->late(from_ns, to_ns);
}

void weft__sources_detach(void)
{
	const struct weft__source *s;
	uint32_t i = weft__sources.n;

	while ((s = weft__source_back(&i)))
		if (s->detach)
			s->detach();
}

void weft__sources_leave(void)
{
	const struct weft__source *s;
	uint32_t i = weft__sources.n;

	while ((s = weft__source_back(&i)))
		if (s->leave)
			s->leave();
}

void weft__sources_stop(enum weft__source_end end)
{
	const struct weft__source *s;
	uint32_t i = weft__sources.n;

	while ((s = weft__source_back(&i)))
		if (s->stop)
			s->stop(end);
}

void weft__sources_close(struct weft__collector *c)
{
	const struct weft__source *s;
	uint32_t i = weft__sources.n;

	while ((s = weft__source_back(&i)))
		if (s->close)
			s->close(c);
}

/* Locks are let go in the reverse order. One that is out may have a lock all the same. */
FORK_CODE void weft__sources_fork(enum weft__source_fork when, struct weft__collector *c)
{
	uint32_t n = weft__sources.n;

	for (uint32_t i = 0; i < n; i++) {
		const struct weft__source *s = weft__sources.all[when == SOURCE_UNLOCK ? n - 1 - i : i];

		if (s->fork)
			s->fork(when, c);
	}
}

int weft__sources_share_files(void)
{
	const struct weft__source *s;
	uint32_t i = 0;

	while ((s = weft__source_next(&i)))
		if (s->shares_files && s->shares_files())
			return 1;
	return 0;
}

int weft__sources_see_switches(void)
{
	const struct weft__source *s;
	uint32_t i = 0;

	while ((s = weft__source_next(&i)))
		if (s->sees_switches && s->sees_switches())
			return 1;
	return 0;
}

static void facts_of_missing(struct weft__defs *defs)
{
	char key[64];

	for (uint32_t i = 0; i < weft__sources.n; i++) {
		const struct weft__source *s = weft__sources.all[i];
		char text[160];

		if (!(weft__sources.out & 1u << i))
			continue;
		snprintf(key, sizeof(key), "degraded.%s", s->name);
		snprintf(text, sizeof(text), "no %s: %s", s->what, weft_strerror(weft__sources.why[i]));
		weft__defs_fact(defs, key, text);
	}
}

void weft__sources_facts(struct weft__defs *defs, int again)
{
	const struct weft__source *s;
	uint32_t i = 0;
	char note[512];

	while ((s = weft__source_next(&i)))
		if (s->facts && (!again || s->facts_change))
			s->facts(defs);
	if (!again)
		facts_of_missing(defs);
	if (weft__late_noted(note, sizeof(note))) /* empty when it holds no longer */
		weft__defs_fact(defs, "degraded.loops", note);
}

void weft__sources_gate(uint32_t on)
{
	const struct weft__source *s;
	uint32_t i = 0;

	while ((s = weft__source_next(&i)))
		if (s->gate)
			s->gate(on);
}

uint64_t weft__sources_due(const struct weft__turn *turn, int late)
{
	const struct weft__source *s;
	uint64_t due = UINT64_MAX;
	uint32_t i = 0;

	while ((s = weft__source_next(&i))) {
		uint64_t at;

		if (!s->due || (late && s->stage != SOURCE_LATE))
			continue;
		at = s->due(turn);
		due = at < due ? at : due;
	}
	return due;
}
