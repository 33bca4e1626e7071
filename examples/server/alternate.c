/* SPDX-License-Identifier: Apache-2.0 */
/* Slices come in blocks of four, on off off on or off on on off, so that each pair of neighbours has one of each and a
 * steady drift favours neither. Which of the two it is, is drawn: nothing periodic can fall in step with them. They
 * begin at multiples of their length on CLOCK_MONOTONIC, where the load's log has boundaries, too. */
#define _GNU_SOURCE 1
#include "alternate.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* After a switch, until caches, the collector and the requests under way are what the slice is about. */
enum { SETTLE_SHARE = 10 }; /* one part in ten of a slice */

/* Of such a timer, which fires at each tick that comes after it has expired. */
enum { TIMER_NS = 1000000 };

/* CPU time is the process's, the collector's included, and that of the workers alone. What the collector itself says
 * comes a little later than it is true. */
struct reading {
	uint64_t mono_ns;
	uint64_t cpu_ns;
	uint64_t workers_ns;
	uint64_t collector_ns;
	uint64_t requests;
	uint64_t lost;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t workers_ns(const struct runtime *rt)
{
	uint64_t sum = 0;
	clockid_t id;
	uint32_t i;

	for (i = 0; i < rt->n_started; i++)
		if (pthread_getcpuclockid(rt->workers[i].thread, &id) == 0)
			sum += clock_ns(id);
	return sum;
}

static struct reading take_reading(const struct alternate *alternate)
{
	struct weft_recorder_stats stats = {.size = sizeof(stats)};
	struct reading reading;

	weft_recorder_stats(alternate->rec, &stats);
	reading.collector_ns = stats.collector_ns;
	reading.lost = stats.lost;
	reading.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	reading.workers_ns = workers_ns(&alternate->server->runtime);
	reading.requests = runtime_requests(&alternate->server->runtime);
	reading.mono_ns = clock_ns(CLOCK_MONOTONIC);
	return reading;
}

/* Returns false at the end of the alternation. */
static bool sleep_until(struct alternate *alternate, uint64_t ns)
{
	const struct timespec until = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	int result;

	do
		result = sem_clockwait(&alternate->end, CLOCK_MONOTONIC, &until);
	while (result < 0 && errno == EINTR);
	return result < 0;
}

static void write_slice(FILE *log, bool on, const struct reading *begin, const struct reading *end)
{
	fprintf(log,
		"{\"on\": %d, \"begin_ns\": %llu, \"end_ns\": %llu, \"requests\": %llu, \"cpu_ns\": %llu, "
		"\"workers_ns\": %llu, \"collector_at_ns\": %llu, \"lost\": %llu}\n",
		on, (unsigned long long)begin->mono_ns, (unsigned long long)end->mono_ns,
		(unsigned long long)(end->requests - begin->requests),
		(unsigned long long)(end->cpu_ns - begin->cpu_ns),
		(unsigned long long)(end->workers_ns - begin->workers_ns), (unsigned long long)end->collector_ns,
		(unsigned long long)(end->lost - begin->lost));
}

/* CPU-time timers that give threads samples beside perf events. The kernel lists all timers. */
static void switch_timers(bool on)
{
	const struct itimerspec off = {0}, again = {{0, TIMER_NS}, {0, TIMER_NS}};
	FILE *file = fopen("/proc/self/timers", "re");
	int id = -1, clock;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "ID: %d", &id);
		if (sscanf(line, "ClockID: %d", &clock) == 1 && clock < 0)
			syscall(SYS_timer_settime, id, 0, on ? &again : &off, NULL);
	}
	if (file)
		fclose(file);
}

static bool run_slice(struct alternate *alternate, bool on, uint64_t from_ns, uint64_t until_ns)
{
	struct reading begin, end;

	if (alternate->samples) {
		prctl(on ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE);
		switch_timers(on);
	} else if (on) {
		weft_recorder_start(alternate->rec, NULL);
	} else {
		weft_recorder_pause(alternate->rec);
	}
	if (!sleep_until(alternate, from_ns + (until_ns - from_ns) / SETTLE_SHARE))
		return false;
	begin = take_reading(alternate);
	if (!sleep_until(alternate, until_ns))
		return false;
	end = take_reading(alternate);
	write_slice(alternate->log, on, &begin, &end);
	return true;
}

static void *alternate_main(void *arg)
{
	struct alternate *alternate = arg;
	const uint64_t slice_ns = (uint64_t)alternate->slice_ms * 1000000u;
	const uint64_t first = clock_ns(CLOCK_MONOTONIC) / slice_ns + 1;
	uint64_t random = 88172645463325252u;
	uint64_t i;

	pthread_setname_np(pthread_self(), "alternate");
	if (alternate->samples) {
		/* Only the thread that opened the events can switch all of them at once. */
		weft_recorder_pause(alternate->rec);
		weft_recorder_start(alternate->rec, NULL);
	}
	if (!sleep_until(alternate, first * slice_ns))
		return NULL;
	for (i = 0;; i++) {
		bool middle = i % 4 == 1 || i % 4 == 2;

		if (i % 4 == 0) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
		}
		if (!run_slice(alternate, middle ^ (random >> 63), (first + i) * slice_ns, (first + i + 1) * slice_ns))
			return NULL;
	}
}

int alternate_start(struct alternate *alternate)
{
	sem_init(&alternate->end, 0, 0);
	return -pthread_create(&alternate->thread, NULL, alternate_main, alternate);
}

int alternate_stop(struct alternate *alternate)
{
	int err;

	sem_post(&alternate->end);
	pthread_join(alternate->thread, NULL);
	sem_destroy(&alternate->end);
	weft_recorder_start(alternate->rec, NULL);
	err = ferror(alternate->log) ? -EIO : 0;
	return fclose(alternate->log) == 0 ? err : -errno;
}
