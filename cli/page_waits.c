/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about waits: each lock that threads waited for and, in programs without a loop, each call that blocked
 * them. Waits for conditions, semaphores and threads mostly mean that there was nothing to do: they are in the full
 * report. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "page.h"
#include "weft/wait.h"

#define NAMES 3
#define SEEN 4096 /* threads that are shown one by one */

static bool is_lock(uint32_t what)
{
	return what == WEFT_WAIT_LOCK || what == WEFT_WAIT_RWLOCK || what == WEFT_WAIT_RUNTIME;
}

static bool is_pause(uint32_t what)
{
	return what == WEFT_WAIT_GC || what == WEFT_WAIT_PAUSE;
}

/* Polls that waited for the same lock, or in the same call, report it already. */
static bool in_polls(const struct page_findings *list, uint32_t what, uint32_t name, uint64_t object, uint64_t ns)
{
	uint64_t reported_ns = 0;
	size_t i;

	for (i = 0; i < list->n; i++) {
		const struct page_finding *f = &list->at[i];

		if ((f->kind == PAGE_POLL || f->kind == PAGE_TICK || f->kind == PAGE_PENDING) && f->what == what &&
		    f->name == name && (what == WEFT_WAIT_CALL || !object || f->object == object))
			reported_ns += f->total_ns;
	}
	return reported_ns >= ns / 2 && reported_ns > 0;
}

/* Threads by name. */
struct names {
	size_t n;
	uint64_t more;
	struct {
		char name[48];
		uint32_t threads;
	} at[NAMES];
	size_t n_seen;
	uint32_t seen[SEEN]; /* threads */
};

static bool is_new(struct names *names, uint32_t thread_id)
{
	size_t i;

	for (i = 0; i < names->n_seen; i++)
		if (names->seen[i] == thread_id)
			return false;
	if (names->n_seen < SEEN)
		names->seen[names->n_seen++] = thread_id;
	return true;
}

static void count_thread(struct names *names, const struct report *report, uint32_t thread_id, uint32_t worker)
{
	const struct weft_thread *thread = weft__names_thread(&report->rec->names, thread_id);
	char label[WEFT__LABEL_BYTES], name[48];
	size_t i;

	if (!is_new(names, thread_id))
		return;
	if (worker != WEFT_WORKER_NONE)
		snprintf(name, sizeof(name), "%.47s",
			 weft__label_lane(&report->rec->names, worker, thread_id, label, sizeof(label)));
	else
		snprintf(name, sizeof(name), "%.47s", thread && thread->name[0] ? thread->name : "a thread");
	for (i = 0; i < names->n; i++)
		if (strcmp(names->at[i].name, name) == 0) {
			names->at[i].threads++;
			return;
		}
	if (names->n == NAMES) {
		names->more++;
		return;
	}
	memcpy(names->at[names->n].name, name, sizeof(name));
	names->at[names->n++].threads = 1;
}

/* lookup (3 threads), rebuilder */
static void say_names(struct report_text *text, const struct names *names)
{
	size_t i;

	for (i = 0; i < names->n; i++) {
		report_say(text, "%s%s", i ? ", " : "", cli_safe(names->at[i].name));
		if (names->at[i].threads > 1)
			report_say(text, " (%u%s threads)", names->at[i].threads,
				   names->n_seen == SEEN ? " or more" : "");
	}
	if (names->more)
		report_say(text, " and others");
}

/* Threads, each once: rows are of one thread, one kind and one name. */
static void find_threads(struct names *names, const struct report *report, uint32_t what, uint32_t name)
{
	const struct weft__result *r = report->result;
	size_t i;

	for (i = 0; i < r->wait.n_threads; i++)
		if (r->wait.threads[i].what == what && r->wait.threads[i].name == name)
			count_thread(names, report, r->wait.threads[i].thread_id, WEFT_WORKER_NONE);
}

/* The longest wait of these that is there by itself. */
static const struct weft__wait *longest_of(const struct report *report, uint32_t what, uint32_t name, uint64_t object)
{
	const struct weft__result *r = report->whole;
	size_t i;

	for (i = 0; i < r->wait.n_longest; i++) {
		const struct weft__wait *wait = &r->wait.longest[i];

		if (wait->what == what && wait->name == name && (!object || wait->object == object))
			return wait;
	}
	return NULL;
}

static void find_workers(struct names *names, const struct report *report, uint32_t what, uint32_t name,
			 uint64_t object)
{
	const struct weft__result *r = report->whole;
	size_t i;

	for (i = 0; i < r->wait.n_longest; i++) {
		const struct weft__wait *wait = &r->wait.longest[i];

		if (wait->what == what && wait->name == name && (!object || wait->object == object))
			count_thread(names, report, wait->thread_id, wait->worker);
	}
}

static void say_where(struct page_finding *f, const struct report *report, const struct weft__wait *wait)
{
	struct report_text stack = {.n = 0};

	if (!wait)
		return;
	f->worst_at_ns = wait->end_ns > wait->rank_ns ? wait->end_ns - wait->rank_ns : 0;
	if (wait->in_poll)
		report_say(&f->worst, "in a poll of %.60s",
			   cli_safe(weft__label_location(&report->rec->names, wait->location)));
	else if (report_say_stack(&stack, report, wait->stack, 0))
		report_say(&f->worst, "in %s", stack.at);
}

static void say_who(struct page_finding *f, const struct report *report, uint64_t object)
{
	struct names names = {0};

	if (object) /* of all that has the same name, only some is for this lock */
		find_workers(&names, report, f->what, f->name, object);
	else
		find_threads(&names, report, f->what, f->name);
	if (names.n == 0)
		find_workers(&names, report, f->what, f->name, object);
	say_names(&f->who, &names);
}

static const struct weft__wait_object *object_of(const struct report *report, const struct weft__wait_row *row)
{
	const struct weft__result *r = report->result;
	size_t i;

	for (i = 0; i < r->wait.n_objects; i++)
		if (r->wait.objects[i].what == row->what && r->wait.objects[i].name == row->name &&
		    r->wait.objects[i].object == row->object)
			return &r->wait.objects[i];
	return NULL;
}

static struct page_finding *add(struct page_findings *list, enum page_kind kind, uint32_t what, uint32_t name,
				uint64_t harm_ns)
{
	struct page_finding *f = page_add(list, kind, harm_ns);

	f->what = what;
	f->name = name;
	f->cause = what == WEFT_WAIT_CALL ? "blocked" : "waiting";
	f->query = what == WEFT_WAIT_CALL || what == WEFT_WAIT_THREAD ? "waits" : "locks";
	return f;
}

static void say_lock(struct page_finding *f, const struct report *report, uint64_t object,
		     const struct weft__holder *holder)
{
	report_say(&f->title, "waits for ");
	report_say_wait(&f->title, report, f->what, f->name, object);
	if (holder && holder->tid) {
		report_say(&f->title, ", held by ");
		report_say_holder(&f->title, report, holder);
	}
	say_where(f, report, longest_of(report, f->what, f->name, object));
	say_who(f, report, object);
}

/* Of a name that many locks have, each lock by itself; what is in no long wait stays together. */
static void add_objects(struct page_findings *list, const struct report *report, const struct weft__wait_row *row)
{
	const struct weft__result *r = report->result;
	uint64_t ns = 0, n = 0;
	struct page_finding *f;
	size_t i;

	for (i = 0; i < r->wait.n_objects; i++) {
		const struct weft__wait_object *at = &r->wait.objects[i];

		if (at->what != row->what || at->name != row->name)
			continue;
		ns += at->ns;
		n += at->n;
		if (at->ns < PAGE_LONG_NS || in_polls(list, at->what, at->name, at->object, at->ns))
			continue;
		f = add(list, PAGE_LOCK, at->what, at->name, at->ns);
		f->object = at->object;
		f->count = at->n;
		f->total_ns = at->ns;
		f->worst_ns = at->longest_ns;
		say_lock(f, report, at->object, &at->holder);
	}
	if (row->ns < ns + PAGE_LONG_NS || row->n <= n)
		return;
	f = add(list, PAGE_LOCK, row->what, row->name, row->ns - ns);
	f->count = row->n - n;
	f->total_ns = row->ns - ns;
	f->worst_ns = n ? 0 : row->longest_ns;
	report_say(&f->title, "short waits for ");
	report_say_wait(&f->title, report, row->what, row->name, 0);
	report_say(&f->title, ": which of %s is not recorded", n ? "them" : "these locks");
	say_who(f, report, 0);
}

static void add_lock(struct page_findings *list, const struct report *report, const struct weft__wait_row *row)
{
	const struct weft__wait_object *object = row->n_reported && !row->objects ? object_of(report, row) : NULL;
	struct page_finding *f;

	if (!object) {
		add_objects(list, report, row);
		return;
	}
	if (in_polls(list, row->what, row->name, row->object, row->ns))
		return;
	f = add(list, PAGE_LOCK, row->what, row->name, row->ns);
	f->object = row->object;
	f->count = row->n;
	f->total_ns = row->ns;
	f->worst_ns = row->longest_ns;
	say_lock(f, report, row->object, &object->holder);
}

/* A pause of all threads, or of one: the thread did not get on, and nobody holds a lock. */
static void add_pause(struct page_findings *list, const struct report *report, const struct weft__wait_row *row)
{
	struct page_finding *f;

	if (in_polls(list, row->what, row->name, 0, row->ns))
		return;
	f = add(list, PAGE_LOCK, row->what, row->name, row->ns);
	f->count = row->n;
	f->total_ns = row->ns;
	f->worst_ns = row->longest_ns;
	report_say(&f->title, "stopped for ");
	report_say_wait(&f->title, report, row->what, row->name, 0);
	say_who(f, report, 0);
}

/* What a program asked for: a pause, or that another ends. */
static bool is_sleep(const struct report *report, uint32_t name)
{
	static const char *const calls[] = {"usleep", "nanosleep",   "clock_nanosleep", "sleep",   "pause", "sigwait",
					    "wait",   "sigwaitinfo", "sigtimedwait",    "waitpid", "wait3", "wait4",
					    "waitid", "sigsuspend",  "select",          "poll",    "ppoll", "pselect"};
	const char *given = weft__names_string(&report->rec->names, name);
	size_t i;

	for (i = 0; given && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(given, calls[i]) == 0)
			return true;
	return false;
}

/* Whether a call is harm or what the program is there for nobody knows here: it ranks below a lock that took as
 * long, and a sleep far below. */
static void add_call(struct page_findings *list, const struct report *report, const struct weft__wait_row *row)
{
	uint64_t object = row->objects || !row->n_reported ? UINT64_MAX : row->object;
	const struct weft__wait *longest;
	struct page_finding *f;

	if (in_polls(list, row->what, row->name, 0, row->ns))
		return;
	f = add(list, PAGE_CALL, row->what, row->name, is_sleep(report, row->name) ? row->ns / 100 : row->ns / 2);
	f->count = row->n;
	f->total_ns = row->ns;
	f->worst_ns = row->longest_ns;
	report_say(&f->title, "blocked in ");
	report_say_wait(&f->title, report, row->what, row->name, object);
	longest = longest_of(report, row->what, row->name, 0);
	say_where(f, report, longest);
	say_who(f, report, 0);
	if (longest && !row->n_reported)
		f->worst_at_ns = 0;
}

void page_add_waits(struct page_findings *list, const struct report *report)
{
	const struct weft__result *r = report->result;
	/* Threads that never poll may be all that was asked for. */
	bool loop = page_has_loop(report) && !(page_origin.asked.n && !r->polls.n && !r->poll.open);
	size_t i;

	for (i = 0; i < r->wait.n_rows; i++) {
		const struct weft__wait_row *row = &r->wait.rows[i];

		if (row->ns < PAGE_LONG_NS)
			continue;
		if (is_lock(row->what))
			add_lock(list, report, row);
		else if (is_pause(row->what))
			add_pause(list, report, row);
		else if (row->what == WEFT_WAIT_CALL && !loop)
			add_call(list, report, row);
	}
}
