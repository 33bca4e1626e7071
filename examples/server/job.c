/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that run as tasks of their own. They can hold a worker up in the three ways there are: by computing, by
 * blocking in a system call, and by waiting for a lock. That is bad on purpose: it is what the demo shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <weft/weft.h>

#include "server.h"

enum { SLOW_NS = 1000000 };

static struct job *job_of(struct task *task)
{
	return (struct job *)task;
}

static void job_drop(struct task *task)
{
	free(job_of(task));
}

static uint64_t mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* An event of the program's own, with --events: one for each slow job. */
static void emit_request(const struct job *job)
{
	uint64_t latency_ns = mono_ns() - job->begin_ns;
	const uint64_t fields[] = {job->n_bytes, latency_ns, job->ok, job->server->route_names[job->route]};

	if (latency_ns >= SLOW_NS)
		weft_event(job->server->event_kind, fields, 4);
}

/* From here on, what weft records on this thread is of this request. A real server has the ids from its tracing. */
static void job_enter(const struct job *job)
{
	struct weft_context context = {
		.trace_hi = job->server->trace,
		.trace_lo = job->task.id,
		.span = job->task.id,
		.root = job->task.id,
		.endpoint = job->server->endpoints[job->route],
	};

	if (job->server->trace)
		weft_context_set(&context);
}

/* As soon as `done` is set the connection may answer, and even end: the reference to it keeps the wake safe. */
static enum task_status job_finish(struct job *job)
{
	struct task *parent = job->parent;

	if (job->server->event_kind)
		emit_request(job);
	if (job->server->trace)
		weft_context_clear();
	atomic_store(&job->done, true);
	task_wake(parent);
	task_unref(parent);
	return TASK_DONE;
}

/* Checksums an upload. For 50 ms this is the poll that nothing else can run beside. */
static enum task_status handle_upload(struct task *task, struct worker *worker)
{
	static const unsigned char block[1024];
	struct job *job = job_of(task);
	uint64_t end_ns = mono_ns() + (uint64_t)job->us * 1000;

	(void)worker;
	job_enter(job);
	do
		job->value = hash_bytes(job->value, block, sizeof(block));
	while (mono_ns() < end_ns);
	job->ok = true;
	return job_finish(job);
}

/* Asks a slow backend and blocks until it answers: a read(2) that a task should never make. */
static enum task_status handle_report(struct task *task, struct worker *worker)
{
	struct job *job = job_of(task);
	struct itimerspec answer_in = {.it_value = {job->us / 1000000, (long)(job->us % 1000000) * 1000}};
	uint64_t expirations;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	(void)worker;
	job_enter(job);
	if (!job->us)
		answer_in.it_value.tv_nsec = 1;
	job->ok = fd >= 0 && timerfd_settime(fd, 0, &answer_in, NULL) == 0;
	if (job->ok) {
		weft_wait_begin(WEFT_WAIT_CALL, job->server->read_name, (uint64_t)fd);
		job->ok = read(fd, &expirations, sizeof(expirations)) == sizeof(expirations);
		weft_wait_end(WEFT_WAIT_CALL, (uint64_t)fd);
	}
	if (fd >= 0)
		close(fd);
	job->value = job->us;
	return job_finish(job);
}

/* Looks a key up; LOCK makes sure that the lock is taken, by the janitor, when it comes to it. */
static enum task_status handle_cache(struct task *task, struct worker *worker)
{
	struct job *job = job_of(task);

	(void)worker;
	job_enter(job);
	if (job->route == ROUTE_LOCK)
		cache_snapshot(&job->server->cache, job->us);
	job->ok = cache_get(&job->server->cache, job->key, job->key_bytes, &job->value);
	return job_finish(job);
}

static bool parse_us(const char *text, size_t n_bytes, uint32_t *us)
{
	uint32_t value = 0;
	size_t i;

	for (i = 0; i < n_bytes && value <= STALL_MAX_US; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (uint32_t)(text[i] - '0');
	}
	*us = value;
	return n_bytes > 0 && value <= STALL_MAX_US;
}

static const char *parse_arg(struct job *job, const char *arg, size_t arg_bytes)
{
	static const char locked_key[] = "key-0";

	if (job->route != ROUTE_GET) {
		memcpy(job->key, locked_key, strlen(locked_key));
		job->key_bytes = (uint32_t)strlen(locked_key);
		return parse_us(arg, arg_bytes, &job->us) ? NULL : "want a time in microseconds, at most 1000000";
	}
	if (arg_bytes == 0 || arg_bytes > sizeof(job->key))
		return "want a key of 1 to 64 bytes";
	memcpy(job->key, arg, arg_bytes);
	job->key_bytes = (uint32_t)arg_bytes;
	return NULL;
}

/* A task's name in the report is the name of the place that spawns it. */
static void job_spawn(struct job *job, struct worker *worker)
{
	struct runtime *rt = &job->server->runtime;
	struct worker *neighbour = &rt->workers[(worker->index + 1) % rt->n_workers];

	switch (job->route) {
	case ROUTE_COMPUTE:
		job->task.poll = handle_upload;
		task_spawn(rt, &job->task, NULL, WEFT_HERE("handle_upload"));
		break;
	case ROUTE_SLEEP:
		job->task.poll = handle_report;
		task_spawn(rt, &job->task, NULL, WEFT_HERE("handle_report"));
		break;
	case ROUTE_GET:
	case ROUTE_LOCK:
		job->task.poll = handle_cache;
		task_spawn(rt, &job->task, neighbour, WEFT_HERE("handle_cache"));
		break;
	}
}

struct job *job_start(struct server *server, struct task *parent, struct worker *worker, enum route route,
		      const char *arg, size_t arg_bytes, const char **why)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job) {
		*why = "out of memory";
		return NULL;
	}
	job->server = server;
	job->parent = parent;
	job->route = route;
	job->n_bytes = (uint32_t)arg_bytes;
	*why = parse_arg(job, arg, arg_bytes);
	if (*why) {
		free(job);
		return NULL;
	}
	if (server->event_kind)
		job->begin_ns = mono_ns();
	job->task.drop = job_drop;
	atomic_init(&job->task.refs, 2); /* the runtime's and the caller's */
	task_ref(parent);
	job_spawn(job, worker);
	return job;
}

size_t job_answer(const struct job *job, char *answer)
{
	static const char *const words[] = {
		[ROUTE_GET] = "VALUE", [ROUTE_COMPUTE] = "SUM", [ROUTE_SLEEP] = "SLEPT", [ROUTE_LOCK] = "VALUE"};
	int n_bytes;

	if (!job->ok)
		n_bytes = sprintf(answer, "%s\n", job->route == ROUTE_SLEEP ? "ERR no timer" : "NONE");
	else if (job->route == ROUTE_SLEEP)
		n_bytes = sprintf(answer, "%s %u\n", words[job->route], job->us);
	else
		n_bytes = sprintf(answer, "%s %016llx\n", words[job->route], (unsigned long long)job->value);
	return (size_t)n_bytes;
}
