/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that sleep while switches are recorded. */
#ifndef WEFT_TEST_RECORD_SLEEPERS_H
#define WEFT_TEST_RECORD_SLEEPERS_H

#include "offcpu.h"

#include <semaphore.h>

#include "record/switch/state.h"

static struct offcpu result;
static int halt;

static inline struct weft_recorder *life_start(void)
{
	return session_start(&(struct weft_recorder_opts){.switches = WEFT_SWITCH_INTERVALS, .budget_ppm = WEFT_OFF});
}

/* Sleeps again and again for a time, or once, until it is reported to end. */
struct thread {
	pthread_t thread;
	uint32_t tid;
	uint64_t ns; /* 0: once */
	uint64_t sleeps;
	sem_t end;
};

static inline void *sleep_until_halt(void *data)
{
	struct thread *self = data;

	__atomic_store_n(&self->tid, samples_tid(), __ATOMIC_RELEASE);
	if (!self->ns)
		while (sem_wait(&self->end) < 0)
			;
	while (!__atomic_load_n(&halt, __ATOMIC_ACQUIRE)) {
		session_sleep_ns(self->ns);
		__atomic_fetch_add(&self->sleeps, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Waits until all of them have slept that often from now on, from beginning to end. */
static inline int sleep_more(struct thread *sleepers, int n, uint64_t often)
{
	uint64_t upto[32];
	int ok = 1;

	for (int i = 0; i < n; i++)
		upto[i] = __atomic_load_n(&sleepers[i].sleeps, __ATOMIC_ACQUIRE) + 1 + often;
	for (int i = 0; i < n; i++)
		ok &= WAIT_FOR(__atomic_load_n(&sleepers[i].sleeps, __ATOMIC_ACQUIRE) >= upto[i]);
	return ok;
}

static inline void sleeper_start(struct thread *sleeper, uint64_t ns)
{
	sleeper->ns = ns;
	sleeper->tid = 0;
	sleeper->sleeps = 0;
	sem_init(&sleeper->end, 0, 0);
	__atomic_store_n(&halt, 0, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_create(&sleeper->thread, NULL, sleep_until_halt, sleeper), 0);
	CHECK(WAIT_FOR(__atomic_load_n(&sleeper->tid, __ATOMIC_ACQUIRE)));
	CHECK(ns || WAIT_FOR(session_asleep(sleeper->tid)));
}

static inline void sleeper_end(struct thread *sleeper)
{
	__atomic_store_n(&halt, 1, __ATOMIC_RELEASE);
	sem_post(&sleeper->end);
	pthread_join(sleeper->thread, NULL);
}

static inline int perf_fds(void)
{
	return session_fds_of("perf_event");
}

#endif
