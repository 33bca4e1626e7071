/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds the lock that a tick waits for. */
/* run: lock_handoff handoff */
/* run: deadlock deadlock */
/* run: deadlock_killed killed */
/* run: rwlock_two_readers readers */
#include "truth.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER, second_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t ready;
static int tids[2];
static int64_t held_ns[2];
static const char *how;

static int is(const char *name)
{
	return !strcmp(how, name);
}

static void wait_until_asleep(const int *tid) /* in its wait for the lock */
{
	char path[64], text[16] = "";
	int fd;

	while (strncmp(text, "202 ", 4)) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", __atomic_load_n(tid, __ATOMIC_ACQUIRE));
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, text, 4) < 0)
			text[0] = 0;
		close(fd);
		sched_yield();
	}
}

static void *hold(void *arg) /* the first for 6 ms, the second for 30 */
{
	int which = (int)(intptr_t)arg, readers = is("readers");

	if (readers || which == 0) {
		if (readers)
			pthread_rwlock_rdlock(&rwlock);
		else
			pthread_mutex_lock(&first_lock);
		sem_post(&ready);
		__atomic_store_n(&tids[which], (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
		if (!readers)
			wait_until_asleep(&tids[1]);
	} else {
		sem_post(&ready);
		__atomic_store_n(&tids[which], (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
		pthread_mutex_lock(&first_lock);
	}
	held_ns[which] = truth_wall();
	truth_nap(which == 0 ? 6 * MS : 30 * MS);
	held_ns[which] = truth_wall() - held_ns[which];
	if (readers)
		pthread_rwlock_unlock(&rwlock);
	else
		pthread_mutex_unlock(&first_lock);
	return NULL;
}

static void *other_side(void *arg)
{
	tids[1] = (int)syscall(SYS_gettid);
	pthread_mutex_lock(&second_lock);
	sem_post(&ready);
	truth_nap(50 * MS);
	pthread_mutex_lock(&first_lock);
	return arg;
}

static void *end(void *arg)
{
	truth_nap(1700 * MS);
	if (is("deadlock"))
		truth_print();
	truth_nap(500 * MS);
	raise(SIGKILL);
	return arg;
}

static void deadlock(int loop)
{
	pthread_t thread;
	struct truth_poll *poll;

	truth_next(loop);
	poll = truth_begin("deadlock");
	poll->open = 1;
	pthread_mutex_lock(&first_lock);
	pthread_create(&thread, NULL, other_side, NULL);
	while (sem_wait(&ready) < 0)
		;
	pthread_create(&thread, NULL, end, NULL);
	poll->end = truth_now();
	truth_note("\"status\": 137, \"live\": %d, \"holders\": [{\"tid\": %d, \"lock\": \"second_lock\"}]",
		   is("deadlock"), tids[1]);
	if (!is("deadlock"))
		truth_print();
	pthread_mutex_lock(&second_lock);
}

int main(int argc, char **argv)
{
	int loop = truth_loop(), i, n = 0;
	pthread_t threads[2];
	struct truth_poll *poll;

	how = argc > 1 ? argv[1] : "handoff";
	sem_init(&ready, 0, 0);
	if (is("deadlock") || is("killed"))
		deadlock(loop);
	truth_next(loop);
	for (i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, hold, (void *)(intptr_t)i);
		while (sem_wait(&ready) < 0)
			;
	}
	truth_next(loop);
	poll = truth_begin(how);
	truth_wait_begin();
	if (is("readers"))
		n = pthread_rwlock_wrlock(&rwlock);
	else
		n = pthread_mutex_lock(&first_lock);
	truth_wait_end();
	truth_end(poll);
	truth_next(loop);
	if (is("readers"))
		pthread_rwlock_unlock(&rwlock);
	else
		pthread_mutex_unlock(&first_lock);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	truth_note("\"holders\": [{\"tid\": %d, \"lock\": \"%s\", \"held\": %lld}]", tids[1],
		   is("readers") ? "rwlock" : "first_lock", (long long)(is("readers") ? 0 : held_ns[1]));
	truth_print();
	return n;
}
