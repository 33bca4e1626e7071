/* SPDX-License-Identifier: Apache-2.0 */
/* The list of findings, and what of it is not about polls, waits or CPU time: locks that are waited for to the end,
 * and the CPU quota. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "page.h"
#include "weft/wait.h"

#define DEADLOCK_NS (UINT64_MAX / 2) /* worse than anything that ends */

struct page_finding *page_add(struct page_findings *list, enum page_kind kind, uint64_t harm_ns)
{
	struct page_finding *at = &list->at[0];
	size_t i;

	if (list->n < PAGE_FINDINGS)
		at = &list->at[list->n++];
	else
		for (i = 1; i < list->n; i++)
			at = list->at[i].harm_ns < at->harm_ns ? &list->at[i] : at;
	memset(at, 0, sizeof(*at));
	at->kind = kind;
	at->harm_ns = harm_ns;
	return at;
}

static int worst_first(const void *a, const void *b)
{
	const struct page_finding *x = a, *y = b;

	if (x->harm_ns != y->harm_ns)
		return x->harm_ns > y->harm_ns ? -1 : 1;
	return strcmp(x->title.at, y->title.at);
}

static void add_deadlock(struct page_findings *list, const struct report *report, uint32_t number)
{
	const struct weft__result *r = report->result;
	struct page_finding *f = page_add(list, PAGE_DEADLOCK, DEADLOCK_NS);
	size_t i, first = r->wait.n_pendings;
	uint32_t at;

	for (i = r->wait.n_pendings; i-- > 0;)
		if (r->wait.pendings[i].deadlock == number) {
			first = i;
			f->count++;
			f->total_ns += r->wait.pendings[i].age_ns;
			f->worst_ns =
				r->wait.pendings[i].age_ns > f->worst_ns ? r->wait.pendings[i].age_ns : f->worst_ns;
		}
	if (first == r->wait.n_pendings)
		return;
	f->worst_at_ns = r->wait.pendings[first].begin_ns;
	report_say(&f->title,
		   f->count == 1 ? "deadlock: a thread waits for itself" : "deadlock: %zu threads wait for each other",
		   (size_t)f->count);
	at = (uint32_t)first;
	do {
		report_say(&f->worst, f->worst.n ? "; " : "");
		report_say_pending(&f->worst, report, &r->wait.pendings[at]);
		at = r->wait.pendings[at].next;
	} while (at != first && at != WEFT__NO_PENDING);
}

void page_add_pending(struct page_findings *list, const struct report *report)
{
	const struct weft__result *r = report->result;
	struct report_text stack = {.n = 0};
	struct page_finding *f = NULL;
	uint32_t number;
	size_t i;

	for (number = 1; number <= r->wait.n_deadlocks; number++)
		add_deadlock(list, report, number);
	for (i = 0; i < r->wait.n_pendings; i++) { /* the oldest first */
		const struct weft__pending *p = &r->wait.pendings[i];

		if (p->deadlock || p->age_ns < PAGE_LONG_NS)
			continue;
		if (f && f->object == p->object && f->what == p->what) {
			f->count++;
			f->total_ns += p->age_ns;
			f->harm_ns += p->age_ns;
			continue;
		}
		if (f)
			break; /* the rest is in the full report */
		f = page_add(list, PAGE_PENDING, p->age_ns);
		f->count = 1;
		f->total_ns = f->worst_ns = p->age_ns;
		f->worst_at_ns = p->begin_ns;
		f->object = p->object;
		f->what = p->what;
		f->name = p->name;
		report_say(&f->title, "a wait that had not ended: ");
		report_say_pending(&f->title, report, p);
		if (report_say_stack(&stack, report, p->stack, 0))
			report_say(&f->worst, "waiting in %s", stack.at);
		stack.n = 0;
		if (p->holder && p->holder != p->tid && report_say_stack(&stack, report, p->holder_stack, 0))
			report_say(&f->worst, "%sthe holder is in %s", f->worst.n ? "; " : "", stack.at);
	}
}

static void add_quota(struct page_findings *list, const struct report *report)
{
	const struct weft__throttling *t = &report->result->throttling;
	struct page_finding *f;

	if (t->n == 0 || t->ns < PAGE_LONG_NS)
		return;
	f = page_add(list, PAGE_QUOTA, t->ns);
	f->count = t->times;
	f->total_ns = t->ns;
	report_say_throttling(&f->worst, report);
	report_say(&f->title, "the cgroup's CPU quota stopped the process");
}

struct page_findings *page_findings(const struct report *report)
{
	struct page_findings *list = weft__calloc(1, sizeof(*list));

	if (!list)
		return NULL;
	page_add_pending(list, report);
	page_add_polls(list, report);
	page_add_waits(list, report);
	page_add_cpu(list, report);
	add_quota(list, report);
	qsort(list->at, list->n, sizeof(list->at[0]), worst_first);
	return list;
}
