/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of the first page as JSON, and what limits the recording. */
#include "analyze/label.h"
#include "base/alloc.h"
#include "page.h"

static const char *const kinds[] = {
#define PAGE_KIND(name, text) [PAGE_##name] = text,
	PAGE_KINDS(PAGE_KIND)
#undef PAGE_KIND
};

static void text(struct weft__json *json, const char *key, const struct report_text *value)
{
	weft__json_text(json, key, value->n ? value->at : NULL);
}

static bool has_location(enum page_kind kind)
{
	return kind == PAGE_POLL || kind == PAGE_TICK || kind == PAGE_RUNNING || kind == PAGE_DELAY;
}

static void behind(struct weft__json *json, const struct page_finding *f)
{
	weft__json_begin(json, "behind", '{');
	weft__json_u64(json, "polls", f->n_behind);
	weft__json_u64(json, "total_ns", f->behind_ns);
	weft__json_u64(json, "longest_ns", f->behind_worst_ns);
	text(json, "of", &f->behind);
	weft__json_end(json, '}');
}

static void one(struct weft__json *json, const struct report *report, const struct page_finding *f)
{
	weft__json_begin(json, NULL, '{');
	weft__json_text(json, "kind", kinds[f->kind]);
	weft__json_text(json, "cause", f->cause);
	weft__json_text(json, "title", f->title.at);
	if (has_location(f->kind))
		report_json_location(json, report, f->location);
	if (f->callback)
		weft__json_text(json, "callback", f->callback);
	weft__json_u64(json, "count", f->count);
	weft__json_bool(json, "count_is_at_least", f->more);
	weft__json_u64(json, "total_ns", f->total_ns);
	if (f->worst_ns)
		weft__json_u64(json, "longest_ns", f->worst_ns);
	else
		weft__json_absent(json, "longest_ns", "these are known as a sum only");
	if (f->worst_at_ns)
		weft__json_u64(json, "longest_at_ns", report_since_start(report, f->worst_at_ns));
	else
		weft__json_absent(json, "longest_at_ns", "these are known as a sum only");
	text(json, "longest", &f->worst);
	text(json, "who", &f->who);
	if (f->n_behind)
		behind(json, f);
	else
		weft__json_null(json, "behind");
	weft__json_text(json, "query", f->query);
	weft__json_end(json, '}');
}

void page_json(struct weft__json *json, const struct report *report)
{
	struct page_findings *list = page_findings(report);
	struct report_text limits = {.n = 0};
	size_t i;

	weft__json_text(json, "limits", page_say_limits(&limits, report) ? limits.at : NULL);

	if (!list) {
		weft__json_absent(json, "findings", "out of memory");
		return;
	}
	weft__json_begin(json, "findings", '[');
	for (i = 0; i < list->n && i < report->top; i++)
		one(json, report, &list->at[i]);
	weft__json_end(json, ']');
	weft__free(list);
}
