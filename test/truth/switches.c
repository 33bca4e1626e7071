/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads that hand a token to and fro, as often as the machine can, on two CPUs or on one: the table of time
 * off the CPU has what they measured, or says that it is a part. */
/* run: switches_two_cpus two */
/* run: switches_one_cpu one */
/* run: switches_2000 slow */
#include "truth.h"
#include <pthread.h>
#include <sched.h>

enum { SECONDS = 2 };

static int there[2], back[2], slow;
static int64_t until;

static void account(const struct truth_at *begin, int which)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct truth_at end = truth_now();

	pthread_mutex_lock(&lock);
	truth_note("\"thread%d\": {\"tid\": %d, \"on_cpu\": %lld, \"blocked\": %lld, \"preempted\": %lld}", which,
		   (int)syscall(SYS_gettid), (long long)(end.cpu - begin->cpu), (long long)truth_off(begin, &end),
		   (long long)(end.delay - begin->delay));
	pthread_mutex_unlock(&lock);
}

static void *pong(void *arg)
{
	struct truth_at begin = truth_now();
	char byte;

	while (read(there[0], &byte, 1) == 1 && byte && write(back[1], &byte, 1) == 1)
		;
	account(&begin, 1);
	return arg;
}

int main(int argc, char **argv)
{
	struct truth_at begin;
	char byte = 1;
	pthread_t thread;
	cpu_set_t cpu;

	slow = argc > 1 && !strcmp(argv[1], "slow");
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	if (argc > 1 && !strcmp(argv[1], "one"))
		sched_setaffinity(0, sizeof(cpu), &cpu);
	if (pipe(there) || pipe(back))
		return 1;
	begin = truth_now();
	until = truth_wall() + SECONDS * 1000 * MS;
	pthread_create(&thread, NULL, pong, NULL);
	while (byte) {
		byte = truth_wall() < until;
		if (write(there[1], &byte, 1) != 1 || (byte && read(back[0], &byte, 1) != 1))
			return 1;
		if (slow)
			truth_nap(MS);
	}
	pthread_join(thread, NULL);
	account(&begin, 0);
	truth_print();
	return 0;
}
