/* SPDX-License-Identifier: Apache-2.0 */
/* An aggregate that SQLite lacks. */
#include <stdlib.h>

#include "base/alloc.h"
#include "query.h"

/* percentile(value, p): the value that p of 100 are at or below; p from 0 to 100. */
struct values {
	double *at, p;
	size_t n, cap;
};

static void percentile_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct values *values = sqlite3_aggregate_context(context, sizeof(*values));
	double *grown;

	(void)argc;
	if (!values || sqlite3_value_numeric_type(argv[0]) == SQLITE_NULL)
		return;
	values->p = sqlite3_value_double(argv[1]);
	grown = weft__grow(values->at, &values->cap, values->n, sizeof(*grown));
	if (!grown) {
		sqlite3_result_error_nomem(context);
		return;
	}
	values->at = grown;
	grown[values->n++] = sqlite3_value_double(argv[0]);
}

static int least_first(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static void percentile_final(sqlite3_context *context)
{
	struct values *values = sqlite3_aggregate_context(context, 0);
	size_t at;

	if (!values || values->n == 0)
		return;
	if (!(values->p >= 0 && values->p <= 100)) {
		sqlite3_result_error(context, "percentile(value, p): p is from 0 to 100", -1);
	} else {
		qsort(values->at, values->n, sizeof(*values->at), least_first);
		at = (size_t)(values->p / 100 * (double)values->n + 0.999999);
		at = at > values->n ? values->n : at < 1 ? 1 : at;
		if (values->at[at - 1] == (double)(int64_t)values->at[at - 1])
			sqlite3_result_int64(context, (int64_t)values->at[at - 1]);
		else
			sqlite3_result_double(context, values->at[at - 1]);
	}
	weft__free(values->at);
	values->at = NULL;
}

int query_percentile_add(sqlite3 *db)
{
	return sqlite3_create_function(db, "percentile", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, NULL,
				       percentile_step, percentile_final);
}
