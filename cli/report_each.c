/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings of a report. As JSON they come in order of time, all of them. As text the process that did the most
 * comes first: who runs a script or a build sees at once what mattered in it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli.h"
#include "page.h"
#include "print.h"
#include "report.h"

#define OTHERS_SHOWN 6 /* processes below the first page */
#define LITTLE_NS UINT64_C(50000000)
#define KEEP_EVENTS UINT64_C(4000000) /* of all recordings whose analysis stays in memory until it is printed */

struct feed {
	struct weft__analysis *analysis;
	uint64_t total;
};

static int feed_run(void *data, const struct weft__record *at, const struct weft__record *end)
{
	struct feed *feed = data;

	return weft__analysis_push_run(feed->analysis, at, end);
}

static void feed_progress(void *data, uint64_t n_events)
{
	struct feed *feed = data;

	cli_progress(n_events, feed->total);
}

static int find_names(struct weft__recording *rec, struct report *report)
{
	struct weft__naming naming;
	int rc;

	weft__recording_naming(rec, report->no_symbols, &naming);
	weft__profile_want(report->result, &rec->frames);
	rc = weft__frames_name(&rec->frames, &naming);
	if (rc == 0)
		rc = weft__frames_name_data(&rec->frames, &naming);
	return rc < 0 ? rc : weft__profile_init(&report->profile, &report->result->samples, &rec->frames);
}

/* A recording and what was found out about it. */
struct study {
	struct report report;
	struct weft__recording *rec;
	struct weft__analysis *analysis; /* NULL: to be made, again */
	struct weft__result *shown;      /* with lists as long as is asked for */
	size_t number;                   /* in order of time */
	uint64_t cpu_ns, wall_ns;
	uint64_t rank_ns; /* that of the one that did the most among those of its process */
	bool little;      /* no loop, hardly any CPU time: a row will do */
};

static bool context_met; /* in some recording there is one that was asked for */

/* As with names: what nothing was done for is no failure, but it may be a mistake. */
static void check_context(const struct report_opts *opts)
{
	const struct weft__analysis_opts *of = &opts->analysis;

	if (context_met)
		return;
	if (of->span || of->trace_hi || of->trace_lo)
		cli_warn("--span: nothing here was done for it");
	if (of->label)
		cli_warn("--label '%s': nothing here was done with it", of->label);
	if (of->endpoint)
		cli_warn("--endpoint '%s': nothing here was done for it", of->endpoint);
}

static size_t at_most(size_t n, size_t most)
{
	return n < most ? n : most;
}

/* The first page is made of longer lists than the tables show. */
static int cut_lists(struct study *s)
{
	const struct weft__result *whole = s->report.whole;
	size_t top = s->report.top;

	if (!s->shown)
		s->shown = weft__calloc(1, sizeof(*s->shown));
	if (!s->shown)
		return -ENOMEM;
	*s->shown = *whole;
	s->shown->poll.n_longest = at_most(whole->poll.n_longest, top);
	s->shown->poll.n_running = at_most(whole->poll.n_running, top);
	s->shown->poll.n_delayed = at_most(whole->poll.n_delayed, top);
	s->shown->wait.n_longest = at_most(whole->wait.n_longest, top);
	s->shown->off.n_stucks = at_most(whole->off.n_stucks, top);
	s->report.result = s->shown;
	return 0;
}

/* Reads from the beginning even where a window begins later: who a task is and who woke it may lie before. */
static int study(struct study *s, const struct report_opts *opts)
{
	struct weft__recording *rec = s->rec;
	struct weft__analysis_opts aopts = opts->analysis;
	struct feed feed = {.total = rec->n_events};
	struct weft__events_ops ops = {.run = feed_run, .progress = feed_progress, .data = &feed};
	int rc;

	s->report = (struct report){
		.rec = rec,
		.from_ns = opts->from_ns,
		.to_ns = opts->to_ns,
		.top = opts->analysis.top ? opts->analysis.top : 10,
		.no_symbols = opts->no_symbols,
		.by_location = opts->analysis.location != NULL,
	};
	if (s->report.top < PAGE_LISTS) /* in all forms of the report: they say the same */
		aopts.top = PAGE_LISTS;
	aopts.names = &rec->names;
	aopts.start_ns = rec->start_ns;
	aopts.from_ns = opts->from_ns ? weft__recording_time(rec, opts->from_ns) : 0;
	aopts.to_ns = weft__recording_time(rec, opts->to_ns);
	s->report.end_ns = rec->last_ns < aopts.to_ns ? rec->last_ns : aopts.to_ns;
	rc = weft__analysis_open(&feed.analysis, &aopts);
	s->analysis = rc == 0 ? feed.analysis : NULL;
	if (rc == 0)
		rc = weft__recording_events(rec, 0, aopts.to_ns, &ops);
	cli_progress_end();
	if (rc == 0)
		rc = weft__analysis_finish(s->analysis, s->report.end_ns, &s->report.whole);
	if (rc == 0)
		rc = cut_lists(s);
	context_met |= rc == 0 && s->report.result->context_met;
	return rc;
}

static void forget(struct study *s)
{
	weft__profile_fini(&s->report.profile);
	weft__analysis_close(s->analysis);
	weft__free(s->shown);
	s->analysis = NULL;
	s->shown = NULL;
}

/* Damage is reported where the recording is. */
static int show(struct study *s, const struct report_opts *opts, struct weft__json *json, int *code)
{
	int rc = s->analysis ? 0 : study(s, opts);

	if (rc == 0)
		rc = find_names(s->rec, &s->report);
	if (rc == 0 && opts->by_package)
		rc = opts->by_package(&s->report, json);
	else if (rc == 0 && json)
		report_json(json, &s->report);
	else if (rc == 0 && opts->full)
		report_text(&s->report);
	else if (rc == 0)
		page_print(&s->report);
	if (rc == 0 && cli_tell_damage(s->rec))
		*code = CLI_DAMAGED;
	return rc;
}

static int fail(const struct study *s, int rc)
{
	return cli_fail("cannot analyse %s: %s", s->rec->files[0].path, weft_strerror(rc));
}

bool report_chosen(const struct weft__recording *rec, const struct report_opts *opts)
{
	const char *pid = weft__names_fact(&rec->names, "process.pid");
	char wanted[24];

	snprintf(wanted, sizeof(wanted), "%" PRIu64, opts->pid);
	return !opts->has_pid || (pid && strcmp(pid, wanted) == 0);
}

int report_each_json(struct weft__recordings *list, const struct report_opts *opts, int code)
{
	struct weft__json json = {.out = stdout};
	size_t i;

	weft__json_begin(&json, NULL, '{');
	weft__json_u64(&json, "version", 1);
	weft__json_begin(&json, "recordings", '[');
	for (i = 0; i < list->n; i++) {
		struct study s = {.rec = &list->all[i]};
		int rc = report_chosen(s.rec, opts) ? show(&s, opts, &json, &code) : 0;

		forget(&s);
		if (rc < 0)
			return fail(&s, rc);
	}
	weft__json_end(&json, ']');
	if (opts->shorts->n || opts->shorts->unheard)
		report_short_json(&json, opts->shorts);
	weft__json_end(&json, '}');
	check_context(opts);
	return code;
}

static void weigh(struct study *s)
{
	const struct weft__result *r = s->report.result;

	s->cpu_ns = s->rank_ns = page_cpu_ns(&s->report);
	s->wall_ns = weft__recording_since(s->rec, s->rec->last_ns);
	s->little = s->cpu_ns < LITTLE_NS && r->off.n_stucks == 0 && s->rec->dump == 0 &&
		    r->n_kind[WEFT_KIND_POLL_BEGIN] + r->n_kind[WEFT_KIND_POLL_NEXT] + r->n_kind[WEFT_KIND_POLL] +
				    r->n_kind[WEFT_KIND_POLL_COUNT] + r->custom.n_kinds ==
			    0;
}

static int most_first(const void *a, const void *b)
{
	const struct study *x = a, *y = b;

	if (x->little != y->little)
		return x->little ? 1 : -1;
	if (x->rank_ns != y->rank_ns)
		return x->rank_ns > y->rank_ns ? -1 : 1;
	if (x->little && x->wall_ns != y->wall_ns)
		return x->wall_ns > y->wall_ns ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* The dumps of a process stay together. */
static void order(struct study *all, size_t n)
{
	size_t i, j;

	for (i = 0; i < n; i++)
		for (j = 0; all[i].rec->dump && j < n; j++)
			if (memcmp(all[i].rec->id, all[j].rec->id, sizeof(all[i].rec->id)) == 0 &&
			    all[j].cpu_ns > all[i].rank_ns)
				all[i].rank_ns = all[j].cpu_ns;
	qsort(all, n, sizeof(*all), most_first);
}

/* Large ones are read a second time rather than all be in memory at once. */
static int study_all(struct study *all, size_t n, const struct report_opts *opts)
{
	uint64_t events = 0;
	size_t i;
	int rc;

	for (i = 0; i < n; i++) {
		rc = study(&all[i], opts);
		if (rc)
			return fail(&all[i], rc);
		weigh(&all[i]);
		events += all[i].rec->n_events;
		if (!all[i].little && events > KEEP_EVENTS)
			forget(&all[i]);
	}
	order(all, n);
	return 0;
}

static void say_mostly(struct report_text *text, const struct study *s)
{
	const struct weft__result *r = s->report.result;
	const struct weft__wait_row *wait = r->wait.n_rows ? &r->wait.rows[0] : NULL;
	uint64_t blocked_ns = 0;
	char figure[CLI_FIGURE];
	size_t i;

	for (i = 0; i < r->off.n_threads; i++)
		blocked_ns += r->off.threads[i].blocked_ns;
	if (wait && wait->ns >= s->cpu_ns && 4 * wait->ns >= s->wall_ns && 2 * wait->ns >= blocked_ns) {
		report_say(text, "waited %s: ", cli_ns(wait->ns, figure));
		report_say_wait(text, &s->report, wait->what, wait->name,
				wait->objects || !wait->n_reported ? UINT64_MAX : wait->object);
	} else if (blocked_ns > s->cpu_ns && 4 * blocked_ns >= s->wall_ns) {
		report_say(text, "was blocked %s", cli_ns(blocked_ns, figure));
	} else {
		report_say(text, s->cpu_ns ? "ran" : "not measured");
	}
}

static void print_row(struct cli_table *table, const struct study *s)
{
	const struct weft__names *names = &s->rec->names;
	const char *pid = weft__names_fact(names, "process.pid"), *name = weft__names_fact(names, "service.name");
	const char *line = weft__names_fact(names, "process.cmdline");
	uint64_t period_ns = s->report.result->samples.period_ns;
	struct report_text mostly = {.n = 0};
	char figure[CLI_FIGURE];

	say_mostly(&mostly, s);
	cli_cell(table, "%.12s", pid && pid[0] ? cli_safe(pid) : "?");
	cli_cell(table, "%.48s", cli_safe(line && line[0] ? line : name && name[0] ? name : "not known"));
	if (s->cpu_ns || !period_ns)
		cli_cell(table, "%s", s->cpu_ns ? cli_ns(s->cpu_ns, figure) : "not measured");
	else
		cli_cell(table, "below %s", cli_ns(period_ns, figure));
	cli_cell(table, "%s", cli_ns(s->wall_ns, figure));
	cli_cell(table, "%.80s", mostly.at);
}

static void print_rows(const struct study *all, size_t n, size_t rows)
{
	static const char *const titles[] = {"<pid", "<command", "CPU", "recorded", "<mostly"};
	struct cli_table table = {.titles = titles, .n_columns = sizeof(titles) / sizeof(titles[0])};
	uint64_t cpu_ns = 0;
	char figure[CLI_FIGURE], count[CLI_FIGURE];
	size_t i;

	for (i = 0; i < n && i < rows; i++)
		print_row(&table, &all[i]);
	cli_table_print(&table);
	for (; i < n; i++)
		cpu_ns += all[i].cpu_ns;
	if (n > rows && cpu_ns)
		printf("and %s more, with %s of CPU together\n", cli_count(n - rows, count), cli_ns(cpu_ns, figure));
	else if (n > rows)
		printf("and %s more, without a sample\n", cli_count(n - rows, count));
}

static void print_others(const struct study *all, size_t n, bool full)
{
	char figure[CLI_FIGURE];

	if (full)
		cli_heading("Processes without a loop that used less than %s of CPU (weft report --pid PID has all of "
			    "one)",
			    cli_ns(LITTLE_NS, figure));
	else
		cli_heading("Other processes (weft report --pid PID has the page of one)");
	print_rows(all, n, full ? all[0].report.top : OTHERS_SHOWN);
}

/* Of several processes the first page has one, the one that did the most, and the others as rows. */
static bool has_section(const struct study *s, size_t i, const struct report_opts *opts)
{
	return i == 0 || opts->has_pid || ((opts->full || opts->by_package) && !s->little);
}

static int print_all(struct study *all, size_t n, const struct report_opts *opts, int code)
{
	const char *query = NULL;
	size_t i;
	int rc;

	for (i = 0; i < n && has_section(&all[i], i, opts); i++) {
		if (i > 0)
			putchar('\n');
		rc = show(&all[i], opts, NULL, &code);
		if (rc == 0 && i == 0 && !opts->full)
			query = page_query(&all[i].report);
		forget(&all[i]);
		if (rc < 0)
			return fail(&all[i], rc);
	}
	if (i < n)
		print_others(&all[i], n - i, opts->full);
	for (; i < n; i++)
		if (cli_tell_damage(all[i].rec))
			code = CLI_DAMAGED;
	if ((opts->shorts->n || opts->shorts->unheard) && !opts->has_pid) {
		putchar('\n');
		report_short_text(opts->shorts);
	}
	if (!opts->full && !opts->by_package)
		page_print_more(query);
	return code;
}

int report_each_text(struct weft__recordings *list, const struct report_opts *opts, size_t n, int code)
{
	struct study *all = weft__calloc(n, sizeof(*all));
	size_t i, k = 0;
	int rc;

	if (!all)
		return cli_fail("out of memory");
	for (i = 0; i < list->n; i++)
		if (report_chosen(&list->all[i], opts)) {
			all[k].rec = &list->all[i];
			all[k].number = k;
			k++;
		}
	rc = n > 1 ? study_all(all, n, opts) : 0;
	code = rc ? rc : print_all(all, n, opts, code);
	if (code != CLI_FAILED)
		check_context(opts);
	for (i = 0; i < n; i++)
		forget(&all[i]);
	weft__free(all);
	return code;
}
