/* SPDX-License-Identifier: Apache-2.0 */
/* serial: samples are waited for */
/* Contexts of threads: what the recording says of them, whatever happens meanwhile, and what other profilers see. */
#include <signal.h>
#include <sys/time.h>

#include "base/atomic.h"
#include "record/collect/coarse.h"
#include "record/setup.h"
#include "record/wait/context.h"
#include "samples.h"
#include "stall.h"

/* What the stream of one thread says, reported in letters: C3 a context of span 3, C0 none, b and e a poll, p one
 * that is recorded at its end, s a sample, w a task that is finished. */
struct story {
	uint32_t tid;
	char text[4096];
	size_t n;
	uint64_t last[6];
	const char *labels, *endpoint;
	char labels_text[256], endpoint_text[256];
	uint64_t sequence;
};

static void report(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const struct weft_thread *thread = weft_segment_thread(seg, ev->thread);
	struct story *story = data;
	const char *text;

	if (!thread || (story->tid && thread->tid != story->tid) || story->n + 32 > sizeof(story->text))
		return;
	if (weft_segment_info(seg)->sequence != story->sequence) {
		story->sequence = weft_segment_info(seg)->sequence;
		story->n += (size_t)sprintf(story->text + story->n, "| ");
	}
	switch (ev->kind) {
	case WEFT_KIND_CONTEXT:
		memcpy(story->last, ev->fields, sizeof(story->last));
		text = weft_segment_string(seg, (uint32_t)ev->fields[4]);
		snprintf(story->endpoint_text, sizeof(story->endpoint_text), "%s", ev->fields[4] && text ? text : "");
		text = weft_segment_string(seg, (uint32_t)ev->fields[5]);
		snprintf(story->labels_text, sizeof(story->labels_text), "%s", ev->fields[5] && text ? text : "");
		story->n += (size_t)sprintf(story->text + story->n, "C%llu ", (unsigned long long)ev->fields[2]);
		break;
	case WEFT_KIND_POLL_BEGIN:
		story->n += (size_t)sprintf(story->text + story->n, "b ");
		break;
	case WEFT_KIND_POLL_END:
		story->n += (size_t)sprintf(story->text + story->n, "e ");
		break;
	case WEFT_KIND_POLL:
		story->n += (size_t)sprintf(story->text + story->n, "p ");
		break;
	case WEFT_KIND_TASK_END:
		story->n += (size_t)sprintf(story->text + story->n, "w ");
		break;
	case WEFT_KIND_SAMPLE:
		story->n += (size_t)sprintf(story->text + story->n, "s ");
		break;
	}
}

static void read_story(struct story *story, uint32_t tid)
{
	struct tally t;

	memset(story, 0, sizeof(*story));
	story->tid = tid;
	tally_init(&t, 0);
	t.each = report;
	t.data = story;
	tally_dir(&t, session_dir);
	CHECK_EQ(t.damaged, 0);
	CHECK_EQ(t.undefined, 0);
	CHECK_EQ(t.backwards, 0);
	tally_fini(&t);
}

static void end_story(struct story *story, struct weft_recorder *rec)
{
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	read_story(story, samples_tid());
	session_remove_dir();
}

static struct weft_context span(uint64_t id)
{
	return (struct weft_context){.trace_hi = 7, .trace_lo = 8, .span = id, .root = 1};
}

static void set(uint64_t id)
{
	struct weft_context context = span(id);

	weft_context_set(&context);
}

static void poll_once(void)
{
	weft_poll_begin(1, 0);
	weft_poll_end();
}

TEST(a_context_is_one_event_and_none_when_nothing_changed)
{
	struct weft_recorder *rec = session_start(NULL);
	struct story story;

	REQUIRE(rec);
	poll_once();
	set(3);
	set(3);
	poll_once();
	set(4);
	weft_context_clear();
	weft_context_clear();
	poll_once();
	end_story(&story, rec);
	CHECK_STR(story.text, "b e C3 b e C4 C0 b e ");
}

/* A poll of the task that begins so long ago, and in it a context. */
static void poll_in(uint64_t id, uint64_t ms)
{
	uint64_t now = weft_now_ticks();

	weft_poll_begin_at(1, 0, now - ms * weft_gate.ms_ticks);
	set(id);
	weft_context_clear();
	weft_poll_end();
}

static struct weft_recorder *start_counted(void)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_AUTO,
					  .sample_hz = WEFT_OFF,
					  .switches = WEFT_SWITCH_OFF,
					  .poll_slow_ns = UINT64_C(60000000000)};
	struct weft_recorder *rec = session_start(&opts);

	if (rec)
		weft__collector_coarse(&rec->collector, COARSE_COUNTED);
	return rec;
}

TEST(contexts_of_polls_that_are_only_counted_are_not_recorded_and_that_of_a_slow_poll_is)
{
	struct weft_recorder *rec = start_counted();
	struct story story;

	REQUIRE(rec);
	poll_in(3, 0);
	poll_in(4, 61000);
	poll_in(5, 0);
	store_relaxed(&weft_gate.poll_slow_ns, 0); /* from here on all are slow; this one has no context */
	store_relaxed(&weft_gate.poll_ticks, 0);
	poll_once();
	end_story(&story, rec);
	CHECK_STR(story.text, "C4 C0 p p ");
}

TEST(while_polls_are_counted_an_event_has_its_context_and_what_comes_behind_has_not)
{
	struct weft_recorder *rec = start_counted();
	struct story story;

	REQUIRE(rec);
	set(3);
	weft_task_end(7);
	weft_context_clear(); /* at once: what was recorded would go on */
	poll_in(4, 0);
	weft_task_end(8);
	set(5);
	weft__collector_coarse(&rec->collector, COARSE_SLOW);
	weft_task_end(9);
	set(6);
	weft_context_clear();
	end_story(&story, rec);
	CHECK_STR(story.text, "C3 w C0 w C5 w C6 C0 ");
}

TEST(a_swap_gives_what_was_there)
{
	struct weft_recorder *rec = session_start(NULL);
	struct weft_context task = span(5), outer, now;
	struct story story;

	REQUIRE(rec);
	set(3);
	weft_context_swap(&task, &outer);
	CHECK_EQ(outer.span, 3);
	weft_context_get(&now);
	CHECK_EQ(now.span, 5);
	weft_context_swap(&outer, &task);
	CHECK_EQ(task.span, 5);
	weft_context_swap(&task, &task); /* in place */
	CHECK_EQ(task.span, 3);
	weft_context_clear();
	end_story(&story, rec);
	CHECK_STR(story.text, "C3 C5 C3 C5 C0 ");
}

TEST(endpoint_and_labels_are_strings_of_the_segment)
{
	const char *labels[] = {"tenant=blue", "shard=3", "a,b=c,d", "shard=4", "flag", NULL};
	const char *same[] = {"flag=", "shard=4", "tenant=blue", "a_b=c_d", NULL};
	struct weft_context context = span(9);
	struct weft_recorder *rec = session_start(NULL);
	struct story story;

	REQUIRE(rec);
	context.endpoint = weft_endpoint("GET /users/:id");
	context.labels = weft_labels(labels, NULL);
	CHECK(context.endpoint > 0);
	CHECK(context.labels > 0);
	CHECK_EQ(weft_labels(same, NULL), context.labels);
	CHECK_EQ(weft_endpoint("GET /users/:id"), context.endpoint);
	CHECK_EQ(weft_labels(NULL, NULL), 0);
	CHECK_EQ(weft_endpoint(""), 0);
	weft_context_set(&context);
	poll_once();
	end_story(&story, rec);
	weft_context_clear();
	CHECK_STR(story.endpoint_text, "GET /users/:id");
	CHECK_STR(story.labels_text, "a_b=c_d,flag=,shard=4,tenant=blue");
	CHECK_EQ(story.last[0], 7);
	CHECK_EQ(story.last[1], 8);
	CHECK_EQ(story.last[3], 1);
}

TEST(too_many_labels_are_refused)
{
	const char *many[40];
	char text[40][16];

	for (int i = 0; i < 39; i++) {
		snprintf(text[i], sizeof(text[i]), "k%02d=v", i);
		many[i] = text[i];
	}
	many[39] = NULL;
	CHECK_EQ(weft_labels(many, NULL), 0);
	many[32] = NULL;
	CHECK(weft_labels(many, NULL) > 0);
}

TEST(a_context_from_before_the_recording_is_recorded_before_the_first_event)
{
	struct weft_recorder *rec;
	struct story story;

	set(3);
	rec = session_start(NULL);
	REQUIRE(rec);
	poll_once();
	end_story(&story, rec);
	weft_context_clear();
	CHECK_STR(story.text, "C3 b e ");
}

TEST(a_context_that_changed_in_a_pause_is_recorded_before_the_next_event)
{
	struct weft_recorder *rec = session_start(NULL);
	struct story story;

	REQUIRE(rec);
	set(3);
	poll_once();
	weft_recorder_pause(rec);
	set(4);
	set(5);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	poll_once();
	weft_recorder_pause(rec);
	weft_context_clear();
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	poll_once();
	end_story(&story, rec);
	CHECK_STR(story.text, "C3 b e C5 b e C0 b e ");
}

TEST(a_context_for_which_the_ring_had_no_room_is_recorded_when_there_is)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.ring_bytes = 8192});
	struct story story;
	uint64_t lost;

	REQUIRE(rec);
	poll_once();
	stall_begin();
	lost = session_ring()->lost;
	while (session_ring()->lost == lost)
		poll_once();
	set(3);
	stall_end();
	CHECK(WAIT_FOR(load_acquire(&session_ring()->tail) == session_ring()->hot.resv));
	poll_once();
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	read_story(&story, samples_tid());
	session_remove_dir();
	weft_context_clear();
	CHECK(story.n > 8);
	CHECK_STR(story.text + story.n - 7, "C3 b e ");
}

TEST(each_segment_begins_with_the_context_that_the_thread_has)
{
	struct weft_recorder *rec = session_start(NULL);
	struct story story;

	REQUIRE(rec);
	poll_once();
	set(3);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	poll_once();
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	poll_once();
	weft_context_clear();
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	poll_once();
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	set(4);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	poll_once();
	end_story(&story, rec);
	weft_context_clear();
	CHECK_STR(story.text, "b e C3 | C3 b e | C3 b e C0 | b e | C4 b e ");
}

static void *next_thread(void *data)
{
	poll_once();
	*(uint32_t *)data = samples_tid();
	return NULL;
}

static void *first_thread(void *data)
{
	set(3);
	return next_thread(data);
}

TEST(a_thread_that_takes_over_a_ring_does_not_have_its_context)
{
	struct weft_recorder *rec = session_start(NULL);
	uint32_t first = 0, next = 0;
	struct story story;
	pthread_t thread;

	REQUIRE(rec);
	CHECK_EQ(pthread_create(&thread, NULL, first_thread, &first), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, next_thread, &next), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	read_story(&story, first);
	CHECK_STR(story.text, "C3 b e ");
	read_story(&story, next);
	CHECK_STR(story.text + 2 * (story.text[0] == '|'), "b e ");
	session_remove_dir();
}

TEST(what_is_recovered_begins_with_the_context)
{
	struct story story;
	pid_t pid;

	session_fresh_dir();
	pid = fork();
	if (!pid) {
		struct weft_recorder_opts opts = {
			.size = sizeof(opts), .dir = session_dir, .sample_hz = WEFT_OFF, .max_threads = 4};
		struct weft_recorder *rec;

		if (weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0)
			_exit(1);
		set(3);
		poll_once();
		if (weft_recorder_rotate(rec, NULL, 0, NULL) < 0)
			_exit(1);
		poll_once();
		kill(getpid(), SIGKILL);
	}
	CHECK_EQ(session_wait(pid), -1);
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	read_story(&story, (uint32_t)pid);
	session_remove_dir();
	CHECK_STR(story.text, "C3 b e | C3 b e ");
}

TEST(a_sample_has_the_context_of_its_thread)
{
	struct weft_recorder *rec;
	struct story story;
	const char *at;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 250);
	REQUIRE(rec);
	set(3);
	samples_burn(100 * MS);
	end_story(&story, rec);
	weft_context_clear();
	at = strstr(story.text, "C3 ");
	REQUIRE(at != NULL);
	CHECK(strchr(at, 's') != NULL);
	CHECK_EQ(strspn(at + 3, "s "), strlen(at + 3));
}

/* A tracer that publishes contexts of its own, as OTEP 4947 has it. */
TEST(a_sample_takes_the_context_that_a_tracer_has_published)
{
	static struct weft__otel_record theirs = {
		.trace = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		.span = {0, 0, 0, 0, 0, 0, 0, 6},
		.valid = 1,
	};
	struct weft__otel_record *before = otel_thread_ctx_v1;
	struct weft_recorder *rec;
	struct story story;
	const char *at;
	int n = 0;

	SKIP_UNDER_TSAN();
	otel_thread_ctx_v1 = &theirs;
	rec = samples_start(WEFT_ENGINE_TIMER, 250);
	REQUIRE(rec);
	samples_burn(100 * MS);
	theirs.valid = 0; /* from here on it is none */
	weft_recorder_pause(rec);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	poll_once();
	set(3); /* ours counts more, and leaves theirs in place */
	CHECK(otel_thread_ctx_v1 == &theirs);
	theirs.valid = 1;
	samples_burn(100 * MS);
	end_story(&story, rec);
	weft_context_clear();
	otel_thread_ctx_v1 = before;
	for (at = story.text; !strncmp(at, "C6 s C0 ", 8); at += 8)
		n++;
	CHECK(n > 0);
	CHECK(strstr(story.text, "C3 ") != NULL);
	at = strstr(story.text, "C3 ");
	CHECK(at && strchr(at, 's') && strspn(at + 3, "s ") == strlen(at + 3));
}

/* A record that is read while it is being changed is not valid, or is whole. */
static uint64_t torn, whole, not_valid;

static void look(int signal)
{
	const struct weft__otel_record *record = otel_thread_ctx_v1;

	(void)signal;
	if (!record || record->valid != 1) {
		not_valid++;
		return;
	}
	for (int i = 1; i < 16; i++)
		torn += record->trace[i] != record->trace[0];
	for (int i = 0; i < 8; i++)
		torn += record->span[i] != record->trace[0];
	for (int i = 0; i < record->attrs_bytes; i++)
		if (record->attrs_bytes != 18)
			torn++;
		else if (i >= 2)
			torn += record->attrs[i] !=
				"0123456789abcdef"[i % 2 ? record->trace[0] & 15 : record->trace[0] >> 4];
	whole++;
}

TEST(a_handler_never_sees_half_a_record)
{
	struct sigaction action = {.sa_handler = look}, before;
	struct itimerval every = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};
	struct weft_recorder *rec;
	uint64_t until;

	SKIP_UNDER_TSAN();
	rec = session_start(NULL);
	REQUIRE(rec);
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &every, NULL);
	until = session_now_ns() + 300 * MS;
	for (uint64_t i = 0; session_now_ns() < until; i++) {
		uint64_t word = (i % 250 + 1) * UINT64_C(0x0101010101010101);
		struct weft_context context = {.trace_hi = word, .trace_lo = word, .span = word, .root = word};

		weft_context_set(&context);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	weft_context_clear();
	sigaction(SIGALRM, &before, NULL);
	CHECK_EQ(torn, 0);
	CHECK(whole > 0);
	weft_recorder_close(rec, NULL);
	session_remove_dir();
}

TEST(what_does_not_fit_into_a_record_is_left_out_whole)
{
	char text[300], label[300] = "long=";
	const char *labels[] = {label, "short=1", NULL};
	struct weft_context context = span(2);
	struct weft__otel_record *record;
	struct weft_recorder *rec;
	uint32_t at, n = 0;

	rec = session_start(NULL);
	REQUIRE(rec);
	memset(text, 'x', 100);
	text[100] = 0;
	memset(label + 5, 'y', 200);
	label[205] = 0;
	context.endpoint = weft_endpoint(text);
	context.labels = weft_labels(labels, NULL);
	weft_context_set(&context);
	record = otel_thread_ctx_v1;
	REQUIRE(record != NULL);
	CHECK_EQ(record->valid, 1);
	for (at = 0; at < record->attrs_bytes; at += 2u + record->attrs[at + 1])
		n++;
	CHECK_EQ(at, record->attrs_bytes);
	CHECK_EQ(n, 3); /* the root, the endpoint and the short one */
	CHECK_EQ(record->attrs[record->attrs_bytes - 1], '1');
	weft_context_clear();
	CHECK_EQ(record->valid, 0);
	weft_recorder_close(rec, NULL);
	session_remove_dir();
}
