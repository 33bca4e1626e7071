/* SPDX-License-Identifier: Apache-2.0 */
/* A thread pool in plain C: jobs that wait in a queue, threads that take them. What weft is told:
 *
 *   submit     a task is spawned, where, and woken: by the job that submits it, if one does
 *   work       parks while the queue is empty, polls of jobs
 *   add_line   waits for a lock, and who has it
 *
 * usage: pool [DIR]    records to DIR, pool-trace by default */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weft/weft.h>

#define THREADS 2

struct job {
	struct job *next;
	void (*run)(long arg);
	long arg;
	uint64_t id;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job *head, **tail;
	uint32_t length, running;
	int ending;
	uint64_t last_id;
	uint32_t runtime;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .tail = &pool.head};

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static long lines;

/* `here` is where the job comes from: WEFT_HERE("name"). */
static void submit(void (*run)(long arg), long arg, uint32_t here)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		exit(1);
	job->run = run;
	job->arg = arg;
	pthread_mutex_lock(&pool.lock);
	job->id = ++pool.last_id;
	weft_task_spawn(job->id, here);
	weft_wake(job->id, WEFT_WORKER_NONE); /* before another thread can take it */
	*pool.tail = job;
	pool.tail = &job->next;
	pool.length++;
	pthread_cond_signal(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
}

/* The next job, or NULL when no more will come: none waits, and none runs that could submit one. */
static struct job *take(uint32_t *length)
{
	struct job *job;

	pthread_mutex_lock(&pool.lock);
	if (!pool.head) {
		weft_park(0);
		while (!pool.head && !(pool.ending && !pool.running))
			pthread_cond_wait(&pool.changed, &pool.lock);
		weft_unpark(pool.length);
	}
	job = pool.head;
	if (job) {
		pool.head = job->next;
		if (!pool.head)
			pool.tail = &pool.head;
		*length = --pool.length;
		pool.running++;
	}
	pthread_mutex_unlock(&pool.lock);
	return job;
}

static void finish(struct job *job)
{
	weft_task_end(job->id);
	free(job);
	pthread_mutex_lock(&pool.lock);
	if (--pool.running == 0)
		pthread_cond_broadcast(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
}

static void *work(void *arg)
{
	struct job *job;
	uint32_t length = 0;

	weft_worker_enter(pool.runtime, (uint32_t)(uintptr_t)arg, NULL);
	while ((job = take(&length))) {
		weft_poll_begin(job->id, length);
		job->run(job->arg);
		weft_poll_end();
		finish(job);
	}
	weft_worker_leave();
	return NULL;
}

static void sleep_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/* With the lock for that long: 0 is right, more is the mistake. */
static void add_line(long ms)
{
	static uint32_t name;

	if (!name)
		name = weft_string("log_lock");
	if (pthread_mutex_trylock(&log_lock) != 0) {
		weft_wait_begin(WEFT_WAIT_LOCK, name, (uintptr_t)&log_lock);
		pthread_mutex_lock(&log_lock);
		weft_wait_end(WEFT_WAIT_LOCK, (uintptr_t)&log_lock);
	}
	weft_lock_held((uintptr_t)&log_lock);
	lines++;
	if (ms)
		sleep_ms(ms);
	weft_lock_released((uintptr_t)&log_lock);
	pthread_mutex_unlock(&log_lock);
}

static void rotate_log(long ms)
{
	add_line(ms);
}

static void store_row(long row)
{
	add_line(row % 8 == 7);
}

static void parse_file(long file)
{
	long row;

	for (row = 0; row < 8; row++)
		submit(store_row, row, WEFT_HERE("store_row"));
	if (file == 2)
		submit(rotate_log, 40, WEFT_HERE("rotate_log"));
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
	struct weft_recorder *rec = NULL;
	struct weft_error err;
	pthread_t threads[THREADS];
	uintptr_t i;
	long file;

	opts.dir = argc > 1 ? argv[1] : "pool-trace";
	if (weft_recorder_open_env(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "pool: %s\n", err.msg);
		return 1;
	}
	pool.runtime = weft_runtime_add(WEFT_OPTIONS(weft_runtime_opts, .name = "pool"), NULL);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
			return 1;
	for (file = 0; file < 4; file++)
		submit(parse_file, file, WEFT_HERE("parse_file"));
	pthread_mutex_lock(&pool.lock);
	pool.ending = 1;
	pthread_cond_broadcast(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%ld lines\n", lines);
	if (weft_recorder_close(rec, &err) < 0) {
		fprintf(stderr, "pool: %s\n", err.msg);
		return 1;
	}
	return 0;
}
