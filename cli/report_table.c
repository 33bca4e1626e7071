/* SPDX-License-Identifier: Apache-2.0 */
/* A summary as text: the one place that writes its cells. What was not measured has its reason below the table,
 * once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "cli.h"
#include "print.h"
#include "report.h"
#include "trace/reasons.h"

#define FUNCTION_COLUMNS 58
#define MODULE_COLUMNS 24
#define TITLE_BYTES 40
#define REASONS_MAX 16 /* of one table */

/* A table that is being printed. */
struct printing {
	const struct report *report;
	const struct weft__summary *summary;
	const struct report_view *view;
	size_t *order; /* rows that are printed, and then those that are not */
	size_t n, n_all;
	const char *reasons[REASONS_MAX];
	size_t n_reasons;
};

/* Cells for which there is nothing to be said. */
static bool is_none(const struct weft__cell *cell)
{
	return !cell->why || strcmp(cell->why, WEFT__NONE_HERE) == 0;
}

static bool is_left(const struct weft__column *column)
{
	return column->type == WEFT__TEXT || column->form == WEFT__FORM_CALL;
}

static const struct weft__cell *cell_of(const struct printing *p, size_t i, size_t column)
{
	return weft__summary_cell(p->summary, p->order[i], column);
}

/* Why no cell of a column has a value, when that is one reason for all; NULL otherwise. */
static const char *no_column(const struct printing *p, size_t column)
{
	const char *why = p->n ? cell_of(p, 0, column)->why : NULL;
	size_t i;

	for (i = 0; i < p->n && why; i++)
		if (cell_of(p, i, column)->set || is_none(cell_of(p, i, column)) ||
		    strcmp(cell_of(p, i, column)->why, why) != 0)
			return NULL;
	return why;
}

/* Columns that may be left out say something in some row. */
static bool says_nothing(const struct printing *p, size_t column)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (cell_of(p, i, column)->set && cell_of(p, i, column)->u)
			return false;
	return true;
}

static size_t reason_of(struct printing *p, const char *why)
{
	size_t i;

	for (i = 0; i < p->n_reasons; i++)
		if (strcmp(p->reasons[i], why) == 0)
			return i;
	if (p->n_reasons < REASONS_MAX)
		p->reasons[p->n_reasons++] = why;
	return i;
}

static void say_absent(struct report_text *text, struct printing *p, const struct weft__cell *cell)
{
	if (is_none(cell))
		report_say(text, "-");
	else if (strcmp(cell->why, "not known") == 0)
		report_say(text, "not known");
	else
		report_say(text, "not measured [%zu]", reason_of(p, cell->why) + 1);
}

static void say_figure(struct report_text *text, enum weft__form form, const struct weft__cell *cell)
{
	char figure[CLI_FIGURE];

	switch (form) {
	case WEFT__FORM_COUNT:
		report_say(text, "%s", cli_count(cell->u, figure));
		break;
	case WEFT__FORM_NS:
		report_say(text, "%s", cli_ns(cell->u, figure));
		break;
	case WEFT__FORM_MOMENT:
		report_say(text, "%s", cli_moment(cell->u, figure));
		break;
	case WEFT__FORM_SHARE:
		report_say(text, "%s", cli_percent(cell->f, figure));
		break;
	case WEFT__FORM_MEAN:
		report_say(text, "%.2f", cell->f);
		break;
	case WEFT__FORM_BOOL:
		report_say(text, "%s", cell->u ? "yes" : "no");
		break;
	case WEFT__FORM_OBJECT:
		report_say(text, "0x%" PRIx64, cell->u);
		break;
	default:
		report_say(text, "%" PRIu64, cell->u);
	}
}

void report_say_waited(struct report_text *text, const struct report *report, const struct weft__cell *cell)
{
	if (cell->wait.one)
		report_say_wait(text, report, cell->wait.what, cell->wait.name, cell->wait.object);
	else
		report_say(text, "%.60s", cli_safe(weft__names_string(&report->rec->names, cell->wait.name)));
}

static void say_cell(struct report_text *text, const struct report *report, enum weft__form form,
		     const struct weft__cell *cell)
{
	const struct weft__names *names = &report->rec->names;
	char label[WEFT__LABEL_BYTES], function[4 * FUNCTION_COLUMNS + 1];

	switch (form) {
	case WEFT__FORM_WORKER:
		if (cell->lane.worker == WEFT_WORKER_NONE) {
			report_say(text, "-");
			break;
		}
		/* fallthrough */
	case WEFT__FORM_LANE:
		report_say(text, "%.60s",
			   weft__label_lane(names, cell->lane.worker, cell->lane.thread_id, label, sizeof(label)));
		break;
	case WEFT__FORM_THREAD:
		if (cell->thread.thread_id)
			report_say(text, "%.40s",
				   weft__label_thread(names, cell->thread.thread_id, label, sizeof(label)));
		else
			report_say(text, "(%u)", cell->thread.tid);
		break;
	case WEFT__FORM_LOCATION:
		weft__label_file(names, cell->location, label, sizeof(label));
		report_say(text, "%.60s%s%.40s", weft__label_location(names, cell->location), label[0] ? "  " : "",
			   cli_base(label));
		break;
	case WEFT__FORM_FUNCTION:
		report_say(text, "%s%s", cli_function(cell->function->name, FUNCTION_COLUMNS, function),
			   cell->function->kernel ? " [k]" : "");
		break;
	case WEFT__FORM_MODULE:
		report_say(text, "%s", cli_function(cli_base(cell->text), MODULE_COLUMNS, function));
		break;
	case WEFT__FORM_NAME:
		report_say(text, "%.100s", cell->text);
		break;
	case WEFT__FORM_STACK:
		if (!report_say_stack(text, report, cell->stack.stack, cell->stack.kernel))
			report_say(text, "not known");
		break;
	case WEFT__FORM_HOLDER:
		report_say_holders(text, report, cell->holder);
		break;
	case WEFT__FORM_WAIT:
		report_say_waited(text, report, cell);
		break;
	case WEFT__FORM_DATA:
		if (cell->data.name)
			report_say(text, "%.60s", cell->data.name);
		else
			report_say(text, "0x%" PRIx64, cell->data.address);
		break;
	case WEFT__FORM_CALL:
		report_say_call(text, report, (uint32_t)cell->u + 1);
		break;
	default:
		say_figure(text, form, cell);
	}
}

static int compare_rows(const struct printing *p, size_t a, size_t b)
{
	uint64_t x = weft__summary_cell(p->summary, a, p->view->by)->u;
	uint64_t y = weft__summary_cell(p->summary, b, p->view->by)->u;

	return x != y ? (x > y ? -1 : 1) : a < b ? -1 : a > b;
}

static int by_column(const void *a, const void *b, void *data)
{
	return compare_rows(data, *(const size_t *)a, *(const size_t *)b);
}

/* The rows that there are, in their order, cut at the view's limit. */
static bool choose_rows(struct printing *p)
{
	const struct weft__summary *s = p->summary;
	size_t i;

	p->order = weft__calloc(s->n_rows + 1, sizeof(*p->order));
	if (!p->order)
		return false;
	for (i = 0; i < s->n_rows; i++) {
		const struct weft__cell *need = weft__summary_cell(s, i, p->view->need);

		if (!p->view->need || (need->set && need->u))
			p->order[p->n_all++] = i;
	}
	if (p->view->by)
		qsort_r(p->order, p->n_all, sizeof(*p->order), by_column, p);
	p->n = p->view->all || p->n_all < p->report->top ? p->n_all : p->report->top;
	return true;
}

/* The heading of a column. Where all polls are ticks it calls them so. */
static const char *title_of(const struct printing *p, size_t column, char buf[TITLE_BYTES])
{
	const char *title = p->summary->table->columns[column].title, *polls = strstr(title, "polls");

	if (!polls || !weft__only_ticks(p->report->result, &p->report->rec->names))
		return title;
	snprintf(buf, TITLE_BYTES, "%.*sticks%s", (int)(polls - title), title, polls + strlen("polls"));
	return buf;
}

static void print_rows(struct printing *p, const uint8_t *columns, size_t n_columns)
{
	const char *titles[WEFT__COLUMNS_MAX];
	char left[WEFT__COLUMNS_MAX][TITLE_BYTES + 1], title[TITLE_BYTES];
	struct cli_table table = {.titles = titles, .n_columns = n_columns};
	size_t i, k;

	for (k = 0; k < n_columns; k++) {
		const struct weft__column *column = &p->summary->table->columns[columns[k]];

		snprintf(left[k], sizeof(left[k]), "%s%s", is_left(column) ? "<" : "", title_of(p, columns[k], title));
		titles[k] = left[k];
	}
	for (i = 0; i < p->n; i++)
		for (k = 0; k < n_columns; k++) {
			const struct weft__cell *cell = cell_of(p, i, columns[k]);
			struct report_text text = {.n = 0};

			if (cell->set)
				say_cell(&text, p->report, p->summary->table->columns[columns[k]].form, cell);
			else
				say_absent(&text, p, cell);
			cli_cell(&table, "%s", text.at);
		}
	cli_table_print(&table);
}

static void print_more(const struct printing *p)
{
	char figure[CLI_FIGURE];
	uint64_t rest_ns = 0;
	size_t i;

	for (i = p->n; i < p->n_all && p->view->rest; i++)
		rest_ns += cell_of(p, i, p->view->rest)->u;
	if (p->n_all + p->view->beyond == p->n)
		return;
	printf("and %s more%s", cli_count(p->n_all + p->view->beyond - p->n, figure),
	       p->view->more ? p->view->more : "");
	if (p->view->rest)
		printf(" with %s", cli_ns(rest_ns, figure));
	putchar('\n');
}

void report_view(const struct report *report, const struct weft__summary *summary, const struct report_view *view)
{
	struct printing p = {.report = report, .summary = summary, .view = view};
	uint8_t shown[WEFT__COLUMNS_MAX];
	char title[TITLE_BYTES];
	const char *why;
	size_t i, k, n = 0;

	if (!choose_rows(&p)) {
		puts("(out of memory: this table is missing)");
		return;
	}
	for (k = 0; k < view->n_columns && p.n; k++)
		if (!no_column(&p, view->columns[k]) &&
		    !(view->optional == view->columns[k] && says_nothing(&p, view->columns[k])))
			shown[n++] = view->columns[k];
	if (p.n) {
		print_rows(&p, shown, n);
		print_more(&p);
	}
	for (i = 0; i < p.n_reasons; i++)
		printf("[%zu] not measured: %s\n", i + 1, cli_safe(p.reasons[i]));
	for (k = 0; k < view->n_columns && p.n; k++) {
		why = no_column(&p, view->columns[k]);
		for (i = 0; i < k && why; i++)
			if (no_column(&p, view->columns[i]) && strcmp(no_column(&p, view->columns[i]), why) == 0)
				why = NULL;
		if (!why)
			continue;
		printf("%s", title_of(&p, view->columns[k], title));
		for (i = k + 1; i < view->n_columns; i++)
			if (no_column(&p, view->columns[i]) && strcmp(no_column(&p, view->columns[i]), why) == 0)
				printf(", %s", title_of(&p, view->columns[i], title));
		printf(": not measured: %s\n", cli_safe(why));
	}
	weft__free(p.order);
}

void report_summary(const struct report *report, enum weft__table_id table, struct weft__summary *ret)
{
	struct weft__summary_of of = {report->rec, report->result, &report->profile};

	if (weft__summary_init(ret, table, &of) == 0)
		return;
	cli_warn("out of memory: table %s is missing", weft__tables[table].name);
	*ret = (struct weft__summary){.table = &weft__tables[table]};
}

void report_print(const struct report *report, enum weft__table_id table, const struct report_view *view)
{
	struct weft__summary summary;

	report_summary(report, table, &summary);
	report_view(report, &summary, view);
	weft__summary_fini(&summary);
}
