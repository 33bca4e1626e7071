/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait in a place that is known, by functions with and without frame pointers. */
/* serial: looks at threads by the clock */
#include <linux/futex.h>

#include "base/atomic.h"
#include "record/wall/state.h"
#include "record/wall/wall.h"
#include "walls.h"

#if defined(__clang__)
#define LEAN
#define FRAMED
#else
#define LEAN __attribute__((optimize("O2", "omit-frame-pointer")))
#define FRAMED __attribute__((optimize("O0", "no-omit-frame-pointer")))
#endif
/* As BURNER. */
#define PLACE(how, name)                                                                                               \
	extern const char __start_code_##name[], __stop_code_##name[];                                                 \
	how __attribute__((noinline, noclone, section("code_" #name))) static void name
#define USED(room) __asm__ volatile("" ::"r"(room) : "memory")
#define NOTHING_AFTER() __asm__ volatile("" ::: "memory") /* so that the call is none of a tail */

enum { WAIT_READ, WAIT_FUTEX, WAIT_NANOSLEEP, WAIT_MUTEX, WAIT_CONDITION, WAITS };
static const char *const wait_names[WAITS] = {"read", "futex", "nanosleep", "mutex", "condition"};
static int pipe_fds[2];
static uint32_t word;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t condition_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static int condition_met;

PLACE(LEAN, lean_waits)(int what)
{
	struct timespec an_hour = {3600, 0};
	char byte;

	if (what == WAIT_READ)
		(void)!read(pipe_fds[0], &byte, 1);
	else if (what == WAIT_FUTEX)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &an_hour, NULL, 0);
	else if (what == WAIT_NANOSLEEP)
		nanosleep(&(struct timespec){0, 300000000}, NULL);
	else if (what == WAIT_MUTEX)
		pthread_mutex_lock(&lock);
	else {
		pthread_mutex_lock(&condition_lock);
		while (!condition_met)
			pthread_cond_wait(&condition, &condition_lock);
		pthread_mutex_unlock(&condition_lock);
	}
	if (what == WAIT_MUTEX)
		pthread_mutex_unlock(&lock);
	NOTHING_AFTER();
}

PLACE(LEAN, lean_inner)(int what)
{
	lean_waits(what);
	NOTHING_AFTER();
}

PLACE(LEAN, lean_outer)(int what)
{
	char room[3000];

	USED(room);
	lean_inner(what);
	NOTHING_AFTER();
	USED(room);
}

PLACE(FRAMED, framed_waits)(int what)
{
	char room[200];

	USED(room);
	lean_waits(what);
	NOTHING_AFTER();
}

/* A frame pointer of its own, and a call right from it into the C library. */
PLACE(FRAMED, framed_reads)(int what)
{
	struct timespec an_hour = {3600, 0};
	char bytes[600];

	if (what == WAIT_READ)
		(void)!read(pipe_fds[0], bytes, 1);
	else if (what == WAIT_FUTEX)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &an_hour, NULL, 0);
	else if (what == WAIT_NANOSLEEP)
		nanosleep(&(struct timespec){0, 300000000}, NULL);
	else
		framed_waits(what);
	NOTHING_AFTER();
}

PLACE(FRAMED, framed_leaves_rubbish)(int depth)
{
	char room[300];

	USED(room);
	if (depth)
		framed_leaves_rubbish(depth - 1);
	NOTHING_AFTER();
}

PLACE(FRAMED, framed_inner)(int what)
{
	char room[4096];

	USED(room);
	framed_leaves_rubbish(5);
	framed_reads(what);
	NOTHING_AFTER();
}

PLACE(FRAMED, framed_outer)(int what)
{
	framed_inner(what);
	NOTHING_AFTER();
}

struct waiter {
	pthread_t thread;
	uint32_t tid;
	int what, framed;
	uint64_t waited_ns;
};

static void *waiter_main(void *data)
{
	struct waiter *waiter = data;
	uint64_t from;

	store_release(&waiter->tid, samples_tid());
	from = session_now_ns();
	if (waiter->framed)
		framed_outer(waiter->what);
	else
		lean_outer(waiter->what);
	waiter->waited_ns = session_now_ns() - from;
	return NULL;
}

static struct walls result;

/* Has looked at all threads once when it returns. */
static struct weft_recorder *wall_start(uint64_t hz, uint64_t sample_hz)
{
	struct weft_recorder *rec = session_start(
		&(struct weft_recorder_opts){.wall_hz = hz, .sample_hz = sample_hz, .budget_ppm = WEFT_OFF});

	if (rec)
		CHECK(WAIT_FOR(weft__wall_cost()));
	return rec;
}

/* Whether it lies between the two, to so many percent. */
static int within(uint64_t seen, uint64_t least, uint64_t most, uint64_t percent)
{
	return (seen >= least || samples_near(seen, least, percent)) &&
	       (seen <= most || samples_near(seen, most, percent));
}

/* Lets all waiters go on. */
static void release_all(void)
{
	(void)!write(pipe_fds[1], "123456789", 9);
	store_release(&word, 1u);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1000, NULL, NULL, 0);
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&condition_lock);
	condition_met = 1;
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&condition_lock);
}

static void hold_all(void)
{
	CHECK_EQ(pipe(pipe_fds), 0);
	store_release(&word, 0u);
	condition_met = 0;
	pthread_mutex_lock(&lock);
}

static void chains_are_seen(int framed, struct samples_function *functions, uint32_t n)
{
	struct waiter waiters[WAITS];
	struct weft_recorder *rec;

	hold_all();
	rec = wall_start(50, WEFT_OFF);
	if (!CHECK(rec))
		return;
	CHECK(WAIT_FOR(walls_tables()));
	for (int i = 0; i < WAITS; i++) {
		waiters[i] = (struct waiter){.what = i, .framed = framed};
		CHECK_EQ(pthread_create(&waiters[i].thread, NULL, waiter_main, &waiters[i]), 0);
	}
	session_sleep_ns(400 * MS);
	release_all();
	for (int i = 0; i < WAITS; i++)
		pthread_join(waiters[i].thread, NULL);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	walls_end(&result, rec, functions, n);
	for (int i = 0; i < WAITS; i++) {
		struct walls_thread *t = walls_thread(&result, waiters[i].tid);

		walls_print(t, wait_names[i]);
		CHECK(t->ns > 0);
		/* On its way there it may wait for something else. */
		CHECK(t->in_order * 10 >= t->ns * 8);
		CHECK(t->complete * 2 > t->n);
		CHECK(t->ns <= waiters[i].waited_ns + 100 * MS);
	}
}

TEST(waits_below_functions_without_frame_pointers_have_their_stack)
{
	struct samples_function functions[] = {RANGE(lean_outer), RANGE(lean_inner), RANGE(lean_waits)};

	chains_are_seen(0, functions, 3);
}

TEST(waits_below_functions_with_frame_pointers_have_their_stack)
{
	struct samples_function functions[] = {RANGE(framed_outer), RANGE(framed_inner), RANGE(framed_reads)};

	chains_are_seen(1, functions, 3);
}

/* Times that are surely in the recording, and times that have it in them. */
struct napper {
	pthread_t thread;
	uint32_t tid;
	uint64_t least_ns, most_ns; /* waited */
	uint64_t lived_ns;          /* the longer one */
};

static uint32_t done;

/* Time on a CPU and in line for one, the latter also by itself. */
static uint64_t time_busy(uint32_t tid, uint64_t *in_line)
{
	unsigned long long cpu = 0, queue = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", tid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%llu %llu", &cpu, &queue) != 2)
		cpu = queue = 0;
	if (file)
		fclose(file);
	*in_line = queue;
	return cpu + queue;
}

/* The time that a thread has neither run nor stood in line for a CPU, from a time on that is the same for all calls.
 * It is read while the thread sleeps, since how long one stands in line is not known before it has its CPU, and all
 * at once. */
static uint64_t time_waited(const struct napper *napper, uint64_t *in_line)
{
	uint32_t tid = load_acquire(&napper->tid);
	uint64_t before, busy, after, until = session_now_ns() + 10000 * MS;

	do {
		int asleep;

		before = session_now_ns();
		asleep = session_asleep(tid);
		busy = time_busy(tid, in_line);
		after = session_now_ns();
		if (asleep && session_asleep(tid) && time_busy(tid, in_line) == busy && after - before < MS)
			return after - busy;
		session_sleep_ns(MS / 10);
	} while (after < until);
	CHECK(!"it sleeps now and then");
	return 0;
}

static void *napper_main(void *data)
{
	struct napper *napper = data;

	store_release(&napper->tid, samples_tid());
	while (!load_acquire(&done)) {
		nanosleep(&(struct timespec){0, 7 * MS}, NULL);
		samples_spin(300000);
		session_sleep_ns(2 * MS);
	}
	return NULL;
}

static void *locker_main(void *data)
{
	struct napper *napper = data;

	store_release(&napper->tid, samples_tid());
	while (!load_acquire(&done)) {
		pthread_mutex_lock(&contended);
		samples_burn(MS);
		pthread_mutex_unlock(&contended);
	}
	return NULL;
}

/* Records them for a second, while they are at it. */
static int run_nappers(struct napper *nappers, int n, void *(*body)(void *), uint64_t sample_hz)
{
	struct weft_recorder *rec;
	uint64_t in_line;

	store_release(&done, 0u);
	for (int i = 0; i < n; i++) {
		nappers[i] = (struct napper){0};
		CHECK_EQ(pthread_create(&nappers[i].thread, NULL, body, &nappers[i]), 0);
		CHECK(WAIT_FOR(load_acquire(&nappers[i].tid)));
	}
	for (int i = 0; i < n; i++) {
		nappers[i].lived_ns = session_now_ns();
		nappers[i].most_ns = time_waited(&nappers[i], &in_line);
	}
	rec = wall_start(100, sample_hz);
	for (int i = 0; i < n; i++)
		nappers[i].least_ns = time_waited(&nappers[i], &in_line);
	if (rec)
		walls_watch(1000 * MS, 30);
	for (int i = 0; i < n; i++) {
		nappers[i].least_ns = time_waited(&nappers[i], &in_line) - nappers[i].least_ns;
		nappers[i].most_ns += in_line;
	}
	if (rec) {
		walls_watch(0, 6);
		CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	}
	for (int i = 0; i < n; i++) {
		nappers[i].most_ns = time_waited(&nappers[i], &in_line) - nappers[i].most_ns;
		/* Who stood in line at the end is reported to have waited, which is taken off what comes after that. */
		nappers[i].most_ns += in_line;
		nappers[i].lived_ns = session_now_ns() - nappers[i].lived_ns;
	}
	if (rec)
		walls_end(&result, rec, NULL, 0);
	store_release(&done, 1u);
	for (int i = 0; i < n; i++)
		pthread_join(nappers[i].thread, NULL);
	return rec != NULL;
}

TEST(weights_sum_to_the_time_that_a_thread_waited)
{
	struct napper nappers[3];

	REQUIRE(run_nappers(nappers, 3, napper_main, WEFT_OFF));
	for (int i = 0; i < 3; i++) {
		struct walls_thread *t = walls_thread(&result, nappers[i].tid);

		walls_print(t, "napper");
		CHECK(within(t->ns, nappers[i].least_ns, nappers[i].most_ns, 5));
		CHECK(t->n > 5);
	}
}

TEST(eight_threads_at_one_lock_are_one_that_runs_and_eight_in_all)
{
	struct napper nappers[8];
	uint64_t least = 0, most = 0, seen = 0, lived = 0;

	REQUIRE(run_nappers(nappers, 8, locker_main, UNDER_TSAN ? WEFT_OFF : 99));
	for (int i = 0; i < 8; i++) {
		least += nappers[i].least_ns;
		most += nappers[i].most_ns;
		lived += nappers[i].lived_ns;
		seen += walls_thread(&result, nappers[i].tid)->ns;
	}
	printf("\twaited %.2f to %.2f s, seen %.2f s; CPU samples %.2f s, lived %.2f s\n", (double)least / 1e9,
	       (double)most / 1e9, (double)seen / 1e9, (double)result.samples_ns / 1e9, (double)lived / 1e9);
	CHECK(within(seen, least, most, 5));
	CHECK(result.samples_ns + seen <= lived + lived / 10);
}

/* A thread that waits for long is in every segment, and what is reported it adds up. */
TEST(a_thread_that_does_not_move_is_recorded_in_every_segment)
{
	struct samples_function functions[] = {RANGE(lean_outer), RANGE(lean_inner), RANGE(lean_waits)};
	struct waiter waiter = {.what = WAIT_READ};
	struct weft_recorder *rec;
	struct walls_thread *t;
	char path[512];
	uint64_t least;

	hold_all();
	rec = wall_start(200, WEFT_OFF);
	REQUIRE(rec);
	CHECK(WAIT_FOR(walls_tables()));
	CHECK_EQ(pthread_create(&waiter.thread, NULL, waiter_main, &waiter), 0);
	CHECK(WAIT_FOR(load_acquire(&waiter.tid) && session_asleep(waiter.tid)));
	walls_watch(0, 4); /* it is known from then on */
	least = session_now_ns();
	for (int i = 0; i < 3; i++) {
		session_sleep_ns(100 * MS);
		CHECK_EQ(weft_recorder_rotate(rec, path, sizeof(path), NULL), 0);
	}
	walls_read(&result, session_dir, functions, 3);
	t = walls_thread(&result, load_acquire(&waiter.tid));
	walls_print(t, "before the end");
	CHECK(t->n >= 3);
	least = session_now_ns() - least;
	release_all();
	pthread_join(waiter.thread, NULL);
	walls_end(&result, rec, functions, 3);
	t = walls_thread(&result, waiter.tid);
	CHECK(t->in_order * 10 >= t->ns * 8);
	CHECK(within(t->ns, least, waiter.waited_ns, 20));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

TEST(a_pause_is_not_counted_as_waiting)
{
	struct waiter waiter = {.what = WAIT_READ};
	struct weft_recorder *rec;
	struct walls_thread *t;
	uint64_t paused, from;

	hold_all();
	rec = wall_start(200, WEFT_OFF);
	REQUIRE(rec);
	CHECK_EQ(pthread_create(&waiter.thread, NULL, waiter_main, &waiter), 0);
	session_sleep_ns(100 * MS);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	from = session_now_ns();
	session_sleep_ns(600 * MS);
	paused = session_now_ns() - from;
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	session_sleep_ns(100 * MS);
	release_all();
	pthread_join(waiter.thread, NULL);
	walls_end(&result, rec, NULL, 0);
	t = walls_thread(&result, waiter.tid);
	walls_print(t, "paused");
	CHECK(t->ns > 0 && t->ns < waiter.waited_ns - paused / 2);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void *short_life(void *data)
{
	usleep((useconds_t)((uintptr_t)data * 7 % 300));
	return NULL;
}

/* They end while they are looked at, and their ids and stacks are used again. */
TEST(threads_that_come_and_go_are_no_trouble)
{
	enum { AT_ONCE = 16 };
	struct weft_recorder *rec = wall_start(1000, UNDER_TSAN ? WEFT_OFF : 99);
	uint64_t n = 0, until = session_now_ns() + 1000 * MS;
	pthread_t threads[AT_ONCE];

	REQUIRE(rec);
	while (session_now_ns() < until) {
		for (int i = 0; i < AT_ONCE; i++, n++)
			CHECK_EQ(pthread_create(&threads[i], NULL, short_life, (void *)(uintptr_t)n), 0);
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(threads[i], NULL);
	}
	walls_end(&result, rec, NULL, 0);
	printf("\t%llu threads, %llu events, of %u threads\n", (unsigned long long)n, (unsigned long long)result.n,
	       result.n_threads);
	CHECK(result.n > 0);
}

/* Where the kernel does not report where a thread waits, that it does is reported all the same. */
TEST(without_places_there_is_still_the_time)
{
	struct waiter waiter = {.what = WAIT_READ};
	struct weft_recorder *rec;
	struct walls_thread *t;

	hold_all();
	rec = wall_start(100, WEFT_OFF);
	REQUIRE(rec);
	store_relaxed(&weft__wall_choice.brief, 1);
	CHECK_EQ(pthread_create(&waiter.thread, NULL, waiter_main, &waiter), 0);
	session_sleep_ns(200 * MS);
	release_all();
	pthread_join(waiter.thread, NULL);
	walls_end(&result, rec, NULL, 0);
	t = walls_thread(&result, waiter.tid);
	walls_print(t, "brief");
	CHECK(t->ns > 0);
	CHECK_EQ(t->no_stack, t->n);
	CHECK_EQ(t->call, 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}
