/* SPDX-License-Identifier: Apache-2.0 */
/* Every event of a segment, as numbers for programs or with names for people. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/delta.h"
#include "inspect.h"
#include "print.h"
#include "weft/runtime.h"
#include "weft/wait.h"

static char *put_u64(char *to, uint64_t value)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

/* printf is several times slower than the reader; this keeps up with it. */
static int dump_one(const struct weft_event_view *ev)
{
	char line[21 * (3 + WEFT_FIELDS_MAX)], *to = put_u64(line, ev->time_ns);
	uint32_t i;

	*to++ = ' ';
	to = put_u64(to, ev->thread);
	*to++ = ' ';
	to = put_u64(to, ev->kind);
	for (i = 0; i < ev->n_fields && i < WEFT_FIELDS_MAX; i++) {
		*to++ = ' ';
		to = put_u64(to, ev->fields[i]);
	}
	*to++ = '\n';
	return fwrite(line, 1, (size_t)(to - line), stdout) == (size_t)(to - line);
}

int inspect_dump(const struct inspect *inspect, enum weft_order order)
{
	struct weft_cursor *cursor = NULL;
	struct weft_event_view ev;
	int rc = weft_cursor_open(&cursor, inspect->seg, order, 0, UINT64_MAX, NULL);

	while (rc >= 0 && (rc = weft_cursor_next(cursor, &ev)) > 0)
		if (!dump_one(&ev))
			break;
	weft_cursor_close(cursor);
	return rc < 0 ? rc : 0;
}

static void print_worker(const struct weft_segment *seg, uint64_t id)
{
	const struct weft_worker *worker = weft_segment_worker(seg, (uint32_t)id);
	const struct weft_runtime_def *runtime = worker ? weft_segment_runtime(seg, worker->runtime) : NULL;

	if (id == WEFT_WORKER_NONE)
		printf("none");
	else if (runtime)
		printf("%s/%u", cli_safe(runtime->name), worker->index);
	else
		printf("worker-%" PRIu64, id);
}

static void print_location(const struct weft_segment *seg, uint64_t id)
{
	const struct weft_location_def *location = weft_segment_location(seg, (uint32_t)id);

	if (location)
		printf("%s(%s:%u)", cli_safe(location->name), cli_safe(cli_base(location->file)), location->line);
	else
		printf("location-%" PRIu64, id);
}

static void print_stack(const struct weft_segment *seg, uint64_t id)
{
	const struct weft_stack *stack = id <= UINT32_MAX ? weft_segment_stack(seg, (uint32_t)id) : NULL;

	if (!id) {
		printf("none");
		return;
	}
	printf("%" PRIu64 "(", id);
	if (!stack)
		printf("not defined");
	else if (!stack->n_frames)
		printf("no frames");
	else
		inspect_print_place(seg, &stack->frames[0]);
	putchar(')');
}

static void print_value(const struct weft_segment *seg, const struct weft_field *field, uint64_t word)
{
	const char *text;
	double number;

	switch (field->type) {
	case WEFT_TYPE_I64:
		printf("%" PRId64, (int64_t)word);
		break;
	case WEFT_TYPE_F64:
		memcpy(&number, &word, sizeof(number));
		printf("%.9g", number);
		break;
	case WEFT_TYPE_BOOL:
		printf("%s", word ? "true" : "false");
		break;
	case WEFT_TYPE_STRING:
		text = weft_segment_string(seg, (uint32_t)word);
		if (text)
			printf("\"%s\"", cli_safe(text));
		else if (word)
			printf("(string %" PRIu64 ", not described)", word);
		else
			fputs("none", stdout); /* or there was no room for it in the table of strings */
		break;
	case WEFT_TYPE_WORKER:
		print_worker(seg, word);
		return;
	case WEFT_TYPE_LOCATION:
		print_location(seg, word);
		return;
	case WEFT_TYPE_STACK:
		print_stack(seg, word);
		return;
	default:
		printf("%" PRIu64, word);
		break;
	}
	if (field->unit && field->unit[0] && strcmp(field->unit, "1") != 0)
		printf(" %s", cli_safe(field->unit));
}

/* Numbers of weft's own kinds that stand for something else. */
static bool print_meaning(const struct weft_segment *seg, const struct weft_event_view *ev, uint32_t field)
{
	bool descriptor = ev->kind == WEFT_KIND_WAIT && field == 2 && ev->fields[0] == WEFT_WAIT_CALL;
	const char *about;

	bool depth = ev->kind == WEFT_KIND_POLL_BEGIN || ev->kind == WEFT_KIND_POLL_NEXT ||
		     ev->kind == WEFT_KIND_PARK || ev->kind == WEFT_KIND_UNPARK;
	bool sample = ev->kind == WEFT_KIND_SAMPLE;

	if (depth && field + 1 == ev->n_fields && ev->fields[field] == WEFT_DEPTH_UNKNOWN)
		printf("not-measured");
	else if (sample && field == 3 && ev->fields[field] == UINT32_MAX)
		printf("not-known");
	else if (sample && field == 4)
		fputs(inspect_engine(ev->fields[field]), stdout);
	else if (descriptor && ev->fields[field] == UINT64_MAX)
		printf("none");
	else if (descriptor) {
		about = weft_segment_string(seg, (uint32_t)(ev->fields[field] >> WEFT_WAIT_ABOUT_AT));
		printf("%u", (uint32_t)ev->fields[field]);
		if (about)
			printf(" (%s)", cli_safe(about));
	} else
		return false;
	return true;
}

/* When each thread was sampled last, by its number. */
struct sampled {
	struct thread_sampled {
		uint32_t thread;
		struct weft__delta delta;
	} * of;
	size_t n, cap;
};

/* Where that of a thread is, or has to come. */
static size_t sampled_at(const struct sampled *s, uint32_t thread)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->of[middle].thread < thread)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct weft__delta *sampled_of(struct sampled *s, const struct weft_segment *seg, uint32_t thread)
{
	size_t at = sampled_at(s, thread);
	const struct weft_thread *def;

	if (at < s->n && s->of[at].thread == thread)
		return &s->of[at].delta;
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		void *grown = realloc(s->of, cap * sizeof(*s->of));

		if (!grown)
			return NULL;
		s->of = grown;
		s->cap = cap;
	}
	memmove(&s->of[at + 1], &s->of[at], (s->n++ - at) * sizeof(*s->of));
	s->of[at] = (struct thread_sampled){.thread = thread};
	def = weft_segment_thread(seg, thread);
	if (def && def->first_ns)
		weft__delta_from(&s->of[at].delta, def->first_ns);
	return &s->of[at].delta;
}

/* What passed since the thread's sample before; its CPU time is the weight. */
static void print_wall(struct sampled *s, const struct weft_segment *seg, const struct weft_event_view *ev)
{
	struct weft__delta *delta = ev->kind == WEFT_KIND_SAMPLE ? sampled_of(s, seg, ev->thread) : NULL;
	uint64_t wall = delta ? weft__delta_sample(delta, ev->time_ns) : 0;

	if (wall)
		printf("  wall=%" PRIu64 " ns", wall);
}

static void print_one(const struct inspect *inspect, const struct weft_event_view *ev, struct sampled *sampled)
{
	const struct weft_segment *seg = inspect->seg;
	const struct weft_kind_def *def = weft_segment_kind(seg, ev->kind);
	const struct weft_thread *thread = weft_segment_thread(seg, ev->thread);
	const char *kind = inspect_kind_name(seg, ev->kind);
	int64_t since_ns = (int64_t)(ev->time_ns - inspect->info->start_mono_ns);
	uint32_t i;

	printf("%+.9f  ", (double)since_ns / 1e9);
	if (thread)
		printf("%s(%u)  ", cli_safe(thread->name), thread->tid);
	else
		printf("thread-%u  ", ev->thread);
	if (kind)
		fputs(cli_safe(kind), stdout);
	else
		printf("kind-%u", ev->kind);
	for (i = 0; i < ev->n_fields && i < WEFT_FIELDS_MAX; i++) {
		if (!def || i >= def->n_fields) {
			printf("  %" PRIu64, ev->fields[i]);
			continue;
		}
		printf("  %s=", cli_safe(def->fields[i].name));
		if (!print_meaning(seg, ev, i))
			print_value(seg, &def->fields[i], ev->fields[i]);
	}
	print_wall(sampled, seg, ev);
	putchar('\n');
}

int inspect_events(const struct inspect *inspect, enum weft_order order)
{
	struct weft_cursor *cursor = NULL;
	struct sampled sampled = {0};
	struct weft_event_view ev;
	int rc = weft_cursor_open(&cursor, inspect->seg, order, 0, UINT64_MAX, NULL);

	while (rc >= 0 && (rc = weft_cursor_next(cursor, &ev)) > 0 && !ferror(stdout))
		print_one(inspect, &ev, &sampled);
	weft_cursor_close(cursor);
	free(sampled.of);
	return rc < 0 ? rc : 0;
}
