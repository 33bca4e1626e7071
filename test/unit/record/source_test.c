/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder and the collector go through the list of sources (record/source.h): in order, from the back at the
 * end, past what a source does not have. The sources here write down who was called. */
#include "session.h"

#include "base/error.h"
#include "record/source.h"
#include "segment/defs.h"

static pthread_mutex_t journal_mutex = PTHREAD_MUTEX_INITIALIZER;
static char journal[4096]; /* "name.call " for each call, turns left out */
static uint32_t turns_of_a, turns_of_late, turns_never, more_left, losses_left;
static int open_err, late_err;

static void note(const char *call)
{
	size_t n;

	pthread_mutex_lock(&journal_mutex);
	n = strlen(journal);
	snprintf(journal + n, sizeof(journal) - n, "%s ", call);
	pthread_mutex_unlock(&journal_mutex);
}

static void journal_clear(void)
{
	pthread_mutex_lock(&journal_mutex);
	journal[0] = 0;
	pthread_mutex_unlock(&journal_mutex);
}

#define SOURCE_CALLS(name)                                                                                             \
	static int name##_start(pthread_t collector)                                                                   \
	{                                                                                                              \
		(void)collector;                                                                                       \
		note(#name ".start");                                                                                  \
		return 0;                                                                                              \
	}                                                                                                              \
	static void name##_attach(pthread_t collector)                                                                 \
	{                                                                                                              \
		(void)collector;                                                                                       \
		note(#name ".attach");                                                                                 \
	}                                                                                                              \
	static void name##_detach(void)                                                                                \
	{                                                                                                              \
		note(#name ".detach");                                                                                 \
	}                                                                                                              \
	static void name##_stop(enum weft__source_end end)                                                             \
	{                                                                                                              \
		note(end == SOURCE_PAUSE ? #name ".pause" : #name ".stop");                                            \
	}                                                                                                              \
	static void name##_close(struct weft__collector *c)                                                            \
	{                                                                                                              \
		(void)c;                                                                                               \
		note(#name ".close");                                                                                  \
	}                                                                                                              \
	static int name##_finish(const struct weft__turn *turn)                                                        \
	{                                                                                                              \
		note(turn->last ? #name ".finish" : #name ".rotate");                                                  \
		return SOURCE_NOTHING;                                                                                 \
	}                                                                                                              \
	static void name##_fork(enum weft__source_fork when, struct weft__collector *c)                                \
	{                                                                                                              \
		(void)c;                                                                                               \
		note(when == SOURCE_LOCK ? #name ".lock" : when == SOURCE_UNLOCK ? #name ".unlock" : #name ".child");  \
	}
SOURCE_CALLS(a)
SOURCE_CALLS(b)
SOURCE_CALLS(late)

static int a_open(const struct weft_recorder_opts *opts, struct weft_error *err)
{
	(void)opts;
	(void)err;
	note("a.open");
	return 0;
}

static int b_open(const struct weft_recorder_opts *opts, struct weft_error *err)
{
	(void)opts;
	note("b.open");
	return open_err == -WEFT_E_OPTION ? weft__fail(err, open_err, "b does not like it") : open_err;
}

static void b_facts(struct weft__defs *defs)
{
	weft__defs_fact(defs, "b.fact", "here");
}

static int a_turn(const struct weft__turn *turn)
{
	(void)turn;
	__atomic_fetch_add(&turns_of_a, 1, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&more_left, __ATOMIC_RELAXED))
		return SOURCE_NOTHING;
	__atomic_fetch_sub(&more_left, 1, __ATOMIC_RELAXED);
	return SOURCE_MORE;
}

static uint64_t never_due(const struct weft__turn *turn)
{
	(void)turn;
	return UINT64_MAX;
}

static int never_turn(const struct weft__turn *turn)
{
	(void)turn;
	__atomic_fetch_add(&turns_never, 1, __ATOMIC_RELAXED);
	return SOURCE_NOTHING;
}

static int b_turn(const struct weft__turn *turn)
{
	(void)turn;
	return __atomic_exchange_n(&late_err, 0, __ATOMIC_RELAXED);
}

static int late_turn(const struct weft__turn *turn)
{
	(void)turn;
	__atomic_fetch_add(&turns_of_late, 1, __ATOMIC_RELAXED);
	return SOURCE_NOTHING;
}

static enum weft__source_loss b_loss(struct weft_loss *ret, uint64_t now_ns)
{
	uint32_t left = __atomic_load_n(&losses_left, __ATOMIC_RELAXED);

	if (!left)
		return SOURCE_NO_LOSS;
	__atomic_store_n(&losses_left, left - 1, __ATOMIC_RELAXED);
	*ret = (struct weft_loss){WEFT_LOSS_SWITCH, 0, left, now_ns, now_ns};
	return left == 1 ? SOURCE_LOSS : SOURCE_LOST_EVENTS;
}

#define CALLS_OF(name)                                                                                                 \
	.start = name##_start, .attach = name##_attach, .detach = name##_detach, .stop = name##_stop,                  \
	.close = name##_close, .finish = name##_finish, .fork = name##_fork
static const struct weft__source source_a = {
	.name = "a", .what = "letters", .stage = SOURCE_EARLY, CALLS_OF(a), .open = a_open, .turn = a_turn};
static const struct weft__source source_bare = {.name = "bare", .what = "nothing"};
static const struct weft__source source_never = {
	.name = "never", .what = "turns", .due = never_due, .turn = never_turn};
static const struct weft__source source_b = {
	.name = "b", .what = "digits", CALLS_OF(b), .open = b_open, .facts = b_facts, .turn = b_turn, .loss = b_loss};
static const struct weft__source source_late = {
	.name = "late", .what = "ends", .stage = SOURCE_LATE, CALLS_OF(late), .turn = late_turn};
static const struct weft__source *const test_sources[] = {&source_a, &source_bare, &source_never, &source_b,
							  &source_late};

static void use_test_sources(void)
{
	weft__sources = (struct weft__source_list){.all = test_sources, .n = 5};
	journal_clear();
	open_err = 0;
}

static const char *fact_b, *fact_degraded;
static char fact_text[2][160];

static void keep_facts(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const char *b = weft_segment_fact(seg, "b.fact"), *degraded = weft_segment_fact(seg, "degraded.b");

	(void)ev;
	(void)data;
	snprintf(fact_text[0], sizeof(fact_text[0]), "%s", b ? b : "");
	snprintf(fact_text[1], sizeof(fact_text[1]), "%s", degraded ? degraded : "");
	fact_b = b ? fact_text[0] : NULL;
	fact_degraded = degraded ? fact_text[1] : NULL;
}

/* Records one event, and reads the facts of the segment. */
static void record_a_moment(void)
{
	struct weft_recorder *rec = session_start(NULL);

	REQUIRE(rec);
	weft_park(0);
	session_read_back(rec, keep_facts, NULL);
}

TEST(sources_begin_in_the_order_of_the_list_and_end_in_the_reverse)
{
	struct weft_recorder *rec;

	use_test_sources();
	rec = session_start(NULL);
	REQUIRE(rec);
	CHECK_STR(journal, "a.open b.open a.start b.start late.start a.attach b.attach late.attach ");
	journal_clear();
	CHECK_EQ(weft_recorder_pause(rec), 0);
	CHECK_STR(journal, "late.detach b.detach a.detach late.pause b.pause a.pause ");
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	journal_clear();
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	CHECK_STR(journal, "a.rotate b.rotate "); /* the late one writes at the end alone */
	journal_clear();
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_STR(journal, "late.detach b.detach a.detach late.stop b.stop a.stop a.finish b.finish late.finish "
			   "late.close b.close a.close ");
	session_remove_dir();
}

TEST(a_source_that_is_not_due_has_no_turn)
{
	struct weft_recorder *rec;

	use_test_sources();
	turns_of_a = turns_never = 0;
	rec = session_start(NULL);
	REQUIRE(rec);
	CHECK(WAIT_FOR(__atomic_load_n(&turns_of_a, __ATOMIC_RELAXED) > 1));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(turns_never, 0);
	session_remove_dir();
}

TEST(a_source_with_more_than_its_ring_holds_has_another_turn_after_a_drain)
{
	struct weft_recorder *rec;

	use_test_sources();
	turns_of_a = 0;
	more_left = 5;
	rec = session_start(NULL);
	REQUIRE(rec);
	CHECK(WAIT_FOR(__atomic_load_n(&turns_of_a, __ATOMIC_RELAXED) > 5));
	CHECK_EQ(__atomic_load_n(&more_left, __ATOMIC_RELAXED), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

static uint64_t dear_ns; /* at each look: more than any budget allows */
static uint32_t least_level, was_held, tries_left, was_spared, gave_up;

static void dear_cost(struct weft__source_cost *ret)
{
	dear_ns += 100 * MS;
	ret->spent_ns = dear_ns;
}

static uint32_t dear_limit(uint32_t level)
{
	if (level < __atomic_load_n(&least_level, __ATOMIC_RELAXED))
		__atomic_store_n(&least_level, level, __ATOMIC_RELAXED);
	return 1 + level;
}

static int dear_try(void)
{
	return __atomic_load_n(&tries_left, __ATOMIC_RELAXED) && __atomic_fetch_sub(&tries_left, 1, __ATOMIC_RELAXED);
}

static int dear_works(void)
{
	return 1;
}

static void held_cost(struct weft__source_cost *ret)
{
	static uint64_t ns;

	ret->spent_ns = ns += 100 * MS;
}

static int held_hold(enum weft__source_hold what)
{
	if (what == SOURCE_HOLD)
		__atomic_store_n(&was_held, 1u, __ATOMIC_RELAXED);
	return !__atomic_load_n(&was_held, __ATOMIC_RELAXED);
}

static void fixed_cost(struct weft__source_cost *ret)
{
	static uint64_t ns;

	ret->spent_ns = ret->fixed_ns = ns += 100 * MS;
}

static int fixed_give_up(void)
{
	__atomic_store_n(&gave_up, 1u, __ATOMIC_RELAXED);
	return 1;
}

static void fixed_spare(int dear)
{
	__atomic_store_n(&was_spared, (uint32_t)dear, __ATOMIC_RELAXED);
}

static const struct weft__source source_dear = {.name = "dear",
						.what = "gold",
						.costs = WEFT_COST_WALL,
						.least = SOURCE_FULL / 4,
						.works = dear_works,
						.cost = dear_cost,
						.try_out = dear_try,
						.limit = dear_limit};
static const struct weft__source source_held = {.name = "held",
						.what = "breath",
						.costs = WEFT_COST_SWITCH,
						.least = SOURCE_FULL / 512,
						.works = dear_works,
						.cost = held_cost,
						.hold = held_hold};
static const struct weft__source source_fixed = {.name = "fixed",
						 .what = "stars",
						 .costs = WEFT_COST_SAMPLES,
						 .cost = fixed_cost,
						 .give_up = fixed_give_up,
						 .spare = fixed_spare};

static uint64_t dear_reported_ns, dear_rate;

static void keep_cost(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	(void)seg;
	(void)data;
	if (ev->kind != WEFT_KIND_COST || ev->fields[WEFT_FIELD_COST_WHAT] != WEFT_COST_WALL)
		return;
	dear_reported_ns += ev->fields[WEFT_FIELD_COST_TIME];
	dear_rate = ev->fields[WEFT_FIELD_COST_RATE];
}

TEST(a_source_that_costs_too_much_is_lowered_held_or_gives_up_and_its_cost_is_recorded)
{
	static const struct weft__source *const all[] = {&source_dear, &source_held, &source_fixed};
	struct weft_recorder *rec;

	use_test_sources();
	weft__sources = (struct weft__source_list){.all = all, .n = 3};
	tries_left = 3;
	least_level = SOURCE_FULL;
	rec = session_start(&(struct weft_recorder_opts){.drain_ns = 5 * MS, .budget_ppm = 10000});
	REQUIRE(rec);
	weft_park(0);
	CHECK(WAIT_FOR(__atomic_load_n(&least_level, __ATOMIC_RELAXED) == SOURCE_FULL / 4));
	CHECK_EQ(__atomic_load_n(&tries_left, __ATOMIC_RELAXED), 0);
	CHECK(WAIT_FOR(__atomic_load_n(&was_held, __ATOMIC_RELAXED)));
	CHECK(WAIT_FOR(__atomic_load_n(&was_spared, __ATOMIC_RELAXED)));
	CHECK(WAIT_FOR(__atomic_load_n(&gave_up, __ATOMIC_RELAXED)));
	dear_reported_ns = dear_rate = 0;
	session_read_back(rec, keep_cost, NULL);
	CHECK(dear_reported_ns >= 100 * MS && dear_reported_ns <= dear_ns);
	CHECK_EQ(dear_rate, 1 + SOURCE_FULL / 4);
}

TEST(a_late_source_has_its_turn_in_a_round_that_failed)
{
	struct weft_recorder *rec;
	uint32_t before;

	use_test_sources();
	rec = session_start(NULL);
	REQUIRE(rec);
	before = __atomic_load_n(&turns_of_late, __ATOMIC_RELAXED);
	__atomic_store_n(&late_err, -ENOMEM, __ATOMIC_RELAXED);
	CHECK(WAIT_FOR(!__atomic_load_n(&late_err, __ATOMIC_RELAXED)));
	CHECK(WAIT_FOR(__atomic_load_n(&turns_of_late, __ATOMIC_RELAXED) > before));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

TEST(losses_of_a_source_are_recorded_and_lost_events_are_counted)
{
	struct weft_recorder *rec;
	struct tally t;

	use_test_sources();
	rec = session_start(NULL);
	REQUIRE(rec);
	weft_park(0);
	__atomic_store_n(&losses_left, 3u, __ATOMIC_RELAXED); /* of 3, 2 and 1; the last is of no event */
	CHECK(WAIT_FOR(!__atomic_load_n(&losses_left, __ATOMIC_RELAXED)));
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	CHECK_EQ(session_stats(rec).lost, 5);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	tally_dir(&t, session_dir);
	CHECK_EQ(t.lost, 6);
	tally_fini(&t);
	session_remove_dir();
}

TEST(a_source_that_cannot_open_is_left_out_and_the_segment_says_so)
{
	use_test_sources();
	record_a_moment();
	CHECK(fact_b && !fact_degraded);
	use_test_sources();
	open_err = -ENOMEM;
	record_a_moment();
	CHECK(!fact_b && fact_degraded && strstr(fact_degraded, "no digits: "));
	CHECK(strstr(journal, "a.open b.open a.start late.start a.attach late.attach "));
	CHECK(!strstr(journal, "b.close") && strstr(journal, "a.close"));
	/* The next recording has it again. */
	use_test_sources();
	record_a_moment();
	CHECK(fact_b && !fact_degraded);
}

TEST(an_option_that_a_source_refuses_fails_the_open_and_closes_those_before)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts)};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};

	use_test_sources();
	open_err = -WEFT_E_OPTION;
	session_fresh_dir();
	opts.dir = session_dir;
	CHECK_EQ(weft_recorder_open(&rec, &opts, &err), -WEFT_E_OPTION);
	CHECK_STR(err.msg, "b does not like it");
	CHECK_STR(journal, "a.open b.open a.close ");
	session_remove_dir();
}

TEST(a_fork_locks_in_order_unlocks_in_reverse_and_the_child_is_recorded)
{
	struct weft_recorder *rec;
	int status = 0;
	pid_t pid;

	use_test_sources();
	rec = session_start(NULL);
	REQUIRE(rec);
	CHECK(WAIT_FOR(session_others_asleep()));
	journal_clear();
	pid = fork();
	if (!pid)
		_exit(strcmp(journal,
			     "a.lock b.lock late.lock late.unlock b.unlock a.unlock a.child b.child late.child ")
			      ? 1
			      : 0);
	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK(!strncmp(journal, "a.lock b.lock late.lock late.unlock b.unlock a.unlock ", 54));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}
