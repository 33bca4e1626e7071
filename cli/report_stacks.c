/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of one poll in words: how much CPU time, where, and the calls that led there. Calls that all samples
 * of a branch have in common are one line; what is light is put together. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "page.h"
#include "print.h"
#include "report.h"

#define INDENT 8
#define LINE_COLUMNS 118
#define NAME_COLUMNS 48
#define CALLER_COLUMNS 32 /* who calls is worth less than one who calls him besides */
#define LINES_MAX 12
#define DEPTH_MAX 24
#define LIGHT 0.02 /* of what was sampled in the poll */

static const char *name_of(const struct report *report, uint32_t function, size_t columns, char *buf)
{
	const struct weft__function *f;
	size_t n;

	if (function == WEFT__NODE_CUT || function == WEFT__NODE_LOST) {
		snprintf(buf, 4 * columns + 1, "(%s)", function == WEFT__NODE_CUT ? "cut" : "lost");
		return buf;
	}
	f = &report->rec->frames.functions[function];
	cli_function(f->name, columns - (f->kernel ? 4 : 0), buf);
	n = strlen(buf);
	snprintf(buf + n, 4 * columns + 1 - n, "%s", f->kernel ? " [k]" : "");
	return buf;
}

static const struct weft__function *function_at(const struct report *report, const struct weft__tree *tree,
						uint32_t node)
{
	return &report->rec->frames.functions[tree->nodes[node].function];
}

/* Who called it, where it is not the program's own code; 0: nobody to be named. */
static uint32_t caller_of(const struct report *report, const struct weft__tree *tree, uint32_t node)
{
	const char *exe = weft__names_fact(&report->rec->names, "process.exe"), *module;
	uint32_t best = 0;
	int how = 0;

	if (!exe || tree->nodes[node].function >= WEFT__NODE_LOST)
		return 0;
	module = function_at(report, tree, node)->module;
	if (report_is_own(function_at(report, tree, node), exe))
		return 0;
	for (node = tree->nodes[node].parent; node != 0 && how < 2; node = tree->nodes[node].parent) {
		how = tree->nodes[node].function < WEFT__NODE_LOST
			      ? report_calls(function_at(report, tree, node), module, exe)
			      : 0;
		if (how == 2 || (how == 1 && !best))
			best = node;
	}
	return best;
}

/* What most of the samples of a tree are in. */
bool report_tree_heart(struct report_text *text, const struct report *report, const struct weft__tree *tree)
{
	char name[4 * PAGE_NAME_COLUMNS + 1];
	uint32_t at = tree->n ? weft__tree_heart(tree) : 0, from = at ? caller_of(report, tree, at) : 0;

	if (at != 0)
		report_say(text, "%s", page_function(function_at(report, tree, at), name));
	if (from != 0)
		report_say(text, ", called from %s", page_function(function_at(report, tree, from), name));
	return at != 0;
}

/* "deflate, called from compress_body" */
bool report_poll_heart(struct report_text *text, const struct report *report, const struct weft__poll *poll,
		       bool caller, double *share)
{
	struct weft__tree tree = {0};
	char name[4 * NAME_COLUMNS + 1];
	uint32_t at = 0, from = 0;

	if (weft__tree_add_poll(&tree, &report->rec->frames, poll) == 0) {
		weft__tree_sort(&tree);
		at = weft__tree_heart(&tree);
	}
	if (at != 0) {
		report_say(text, "%s", name_of(report, tree.nodes[at].function, NAME_COLUMNS, name));
		*share = (double)tree.nodes[at].total.ns / (double)tree.nodes[0].total.ns;
		from = caller ? caller_of(report, &tree, at) : 0;
		if (from != 0)
			report_say(text, ", called from %s",
				   name_of(report, tree.nodes[from].function, NAME_COLUMNS, name));
	}
	weft__tree_fini(&tree);
	return at != 0;
}

struct printing {
	const struct report *report;
	const struct weft__tree *tree;
	uint64_t whole_ns;
	double least_ns; /* what is lighter is put together */
};

/* The last node of the calls that begin at `at` and do not branch. */
static uint32_t chain_end(const struct weft__tree *tree, uint32_t at)
{
	while (tree->nodes[at].self.n == 0 && tree->nodes[at].child && !tree->nodes[tree->nodes[at].child].next)
		at = tree->nodes[at].child;
	return at;
}

static size_t chain_length(const struct weft__tree *tree, uint32_t first, uint32_t last)
{
	size_t n = 1;

	for (; last != first; last = tree->nodes[last].parent)
		n++;
	return n;
}

static const char *name_in_chain(const struct printing *p, uint32_t at, uint32_t last, char *buf)
{
	return name_of(p->report, p->tree->nodes[at].function, at == last ? NAME_COLUMNS : CALLER_COLUMNS, buf);
}

/* "a > b > (7 more) > y > z" in so many columns: the first, and as many of the last as there is room for. */
static void print_chain(const struct printing *p, uint32_t first, uint32_t last, size_t columns)
{
	const struct weft__tree *tree = p->tree;
	uint32_t shown[64], at;
	size_t n = 0, total = chain_length(tree, first, last), used;
	char name[4 * NAME_COLUMNS + 1];

	used = cli_columns(name_in_chain(p, first, last, name)) + 3;
	for (at = last; at != first && n < 64; at = tree->nodes[at].parent) {
		used += cli_columns(name_in_chain(p, at, last, name)) + 3;
		/* Unless this is all, there must be room to say how many are left out. */
		if (used + (tree->nodes[at].parent == first ? 0 : 13) > columns && n > 0)
			break;
		shown[n++] = at;
	}
	fputs(name_in_chain(p, first, last, name), stdout);
	if (n + 1 < total)
		printf(" > (%zu more)", total - n - 1);
	while (n-- > 0)
		printf(" > %s", name_in_chain(p, shown[n], last, name));
}

static void print_figures(const struct printing *p, struct weft__weight weight, size_t depth)
{
	char share[CLI_FIGURE], ns[CLI_FIGURE], count[CLI_FIGURE];

	printf("%*s%7s %9s %5s  %*s", INDENT, "",
	       cli_percent(p->whole_ns ? (double)weight.ns / (double)p->whole_ns : 0, share), cli_ns(weight.ns, ns),
	       cli_count(weight.n, count), (int)(2 * depth), "");
}

/* Depth is that of branches, and ends somewhere: a broken stack may branch at each of its frames. */
static size_t deeper(size_t depth)
{
	return depth < DEPTH_MAX ? depth + 1 : depth;
}

static size_t count_lines(const struct printing *p, uint32_t parent, size_t depth)
{
	const struct weft__tree *tree = p->tree;
	size_t lines = 0, light = 0;
	uint32_t at;

	for (at = tree->nodes[parent].child; at; at = tree->nodes[at].next) {
		if ((double)tree->nodes[at].total.ns < p->least_ns || depth == DEPTH_MAX)
			light = 1;
		else
			lines += 1 + count_lines(p, chain_end(tree, at), deeper(depth));
	}
	return lines + light;
}

static void print_calls(const struct printing *p, uint32_t parent, size_t depth)
{
	const struct weft__tree *tree = p->tree;
	struct weft__weight light = {0, 0};
	size_t n_light = 0;
	uint32_t at, last;

	for (at = tree->nodes[parent].child; at; at = tree->nodes[at].next) {
		if ((double)tree->nodes[at].total.ns < p->least_ns || depth == DEPTH_MAX) {
			weft__weight_add(&light, tree->nodes[at].total.n, tree->nodes[at].total.ns);
			n_light++;
			continue;
		}
		last = chain_end(tree, at);
		print_figures(p, tree->nodes[at].total, depth);
		print_chain(p, at, last, LINE_COLUMNS - INDENT - 25 - 2 * depth);
		putchar('\n');
		print_calls(p, last, deeper(depth));
	}
	if (n_light == 0)
		return;
	print_figures(p, light, depth);
	printf("(%zu more)\n", n_light);
}

/* As much as LINES_MAX lines hold. */
static void print_tree(struct printing *p)
{
	const struct weft__tree *tree = p->tree;

	p->least_ns = LIGHT * (double)tree->nodes[0].total.ns;
	while (count_lines(p, 0, 0) > LINES_MAX && p->least_ns <= (double)tree->nodes[0].total.ns)
		p->least_ns = p->least_ns * 1.25 + 1;
	print_calls(p, 0, 0);
	if (tree->nodes[0].self.n) {
		print_figures(p, tree->nodes[0].self, 0);
		puts("(without a stack)");
	}
}

/* Of what was blocked or waited, the stacks there are. */
static void print_causes(struct printing *p, const struct weft__poll *poll)
{
	struct weft__tree tree = {0};
	size_t i;
	int rc = 0;

	for (i = 0; i < poll->breakdown.n_causes && rc == 0; i++) {
		const struct weft__cause *cause = &poll->breakdown.causes[i];
		struct weft__weight weight = {cause->n, cause->ns};

		if (cause->stack || cause->kernel)
			rc = weft__tree_add_wait(&tree, &p->report->rec->frames, cause->stack, cause->kernel, weight);
	}
	if (rc < 0)
		puts("(out of memory: the stacks are missing)");
	if (rc == 0 && tree.n > 1) {
		weft__tree_sort(&tree);
		p->tree = &tree;
		printf("%*soff the CPU:\n", INDENT, "");
		print_tree(p);
		p->tree = NULL;
	}
	weft__tree_fini(&tree);
}

static void print_samples(struct printing *p, const struct weft__poll *poll)
{
	struct weft__tree tree = {0};
	char figure[CLI_FIGURE];

	if (weft__tree_add_poll(&tree, &p->report->rec->frames, poll) < 0) {
		puts("(out of memory: the stacks are missing)");
		weft__tree_fini(&tree);
		return;
	}
	weft__tree_sort(&tree);
	p->tree = &tree;
	if (tree.n > 0)
		print_tree(p);
	p->tree = NULL;
	if (poll->stacks_beyond.n)
		printf("%16s%s of it with stacks that were not kept: more than the analysis holds\n", "",
		       cli_ns(poll->stacks_beyond.ns, figure));
	weft__tree_fini(&tree);
}

void report_poll_stacks(const struct report *report, const struct weft__poll *poll)
{
	struct printing printing = {report, NULL, report_poll_whole(poll), 0};

	if (poll->sampled.n)
		print_samples(&printing, poll);
	print_causes(&printing, poll);
}
