/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/json.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "cli.h"
#include "package/keys.h"
#include "polls.h"
#include "print.h"

static const char *const part_names[POLLS_PARTS] = {"on CPU", "blocked", "waiting", "preempted", "not measured"};
static const char *const part_keys[POLLS_PARTS] = {"on_cpu_ns", "blocked_ns", "waiting_ns", "preempted_ns",
						   "not_measured_ns"};

static int by_poll(const void *left, const void *right)
{
	const struct polls_hit *a = left, *b = right;
	int order;

	if (a->poll != b->poll)
		return a->poll < b->poll ? -1 : 1;
	order = strcmp(a->state, b->state);
	if (order)
		return order;
	if (a->functions != b->functions)
		return a->functions < b->functions ? -1 : 1;
	return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

static int heaviest_first(const void *left, const void *right)
{
	const struct polls_hit *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->n != b->n ? (a->n > b->n ? -1 : 1) : by_poll(left, right);
}

static bool together(const struct polls_hit *a, const struct polls_hit *b)
{
	return by_poll(a, b) == 0;
}

/* Stacks that look alike are one: those with the same functions. */
static int number_functions(struct polls *p, struct polls_names *names)
{
	struct weft__keys seen = {0};
	struct weft__buf key = {0};
	size_t i, k;
	int rc = 0;

	for (i = 0; i < p->n_hits && rc == 0; i++) {
		weft__buf_clear(&key);
		rc = p->functions(p->data, &p->hits[i], names);
		for (k = 0; k < names->n && rc == 0; k++)
			weft__buf_put(&key, names->at[k], strlen(names->at[k]) + 1);
		if (rc == 0)
			rc = key.oom ? -ENOMEM : weft__keys_add(&seen, key.bytes, key.n, &p->hits[i].functions);
	}
	weft__keys_fini(&seen);
	weft__buf_free(&key);
	return rc;
}

/* Hits of one poll and stack become one, and each poll knows its own. */
static void sort_hits(struct polls *p)
{
	size_t i, kept = 0, first;

	if (p->n_hits == 0)
		return;
	qsort(p->hits, p->n_hits, sizeof(*p->hits), by_poll);
	for (i = 1; i < p->n_hits; i++) {
		if (together(&p->hits[i], &p->hits[kept])) {
			p->hits[kept].n += p->hits[i].n;
			p->hits[kept].ns += p->hits[i].ns;
		} else {
			p->hits[++kept] = p->hits[i];
		}
	}
	p->n_hits = kept + 1;
	for (first = 0; first < p->n_hits; first = i) {
		for (i = first; i < p->n_hits && p->hits[i].poll == p->hits[first].poll; i++)
			;
		qsort(p->hits + first, i - first, sizeof(*p->hits), heaviest_first);
		p->at[p->hits[first].poll].first = first;
		p->at[p->hits[first].poll].n_hits = i - first;
	}
}

static int by_length(const void *left, const void *right)
{
	const struct polls_one *a = left, *b = right;

	if (a->duration_ns != b->duration_ns)
		return a->duration_ns > b->duration_ns ? -1 : 1;
	return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

static int by_time(const void *left, const void *right)
{
	const struct polls_one *a = left, *b = right;
	int64_t at = a->start_real_ns + a->begin_ns, other = b->start_real_ns + b->begin_ns;

	return at != other ? (at < other ? -1 : 1) : by_length(left, right);
}

static int by_cpu(const void *left, const void *right)
{
	const struct polls_one *a = left, *b = right;

	if (a->parts[POLLS_ON_CPU] != b->parts[POLLS_ON_CPU])
		return a->parts[POLLS_ON_CPU] > b->parts[POLLS_ON_CPU] ? -1 : 1;
	return by_length(left, right);
}

static uint64_t positive(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static void print_parts(const struct polls_one *one)
{
	char figure[CLI_FIGURE];
	const char *between = ": ";
	size_t i;

	for (i = 0; i < POLLS_PARTS; i++)
		if (one->parts[i] > 0) {
			printf("%s%s %s", between, cli_ns((uint64_t)one->parts[i], figure), part_names[i]);
			between = ", ";
		}
}

static int print_hit(const struct polls *p, const struct polls_hit *hit, const struct polls_opts *opts,
		     struct polls_names *names)
{
	char figure[CLI_FIGURE];
	size_t i;

	if (p->functions(p->data, hit, names) < 0)
		return -ENOMEM;
	if (hit->ns)
		printf("    %s %s%s", cli_ns(positive(hit->ns), figure), hit->state, hit->n ? ", " : "");
	if (hit->n)
		printf("%s%" PRId64 " sample%s", hit->ns ? "" : "    ", hit->n, hit->n == 1 ? "" : "s");
	if (!hit->ns)
		printf(": %s", hit->state);
	if (hit->name)
		printf(" (%s)", cli_safe(hit->name));
	putchar('\n');
	for (i = 0; i < names->n && i < opts->depth; i++)
		printf("     - %3zu: %s\n", i, cli_safe(names->at[i]));
	if (names->n > opts->depth)
		printf("     - %3zu more frame(s) (pass --stack-depth=%zu to show)\n", names->n - opts->depth,
		       names->n);
	return 0;
}

static int print_one(const struct polls *p, const struct polls_one *one, const struct polls_opts *opts,
		     struct polls_names *names)
{
	char when[CLI_FIGURE], moment[CLI_FIGURE], figure[CLI_FIGURE];
	size_t i;

	if (one->start_real_ns)
		printf("%s ", cli_wall((uint64_t)(one->start_real_ns + one->begin_ns), when));
	printf("%s", cli_moment(positive(one->begin_ns), moment));
	printf(" thread %" PRId64, one->tid);
	if (one->thread)
		printf(" \"%s\"", cli_safe(one->thread));
	if (one->worker)
		printf(" worker %s", cli_safe(one->worker));
	printf(" - poll of %s%s", cli_ns(positive(one->duration_ns), figure), one->running ? " so far" : "");
	if (one->location)
		printf(" of %s", cli_safe(one->location));
	print_parts(one);
	if (one->endpoint)
		printf("; for %s", cli_safe(one->endpoint));
	putchar('\n');
	for (i = 0; i < one->n_hits; i++)
		if (print_hit(p, &p->hits[one->first + i], opts, names) < 0)
			return -ENOMEM;
	if (one->n_hits == 0)
		printf("    no sample fell into it\n");
	putchar('\n');
	return 0;
}

static void json_text(struct weft__json *json, const char *key, const char *text)
{
	weft__json_text(json, key, text && text[0] ? text : NULL);
}

static int json_hit(struct weft__json *json, const struct polls *p, const struct polls_hit *hit,
		    struct polls_names *names)
{
	size_t i;

	if (p->functions(p->data, hit, names) < 0)
		return -ENOMEM;
	weft__json_begin(json, NULL, '{');
	weft__json_text(json, "state", hit->state);
	weft__json_i64(json, "samples", hit->n);
	weft__json_i64(json, "ns", hit->ns);
	json_text(json, "wait_for", hit->name);
	weft__json_begin(json, "frames", '[');
	for (i = 0; i < names->n; i++)
		weft__json_text(json, NULL, names->at[i]);
	weft__json_end(json, ']');
	weft__json_end(json, '}');
	return 0;
}

static int json_one(struct weft__json *json, const struct polls *p, const struct polls_one *one,
		    struct polls_names *names)
{
	char when[CLI_FIGURE], span[24] = "";
	size_t i;
	int rc = 0;

	if (one->span)
		snprintf(span, sizeof(span), "%016" PRIx64, one->span);
	weft__json_begin(json, NULL, '{');
	weft__json_text(json, "time",
			one->start_real_ns ? cli_wall((uint64_t)(one->start_real_ns + one->begin_ns), when) : NULL);
	weft__json_i64(json, "begin_ns", one->begin_ns);
	weft__json_i64(json, "duration_ns", one->duration_ns);
	weft__json_bool(json, "running", one->running);
	weft__json_i64(json, "tid", one->tid);
	json_text(json, "thread", one->thread);
	json_text(json, "worker", one->worker);
	json_text(json, "location", one->location);
	json_text(json, "endpoint", one->endpoint);
	json_text(json, "span", span);
	for (i = 0; i < POLLS_PARTS; i++) {
		if (one->parts[i] == POLLS_NONE)
			weft__json_null(json, part_keys[i]);
		else
			weft__json_i64(json, part_keys[i], one->parts[i]);
	}
	weft__json_begin(json, "samples", '[');
	for (i = 0; i < one->n_hits && rc == 0; i++)
		rc = json_hit(json, p, &p->hits[one->first + i], names);
	weft__json_end(json, ']');
	weft__json_end(json, '}');
	return rc;
}

/* What a poll is one of. The function is the innermost one of the heaviest stack in it. */
static int group_of(const struct polls *p, const struct polls_one *one, enum polls_group group,
		    struct polls_names *names, const char **ret)
{
	const struct polls_hit *hit = one->n_hits ? &p->hits[one->first] : NULL;

	*ret = group == POLLS_OF_LOCATION   ? one->location
	       : group == POLLS_OF_THREAD   ? one->thread
	       : group == POLLS_OF_WORKER   ? one->worker
	       : group == POLLS_OF_ENDPOINT ? one->endpoint
					    : NULL;
	if (group == POLLS_OF_FUNCTION && hit) {
		if (p->functions(p->data, hit, names) < 0)
			return -ENOMEM;
		*ret = names->n ? names->at[0] : hit->name;
	}
	if (!*ret)
		*ret = "(none)";
	return 0;
}

struct group {
	const char *name;
	uint64_t n;
	int64_t total_ns, longest_ns;
};

static int most_first(const void *left, const void *right)
{
	const struct group *a = left, *b = right;

	return a->total_ns != b->total_ns ? (a->total_ns > b->total_ns ? -1 : 1) : strcmp(a->name, b->name);
}

static int find_groups(const struct polls *p, const struct polls_opts *opts, struct polls_names *names,
		       struct group **ret, size_t *n)
{
	struct group *groups = NULL, *grown;
	size_t cap = 0, i, k;
	const char *name;

	*n = 0;
	for (i = 0; i < p->n; i++) {
		if (group_of(p, &p->at[i], opts->group, names, &name) < 0)
			return -ENOMEM;
		for (k = 0; k < *n && strcmp(groups[k].name, name) != 0; k++)
			;
		if (k == *n) {
			grown = weft__grow(groups, &cap, *n, sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			groups = grown;
			groups[(*n)++] = (struct group){.name = name};
		}
		groups[k].n++;
		groups[k].total_ns += p->at[i].duration_ns;
		if (p->at[i].duration_ns > groups[k].longest_ns)
			groups[k].longest_ns = p->at[i].duration_ns;
	}
	if (*n)
		qsort(groups, *n, sizeof(*groups), most_first);
	*ret = groups;
	return 0;
}

static void json_groups(struct weft__json *json, const struct group *groups, size_t n)
{
	size_t i;

	weft__json_begin(json, "groups", '[');
	for (i = 0; i < n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_text(json, "name", groups[i].name);
		weft__json_u64(json, "polls", groups[i].n);
		weft__json_i64(json, "total_ns", groups[i].total_ns);
		weft__json_i64(json, "longest_ns", groups[i].longest_ns);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}

static void print_groups(const struct group *groups, size_t n)
{
	char total[CLI_FIGURE], longest[CLI_FIGURE];
	size_t i;

	printf("%8s %10s %10s  %s\n", "polls", "total", "longest", "");
	for (i = 0; i < n; i++)
		printf("%8" PRIu64 " %10s %10s  %s\n", groups[i].n, cli_ns(positive(groups[i].total_ns), total),
		       cli_ns(positive(groups[i].longest_ns), longest), cli_safe(groups[i].name));
}

static int print_grouped(const struct polls *p, const struct polls_opts *opts, struct polls_names *names,
			 struct weft__json *json)
{
	struct group *groups = NULL;
	size_t n, shown;
	int rc = find_groups(p, opts, names, &groups, &n);

	shown = n < opts->top || (opts->json && !opts->top_given) ? n : opts->top;
	if (rc == 0 && opts->json)
		json_groups(json, groups, shown);
	else if (rc == 0)
		print_groups(groups, shown);
	weft__free(groups);
	return rc;
}

static int print_each(const struct polls *p, const struct polls_opts *opts, struct polls_names *names,
		      struct weft__json *json)
{
	size_t i, shown = p->n < opts->top || (opts->json && !opts->top_given) ? p->n : opts->top;
	int rc = 0;

	if (opts->json)
		weft__json_begin(json, "polls", '[');
	for (i = 0; i < shown && rc == 0; i++)
		rc = opts->json ? json_one(json, p, &p->at[i], names) : print_one(p, &p->at[i], opts, names);
	if (opts->json)
		weft__json_end(json, ']');
	else if (shown < p->n)
		printf("%zu more (pass --top=%zu to show)\n", p->n - shown, p->n);
	return rc;
}

int polls_print(struct polls *p, const struct polls_opts *opts)
{
	struct weft__json json = {.out = stdout};
	struct polls_names names = {0};
	char figure[CLI_FIGURE];
	int rc;

	rc = number_functions(p, &names);
	if (rc < 0) {
		weft__free(names.at);
		return rc;
	}
	sort_hits(p);
	if (p->n)
		qsort(p->at, p->n, sizeof(*p->at),
		      opts->sort == POLLS_BY_TIME  ? by_time
		      : opts->sort == POLLS_BY_CPU ? by_cpu
						   : by_length);
	if (opts->json) {
		weft__json_begin(&json, NULL, '{');
		weft__json_u64(&json, "version", 1);
		weft__json_u64(&json, "min_ns", opts->min_ns);
		weft__json_u64(&json, "count", p->n + p->n_beyond);
		weft__json_text(&json, "samples_are", p->source);
	} else if (p->n == 0) {
		printf("No poll was as long as %s.\n", cli_ns(opts->min_ns, figure));
	}
	rc = opts->group != POLLS_EACH ? print_grouped(p, opts, &names, &json) : print_each(p, opts, &names, &json);
	if (opts->json)
		weft__json_end(&json, '}');
	if (p->n_beyond)
		cli_warn("%" PRIu64 " more polls are not listed: give a larger --min", p->n_beyond);
	weft__free(names.at);
	return rc;
}
