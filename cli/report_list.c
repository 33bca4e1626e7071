/* SPDX-License-Identifier: Apache-2.0 */
/* The worst polls and delays, in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "page.h"
#include "print.h"
#include "report.h"

/* task 17 `handle_upload` (server.c:120) */
static void print_task(const struct weft__names *names, uint64_t task, uint32_t location)
{
	char file[WEFT__LABEL_BYTES];

	printf("task %" PRIu64 " ", task);
	if (location == 0 || location >= WEFT__LOCATION_OTHER) {
		fputs(weft__label_location(names, location), stdout);
		return;
	}
	printf("`%s`", cli_safe(weft__label_location(names, location)));
	weft__label_file(names, location, file, sizeof(file));
	if (file[0])
		printf(" (%s)", cli_safe(cli_base(file)));
}

/* A tick is no task's: "tick of the epoll_wait loop". */
static void print_poll_of(const struct report *report, const struct weft__poll *poll)
{
	const struct weft__names *names = &report->rec->names;

	if (page_is_tick(report, poll->worker, poll->location))
		printf("tick of the %s", cli_safe(weft__label_location(names, poll->location)));
	else
		print_task(names, poll->task, poll->location);
}

static void print_lane(const struct weft__names *names, uint32_t worker, uint32_t thread_id)
{
	char label[WEFT__LABEL_BYTES];

	fputs(cli_safe(weft__label_lane(names, worker, thread_id, label, sizeof(label))), stdout);
}

/* "worker demo/1" or "thread io(103)" */
static void print_lane_as(const struct weft__names *names, uint32_t worker, uint32_t thread_id)
{
	fputs(worker == WEFT_WORKER_NONE ? "thread " : "worker ", stdout);
	print_lane(names, worker, thread_id);
}

/* woken 0.4 ms before by task 3 `accept` (server.c:80) on demo/0 */
static void print_wake(const struct report *report, const struct weft__poll *poll)
{
	const struct weft__names *names = &report->rec->names;
	char delay[CLI_FIGURE];

	if (!poll->wake.known) {
		fputs(report_no_wake(report, poll) ? "wake not measured" : "no wake seen", stdout);
		return;
	}
	cli_ns(poll->begin_ns - poll->wake.time_ns, delay);
	if (poll->wake.measured)
		printf("woken %s before by ", delay);
	else if (poll->wake.again)
		printf("woken %s before or earlier (not all polls are recorded), last by ", delay);
	else
		fputs("woken, delay not measured (events are missing), by ", stdout);
	if (poll->wake.in_poll) {
		print_task(names, poll->wake.task, poll->wake.location);
		fputs(" on ", stdout);
		print_lane(names, poll->wake.worker, poll->wake.thread_id);
	} else {
		print_lane(names, poll->wake.worker, poll->wake.thread_id);
		if (!poll->wake.unlisted)
			fputs(" outside any poll", stdout);
	}
}

/* What the worker did while a task waited for it, where one poll was most of it. */
static void print_behind(const struct report *report, const struct weft__poll *poll, int indent)
{
	char figure[CLI_FIGURE];

	if (poll->behind.held_ns < poll->rank_ns / 2 || poll->behind.held_ns == 0)
		return;
	printf(",\n%*sbehind ", indent, "");
	print_task(&report->rec->names, poll->behind.task, poll->behind.location);
	printf(", a poll of %s", cli_ns(poll->behind.duration_ns, figure));
}

static void print_when(const struct report *report, uint64_t ns)
{
	char moment[CLI_FIGURE], wall[CLI_FIGURE];

	printf("%s, %s", cli_moment(report_since_start(report, ns), moment),
	       cli_wall(weft__names_real_ns(&report->rec->names, ns), wall));
}

/* Who woke it, who waited in its queue, whom it woke. */
static void print_neighbours(const struct report *report, const struct weft__poll *poll)
{
	printf("%16s", "");
	print_wake(report, poll);
	if (poll->depth == WEFT_DEPTH_UNKNOWN)
		printf("; queue not measured");
	else
		printf("; %u in its queue", poll->depth);
	if (poll->reported) /* whom it woke was recorded before it was, or only counted */
		puts("");
	else
		printf("; woke %u\n", poll->n_wakes);
}

static void print_poll(const struct report *report, const struct weft__poll *poll)
{
	const struct weft__names *names = &report->rec->names;
	struct report_text context = {.n = 0};
	char thread[WEFT__LABEL_BYTES];

	print_lane(names, poll->worker, poll->thread_id);
	printf("  ");
	print_poll_of(report, poll);
	printf("\n%16sat ", "");
	print_when(report, poll->begin_ns);
	if (poll->worker != WEFT_WORKER_NONE)
		printf(", thread %s", cli_safe(weft__label_thread(names, poll->thread_id, thread, sizeof(thread))));
	if (poll->level > 0)
		printf(", nested in %u", poll->level);
	putchar('\n');
	if (!page_is_tick(report, poll->worker, poll->location))
		print_neighbours(report, poll);
	if (report_say_context(&context, report, &poll->context))
		printf("%16s%s\n", "", context.at);
	if (report_has_breakdown(report) || report->result->samples.period_ns + report->result->samples.all.n > 0)
		report_breakdown(report, poll, 16);
	report_poll_stacks(report, poll);
}

static void print_list(const struct report *report, const struct weft__poll *polls, size_t n)
{
	char rank[CLI_FIGURE];
	size_t i;

	for (i = 0; i < n; i++) {
		printf("%3zu  %9s  ", i + 1, cli_ns(polls[i].rank_ns, rank));
		print_poll(report, &polls[i]);
	}
}

static void headline(const struct report *report, enum cli_style style, const char *title, const char *what,
		     const struct weft__poll *poll, bool cpu)
{
	const struct weft__names *names = &report->rec->names;
	char figure[CLI_FIGURE], moment[CLI_FIGURE];

	printf("%s%s:%s %s%s on ", cli_style(style), title, cli_style(CLI_PLAIN), cli_ns(poll->rank_ns, figure), what);
	print_lane_as(names, poll->worker, poll->thread_id);
	printf(" at %s, ", cli_moment(report_since_start(report, poll->begin_ns), moment));
	print_poll_of(report, poll);
	if (cpu &&
	    (report_has_breakdown(report) || report->result->samples.period_ns + report->result->samples.all.n > 0)) {
		printf(",\n%*s", (int)strlen(title) + 2, "");
		report_breakdown_headline(report, poll, (int)strlen(title) + 2);
	}
	if (!page_is_tick(report, poll->worker, poll->location)) {
		printf(",\n%*s", (int)strlen(title) + 2, "");
		print_wake(report, poll);
		print_behind(report, poll, (int)strlen(title) + 2);
	}
	putchar('\n');
}

void report_headline(const struct report *report)
{
	const struct weft__result *r = report->result;
	bool ticks = page_only_ticks(report);

	if (!page_has_loop(report))
		return;

	if (r->poll.n_running > 0 &&
	    (r->poll.n_longest == 0 || r->poll.running[0].rank_ns >= r->poll.longest[0].rank_ns))
		headline(report, CLI_RED, "still running", " so far", &r->poll.running[0], true);
	if (r->poll.n_longest > 0)
		headline(report, CLI_BOLD, ticks ? "worst tick" : "worst poll", "", &r->poll.longest[0], true);
	else
		printf("worst %s: not measured: %s\n", ticks ? "tick" : "poll", report_no_longest(report));
	if (r->poll.n_delayed > 0)
		headline(report, CLI_BOLD, "worst delay", " from wake to poll", &r->poll.delayed[0], false);
	else if (page_has_wakes(report))
		printf("worst delay: not measured: %s\n", report_no_delays(report));
}

void report_longest(const struct report *report)
{
	const struct weft__result *r = report->result;

	if (r->poll.n_longest == 0)
		return;
	cli_heading(page_only_ticks(report) ? "Longest ticks" : "Longest polls");
	print_list(report, r->poll.longest, r->poll.n_longest);
}

void report_running(const struct report *report)
{
	const struct weft__result *r = report->result;
	char count[CLI_FIGURE];

	if (r->poll.open == 0)
		return;
	cli_heading("Still running at the end: %s, with their age", cli_count(r->poll.open, count));
	print_list(report, r->poll.running, r->poll.n_running);
}

void report_delayed(const struct report *report)
{
	const struct weft__result *r = report->result;
	char rank[CLI_FIGURE], moment[CLI_FIGURE];
	size_t i;

	if (r->poll.n_delayed == 0)
		return;
	cli_heading("Longest waits from wake to poll");
	for (i = 0; i < r->poll.n_delayed; i++) {
		const struct weft__poll *poll = &r->poll.delayed[i];

		printf("%3zu  %9s  ", i + 1, cli_ns(poll->rank_ns, rank));
		print_lane(&report->rec->names, poll->worker, poll->thread_id);
		printf("  ");
		print_task(&report->rec->names, poll->task, poll->location);
		printf(" polled at %s,\n%16s", cli_moment(report_since_start(report, poll->begin_ns), moment), "");
		print_wake(report, poll);
		print_behind(report, poll, 16);
		putchar('\n');
	}
}
