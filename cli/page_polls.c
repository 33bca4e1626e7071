/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about polls. The longest polls are put in groups by where their task was spawned and by what most of
 * their time was spent on; those who waited behind one of a group are its sufferers. Delays from wake to poll that
 * no such poll explains are findings of their own, by location. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/callback.h"
#include "analyze/label.h"
#include "base/alloc.h"
#include "page.h"
#include "weft/wait.h"

#define GROUPS 32
#define NAMES 4    /* of workers or locations in a line */
#define SMALL 0.05 /* of the worst poll: a part that is not named */

static const char *const part_names[WEFT__N_PARTS] = {
	[WEFT__ON_CPU] = "on_cpu",       [WEFT__BLOCKED] = "blocked",           [WEFT__WAITING] = "waiting",
	[WEFT__PREEMPTED] = "preempted", [WEFT__NOT_MEASURED] = "not_measured",
};

/* A few ids with how often they came. */
struct tally {
	size_t n;
	uint64_t more; /* that had no room */
	struct {
		uint32_t worker, thread_id, location;
		uint64_t n;
	} at[NAMES];
};

struct group {
	uint32_t location, worker; /* the worker of ticks only */
	bool tick, running;
	enum weft__part part;
	const struct weft__cause *cause;       /* of the worst one; NULL: not known, or on the CPU */
	const struct weft__callback *callback; /* of ticks: NULL: not known */
	bool unnamed;                          /* because libuv has no names */
	const struct weft__poll *worst;
	uint64_t n, total_ns;
	uint64_t n_behind, behind_ns, behind_worst_ns;
	struct tally lanes, delayed;
	struct weft__tree tree; /* of what they did on the CPU */
};

struct groups {
	size_t n;
	struct group at[GROUPS];
};

static void count_in(struct tally *tally, uint32_t worker, uint32_t thread_id, uint32_t location)
{
	size_t i;

	for (i = 0; i < tally->n; i++)
		if (tally->at[i].worker == worker && tally->at[i].thread_id == thread_id &&
		    tally->at[i].location == location) {
			tally->at[i].n++;
			return;
		}
	if (tally->n == NAMES) {
		tally->more++;
		return;
	}
	tally->at[tally->n].worker = worker;
	tally->at[tally->n].thread_id = thread_id;
	tally->at[tally->n].location = location;
	tally->at[tally->n++].n = 1;
}

/* What most of its time was spent on. */
static enum weft__part leading(const struct weft__poll *poll)
{
	const struct weft__split *split = &poll->breakdown.split;
	enum weft__part best = WEFT__ON_CPU, i;

	if (!poll->breakdown.known)
		return poll->sampled.ns > poll->rank_ns / 2 ? WEFT__ON_CPU : WEFT__NOT_MEASURED;
	for (i = WEFT__BLOCKED; i < WEFT__N_PARTS; i++)
		if (split->ns[i] > split->ns[best])
			best = i;
	return best;
}

static const struct weft__cause *cause_of(const struct weft__poll *poll, enum weft__part part)
{
	const struct weft__breakdown *breakdown = &poll->breakdown;
	size_t i;

	for (i = 0; i < breakdown->n_causes && (part == WEFT__BLOCKED || part == WEFT__WAITING); i++)
		if (breakdown->causes[i].part == part)
			return &breakdown->causes[i];
	return NULL;
}

/* The descriptor of a call differs from poll to poll; a lock is the same one or another. */
static bool same_cause(const struct weft__cause *a, const struct weft__cause *b)
{
	if (!a || !b)
		return a == b;
	if (a->what != b->what)
		return false;
	if (a->what == 0)
		return a->call == b->call;
	return a->name == b->name && (a->what == WEFT_WAIT_CALL || a->object == b->object);
}

/* Polls of weft/uv.h that are all the callbacks that nobody wrapped. */
static bool is_unwrapped(const struct report *report, uint32_t location)
{
	const struct weft_location_def *at = weft__names_location(&report->rec->names, location);

	return at && !at->file[0] && strcmp(at->name, "callbacks not wrapped") == 0;
}

static struct group *group_of(struct groups *groups, const struct report *report, const struct weft__poll *poll,
			      bool running)
{
	enum weft__part part = leading(poll);
	const struct weft__cause *cause = cause_of(poll, part);
	bool tick = page_is_tick(report, poll->worker, poll->location);
	const struct weft__callback *callback =
		tick || is_unwrapped(report, poll->location) ? weft__callback_of(&report->rec->frames, poll) : NULL;
	struct group *g;
	size_t i;

	for (i = 0; i < groups->n; i++) {
		g = &groups->at[i];
		if (g->location == poll->location && g->part == part && g->running == running &&
		    same_cause(g->cause, cause) && g->callback == callback && (!tick || g->worker == poll->worker))
			return g;
	}
	if (groups->n == GROUPS)
		return NULL;
	g = &groups->at[groups->n++];
	g->location = poll->location;
	g->worker = poll->worker;
	g->tick = tick;
	g->running = running;
	g->part = part;
	g->cause = cause;
	g->callback = callback;
	g->worst = poll; /* lists have the longest first */
	return g;
}

static void group_polls(struct groups *groups, const struct report *report, const struct weft__poll *polls, size_t n,
			bool running)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct weft__poll *poll = &polls[i];
		struct group *g;

		if (poll->level > 0 || poll->rank_ns < PAGE_LONG_NS)
			continue;
		g = group_of(groups, report, poll, running);
		if (!g)
			continue;
		if (!g->callback && !g->unnamed && (g->tick || is_unwrapped(report, g->location)))
			g->unnamed = weft__callback_unnamed(&report->rec->frames, poll);
		g->n++;
		g->total_ns += poll->rank_ns;
		count_in(&g->lanes, poll->worker, poll->worker == WEFT_WORKER_NONE ? poll->thread_id : 0, 0);
		weft__tree_add_poll(&g->tree, &report->rec->frames, poll);
	}
}

static struct group *group_behind(struct groups *groups, const struct report *report, const struct weft__behind *behind)
{
	const struct weft__result *r = report->whole;
	struct group *location = NULL;
	size_t i;

	for (i = 0; i < r->poll.n_longest; i++)
		if (r->poll.longest[i].serial == behind->serial && r->poll.longest[i].rank_ns >= PAGE_LONG_NS &&
		    r->poll.longest[i].level == 0)
			return group_of(groups, report, &r->poll.longest[i], false);
	for (i = 0; i < groups->n; i++)
		if (groups->at[i].location == behind->location && !groups->at[i].running && !location)
			location = &groups->at[i];
	return location;
}

struct delays {
	size_t n;
	struct {
		uint32_t location;
		bool behind; /* long polls of one location, which are not listed here */
		uint32_t behind_location;
		const struct weft__poll *worst;
		uint64_t n, total_ns;
		struct tally lanes;
	} at[GROUPS];
};

/* One poll was in the way for most of the time, and that was a long one. */
static bool is_behind(const struct weft__poll *poll)
{
	return 2 * poll->behind.held_ns >= poll->rank_ns && poll->behind.duration_ns >= PAGE_LONG_NS;
}

static void take_delay(struct delays *delays, const struct weft__poll *poll)
{
	bool behind = is_behind(poll);
	size_t i;

	for (i = 0; i < delays->n; i++)
		if (delays->at[i].location == poll->location && delays->at[i].behind == behind &&
		    (!behind || delays->at[i].behind_location == poll->behind.location))
			break;
	if (i == GROUPS)
		return;
	if (i == delays->n) {
		delays->n++;
		delays->at[i].location = poll->location;
		delays->at[i].behind = behind;
		delays->at[i].behind_location = poll->behind.location;
		delays->at[i].worst = poll;
	}
	delays->at[i].n++;
	delays->at[i].total_ns += poll->rank_ns;
	count_in(&delays->at[i].lanes, poll->worker, poll->worker == WEFT_WORKER_NONE ? poll->thread_id : 0, 0);
}

static void group_delays(struct groups *groups, struct delays *delays, const struct report *report)
{
	const struct weft__result *r = report->whole;
	size_t i;

	for (i = 0; i < r->poll.n_delayed; i++) {
		const struct weft__poll *poll = &r->poll.delayed[i];
		struct group *g;

		if (poll->rank_ns < PAGE_LONG_NS)
			continue;
		g = is_behind(poll) ? group_behind(groups, report, &poll->behind) : NULL;
		if (!g) {
			take_delay(delays, poll);
			continue;
		}
		g->n_behind++;
		g->behind_ns += poll->behind.held_ns;
		if (poll->behind.held_ns > g->behind_worst_ns)
			g->behind_worst_ns = poll->behind.held_ns;
		count_in(&g->delayed, 0, 0, poll->location);
	}
}

/* demo/0, demo/1 and 3 more */
static void say_lanes(struct report_text *text, const struct report *report, const struct tally *tally)
{
	char label[WEFT__LABEL_BYTES];
	size_t i;

	for (i = 0; i < tally->n; i++)
		report_say(text, "%s%.60s", i ? ", " : "",
			   cli_safe(weft__label_lane(&report->rec->names, tally->at[i].worker, tally->at[i].thread_id,
						     label, sizeof(label))));
	if (tally->more)
		report_say(text, " and others");
}

static void say_locations(struct report_text *text, const struct report *report, const struct tally *tally)
{
	char count[CLI_FIGURE];
	size_t i;

	for (i = 0; i < tally->n; i++)
		report_say(text, "%s%s of %.60s", i ? ", " : "", cli_count(tally->at[i].n, count),
			   cli_safe(weft__label_location(&report->rec->names, tally->at[i].location)));
	if (tally->more)
		report_say(text, ", %s of others", cli_count(tally->more, count));
}

/* handle_upload (job.c:167) */
static void say_location(struct report_text *text, const struct report *report, uint32_t location)
{
	char file[WEFT__LABEL_BYTES];

	report_say(text, "%.80s", cli_safe(weft__label_location(&report->rec->names, location)));
	weft__label_file(&report->rec->names, location, file, sizeof(file));
	if (file[0])
		report_say(text, " (%.60s)", cli_safe(cli_base(file)));
}

static void say_cause(struct report_text *text, const struct report *report, const struct weft__cause *cause,
		      bool holder)
{
	struct report_text stack = {.n = 0};
	bool known = report_say_stack(&stack, report, cause->stack, cause->kernel);
	const char *caller = known ? strstr(stack.at, ", called from ") : NULL;

	if (cause->part == WEFT__WAITING || (cause->what && cause->what != WEFT_WAIT_CALL)) {
		report_say(text, "waiting for ");
		report_say_wait(text, report, cause->what, cause->name, cause->object);
	} else if (cause->what) {
		report_say(text, "blocked in ");
		report_say_wait(text, report, cause->what, cause->name, cause->object);
		report_say(text, "%s", caller ? caller : "");
	} else if (cause->call) {
		report_say(text, "blocked in ");
		report_say_call(text, report, cause->call);
		if (known)
			report_say(text, ", in %s", stack.at);
	} else {
		report_say(text, known ? "blocked in %s" : "blocked, in what call is not measured", stack.at);
	}
	if (holder && cause->holder.tid) {
		report_say(text, ", held by ");
		report_say_holder(text, report, &cause->holder);
	}
}

static void say_part(struct report_text *text, const struct report *report, const struct weft__poll *poll,
		     enum weft__part part, bool leads)
{
	const struct weft__split *split = &poll->breakdown.split;
	const struct weft__cause *cause = cause_of(poll, part);
	char figure[CLI_FIGURE];

	report_say(text, "%s%s ", text->n ? ", " : "", cli_ns(split->ns[part], figure));
	switch (part) {
	case WEFT__ON_CPU:
		report_say(text, "on CPU");
		break;
	case WEFT__PREEMPTED:
		report_say(text, "preempted");
		if (2 * split->throttled_ns > split->ns[part])
			report_say(text, " by the CPU quota");
		break;
	case WEFT__NOT_MEASURED:
		report_say(text, "not measured");
		break;
	default:
		if (cause && !leads)
			say_cause(text, report, cause, true);
		else
			report_say(text, part == WEFT__BLOCKED ? "blocked" : "waiting");
	}
}

/* 41.1 ms on CPU, 8.97 ms preempted; only where one part is not all of it. */
static void say_worst(struct report_text *text, const struct report *report, const struct group *g)
{
	double least = SMALL * (double)g->worst->rank_ns;
	enum weft__part part;
	size_t n = 0;

	if (!g->worst->breakdown.known)
		return;
	for (part = 0; part < WEFT__N_PARTS; part++)
		n += (double)g->worst->breakdown.split.ns[part] >= least;
	for (part = 0; n > 1 && part < WEFT__N_PARTS; part++)
		if ((double)g->worst->breakdown.split.ns[part] >= least)
			say_part(text, report, g->worst, part, part == g->part);
}

static void say_why(struct report_text *text, const struct report *report, struct group *g)
{
	struct report_text heart = {.n = 0};
	const char *why;

	switch (g->part) {
	case WEFT__ON_CPU:
		weft__tree_sort(&g->tree);
		report_say(text, "on CPU%s", report_tree_heart(&heart, report, &g->tree) ? " in " : "");
		report_say(text, "%s", heart.at);
		break;
	case WEFT__PREEMPTED:
		report_say(text, "ready to run, but other threads had the CPU");
		break;
	case WEFT__NOT_MEASURED:
		why = g->worst->breakdown.known ? report_no_switches(report, &g->worst->breakdown)
						: report_no_poll_samples(report, g->worst);
		report_say(text, "most of their time is not measured%s%s", why ? ": " : "", why ? cli_safe(why) : "");
		break;
	default:
		if (g->cause)
			say_cause(text, report, g->cause, true);
		else
			report_say(text, g->part == WEFT__BLOCKED ? "blocked" : "waiting");
	}
}

/* To block is what a pool is for: its long polls harm what waits behind them, and nothing else. */
static uint64_t harm_of(const struct report *report, const struct group *g)
{
	bool pool = weft__label_in_pool(&report->rec->names, g->worst->worker);

	return g->behind_ns + (pool ? 0 : g->total_ns);
}

/* The list is full, and what it had no room for may have been long, too. */
static bool is_cut(const struct weft__poll *polls, size_t n)
{
	return n >= PAGE_LISTS && polls[n - 1].rank_ns >= PAGE_LONG_NS;
}

static void add_group(struct page_findings *list, const struct report *report, struct group *g)
{
	enum page_kind kind = g->running ? PAGE_RUNNING : g->tick ? PAGE_TICK : PAGE_POLL;
	struct page_finding *f = page_add(list, kind, harm_of(report, g));

	f->cause = part_names[g->part];
	f->callback = g->callback ? g->callback->name : NULL;
	f->count = g->n;
	f->total_ns = g->total_ns;
	f->worst_ns = g->worst->rank_ns;
	f->worst_at_ns = g->worst->begin_ns;
	f->n_behind = g->n_behind;
	f->behind_ns = g->behind_ns;
	f->behind_worst_ns = g->behind_worst_ns;
	f->more = is_cut(report->whole->poll.longest, report->whole->poll.n_longest);
	f->query = g->n_behind ? "behind-polls" : g->part == WEFT__BLOCKED ? "calls" : "worst-polls";
	f->location = g->location;
	if (g->cause && g->cause->what) {
		f->what = g->cause->what;
		f->name = g->cause->name;
		f->object = g->cause->object;
	}
	report_say(&f->title, "%s%s of ", g->running ? "unfinished " : "long ", g->tick ? "ticks" : "polls");
	if (g->tick)
		report_say(&f->title, "the %.40s", cli_safe(weft__label_location(&report->rec->names, g->location)));
	else
		say_location(&f->title, report, g->location);
	if (g->callback || g->unnamed)
		report_say(&f->title, ", in %s", g->callback ? "the callback of " : "a callback of ");
	if (g->callback || g->unnamed)
		report_say(&f->title, "%s", g->callback ? g->callback->words : WEFT__CALLBACK_UNNAMED);
	report_say(&f->title, ": ");
	say_why(&f->title, report, g);
	say_worst(&f->worst, report, g);
	say_lanes(&f->who, report, &g->lanes);
	say_locations(&f->behind, report, &g->delayed);
}

static void add_delays(struct page_findings *list, const struct report *report, const struct delays *delays)
{
	size_t i;

	for (i = 0; i < delays->n; i++) {
		struct page_finding *f = page_add(list, PAGE_DELAY, delays->at[i].total_ns);

		f->count = delays->at[i].n;
		f->total_ns = delays->at[i].total_ns;
		f->worst_ns = delays->at[i].worst->rank_ns;
		f->worst_at_ns = delays->at[i].worst->begin_ns - f->worst_ns;
		f->more = is_cut(report->whole->poll.delayed, report->whole->poll.n_delayed);
		f->location = delays->at[i].location;
		f->query = "wake-chains";
		report_say(&f->title, "late polls of ");
		say_location(&f->title, report, f->location);
		if (delays->at[i].behind) {
			report_say(&f->title, ": behind long polls of ");
			say_location(&f->title, report, delays->at[i].behind_location);
		} else {
			report_say(&f->title, ": woken, but no single long poll was in the way");
		}
		say_lanes(&f->who, report, &delays->at[i].lanes);
	}
}

void page_add_polls(struct page_findings *list, const struct report *report)
{
	const struct weft__result *r = report->whole;
	struct groups *groups = weft__calloc(1, sizeof(*groups));
	struct delays *delays = weft__calloc(1, sizeof(*delays));
	size_t i;

	if (groups && delays) {
		group_polls(groups, report, r->poll.longest, r->poll.n_longest, false);
		group_polls(groups, report, r->poll.running, r->poll.n_running, true);
		group_delays(groups, delays, report);
		for (i = 0; i < groups->n; i++)
			if (groups->at[i].n)
				add_group(list, report, &groups->at[i]);
		add_delays(list, report, delays);
	}
	for (i = 0; groups && i < groups->n; i++)
		weft__tree_fini(&groups->at[i].tree);
	weft__free(groups);
	weft__free(delays);
}
