/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the rows of every table of a recording: weft/trace.h as others see it. */
#include <stdio.h>
#include <weft/trace.h>

int main(int argc, char **argv)
{
	struct weft_trace_table table = {sizeof(table), NULL, NULL, 0};
	const char *path = argc > 1 ? argv[1] : ".";
	struct weft_trace *trace;
	struct weft_trace_rows *rows;
	struct weft_error err;
	size_t i, n, all = 0;

	if (weft_trace_open(&trace, &path, 1, NULL, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	for (i = 0; weft_trace_table(i, &table) == 0; i++) {
		if (weft_trace_rows_open(&rows, trace, table.name, NULL, &err) < 0)
			return 1;
		for (n = 0; weft_trace_rows_next(rows) > 0;)
			n++;
		weft_trace_rows_close(rows);
		all += n;
	}
	weft_trace_close(trace);
	printf("%s\n", all ? "fine" : "no rows");
	return all == 0;
}
