/* SPDX-License-Identifier: Apache-2.0 */
/* Records everything that a segment can hold, for comparing the two readers: second_reader_writer DIR [wait]. With
 * "wait" it prints "ready" at the end and waits to be killed, with events in every place where they can be: the
 * segment file, the staging area and the rings. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "weft/weft.h"

#define THREADS 4
#define KINDS 60
#define ROUNDS 3000

static uint32_t kinds[KINDS], every_type, no_fields;
static uint32_t runtimes[2];
static uint64_t pending;
static int stall; /* 1: the collector is to wait, 2: it waits */

static void nap(long ns)
{
	struct timespec pause = {0, ns};

	nanosleep(&pause, NULL);
}

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 20;
}

/* Asked by the collector, which drains no ring for as long as it stays in here. */
static uint64_t queue_of(void *data)
{
	int expected = 1;

	(void)data;
	if (__atomic_compare_exchange_n(&stall, &expected, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		while (__atomic_load_n(&stall, __ATOMIC_SEQ_CST) == 2)
			nap(100000);
	return __atomic_add_fetch(&pending, 7, __ATOMIC_RELAXED) % 1000;
}

/* More than a ring that has grown holds while nobody drains it: a loss. */
static void overflow(void)
{
	int i;

	__atomic_store_n(&stall, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&stall, __ATOMIC_SEQ_CST) == 1)
		nap(100000);
	for (i = 0; i < 20000; i++)
		weft_poll_end();
	__atomic_store_n(&stall, 0, __ATOMIC_SEQ_CST);
}

static void define(void)
{
	static const struct weft_field all[] = {
		{"count", WEFT_TYPE_U64, "1"},     {"difference", WEFT_TYPE_I64, "By"},
		{"ratio", WEFT_TYPE_F64, "%"},     {"is", WEFT_TYPE_BOOL, NULL},
		{"what", WEFT_TYPE_STRING, ""},    {"task", WEFT_TYPE_TASK, ""},
		{"worker", WEFT_TYPE_WORKER, ""},  {"place", WEFT_TYPE_LOCATION, ""},
		{"constant", WEFT_TYPE_U64, "ns"}, {"step", WEFT_TYPE_U64, ""},
		{"word", WEFT_TYPE_U64, ""},       {"few", WEFT_TYPE_I64, ""},
		{"back", WEFT_TYPE_I64, ""},       {"zero", WEFT_TYPE_U64, ""},
	};
	static const struct weft_field one[] = {{"value", WEFT_TYPE_U64, "1"}};
	char name[32];
	int i;

	every_type = weft_event_define("every_type", all, sizeof(all) / sizeof(all[0]), NULL);
	no_fields = weft_event_define("no_fields", NULL, 0, NULL);
	for (i = 0; i < KINDS; i++) {
		snprintf(name, sizeof(name), "kind_%d_\xc3\xbc", i);
		kinds[i] = weft_event_define(name, one, (size_t)i % 2, NULL);
	}
}

static void emit_all_types(uint64_t round, uint64_t word)
{
	char text[32];
	uint64_t fields[14] = {
		round, 0 - (word & 0xffffff), weft_f64((double)word / -3.0), round & 1, 0, word, round % 5, 0, 77};

	snprintf(text, sizeof(text), "text %u", (unsigned)(round % 20));
	fields[4] = weft_string(text);
	fields[7] = weft_location("in a loop", __FILE__, (uint32_t)(round % 300));
	fields[9] = 1000 + 3 * round;
	fields[10] = word * UINT64_C(0x9e3779b97f4a7c15);
	fields[11] = (word & 3) * (UINT64_MAX / 3);
	fields[12] = UINT64_MAX - round * 1000000007;
	weft_event(every_type, fields, 14);
}

/* CPU time for samples, at the end of stacks of many depths. */
static uint64_t __attribute__((noinline)) burn(uint64_t depth, long ns)
{
	struct timespec begun, now;
	volatile uint64_t keep = depth; /* so that this stays a recursion */
	uint64_t sum = depth;

	if (depth)
		return burn(depth - 1, ns) + keep;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
	do {
		next(&sum);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec < ns);
	return sum;
}

static void one_round(uint64_t round, uint64_t *seed, uint32_t worker)
{
	uint64_t word = next(seed), value = word << (word % 40);
	volatile uint64_t spin = word % 7 == 0 ? word % 30000 : word % 60;
	uint64_t now = weft_now_ticks();

	weft_poll_begin_at(word % 500, (uint32_t)(word % 70000), now);
	if (word % 3 == 0)
		weft_task_spawn(round, WEFT_HERE("one_round"));
	if (word % 5 == 0)
		weft_wake(word, worker);
	while (spin)
		spin--;
	weft_event(kinds[word % KINDS], &value, 1);
	if (word % 11 == 0)
		emit_all_types(round, word);
	if (word % 13 == 0)
		weft_event(no_fields, NULL, 0);
	if (word % 6 == 0)
		weft_poll_next(word % 300, WEFT_DEPTH_UNKNOWN);
	now = weft_now_ticks();
	weft_poll_end_at(now);
	if (word % 4 == 0) {
		weft_park_at((uint32_t)(word % 9), now);
		weft_unpark(WEFT_DEPTH_UNKNOWN);
	}
	if (word % 17 == 0)
		weft_task_end(word % 500);
	if (word % 19 == 0)
		weft_queue_depth(runtimes[word % 2], word % 100000);
}

static void *thread_main(void *data)
{
	uint64_t index = (uint64_t)(uintptr_t)data, seed = 1000 + index, round;
	char name[16];
	uint32_t worker;

	snprintf(name, sizeof(name), "writer-%u", (unsigned)index);
	pthread_setname_np(pthread_self(), name);
	worker = index < 3 ? weft_worker_enter(runtimes[index % 2], (uint32_t)index, NULL) : WEFT_WORKER_NONE;
	for (round = 0; round < ROUNDS; round++) {
		one_round(round, &seed, worker);
		if (round % 150 == 149)
			nap(10000000);
		if (round % 500 == 499)
			burn(round / 100 * index, 25000000);
	}
	if (index == 1)
		weft_worker_leave();
	if (index == 3)
		overflow();
	/* A gap of days, and the clock beyond the next reading. */
	weft_poll_begin_at(1, 0, weft_now_ticks() + (UINT64_C(1) << (40 + index)));
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread_main, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	static const char *const labels[] = {"stage=test", "text=gr\xc3\xbc\xc3\x9f", NULL};
	struct weft_recorder_opts opts = {.size = sizeof(opts), .labels = labels, .flush_ns = 200000000};
	struct weft_recorder *rec;
	struct weft_error err;
	uint64_t seed = 5, i;

	if (argc < 2)
		return 2;
	opts.dir = argv[1];
	runtimes[0] = weft_runtime_add(NULL, NULL);
	runtimes[1] = weft_runtime_add(&(struct weft_runtime_opts){.size = sizeof(struct weft_runtime_opts),
								   .name = "second",
								   .queue = queue_of},
				       NULL);
	define();
	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	for (i = 0; i < 40; i++)
		one_round(i, &seed, 0);
	weft_recorder_rotate(rec, NULL, 0, NULL); /* a small one */
	run_threads();
	weft_recorder_rotate(rec, NULL, 0, NULL);
	weft_recorder_pause(rec);
	weft_recorder_start(rec, &err);
	run_threads();
	if (argc < 3)
		return weft_recorder_close(rec, NULL) < 0;
	for (i = 0; i < 300; i++)
		one_round(i, &seed, 0);
	nap(300000000);
	for (i = 0; i < 200; i++)
		one_round(i, &seed, 0);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
