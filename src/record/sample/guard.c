/* SPDX-License-Identifier: Apache-2.0 */
/* What was missed while another handler had the signal. That somebody installed one over ours is seen at the next
 * look only, and what came meanwhile went to them; how much that was is what the threads used of the CPU since the
 * last look, without what samples stand for. CALLER and COLLECTOR, under the engine's lock. */
#include "record/sample/guard.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "record/sample/engine.h"
#include "record/sample/state.h"

/* At the last look at which the signal was ours. */
static struct {
	uint64_t at_ns;
	uint64_t cpu_ns;    /* of the process, without our own threads */
	uint64_t weight_ns; /* that samples stand for */
} guard_last;
static struct weft_loss missed; /* not taken yet */
static uint32_t missed_any;     /* 0: there is none */

static uint64_t cpu_of(clockid_t clock)
{
	struct timespec ts;

	return clock_gettime(clock, &ts) == 0 ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec : 0;
}

static uint64_t without_ours(uint64_t all)
{
	uint32_t encoder = load_relaxed(&weft__own_threads.encoder);
	uint64_t own = cpu_of((clockid_t)(~load_relaxed(&weft__own_threads.collector) << 3 | 6)) + weft__tables_cost() +
		       (encoder ? cpu_of((clockid_t)(~encoder << 3 | 6)) : 0);

	return all > own ? all - own : 0;
}

uint64_t weft__guard_program(void)
{
	return without_ours(weft__process_cpu());
}

uint64_t weft__guard_program_about(uint64_t now_ns)
{
	return without_ours(weft__process_cpu_about(now_ns));
}

void weft__guard_open(void)
{
	store_relaxed(&missed_any, 0u);
}

void weft__guard_good(uint64_t program_ns)
{
	guard_last.at_ns = weft__clock_mono();
	guard_last.weight_ns = load_relaxed(&weft__engine.weight_ns);
	guard_last.cpu_ns = program_ns;
}

static struct weft__source_cpu run_now; /* as it was when sampling ended, and whether it has */
static int run_on;

static void run_read(void)
{
	run_now.program_ns = weft__guard_program();
	run_now.sampled_ns = load_relaxed(&weft__engine.weight_ns);
	run_now.unhit = load_relaxed(&weft__engine.unhit);
	run_now.unhit_ns = load_relaxed(&weft__engine.unhit_ns);
}

void weft__guard_run(int on)
{
	if (run_on)
		run_read();
	else
		run_now.run++;
	run_on = on;
}

struct weft__source_cpu weft__engine_cpu(void)
{
	struct weft__source_cpu now;

	pthread_mutex_lock(&weft__engine_mutex);
	if (run_on)
		run_read();
	now = run_now;
	pthread_mutex_unlock(&weft__engine_mutex);
	return now;
}

void weft__guard_lost(void)
{
	uint64_t cpu = weft__guard_program() - guard_last.cpu_ns,
		 weight = load_relaxed(&weft__engine.weight_ns) - guard_last.weight_ns;
	uint64_t count = cpu > weight ? (cpu - weight) / weft__engine.period_ns : 0;

	if (!count)
		return; /* whoever has the signal passes it on to us, or nobody used the CPU */
	if (!load_relaxed(&missed_any))
		missed = (struct weft_loss){.reason = WEFT_LOSS_SIGNAL, .from_ns = guard_last.at_ns};
	missed.count += count;
	missed.to_ns = weft__clock_mono();
	store_relaxed(&missed_any, 1u);
}

int weft__guard_any(void)
{
	return load_relaxed(&missed_any) != 0;
}

int weft__guard_loss(struct weft_loss *ret)
{
	if (!load_relaxed(&missed_any))
		return 0;
	*ret = missed;
	store_relaxed(&missed_any, 0u);
	return 1;
}
