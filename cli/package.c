/* SPDX-License-Identifier: Apache-2.0 */
/* weft report --by-package: whose code the CPU time was spent in. A sample is its leaf's, and counts once as total for
 * each package that is in its stack. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli.h"
#include "export/provenance.h"
#include "print.h"
#include "report.h"

struct row {
	uint32_t package;
	struct weft__weight self, total;
	uint64_t seen; /* the last sample row that it was in, from 1 on */
};

struct packages {
	struct weft__provenance provenance;
	struct row *rows; /* by package, until they are sorted */
	size_t n, cap;
	struct weft__line_list lines;
	struct weft__weight nameless; /* without a frame */
};

static int row_get(struct packages *p, uint32_t package, struct row **ret)
{
	struct row *grown;

	while (p->n <= package) {
		grown = weft__grow(p->rows, &p->cap, p->n, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		p->rows = grown;
		grown[p->n] = (struct row){.package = (uint32_t)p->n};
		p->n++;
	}
	*ret = &p->rows[package];
	return 0;
}

static int add_sample(struct packages *p, const struct weft__frames *frames, const struct weft__sample_row *sample,
		      uint64_t number)
{
	struct row *row;
	uint32_t package;
	size_t i;

	if (weft__frames_lines(frames, sample->stack, sample->kernel, &p->lines) < 0)
		return -ENOMEM;
	if (p->lines.n == 0)
		weft__weight_add(&p->nameless, sample->weight.n, sample->weight.ns);
	for (i = 0; i < p->lines.n; i++) {
		const struct weft__line *line = &p->lines.at[i];
		const struct weft__function *function = &frames->functions[line->function];

		if (weft__provenance_place(&p->provenance, function->module, function->kernel, line->file, &package) <
			    0 ||
		    row_get(p, package, &row) < 0)
			return -ENOMEM;
		if (i == 0)
			weft__weight_add(&row->self, sample->weight.n, sample->weight.ns);
		if (row->seen != number)
			weft__weight_add(&row->total, sample->weight.n, sample->weight.ns);
		row->seen = number;
	}
	return 0;
}

static int most_first(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->self.ns != b->self.ns)
		return a->self.ns > b->self.ns ? -1 : 1;
	return a->total.ns != b->total.ns ? (a->total.ns > b->total.ns ? -1 : 1) : (a->package > b->package) * 2 - 1;
}

static void print_text(const struct packages *p, const struct weft__samples *samples)
{
	char self[CLI_FIGURE], total[CLI_FIGURE];
	size_t i;

	if (p->provenance.elsewhere)
		printf("Recorded on another machine: packages are known by their paths only.\n");
	printf("%6s %9s %9s  %-10s %s\n", "share", "self", "total", "origin", "package");
	for (i = 0; i < p->n; i++) {
		const struct row *row = &p->rows[i];
		const struct weft__package *package = &p->provenance.packages[row->package];
		const char *version = weft__provenance_text(&p->provenance, package->version);

		printf("%5.1f%% %9s %9s  %-10s %s",
		       samples->all.ns ? 100.0 * (double)row->self.ns / (double)samples->all.ns : 0.0,
		       cli_ns(row->self.ns, self), cli_ns(row->total.ns, total), weft__origin_name(package->origin),
		       cli_safe(weft__provenance_text(&p->provenance, package->name)));
		printf("%s%s", version[0] ? " " : "", cli_safe(version));
		printf("%s%s%s\n", package->manager[0] ? " (" : "", package->manager, package->manager[0] ? ")" : "");
	}
	if (p->nameless.n)
		printf("%s of samples without a stack are in none.\n", cli_ns(p->nameless.ns, self));
}

static void json_text(struct weft__json *json, const char *key, const char *text)
{
	weft__json_text(json, key, text[0] ? text : NULL);
}

static void print_json(struct weft__json *json, const struct packages *p)
{
	size_t i;

	weft__json_bool(json, "packages_by_path_only", p->provenance.elsewhere);
	weft__json_u64(json, "in_no_package_ns", p->nameless.ns);
	weft__json_begin(json, "packages", '[');
	for (i = 0; i < p->n; i++) {
		const struct row *row = &p->rows[i];
		const struct weft__package *package = &p->provenance.packages[row->package];

		weft__json_begin(json, NULL, '{');
		weft__json_text(json, "origin", weft__origin_name(package->origin));
		json_text(json, "manager", package->manager);
		json_text(json, "name", weft__provenance_text(&p->provenance, package->name));
		json_text(json, "version", weft__provenance_text(&p->provenance, package->version));
		json_text(json, "build_id", weft__provenance_text(&p->provenance, package->build_id));
		weft__json_u64(json, "samples", row->self.n);
		weft__json_u64(json, "self_ns", row->self.ns);
		weft__json_u64(json, "total_ns", row->total.ns);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

int report_packages(const struct report *report, struct weft__json *json)
{
	const struct weft__samples *samples = &report->result->samples;
	const char *pid = weft__names_fact(&report->rec->names, "process.pid"), *why = report_no_samples(report);
	struct packages p = {.n = 0};
	int rc = weft__provenance_init(&p.provenance, report->rec, NULL);
	size_t i;

	for (i = 0; i < samples->n_rows && rc == 0; i++)
		rc = add_sample(&p, &report->rec->frames, &samples->rows[i], i + 1);
	if (rc == 0 && p.n)
		qsort(p.rows, p.n, sizeof(*p.rows), most_first);
	if (rc == 0 && json) {
		weft__json_begin(json, NULL, '{');
		weft__json_text(json, "pid", pid);
		weft__json_u64(json, "cpu_ns", samples->all.ns);
		print_json(json, &p);
		weft__json_end(json, '}');
	} else if (rc == 0) {
		printf("Process %s\n", pid ? cli_safe(pid) : "unknown");
		if (samples->all.n)
			print_text(&p, samples);
		else
			printf("No CPU time by package: %s.\n", why ? why : "no sample is of what was asked for");
	}
	weft__provenance_fini(&p.provenance);
	weft__free(p.rows);
	weft__free(p.lines.at);
	return rc;
}
