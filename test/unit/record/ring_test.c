/* SPDX-License-Identifier: Apache-2.0 */
/* Rings: what goes in comes out, once and in order, or is counted. */
#include "session.h"
#include "stall.h"

#include <sys/syscall.h>

#define SMALL_RING 8192 /* 512 slots */

static const struct weft_recorder_opts small = {.ring_bytes = SMALL_RING, .drain_ns = MS};

/* Emits (source, 1..n) without filling the ring. */
static void emit_gently(int kind, uint64_t source, uint64_t n)
{
	uint64_t i;

	for (i = 1; i <= n; i++) {
		struct ring_page *ring;

		tally_emit(kind, source, i);
		ring = session_ring();
		if (ring && ring->hot.resv - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > 200)
			CHECK(WAIT_FOR(ring->hot.resv == __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)));
	}
}

TEST(nothing_is_lost_when_the_ring_wraps_and_is_drained)
{
	struct weft_recorder *rec = session_start(&small);
	struct tally t;

	REQUIRE(rec);
	emit_gently(tally_kind(), 0, 4000);
	CHECK(session_ring()->hot.resv > 8 * 512); /* it went round many times */
	session_end(rec, &t, 1);
	CHECK_EQ(t.sources[0].count, 4000);
	CHECK_EQ(t.lost, 0);
	tally_fini(&t);
}

/* Kinds of every width; field f of the n-th event is n * 100 + f. */
static int wide_kinds[WEFT_FIELDS_MAX + 1];

static void define_wide(void)
{
	struct weft_field fields[WEFT_FIELDS_MAX];
	char name[16];
	int i;

	for (i = 0; i < WEFT_FIELDS_MAX; i++)
		fields[i] = (struct weft_field){"f", WEFT_TYPE_U64, NULL};
	for (i = 0; i <= WEFT_FIELDS_MAX; i++) {
		snprintf(name, sizeof(name), "wide%d", i);
		wide_kinds[i] = weft_event_define(name, fields, (size_t)i, NULL);
		CHECK(wide_kinds[i] >= WEFT_KIND_USER);
	}
}

struct wide_seen {
	uint64_t n;
	uint64_t wrong;
};

static void check_wide(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct wide_seen *seen = data;
	uint32_t width, f;

	(void)seg;
	if (ev->kind < WEFT_KIND_USER)
		return;
	width = (uint32_t)(seen->n % (WEFT_FIELDS_MAX + 1));
	seen->wrong += ev->kind != wide_kinds[width] || ev->n_fields != width;
	for (f = 0; f < ev->n_fields; f++)
		seen->wrong += ev->fields[f] != seen->n * 100 + f;
	seen->n++;
}

TEST(events_of_many_slots_cross_the_wrap_whole)
{
	struct weft_recorder *rec = session_start(&small);
	struct wide_seen seen = {0};
	struct tally t;
	uint64_t n;

	REQUIRE(rec);
	define_wide();
	for (n = 0; n < 3000; n++) {
		uint32_t width = (uint32_t)(n % (WEFT_FIELDS_MAX + 1)), f;
		uint64_t fields[WEFT_FIELDS_MAX];
		struct ring_page *ring;

		for (f = 0; f < width; f++)
			fields[f] = n * 100 + f;
		weft_event(wide_kinds[width], fields, width);
		ring = session_ring();
		if (ring->hot.resv - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > 200)
			CHECK(WAIT_FOR(ring->hot.resv == __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)));
	}
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = check_wide;
	t.data = &seen;
	tally_dir(&t, session_dir);
	session_remove_dir();
	CHECK_EQ(seen.n, 3000);
	CHECK_EQ(seen.wrong, 0);
	CHECK_EQ(t.damaged + t.undefined + t.lost, 0);
	tally_fini(&t);
}

/* Every kind of one slot, with all bits of its fields in use, and now and then one of more slots between them. */
struct short_seen {
	int other;
	uint64_t seed;
	uint64_t n;
	uint64_t wrong;
	uint64_t last_ns;
};

struct short_event {
	uint32_t kind;
	uint64_t fields[2];
	uint32_t n_fields;
};

static struct short_event short_event(uint64_t *seed, int other)
{
	static const uint32_t kinds[] = {WEFT_KIND_POLL_BEGIN, WEFT_KIND_POLL_END, WEFT_KIND_SPAWN,
					 WEFT_KIND_WAKE,       WEFT_KIND_TASK_END, WEFT_KIND_PARK,
					 WEFT_KIND_UNPARK,     WEFT_KIND_POLL_NEXT};
	static const uint32_t n_fields[] = {2, 0, 2, 2, 1, 1, 1, 2};
	struct short_event ev = {.kind = (uint32_t)other, .n_fields = 2};
	uint64_t random;

	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	random = *seed >> 8;
	ev.fields[0] = (random * UINT64_C(0x9e3779b97f4a7c15)) >> 16;
	ev.fields[1] = random >> 40;
	if (random % 37 == 0)
		return ev;
	ev.kind = kinds[random % 8];
	ev.n_fields = n_fields[random % 8];
	return ev;
}

static void check_short(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct short_seen *seen = data;
	struct short_event want;
	uint32_t f;

	(void)seg;
	if (ev->kind == WEFT_KIND_THREAD_BEGIN || ev->kind == WEFT_KIND_THREAD_END || ev->kind == WEFT_KIND_QUEUE ||
	    ev->kind == WEFT_KIND_SAMPLE || ev->kind == WEFT_KIND_COST) /* which there is when it takes a second */
		return;
	want = short_event(&seen->seed, seen->other);
	seen->wrong += ev->kind != want.kind || ev->n_fields != want.n_fields || ev->time_ns < seen->last_ns;
	for (f = 0; f < want.n_fields && f < ev->n_fields; f++)
		seen->wrong += ev->fields[f] != want.fields[f];
	seen->last_ns = ev->time_ns;
	seen->n++;
}

TEST(events_of_one_slot_come_back_as_they_were)
{
	struct weft_recorder *rec = session_start(&small);
	struct short_seen seen = {.other = tally_kind(), .seed = 5};
	uint64_t seed = 5, n, before = session_now_ns();
	struct tally t;

	REQUIRE(rec);
	for (n = 0; n < 20000; n++) {
		struct short_event ev = short_event(&seed, seen.other);
		struct ring_page *ring;

		if (ev.kind == (uint32_t)seen.other)
			weft_event(seen.other, ev.fields, 2);
		else
			weft_emit(ev.kind,
				  ev.n_fields == 2 ? ev.fields[0] | ev.fields[1] << 48
				  : ev.n_fields    ? ev.fields[0]
						   : 0,
				  weft_tick(weft_gate_on()));
		ring = session_ring();
		if (ring->hot.resv - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > 200)
			CHECK(WAIT_FOR(ring->hot.resv == __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)));
	}
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = check_short;
	t.data = &seen;
	tally_dir(&t, session_dir);
	CHECK_EQ(seen.n, 20000);
	CHECK_EQ(seen.wrong, 0);
	CHECK(seen.last_ns > before);
	CHECK(seen.last_ns < session_now_ns() + 2000000);
	CHECK_EQ(t.damaged + t.lost, 0);
	session_remove_dir();
	tally_fini(&t);
}

TEST(a_full_ring_drops_and_the_loss_has_thread_count_and_time)
{
	struct weft_recorder *rec = session_start(&small);
	struct weft_recorder_stats stats;
	int kind = tally_kind();
	uint64_t from, to, i;
	struct tally t;

	REQUIRE(rec);
	emit_gently(kind, 0, 10);
	stall_begin();
	from = session_now_ns();
	for (i = 11; i <= 1000; i++)
		tally_emit(kind, 0, i);
	to = session_now_ns();
	CHECK(session_ring()->hot.resv - session_ring()->tail <= 512 - RING_SLACK);
	stall_end();
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	stats = session_stats(rec);
	CHECK(stats.lost > 0);
	session_end(rec, &t, 1);
	CHECK_EQ(t.lost, stats.lost);
	CHECK_EQ(t.sources[0].count + t.lost, 1000);
	if (CHECK_EQ(t.n_losses, 1)) {
		CHECK_EQ(t.losses[0].reason, WEFT_LOSS_RING_FULL);
		CHECK(t.losses[0].thread > 0);
		CHECK(t.losses[0].from_ns <= t.losses[0].to_ns);
		CHECK(t.losses[0].from_ns + MS > from && t.losses[0].to_ns < to + MS);
	}
	tally_fini(&t);
}

TEST(after_a_loss_recording_goes_on)
{
	struct weft_recorder *rec = session_start(&small);
	int kind = tally_kind();
	struct tally t;
	uint64_t i;

	REQUIRE(rec);
	stall_begin();
	for (i = 1; i <= 1000; i++)
		tally_emit(kind, 0, i);
	stall_end();
	CHECK(WAIT_FOR(session_ring()->hot.resv == __atomic_load_n(&session_ring()->tail, __ATOMIC_ACQUIRE)));
	emit_gently(kind, 1, 1000);
	session_end(rec, &t, 2);
	CHECK_EQ(t.sources[0].count + t.lost, 1000);
	CHECK_EQ(t.sources[1].count, 1000);
	tally_fini(&t);
}

struct source {
	int kind;
	uint64_t source;
	uint64_t n;
	uint32_t burst; /* events between two short sleeps; 0: all at once */
};

static void *emit_source(void *data)
{
	const struct source *s = data;
	uint64_t i;

	for (i = 1; i <= s->n; i++) {
		tally_emit(s->kind, s->source, i);
		if (s->burst && i % s->burst == 0)
			session_sleep_ns(MS / 20);
	}
	return NULL;
}

static void run_source(int kind, uint64_t source, uint64_t n)
{
	struct source s = {kind, source, n, 0};
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, emit_source, &s), 0);
	pthread_join(thread, NULL);
}

TEST(more_threads_than_rings_are_counted)
{
	struct weft_recorder_opts opts = {.max_threads = 1};
	struct weft_recorder *rec = session_start(&opts);
	uint64_t from = session_now_ns();
	int kind = tally_kind();
	struct tally t;
	uint64_t i;

	REQUIRE(rec);
	for (i = 1; i <= 100; i++)
		tally_emit(kind, 0, i);
	run_source(kind, 1, 100);
	session_end(rec, &t, 2);
	CHECK(t.sources[0].count == 100 || t.sources[0].count == 0);
	CHECK_EQ(t.sources[1].count, 0);
	CHECK(t.lost >= 100 && t.n_losses > 0);
	for (i = 0; i < t.n_losses; i++) {
		CHECK_EQ(t.losses[i].reason, WEFT_LOSS_NO_RING);
		CHECK(t.losses[i].from_ns >= from - MS && t.losses[i].to_ns <= session_now_ns());
	}
	tally_fini(&t);
}

/* Which threads the events of each source are on. */
static void note_thread(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	uint32_t *threads = data;

	(void)seg;
	if (ev->kind >= WEFT_KIND_USER) {
		CHECK(!threads[ev->fields[0]] || threads[ev->fields[0]] == ev->thread);
		threads[ev->fields[0]] = ev->thread;
	}
}

TEST(a_ring_is_handed_on_with_events_in_it)
{
	struct weft_recorder *rec = session_start(NULL);
	uint32_t threads[20] = {0};
	int kind = tally_kind(), i, j;
	uint64_t rings;
	struct tally t;

	REQUIRE(rec);
	stall_begin();
	run_source(kind, 0, 10);
	rings = session_stats(rec).rings;
	for (i = 1; i < 20; i++)
		run_source(kind, (uint64_t)i, 10);
	CHECK_EQ(session_stats(rec).rings, rings);
	stall_end();
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 20);
	t.each = note_thread;
	t.data = threads;
	tally_dir(&t, session_dir);
	session_remove_dir();
	for (i = 0; i < 20; i++) {
		CHECK_EQ(t.sources[i].count, 10);
		for (j = 0; j < i; j++)
			CHECK(threads[i] != threads[j]);
	}
	CHECK_EQ(t.damaged + t.undefined + t.disorder + t.lost, 0);
	tally_fini(&t);
}

TEST(threads_at_once_each_keep_their_order)
{
	struct weft_recorder *rec = session_start(NULL);
	enum { N = 6 };
	struct source s[N];
	pthread_t threads[N];
	uint64_t total = 0;
	struct tally t;
	int i;

	REQUIRE(rec);
	for (i = 0; i < N; i++) {
		/* Two go as fast as they can and may lose; the others must not. */
		s[i] = (struct source){tally_kind(), (uint64_t)i, SCALED(200000, 40000), i < 2 ? 0 : 500};
		CHECK_EQ(pthread_create(&threads[i], NULL, emit_source, &s[i]), 0);
	}
	for (i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
	session_end(rec, &t, N);
	for (i = 0; i < N; i++)
		total += t.sources[i].count;
	CHECK_EQ(total + t.lost, N * s[0].n);
	tally_fini(&t);
}

static struct ring_page *left_behind;

static void *die_inside_an_emit(void *data)
{
	struct source s = {*(int *)data, 0, 10, 0};

	emit_source(&s);
	weft_ring_take(weft_ring_self, 1);
	__atomic_store_n(&left_behind, session_ring(), __ATOMIC_RELEASE);
	syscall(SYS_exit, 0);
	return NULL;
}

TEST(a_thread_that_dies_inside_an_emit_leaves_a_ring_that_works)
{
	struct weft_recorder *rec;
	int kind = tally_kind();
	pthread_attr_t attr;
	pthread_t thread;
	uint64_t rings;
	struct tally t;

	if (SCALED(0, 1))
		SKIP("the sanitizer's runtime does not survive a thread that exits behind its back");
	rec = session_start(&small);
	REQUIRE(rec);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	CHECK_EQ(pthread_create(&thread, &attr, die_inside_an_emit, &kind), 0);
	pthread_attr_destroy(&attr);
	CHECK(WAIT_FOR(__atomic_load_n(&left_behind, __ATOMIC_ACQUIRE)));
	rings = session_stats(rec).rings;
	CHECK(WAIT_FOR(!__atomic_load_n(&left_behind->owner, __ATOMIC_ACQUIRE))); /* found dead, once a second */
	run_source(kind, 1, 100);
	CHECK_EQ(session_stats(rec).rings, rings);
	session_end(rec, &t, 2);
	CHECK_EQ(t.sources[0].count, 10);
	CHECK_EQ(t.sources[1].count, 100);
	tally_fini(&t);
}

TEST(an_emit_that_close_overtook_is_harmless)
{
	struct weft_recorder *rec = session_start(&small);
	struct weft_ring *ring;
	struct weft_slot *slot;
	uint64_t first;

	REQUIRE(rec);
	weft_poll_end();
	/* What the inline functions do, with the close between the look at the limit and the taking. */
	ring = weft_ring_room(1, weft_now_ticks());
	REQUIRE(ring);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	first = weft_ring_take(ring, 1);
	slot = &ring->slots[first & ring->mask];
	slot->w0 = 1;
	slot->w1 = 1;
	weft_ring_publish(ring, first, first + 1);
	CHECK(ring->resv >= ring->limit);
	session_remove_dir();
}
