/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that hold locks while others wait for them, in a program that knows nothing of weft but knows who held
 * what, and when. It prints its waits as JSON, each with its holders; test/e2e/holders.py holds the report against
 * that.
 *
 * usage: run_holders MODE */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
#define SPANS 4096
#define ROUNDS 4

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void nap(int64_t ns)
{
	struct timespec ts = {ns / 1000000000, ns % 1000000000};

	nanosleep(&ts, NULL);
}

/* What is inside of the calls: a hold is sure from the return of the lock to the call of the unlock. */
struct span {
	int tid;
	int64_t begin, end;
};
static struct span holds[SPANS], waits[SPANS];
static int n_holds, n_waits;
static void *object;
static const char *name; /* of that variable */

static void add(struct span *spans, int *n, int64_t begin, int64_t end)
{
	int at = __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);

	if (at < SPANS)
		spans[at] = (struct span){(int)syscall(SYS_gettid), begin, end};
}

static void print(void)
{
	printf("{\"object\": %llu, \"name\": \"%s\", \"waits\": [", (unsigned long long)(uintptr_t)object, name);
	for (int i = 0; i < n_waits; i++) {
		const char *comma = "";

		printf("%s{\"tid\": %d, \"begin\": %lld, \"ns\": %lld, \"held\": [", i ? ", " : "", waits[i].tid,
		       (long long)waits[i].begin, (long long)(waits[i].end - waits[i].begin));
		for (int j = 0; j < n_holds; j++) {
			int64_t from = holds[j].begin > waits[i].begin ? holds[j].begin : waits[i].begin;
			int64_t to = holds[j].end < waits[i].end ? holds[j].end : waits[i].end;

			if (to <= from || holds[j].tid == waits[i].tid)
				continue;
			printf("%s[%d, %lld]", comma, holds[j].tid, (long long)(to - from));
			comma = ", ";
		}
		printf("]}");
	}
	printf("]}\n");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, recursive;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t c11;
static pthread_spinlock_t spin;
static pthread_barrier_t round_begins;

static int take_mutex(void)
{
	return pthread_mutex_lock(&mutex);
}

static int give_mutex(void)
{
	return pthread_mutex_unlock(&mutex);
}

static int take_recursive(void)
{
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&recursive);
	return pthread_mutex_unlock(&recursive); /* which does not give it back */
}

static int give_recursive(void)
{
	return pthread_mutex_unlock(&recursive);
}

static int take_c11(void)
{
	return mtx_lock(&c11);
}

static int give_c11(void)
{
	return mtx_unlock(&c11);
}

static int take_spin(void)
{
	return pthread_spin_lock(&spin);
}

static int give_spin(void)
{
	return pthread_spin_unlock(&spin);
}

static int take_read(void)
{
	return pthread_rwlock_rdlock(&rwlock);
}

static int take_write(void)
{
	return pthread_rwlock_wrlock(&rwlock);
}

static int give_rwlock(void)
{
	return pthread_rwlock_unlock(&rwlock);
}

/* Gives up after 30 ms. */
static int take_timed(void)
{
	struct timespec ts;
	int64_t until;

	clock_gettime(CLOCK_REALTIME, &ts);
	until = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec + 30 * MS;
	ts.tv_sec = until / 1000000000;
	ts.tv_nsec = until % 1000000000;
	return pthread_mutex_timedlock(&mutex, &ts);
}

struct actor {
	const char *name;
	int (*take)(void);
	int (*give)(void);
	int64_t delay, hold; /* after the begin of a round */
};

static void *act(void *arg)
{
	const struct actor *actor = arg;

	pthread_setname_np(pthread_self(), actor->name);
	nap(150 * MS); /* a recording that begins now has begun then */
	for (int i = 0; i < ROUNDS; i++) {
		int64_t begin, got;

		pthread_barrier_wait(&round_begins);
		nap(actor->delay);
		begin = now();
		if (actor->take() != 0) {
			add(waits, &n_waits, begin, now());
			continue;
		}
		got = now();
		if (got - begin > 10 * MS)
			add(waits, &n_waits, begin, got);
		nap(actor->hold);
		add(holds, &n_holds, got, now());
		actor->give();
	}
	return NULL;
}

/* A stream whose other end is read late: who writes to it first blocks, and keeps its lock. */
static FILE *stream;
static int ends[2];
static char block[1 << 18];

static int take_stream(void)
{
	return fwrite(block, sizeof(block), 1, stream) == 1 ? 0 : 1;
}

static int give_stream(void)
{
	return 0;
}

static int take_line(void)
{
	return fputs("x", stream) < 0;
}

/* Reads what one round writes, 30 ms after it began. */
static int take_end(void)
{
	size_t left = sizeof(block) + 1;

	while (left > 0) {
		ssize_t n = read(ends[0], block, left < sizeof(block) ? left : sizeof(block));

		if (n <= 0)
			return 1;
		left -= (size_t)n;
	}
	return 0;
}

/* Each has one and waits for the other; nobody comes out of it. */
static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER, second_lock = PTHREAD_MUTEX_INITIALIZER;

static void *deadlock(void *arg)
{
	int second = arg != NULL;

	pthread_setname_np(pthread_self(), second ? "second" : "first");
	pthread_mutex_lock(second ? &second_lock : &first_lock);
	pthread_barrier_wait(&round_begins);
	printf("%s %d\n", second ? "second" : "first", (int)syscall(SYS_gettid));
	fflush(stdout);
	pthread_mutex_lock(second ? &first_lock : &second_lock);
	return NULL;
}

static int deadlock_main(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&round_begins, NULL, 2);
	pthread_create(&threads[0], NULL, deadlock, NULL);
	pthread_create(&threads[1], NULL, deadlock, &threads);
	pthread_join(threads[0], NULL);
	return 1;
}

/* W waits for the condition; S signals it while it has the lock, and then keeps that for 30 ms. */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int is_set;

static int take_cond(void)
{
	int64_t began, ended;
	int r = pthread_mutex_lock(&mutex);

	began = now();
	while (!is_set)
		pthread_cond_wait(&cond, &mutex);
	ended = now();
	is_set = 0;
	printf("cond %lld %lld\n", (long long)began, (long long)ended);
	return r;
}

static int64_t signalled_at;

static int take_signal(void)
{
	int r = pthread_mutex_lock(&mutex);

	is_set = 1;
	signalled_at = now();
	pthread_cond_signal(&cond);
	printf("signal %lld\n", (long long)signalled_at);
	return r;
}

static const struct {
	const char *mode;
	void *object;
	const char *name;
	struct actor actors[4];
} modes[] = {
	{"handoff",
	 &mutex,
	 "mutex",
	 {{"A", take_mutex, give_mutex, 0, 6 * MS},
	  {"B", take_mutex, give_mutex, 2 * MS, 30 * MS},
	  {"W", take_mutex, give_mutex, 4 * MS, MS}}},
	{"recursive",
	 &recursive,
	 "recursive",
	 {{"A", take_recursive, give_recursive, 0, 6 * MS},
	  {"B", take_recursive, give_recursive, 2 * MS, 30 * MS},
	  {"W", take_recursive, give_recursive, 4 * MS, MS}}},
	{"c11",
	 &c11,
	 "c11",
	 {{"A", take_c11, give_c11, 0, 6 * MS},
	  {"B", take_c11, give_c11, 2 * MS, 30 * MS},
	  {"W", take_c11, give_c11, 4 * MS, MS}}},
	{"spin",
	 (void *)(uintptr_t)&spin,
	 "spin",
	 {{"A", take_spin, give_spin, 0, 6 * MS},
	  {"B", take_spin, give_spin, 2 * MS, 30 * MS},
	  {"W", take_spin, give_spin, 4 * MS, MS}}},
	{"readers",
	 &rwlock,
	 "rwlock",
	 {{"A", take_read, give_rwlock, 0, 20 * MS},
	  {"B", take_read, give_rwlock, MS, 30 * MS},
	  {"W", take_write, give_rwlock, 4 * MS, MS}}},
	{"writer",
	 &rwlock,
	 "rwlock",
	 {{"A", take_write, give_rwlock, 0, 30 * MS},
	  {"R", take_read, give_rwlock, 4 * MS, MS},
	  {"W", take_write, give_rwlock, 4 * MS, MS}}},
	{"cond",
	 &mutex,
	 "mutex",
	 {{"W", take_cond, give_mutex, 0, MS}, {"S", take_signal, give_mutex, 20 * MS, 30 * MS}}},
	{"stream",
	 NULL,
	 "",
	 {{"A", take_stream, give_stream, 0, 0},
	  {"W", take_line, give_stream, 5 * MS, 0},
	  {"R", take_end, give_stream, 40 * MS, 0}}},
	{"timed",
	 &mutex,
	 "mutex",
	 {{"A", take_mutex, give_mutex, 0, 50 * MS}, {"W", take_timed, give_mutex, 4 * MS, MS}}},
};

int main(int argc, char **argv)
{
	const struct actor *actors = NULL;
	pthread_mutexattr_t attr;
	pthread_t threads[4];
	size_t i, n;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (argc > 1 && strcmp(argv[1], modes[i].mode) == 0) {
			actors = modes[i].actors;
			object = modes[i].object;
			name = modes[i].name;
		}
	if (argc > 1 && strcmp(argv[1], "deadlock") == 0)
		return deadlock_main();
	if (!actors)
		return 2;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&recursive, &attr);
	mtx_init(&c11, mtx_plain);
	if (pipe(ends) < 0 || !(stream = fdopen(ends[1], "w")))
		return 1;
	setvbuf(stream, NULL, _IONBF, 0);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	for (n = 0; n < 4 && actors[n].name;)
		n++;
	pthread_barrier_init(&round_begins, NULL, (unsigned)n);
	nap(600 * MS); /* from then on a process is recorded, however little it computes */
	for (i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, act, (void *)(uintptr_t)&actors[i]);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	print();
	return 0;
}
