/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries as rows, for SQL and other people's programs. */
#include <errno.h>
#include <stdio.h>

#include "analyze/label.h"
#include "trace/inside.h"
#include "trace/summary.h"

static int find_functions(struct weft__scan *t, const struct weft__result *result, struct weft__profile *profile)
{
	struct weft__frames *frames = &t->rec->frames;
	struct weft__naming naming;
	int rc;

	weft__recording_naming(t->rec, t->set->no_symbols, &naming);
	weft__profile_want(result, frames);
	rc = weft__frames_name(frames, &naming);
	if (rc == 0)
		rc = weft__frames_name_data(frames, &naming);
	return rc < 0 ? rc : weft__profile_init(profile, &result->samples, frames);
}

static const char *innermost(struct weft__scan *t, const struct weft__cell *cell)
{
	const struct weft__frames *frames = &t->rec->frames;

	if (weft__frames_lines(frames, cell->stack.stack, cell->stack.stack ? 0 : cell->stack.kernel, &t->lines) < 0 ||
	    t->lines.n == 0)
		return NULL;
	return frames->functions[t->lines.at[weft__frames_outside(frames, &t->lines)].function].name;
}

/* The text of a cell that is one in SQL; NULL: there is none, or no memory for it. */
static const char *text_of(struct weft__scan *t, enum weft__form form, const struct weft__cell *cell)
{
	const struct weft__names *names = &t->rec->names;
	const struct weft_thread *thread;
	char label[WEFT__LABEL_WAIT_BYTES];

	switch (form) {
	case WEFT__FORM_LANE:
	case WEFT__FORM_WORKER:
		return weft__texts_add(&t->set->texts, weft__label_lane(names, cell->lane.worker, cell->lane.thread_id,
									label, sizeof(label)));
	case WEFT__FORM_THREAD:
		thread = weft__names_thread(names, cell->thread.thread_id);
		return thread ? thread->name : NULL;
	case WEFT__FORM_LOCATION:
		return weft__label_location(names, cell->location);
	case WEFT__FORM_FUNCTION:
		return cell->function->name;
	case WEFT__FORM_STACK:
		return innermost(t, cell);
	case WEFT__FORM_HOLDER:
		if (cell->holder->thread_id)
			weft__label_lane(names, cell->holder->worker, cell->holder->thread_id, label, sizeof(label));
		else
			snprintf(label, sizeof(label), "(%u)", cell->holder->tid);
		return weft__texts_add(&t->set->texts, label);
	case WEFT__FORM_WAIT:
		if (!cell->wait.one)
			return weft__names_string(names, cell->wait.name);
		return weft__texts_add(&t->set->texts,
				       weft__label_waited(names, &t->rec->frames, cell->wait.what, cell->wait.name,
							  cell->wait.object, label, sizeof(label)));
	case WEFT__FORM_DATA:
		return cell->data.name;
	default:
		return cell->text;
	}
}

static void set_cell(struct weft__scan *t, struct weft__row *row, size_t i, const struct weft__cell *cell)
{
	const struct weft__column *column = &t->table->columns[i];

	if (!cell->set)
		return;
	switch (column->type) {
	case WEFT__INT:
	case WEFT__HEX:
		weft__set_int(row, i, column->form == WEFT__FORM_THREAD_ID ? weft__id(t, cell->u) : (int64_t)cell->u);
		break;
	case WEFT__REAL:
		row->at[i].f = cell->f;
		row->set |= UINT64_C(1) << i;
		break;
	default:
		weft__set_text(row, i, text_of(t, column->form, cell));
	}
}

int weft__summary_rows(struct weft__scan *t, const struct weft__result *result)
{
	struct weft__profile profile = {0};
	struct weft__summary_of of = {t->rec, result, &profile};
	struct weft__summary summary = {0};
	struct weft__row *row;
	size_t i, k;
	int rc = find_functions(t, result, &profile);

	if (rc == 0)
		rc = weft__summary_init(&summary, t->opts.table, &of);
	for (i = 0; i < summary.n_rows && rc == 0; i++) {
		row = weft__row_new(t);
		if (!row) {
			rc = -ENOMEM;
			break;
		}
		weft__set_int(row, 0, (int64_t)t->number);
		for (k = 1; k < t->table->n_columns; k++)
			if (weft__wanted(t, k))
				set_cell(t, row, k, weft__summary_cell(&summary, i, k));
		weft__row_give(t, row);
	}
	weft__summary_fini(&summary);
	weft__profile_fini(&profile);
	return rc;
}
