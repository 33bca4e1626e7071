/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks that have not ended, and deadlocks among them. */
#include <inttypes.h>
#include <stdio.h>

#include "analyze/label.h"
#include "print.h"
#include "report.h"

#define INDENT 6

static uint32_t thread_of(const struct report *report, uint32_t tid)
{
	return weft__names_thread_of(&report->rec->names, tid);
}

static void say_thread(struct report_text *text, const struct report *report, uint32_t tid)
{
	const struct weft_thread *thread = weft__names_thread(&report->rec->names, thread_of(report, tid));

	report_say(text, "thread %u", tid);
	if (thread && thread->name[0])
		report_say(text, " \"%.40s\"", cli_safe(thread->name));
}

/* thread 7 "A" waits for second_lock, held by thread 8 "B" */
void report_say_pending(struct report_text *text, const struct report *report, const struct weft__pending *p)
{
	say_thread(text, report, p->tid);
	report_say(text, " waits for ");
	report_say_wait(text, report, p->what, p->name, p->object);
	if (p->holder == p->tid) {
		report_say(text, ", which it holds itself");
	} else if (p->holder) {
		report_say(text, ", held by ");
		say_thread(text, report, p->holder);
	} else {
		report_say(text, ", holder not known");
	}
}

/* The stack of the holder only where it is not shown as that of a wait of its own. */
static void print_pending(const struct report *report, const struct weft__pending *p, bool holder)
{
	struct report_text text = {.n = 0};

	report_say_pending(&text, report, p);
	printf("%s\n", text.at);
	text.n = 0;
	printf("%*sin %s\n", INDENT + 6, "",
	       report_say_stack(&text, report, p->stack, 0) ? text.at : "what: not measured");
	text.n = 0;
	if (holder && p->holder && p->holder != p->tid)
		printf("%*sthe holder is in %s\n", INDENT + 6, "",
		       report_say_stack(&text, report, p->holder_stack, 0)
			       ? text.at
			       : "what: not measured, or it was on a CPU then");
}

static void print_deadlock(const struct report *report, uint32_t number)
{
	const struct weft__result *r = report->result;
	uint64_t age_ns = UINT64_MAX;
	char figure[CLI_FIGURE];
	size_t i, n = 0, first = 0;
	uint32_t at;

	for (i = r->wait.n_pendings; i-- > 0;)
		if (r->wait.pendings[i].deadlock == number) {
			n++;
			first = i;
			age_ns = r->wait.pendings[i].age_ns < age_ns ? r->wait.pendings[i].age_ns : age_ns;
		}
	if (n == 1)
		printf("%sdeadlock:%s a thread waits for itself, for %s\n", cli_style(CLI_RED), cli_style(CLI_PLAIN),
		       cli_ns(age_ns, figure));
	else
		printf("%sdeadlock:%s %zu threads wait for each other, for %s\n", cli_style(CLI_RED),
		       cli_style(CLI_PLAIN), n, cli_ns(age_ns, figure));
	at = (uint32_t)first;
	do {
		printf("%*s", INDENT, "");
		print_pending(report, &r->wait.pendings[at], false);
		at = r->wait.pendings[at].next;
	} while (at != first && at != WEFT__NO_PENDING);
}

void report_pending_headline(const struct report *report)
{
	const struct weft__result *r = report->result;
	char figure[CLI_FIGURE];
	uint32_t number;
	size_t i;

	for (number = 1; number <= r->wait.n_deadlocks; number++)
		print_deadlock(report, number);
	for (i = 0; i < r->wait.n_pendings && r->wait.n_deadlocks == 0; i++) {
		printf("%sstill waiting:%s for %s, ", cli_style(CLI_RED), cli_style(CLI_PLAIN),
		       cli_ns(r->wait.pendings[i].age_ns, figure));
		print_pending(report, &r->wait.pendings[i], true);
		break;
	}
}

void report_pending(const struct report *report)
{
	const struct weft__result *r = report->result;
	char figure[CLI_FIGURE];
	size_t i;

	if (r->wait.n_pendings == 0)
		return;
	cli_heading("Waits for locks that have not ended");
	for (i = 0; i < r->wait.n_pendings && i < report->top; i++) {
		printf("%3zu  %9s  ", i + 1, cli_ns(r->wait.pendings[i].age_ns, figure));
		print_pending(report, &r->wait.pendings[i], true);
	}
	if (r->wait.n_pendings > i)
		printf("and %zu more\n", r->wait.n_pendings - i);
}

static void thread(struct weft__json *json, const struct report *report, const char *key, uint32_t tid)
{
	const struct weft_thread *def = weft__names_thread(&report->rec->names, thread_of(report, tid));

	if (!tid) {
		weft__json_absent(json, key, "not known");
		return;
	}
	weft__json_begin(json, key, '{');
	weft__json_u64(json, "tid", tid);
	weft__json_text(json, "thread", def ? def->name : NULL);
	weft__json_end(json, '}');
}

static void one(struct weft__json *json, const struct report *report, const struct weft__pending *p)
{
	struct report_text text = {.n = 0};

	weft__json_begin(json, NULL, '{');
	thread(json, report, "waiter", p->tid);
	weft__json_u64(json, "age_ns", p->age_ns);
	weft__json_u64(json, "begin_mono_ns", p->begin_ns);
	weft__json_text(json, "kind", report_wait_kind(p->what));
	weft__json_text(json, "name", weft__names_string(&report->rec->names, p->name));
	weft__json_u64(json, "object", p->object);
	weft__json_text(json, "object_name", weft__frames_data(&report->rec->frames, p->object));
	thread(json, report, "holder", p->holder);
	weft__json_bool(json, "deadlock", p->deadlock != 0);
	report_json_frames(json, report, p->stack, 0);
	weft__json_begin(json, "in_holder", '{');
	report_json_frames(json, report, p->holder_stack, 0);
	weft__json_end(json, '}');
	report_say_pending(&text, report, p);
	weft__json_text(json, "meaning", text.at);
	weft__json_end(json, '}');
}

void report_json_pending(struct weft__json *json, const struct report *report)
{
	const struct weft__result *r = report->result;
	uint32_t number;
	size_t i;

	weft__json_begin(json, "deadlocks", '[');
	for (number = 1; number <= r->wait.n_deadlocks; number++) {
		weft__json_begin(json, NULL, '[');
		for (i = 0; i < r->wait.n_pendings; i++)
			if (r->wait.pendings[i].deadlock == number)
				one(json, report, &r->wait.pendings[i]);
		weft__json_end(json, ']');
	}
	weft__json_end(json, ']');
	weft__json_begin(json, "still_waiting", '[');
	for (i = 0; i < r->wait.n_pendings; i++)
		one(json, report, &r->wait.pendings[i]);
	weft__json_end(json, ']');
}
