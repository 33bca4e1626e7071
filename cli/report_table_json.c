/* SPDX-License-Identifier: Apache-2.0 */
/* A summary as JSON: the one place that writes its cells. Keys are those of its declaration. A key with dots is an
 * object in an object. An object of which nothing was measured is null, with the reason. */
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "report.h"

struct row {
	struct weft__json *json;
	const struct report *report;
	const struct weft__table *table;
	const struct weft__cell *cells;
};

static void put_cell(const struct row *row, const char *key, enum weft__form form, const struct weft__cell *cell)
{
	const struct weft__names *names = &row->report->rec->names;
	const struct weft_thread *thread;
	struct report_text text = {.n = 0};
	char label[WEFT__LABEL_BYTES];

	switch (form) {
	case WEFT__FORM_SHARE:
	case WEFT__FORM_MEAN:
		weft__json_f64(row->json, key, cell->f);
		break;
	case WEFT__FORM_BOOL:
		weft__json_bool(row->json, key, cell->u);
		break;
	case WEFT__FORM_LANE:
	case WEFT__FORM_WORKER:
		weft__json_text(row->json, key,
				weft__label_lane(names, cell->lane.worker, cell->lane.thread_id, label, sizeof(label)));
		break;
	case WEFT__FORM_THREAD:
		thread = weft__names_thread(names, cell->thread.thread_id);
		weft__json_text(row->json, key, thread ? thread->name : NULL);
		break;
	case WEFT__FORM_LOCATION:
		weft__json_text(row->json, key, weft__label_location(names, cell->location));
		break;
	case WEFT__FORM_FUNCTION:
		weft__json_text(row->json, key, cell->function->name);
		break;
	case WEFT__FORM_STACK: /* as "frames" */
		report_json_frames(row->json, row->report, cell->stack.stack, cell->stack.kernel);
		break;
	case WEFT__FORM_HOLDER: /* as "holder" */
		report_json_holder(row->json, row->report, cell->holder);
		break;
	case WEFT__FORM_WAIT:
		report_say_waited(&text, row->report, cell);
		weft__json_text(row->json, key, text.at);
		break;
	case WEFT__FORM_DATA:
		weft__json_text(row->json, key, cell->data.name);
		break;
	case WEFT__FORM_CALL:
		report_say_call(&text, row->report, (uint32_t)cell->u + 1);
		weft__json_text(row->json, key, text.at);
		break;
	case WEFT__FORM_NAME:
	case WEFT__FORM_MODULE:
		weft__json_text(row->json, key, cell->text);
		break;
	default:
		weft__json_u64(row->json, key, cell->u);
	}
}

static void put_absent(const struct row *row, const char *key, const char *why)
{
	if (why)
		weft__json_absent(row->json, key, why);
	else
		weft__json_null(row->json, key);
}

/* The columns from `first` on that are in the same object as it; `depth` is where its key begins. */
static size_t object_end(const struct row *row, size_t first, size_t depth)
{
	const char *path = row->table->columns[first].json;
	size_t n = depth + strcspn(path + depth, ".") + 1, at = first;

	while (at < row->table->n_columns && strncmp(row->table->columns[at].json, path, n) == 0)
		at++;
	return at;
}

/* Why nothing in an object was measured; NULL: something was, or there is more than one reason. */
static const char *no_object(const struct row *row, size_t first, size_t end)
{
	const char *why = row->cells[first].why;

	for (; first < end && why; first++)
		if (row->cells[first].set || !row->cells[first].why || strcmp(row->cells[first].why, why) != 0)
			why = NULL;
	return why;
}

static void put_columns(const struct row *row, size_t first, size_t end, size_t depth)
{
	char key[64];
	size_t at = first, next;

	for (; at < end; at = next) {
		const struct weft__column *column = &row->table->columns[at];
		size_t n = strcspn(column->json + depth, ".");

		next = at + 1;
		if (!column->json[0])
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)n, column->json + depth);
		if (!column->json[depth + n]) {
			if (row->cells[at].set)
				put_cell(row, key, column->form, &row->cells[at]);
			else
				put_absent(row, key, row->cells[at].why);
			continue;
		}
		next = object_end(row, at, depth);
		if (no_object(row, at, next)) {
			put_absent(row, key, no_object(row, at, next));
			continue;
		}
		weft__json_begin(row->json, key, '{');
		put_columns(row, at, next, depth + n + 1);
		weft__json_end(row->json, '}');
	}
}

void report_json_table(struct weft__json *json, const struct report *report, const char *key, enum weft__table_id table)
{
	struct weft__summary summary;
	size_t i;

	report_summary(report, table, &summary);
	weft__json_begin(json, key, '[');
	for (i = 0; i < summary.n_rows; i++) {
		struct row row = {json, report, summary.table, weft__summary_cell(&summary, i, 0)};

		weft__json_begin(json, NULL, '{');
		put_columns(&row, 0, summary.table->n_columns, 0);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
	weft__summary_fini(&summary);
}

void report_json_keyed(struct weft__json *json, const struct report *report, const char *key, enum weft__table_id table)
{
	struct weft__summary summary;
	size_t i;

	report_summary(report, table, &summary);
	if (key)
		weft__json_begin(json, key, '{');
	for (i = 0; i < summary.n_rows; i++) {
		struct row row = {json, report, summary.table, weft__summary_cell(&summary, i, 0)};

		weft__json_begin(json, row.cells[1].text, '{');
		put_columns(&row, 2, summary.table->n_columns, 0);
		weft__json_end(json, '}');
	}
	if (key)
		weft__json_end(json, '}');
	weft__summary_fini(&summary);
}

void report_json_one(struct weft__json *json, const struct report *report, enum weft__table_id table)
{
	struct weft__summary summary;

	report_summary(report, table, &summary);
	if (summary.n_rows)
		put_columns(&(struct row){json, report, summary.table, summary.cells}, 0, summary.table->n_columns, 0);
	weft__summary_fini(&summary);
}
