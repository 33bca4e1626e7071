/* SPDX-License-Identifier: Apache-2.0 */
/* Emitting from signal handlers that interrupt emits, with real signals. */
#include "session.h"

#include <signal.h>
#include <sys/time.h>

#define DEPTH_MAX 16

static int kind;
static int stop;

/* Sources of one thread: its own events, and one for each depth of handlers, because a handler can interrupt another
 * between taking its number and emitting it. */
struct lane {
	uint64_t first;
	volatile uint64_t n[1 + DEPTH_MAX];
	volatile uint32_t depth;
};
static __thread struct lane *mine;

static void emit_at(struct lane *lane, uint32_t depth)
{
	uint64_t n = lane->n[depth] + 1;

	lane->n[depth] = n;
	tally_emit(kind, lane->first + depth, n);
}

static void handler(int signal)
{
	struct lane *lane = mine;
	uint32_t depth;

	(void)signal;
	if (!lane)
		return;
	depth = ++lane->depth;
	if (depth <= DEPTH_MAX)
		emit_at(lane, depth);
	lane->depth--;
}

static void catch_signal(int signal, int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | flags};

	sigemptyset(&action.sa_mask);
	CHECK_EQ(sigaction(signal, &action, NULL), 0);
}

/* Counts what came of the lanes: every event once and in order, or counted as lost. */
static void check_lanes(struct weft_recorder *rec, const struct lane *lanes, uint32_t n_lanes, int want_handlers)
{
	uint64_t emitted = 0, seen = 0, handled = 0;
	struct tally t;
	uint32_t i, d;

	session_end(rec, &t, n_lanes * (1 + DEPTH_MAX));
	for (i = 0; i < n_lanes; i++) {
		for (d = 0; d <= DEPTH_MAX; d++) {
			emitted += lanes[i].n[d];
			seen += t.sources[lanes[i].first + d].count;
			handled += d ? lanes[i].n[d] : 0;
			CHECK(t.sources[lanes[i].first + d].last <= lanes[i].n[d]);
		}
	}
	CHECK_EQ(seen + t.lost, emitted);
	if (want_handlers)
		CHECK(handled > 0);
	tally_fini(&t);
}

static void lanes_init(struct lane *lanes, uint32_t n)
{
	uint32_t i;

	memset(lanes, 0, n * sizeof(*lanes));
	for (i = 0; i < n; i++)
		lanes[i].first = i * (1 + DEPTH_MAX);
	__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
	kind = tally_kind();
}

TEST(a_timer_s_handler_emits_into_the_emits_it_interrupts)
{
	struct itimerval every = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct lane lane;
	struct weft_recorder *rec = session_start(NULL);
	uint64_t until = session_now_ns() + SCALED(400, 300) * MS;

	REQUIRE(rec);
	lanes_init(&lane, 1);
	mine = &lane;
	catch_signal(SIGALRM, 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
	while (session_now_ns() < until) {
		uint32_t i;

		for (i = 0; i < 200; i++)
			emit_at(&lane, 0);
		session_sleep_ns(MS / 20);
	}
	CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
	mine = NULL;
	check_lanes(rec, &lane, 1, 1);
}

static void *emit_until_stop(void *data)
{
	struct lane *lane = data;
	uint32_t i;

	mine = lane;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < 100; i++)
			emit_at(lane, 0);
		session_sleep_ns(MS / 20);
	}
	mine = NULL;
	return NULL;
}

/* Signals may be under way to a thread until it has been joined. */
static void bombard(pthread_t *threads, uint32_t n, uint64_t ns)
{
	uint64_t until = session_now_ns() + ns;
	uint32_t i;

	while (session_now_ns() < until) {
		for (i = 0; i < n; i++) {
			pthread_kill(threads[i], SIGUSR1);
			pthread_kill(threads[i], SIGUSR2);
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

TEST(nested_handlers_emit_into_each_other)
{
	enum { N = 3 };
	struct lane lanes[N];
	struct weft_recorder *rec = session_start(NULL);
	pthread_t threads[N];
	uint32_t i;

	REQUIRE(rec);
	lanes_init(lanes, N);
	catch_signal(SIGUSR1, SA_NODEFER);
	catch_signal(SIGUSR2, SA_NODEFER);
	for (i = 0; i < N; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, emit_until_stop, &lanes[i]), 0);
	bombard(threads, N, SCALED(500, 300) * MS);
	check_lanes(rec, lanes, N, 1);
}

TEST(handlers_emit_into_a_ring_that_is_full)
{
	struct weft_recorder_opts opts = {.ring_bytes = 8192};
	struct lane lane;
	struct weft_recorder *rec = session_start(&opts);
	struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	uint64_t until = session_now_ns() + 300 * MS;

	REQUIRE(rec);
	lanes_init(&lane, 1);
	mine = &lane;
	catch_signal(SIGALRM, 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
	while (session_now_ns() < until) {
		uint32_t i;

		for (i = 0; i < 1000; i++)
			emit_at(&lane, 0);
		session_sleep_ns(MS / 100); /* where ThreadSanitizer lets signals in */
	}
	CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
	mine = NULL;
	CHECK_EQ(session_ring()->hot.resv, session_ring()->hot.head);
	check_lanes(rec, &lane, 1, 1);
}

static void *emit_a_little(void *data)
{
	struct lane *lane = data;
	uint32_t i;

	mine = lane;
	pthread_kill(pthread_self(), SIGUSR1); /* its handler has this thread's first event */
	for (i = 0; i < 10; i++)
		emit_at(lane, 0);
	session_sleep_ns(MS / 20);
	mine = NULL;
	return NULL;
}

TEST(a_handler_has_the_first_event_of_a_thread)
{
	enum { N = SCALED(2000, 300) };
	static struct lane lanes[N];
	struct weft_recorder *rec = session_start(NULL);
	uint32_t i;

	REQUIRE(rec);
	lanes_init(lanes, N);
	catch_signal(SIGUSR1, 0);
	for (i = 0; i < N; i += 2) {
		pthread_t threads[2];

		CHECK_EQ(pthread_create(&threads[0], NULL, emit_a_little, &lanes[i]), 0);
		CHECK_EQ(pthread_create(&threads[1], NULL, emit_a_little, &lanes[i + 1]), 0);
		/* And some while it attaches. */
		pthread_kill(threads[0], SIGUSR1);
		pthread_kill(threads[1], SIGUSR1);
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
		if (i % 100 == 98) /* a ring's worth: more rings are made when the collector has no time */
			CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	}
	CHECK(session_stats(rec).rings <= 8);
	check_lanes(rec, lanes, N, 1);
}

static volatile sig_atomic_t in_errno;

static void errno_handler(int signal)
{
	(void)signal;
	errno = EXDEV;
	weft_park(0);
	weft_poll_end();
	in_errno = in_errno + (errno == EXDEV);
}

TEST(emits_leave_errno_alone)
{
	struct sigaction action = {.sa_handler = errno_handler};
	struct weft_recorder *rec = session_start(NULL);
	struct tally t;

	REQUIRE(rec);
	sigemptyset(&action.sa_mask);
	in_errno = 0;
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	raise(SIGUSR1);
	CHECK_EQ(in_errno, 1);
	session_end(rec, &t, 0);
	CHECK_EQ(t.by_kind[WEFT_KIND_PARK], 1);
	tally_fini(&t);
}
