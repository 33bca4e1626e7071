/* SPDX-License-Identifier: Apache-2.0 */
/* Where CPU time went, by function and who called it. A function of a library through which every program calls says
 * little, so the program's own function that called it stands beside it. What weft did itself is not the program's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "base/map.h"
#include "page.h"

#define FINDINGS 4 /* functions that are findings of their own */
#define SMALL 0.03 /* of all: a function that is not named */
#define ROWS 20000 /* of samples that are looked at, the heaviest first */
#define SURE 3     /* samples; fewer are no finding beside others */
#define NOBODY UINT32_MAX

struct user {
	uint32_t function, caller; /* indices of functions; caller NOBODY: none to be named */
	struct weft__weight weight;
	uint32_t thread; /* of the heaviest row */
	bool threads;    /* others, too */
};

struct users {
	struct user *at;
	size_t n, cap;
	struct weft__map by_both;
	uint32_t nameless; /* the first function without a name, plus 1: it stands for all */
	uint64_t weft_ns;  /* in weft's own functions */
};

static bool of_weft(const struct weft__function *function)
{
	const char *base = cli_base(function->module);

	return strncmp(base, "libweft", 7) == 0 || strncmp(function->name, "weft_", 5) == 0;
}

/* The leaf that is the program's: an interposed call (read in libweft-preload.so) stands for the call that it makes. */
static size_t leaf_of(const struct weft__frames *frames, const struct weft__line_list *lines, bool *weft)
{
	size_t i = 0;

	*weft = false;
	while (i < lines->n && of_weft(&frames->functions[lines->at[i].function])) {
		*weft = !strstr(frames->functions[lines->at[i].function].module, "libweft-preload");
		i++;
	}
	return i < lines->n ? i : 0;
}

static uint32_t caller_of(const struct weft__frames *frames, const struct weft__line_list *lines, size_t leaf,
			  const char *exe)
{
	const struct weft__function *inner = &frames->functions[lines->at[leaf].function];
	uint32_t best = NOBODY;
	size_t i;
	int how = 0;

	for (i = leaf + 1; exe && !report_is_own(inner, exe) && i < lines->n && how < 2; i++) {
		how = report_calls(&frames->functions[lines->at[i].function], inner->module, exe);
		if (how == 2 || (how == 1 && best == NOBODY))
			best = lines->at[i].function;
	}
	return best;
}

static bool has_no_name(const struct weft__function *function)
{
	return !function->known && !function->module[0];
}

/* Code that was made at run time is one function a place, and all have the same words on the page. */
static uint32_t one_of(struct users *users, const struct weft__frames *frames, uint32_t function)
{
	if (function == NOBODY || !has_no_name(&frames->functions[function]))
		return function;
	if (!users->nameless)
		users->nameless = function + 1;
	return users->nameless - 1;
}

/* NULL: out of memory. */
static struct user *user_of(struct users *users, uint32_t function, uint32_t caller, uint32_t thread)
{
	uint64_t key = (uint64_t)function << 32 | caller;
	uint32_t index = weft__map_get(&users->by_both, key);
	struct user *grown;

	if (index != WEFT__MAP_NONE)
		return &users->at[index];
	grown = weft__grow(users->at, &users->cap, users->n, sizeof(*grown));
	if (!grown)
		return NULL;
	users->at = grown;
	if (weft__map_put(&users->by_both, key, (uint32_t)users->n) < 0)
		return NULL;
	grown[users->n] = (struct user){.function = function, .caller = caller, .thread = thread};
	return &grown[users->n++];
}

static int count_row(struct users *users, const struct report *report, const struct weft__sample_row *row,
		     struct weft__line_list *lines)
{
	const struct weft__frames *frames = &report->rec->frames;
	const char *exe = weft__names_fact(&report->rec->names, "process.exe");
	int rc = weft__frames_lines(frames, row->stack, row->stack ? 0 : row->kernel, lines);
	struct user *user;
	size_t leaf;
	bool weft;

	if (rc < 0 || lines->n == 0)
		return rc;
	leaf = leaf_of(frames, lines, &weft);
	if (weft) {
		users->weft_ns += row->weight.ns;
		return 0;
	}
	user = user_of(users, one_of(users, frames, lines->at[leaf].function),
		       one_of(users, frames, caller_of(frames, lines, leaf, exe)), row->thread);
	if (!user)
		return -ENOMEM;
	weft__weight_add(&user->weight, row->weight.n, row->weight.ns);
	user->threads |= user->thread != row->thread;
	return 0;
}

static int heaviest_first(const void *a, const void *b)
{
	const struct user *x = a, *y = b;

	if (x->weight.ns != y->weight.ns)
		return x->weight.ns > y->weight.ns ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static void find_users(struct users *users, const struct report *report)
{
	const struct weft__samples *samples = &report->result->samples;
	struct weft__line_list lines = {0};
	size_t i;

	for (i = 0; i < samples->n_rows && i < ROWS; i++)
		if (count_row(users, report, &samples->rows[i], &lines) < 0)
			break;
	if (users->n)
		qsort(users->at, users->n, sizeof(users->at[0]), heaviest_first);
	weft__free(lines.at);
}

static void users_fini(struct users *users)
{
	weft__map_fini(&users->by_both);
	weft__free(users->at);
}

const char *page_function(const struct weft__function *function, char *buf)
{
	return has_no_name(function) ? "[unknown]" : cli_function(function->name, PAGE_NAME_COLUMNS, buf);
}

static void say_user(struct report_text *text, const struct report *report, const struct user *user)
{
	const struct weft__function *functions = report->rec->frames.functions;
	char name[4 * PAGE_NAME_COLUMNS + 1];

	report_say(text, "%s", page_function(&functions[user->function], name));
	if (user->caller != NOBODY)
		report_say(text, ", called from %s", page_function(&functions[user->caller], name));
}

bool page_say_functions(struct report_text *text, const struct report *report, size_t most)
{
	uint64_t all_ns = report->result->samples.all.ns;
	struct users users = {0};
	size_t i;

	find_users(&users, report);
	for (i = 0; i < users.n && i < most && (double)users.at[i].weight.ns >= SMALL * (double)all_ns; i++) {
		report_say(text, i ? "; " : "");
		report_say(text, "%.0f %% ", 100 * (double)users.at[i].weight.ns / (double)all_ns);
		say_user(text, report, &users.at[i]);
	}
	users_fini(&users);
	return text->n > 0;
}

bool page_say_nameless(struct report_text *text, const struct report *report)
{
	const char *exe = weft__names_fact(&report->rec->names, "process.exe");
	uint64_t all_ns = report->result->samples.all.ns, ns = 0;
	struct users users = {0};
	size_t i;

	find_users(&users, report);
	for (i = 0; i < users.n; i++)
		if (has_no_name(&report->rec->frames.functions[users.at[i].function]))
			ns += users.at[i].weight.ns;
	users_fini(&users);
	if (ns == 0 || (double)ns < SMALL * (double)all_ns)
		return false;
	report_say(text, "%.0f %% of the CPU time was in [unknown]: code made at run time, without a name. ",
		   100 * (double)ns / (double)all_ns);
	if (exe && strcmp(cli_base(exe), "node") == 0)
		report_say(text, "node --perf-basic-prof gives it names.");
	else
		report_say(text, "It has names where the program writes /tmp/perf-PID.map or a jitdump.");
	return true;
}

static void say_thread(struct page_finding *f, const struct report *report, const struct user *user)
{
	const struct weft__sampled_thread *thread = &report->result->samples.threads[user->thread];
	char label[WEFT__LABEL_BYTES];

	report_say(&f->who, "%.60s%s",
		   cli_safe(weft__label_lane(&report->rec->names, thread->worker, thread->thread_id, label,
					     sizeof(label))),
		   user->threads ? " and others" : "");
}

/* Only where there is no loop: in a loop CPU time does harm in the polls that it makes long. */
void page_add_cpu(struct page_findings *list, const struct report *report)
{
	uint64_t all_ns = report->result->samples.all.ns;
	struct users users = {0};
	char share[CLI_FIGURE];
	size_t i;

	if (page_has_loop(report) || all_ns == 0)
		return;
	find_users(&users, report);
	for (i = 0; i < users.n && i < FINDINGS && (double)users.at[i].weight.ns >= SMALL * (double)all_ns; i++) {
		const struct user *user = &users.at[i];
		struct page_finding *f;

		if (user->weight.n < SURE && list->n > 0)
			continue;
		f = page_add(list, PAGE_CPU, user->weight.ns);
		f->cause = "on_cpu";
		f->count = user->weight.n;
		f->total_ns = user->weight.ns;
		f->query = "functions";
		report_say(&f->title, "on CPU in ");
		say_user(&f->title, report, user);
		report_say(&f->worst, "%s of the CPU time sampled",
			   cli_percent((double)user->weight.ns / (double)all_ns, share));
		say_thread(f, report, user);
	}
	users_fini(&users);
}
