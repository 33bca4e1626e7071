/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes: who is which worker, how long their queues are, what their threads cost. */
#include "session.h"

static int queue_asked;

static uint64_t queue(void *data)
{
	__atomic_add_fetch(&queue_asked, 1, __ATOMIC_RELAXED);
	return *(uint64_t *)data;
}

static uint64_t not_known(void *data)
{
	return *(uint64_t *)data;
}

static void sum_depth(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	(void)seg;
	if (ev->kind == WEFT_KIND_QUEUE)
		*(uint64_t *)data += ev->fields[0];
}

TEST(global_queues_are_asked_every_10_ms)
{
	uint64_t depth = 7, unknown = WEFT_NOT_MEASURED, sum = 0, began;
	struct weft_runtime_opts opts = {sizeof(opts), "queued", NULL, queue, &depth};
	struct weft_runtime_opts other = {sizeof(other), "not known", NULL, not_known, &unknown};
	struct weft_recorder *rec = session_start(NULL);
	int runtime = weft_runtime_add(&opts, NULL), asked;
	uint32_t silent = weft_runtime_add(&other, NULL);
	struct tally t;

	REQUIRE(rec && runtime > 0 && silent > 0);
	began = session_now_ns();
	__atomic_store_n(&queue_asked, 0, __ATOMIC_RELAXED);
	session_sleep_ns(500 * MS);
	asked = __atomic_load_n(&queue_asked, __ATOMIC_RELAXED);
	CHECK(asked >= 8 && (uint64_t)asked <= (session_now_ns() - began) / (10 * MS) + 2);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	asked = __atomic_load_n(&queue_asked, __ATOMIC_RELAXED);
	session_sleep_ns(50 * MS);
	CHECK(__atomic_load_n(&queue_asked, __ATOMIC_RELAXED) <= asked + 1); /* not while nothing records */
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(weft_runtime_del(runtime), 0);
	CHECK_EQ(weft_runtime_del(silent), 0);
	tally_init(&t, 0);
	t.each = sum_depth;
	t.data = &sum;
	tally_dir(&t, session_dir);
	CHECK_EQ(sum, t.by_kind[WEFT_KIND_QUEUE] * 7);
	CHECK(t.by_kind[WEFT_KIND_QUEUE] >= 8);
	CHECK_EQ(t.undefined, 0);
	tally_fini(&t);
	session_remove_dir();
}

struct sched_seen {
	uint64_t n, cpu, wrong;
};

static void see_sched(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct sched_seen *seen = data;

	(void)seg;
	if (ev->kind != WEFT_KIND_SCHED)
		return;
	seen->wrong += ev->fields[0] < seen->cpu;
	seen->cpu = ev->fields[0];
	seen->n++;
}

TEST(cpu_time_comes_with_parks_once_in_10_ms)
{
	struct weft_recorder_opts opts = {.drain_ns = MS};
	struct weft_recorder *rec = session_start(&opts);
	uint64_t began = session_now_ns(), took, last = 0, sure = 0;
	struct sched_seen seen = {0};
	struct tally t;

	REQUIRE(rec);
	/* The last time that was certain, and then one that is 10 ms later: that often, at least. */
	while (session_now_ns() < began + 200 * MS || sure < 5) {
		uint64_t now = session_now_ns();

		weft_park(1);
		weft_unpark(2);
		if (now >= last + 10 * MS + MS / 10) {
			last = session_now_ns();
			sure++;
		}
		session_sleep_ns(MS / 10);
	}
	took = session_now_ns() - began;
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = see_sched;
	t.data = &seen;
	tally_dir(&t, session_dir);
	CHECK_EQ(t.by_kind[WEFT_KIND_PARK], t.by_kind[WEFT_KIND_UNPARK]);
	CHECK(seen.n + t.lost >= sure);
	CHECK(seen.n >= 5 && seen.n <= took / (10 * MS) + 2);
	CHECK_EQ(seen.wrong, 0);
	CHECK(seen.cpu > 0);
	tally_fini(&t);
	session_remove_dir();
}

/* Each thread counts how often it is asked. */
static __thread int asked_here, index_here = -1;

static int resolver(void *data)
{
	(void)data;
	asked_here++;
	return index_here;
}

struct asked {
	int index;
	int times;
};

static void *be_asked(void *data)
{
	struct asked *asked = data;
	int i;

	index_here = asked->index;
	for (i = 0; i < 10000; i++) {
		weft_park(0);
		if (i % 500 == 0)
			session_sleep_ns(MS / 2);
	}
	asked->times = asked_here;
	return NULL;
}

static void count_workers(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const struct weft_thread *thread = weft_segment_thread(seg, ev->thread);
	const struct weft_worker *worker = thread ? weft_segment_worker(seg, thread->worker) : NULL;

	if (ev->kind == WEFT_KIND_THREAD_BEGIN && worker)
		((int *)data)[worker->index % 8]++;
}

TEST(a_thread_is_asked_once_who_it_is_whatever_the_answer)
{
	struct weft_runtime_opts opts = {sizeof(opts), "resolved", resolver, NULL, NULL};
	struct weft_recorder_opts small = {.ring_bytes = 8192, .drain_ns = MS};
	struct asked asked[3] = {{3, 0}, {-1, 0}, {4, 0}};
	struct weft_recorder *rec = session_start(&small);
	int runtime = weft_runtime_add(&opts, NULL), workers[8] = {0}, i;
	pthread_t threads[3];
	struct tally t;

	REQUIRE(rec && runtime > 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, be_asked, &asked[i]), 0);
	for (i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(asked[i].times, 1);
	}
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(weft_runtime_del(runtime), 0);
	tally_init(&t, 0);
	t.each = count_workers;
	t.data = workers;
	tally_dir(&t, session_dir);
	CHECK_EQ(workers[3], 1);
	CHECK_EQ(workers[4], 1);
	CHECK_EQ(t.by_kind[WEFT_KIND_WORKER], 2);
	CHECK_EQ(t.undefined + t.damaged, 0);
	tally_fini(&t);
	session_remove_dir();
}

TEST(a_worker_that_entered_before_open_is_remembered)
{
	int runtime = weft_runtime_add(NULL, NULL), workers[8] = {0};
	struct weft_recorder *rec;
	struct tally t;

	REQUIRE(runtime > 0);
	CHECK(weft_worker_enter(runtime, 6, NULL) > 0);
	CHECK_EQ(weft_worker_enter(runtime, 6, NULL), weft_worker_id(runtime, 6, NULL));
	rec = session_start(NULL);
	REQUIRE(rec);
	weft_park(0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	weft_worker_leave();
	tally_init(&t, 0);
	t.each = count_workers;
	t.data = workers;
	tally_dir(&t, session_dir);
	CHECK_EQ(workers[6], 1);
	CHECK_EQ(t.undefined, 0);
	tally_fini(&t);
	session_remove_dir();
}

static void last_worker(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	(void)seg;
	if (ev->kind == WEFT_KIND_WORKER) {
		uint64_t *workers = data;

		workers[1] = workers[0];
		workers[0] = ev->fields[0];
	}
}

TEST(entering_and_leaving_are_events)
{
	int runtime = weft_runtime_add(NULL, NULL), id;
	struct weft_recorder *rec = session_start(NULL);
	uint64_t workers[2] = {0};
	struct tally t;

	REQUIRE(rec && runtime > 0);
	weft_park(0);
	id = weft_worker_enter(runtime, 1, NULL);
	weft_park(0);
	weft_worker_leave();
	weft_park(0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = last_worker;
	t.data = workers;
	tally_dir(&t, session_dir);
	CHECK_EQ(workers[1], id);
	CHECK_EQ(workers[0], WEFT_WORKER_NONE);
	tally_fini(&t);
	session_remove_dir();
}

static int in_queue, let_go;

static uint64_t stuck_queue(void *data)
{
	(void)data;
	__atomic_store_n(&in_queue, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE))
		session_sleep_ns(MS);
	__atomic_store_n(&in_queue, 0, __ATOMIC_RELEASE);
	return 0;
}

static void *let_go_soon(void *data)
{
	session_sleep_ns(50 * MS);
	__atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
	return data;
}

TEST(a_runtime_is_deleted_when_its_callback_has_returned)
{
	struct weft_runtime_opts opts = {sizeof(opts), "stuck", NULL, stuck_queue, NULL};
	struct weft_recorder *rec = session_start(NULL);
	int runtime = weft_runtime_add(&opts, NULL);
	pthread_t thread;
	struct tally t;

	REQUIRE(rec && runtime > 0);
	CHECK(WAIT_FOR(__atomic_load_n(&in_queue, __ATOMIC_ACQUIRE)));
	CHECK_EQ(pthread_create(&thread, NULL, let_go_soon, NULL), 0);
	CHECK_EQ(weft_runtime_del(runtime), 0);
	CHECK_EQ(__atomic_load_n(&in_queue, __ATOMIC_ACQUIRE), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(weft_runtime_del(99), -EINVAL);
	session_end(rec, &t, 0);
	tally_fini(&t);
}

TEST(what_a_runtime_does_not_measure_is_a_fact_of_each_segment)
{
	struct weft_recorder *rec = session_start(NULL);
	uint32_t runtime = weft_runtime_add(WEFT_OPTIONS(weft_runtime_opts, .name = "partly"), NULL);
	struct weft_segment *seg;
	struct weft_error err;
	char key[64], path[256];
	struct tally t;

	REQUIRE(rec && runtime > 0);
	CHECK_EQ(weft_runtime_not_measured(runtime, NULL, NULL), -EINVAL);
	CHECK_EQ(weft_runtime_not_measured(0, "polls", NULL), -EINVAL);
	CHECK_EQ(weft_runtime_not_measured(99, "polls", &err), -EINVAL);
	CHECK_STR(err.msg, "99 is no runtime; give an id of weft_runtime_add");
	CHECK_EQ(err.code, -EINVAL);
	CHECK_EQ(weft_runtime_not_measured(runtime, "polls of plain tasks", NULL), 0);
	snprintf(key, sizeof(key), "degraded.runtime.%u", runtime);
	for (int i = 0; i < 2; i++) {
		weft_park(0);
		weft_unpark(0);
		CHECK_EQ(weft_recorder_rotate(rec, path, sizeof(path), NULL), 0);
		REQUIRE(weft_segment_open(&seg, path, NULL) == 0);
		CHECK_STR(weft_segment_fact(seg, key), "polls of plain tasks");
		weft_segment_close(seg);
	}
	session_end(rec, &t, 0);
	CHECK_EQ(weft_runtime_del(runtime), 0);
	tally_fini(&t);
}

TEST(runtimes_end_at_their_limit)
{
	struct weft_error err = {0};
	uint32_t last = 1, n;

	for (n = 0; n < 100 && last; n++)
		last = weft_runtime_add(NULL, &err);
	CHECK(!last && n > 1);
	CHECK_EQ(err.code, -WEFT_E_LIMIT);
	CHECK(strstr(err.msg, "64 runtimes"));
}

TEST(a_worker_of_no_runtime_has_id_0_and_the_error_says_why)
{
	struct weft_error err = {0};

	CHECK_EQ(weft_worker_id(99, 0, &err), 0);
	CHECK_EQ(err.code, -EINVAL);
	err.code = 0;
	CHECK_EQ(weft_worker_enter(0, 0, &err), 0);
	CHECK_EQ(err.code, -EINVAL);
	CHECK(strstr(err.msg, "0 is no runtime"));
}

TEST(an_event_type_that_is_refused_has_id_0_and_the_error_says_why)
{
	static const struct weft_field one[] = {{"n", WEFT_TYPE_U64, NULL}}, other[] = {{"m", WEFT_TYPE_U64, NULL}};
	struct weft_error err = {0};

	CHECK_EQ(weft_event_define("", one, 1, &err), 0);
	CHECK_EQ(err.code, -EINVAL);
	CHECK(weft_event_define("refused twice", one, 1, &err) >= WEFT_KIND_USER);
	CHECK_EQ(weft_event_define("refused twice", other, 1, &err), 0);
	CHECK_EQ(err.code, -EEXIST);
	CHECK(strstr(err.msg, "\"refused twice\" is defined with other fields"));
	CHECK_EQ(weft_event_define("refused", one, WEFT_FIELDS_MAX + 1, &err), 0);
	CHECK_EQ(err.code, -EINVAL);
}
