/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to end. For run_ends.sh: each is to have the same output and the same status with and without weft. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void burn_ms(long ms)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

static void said_at_exit(void)
{
	printf("at exit\n");
}

static void *returns(void *data)
{
	burn_ms(100);
	printf("a thread returns\n");
	return data;
}

static void *exits_barely(void *data)
{
	(void)data;
	burn_ms(100);
	syscall(SYS_exit, 5);
	return NULL;
}

static pthread_key_t late_key;

static void late(void *data)
{
	burn_ms(150);
	printf("destructor of %s\n", (const char *)data);
}

static void *with_destructor(void *data)
{
	pthread_setspecific(late_key, data);
	return NULL;
}

static void *forks_and_returns(void *data)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		printf("the child's thread returns\n");
		burn_ms(100);
		return data;
	}
	waitpid(pid, &status, 0);
	printf("the child's status: %#x\n", status);
	return data;
}

static pthread_t make(void *(*fn)(void *), void *data)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, data) != 0)
		exit(99);
	return thread;
}

static void *ends_by_signal(void *data)
{
	burn_ms(100);
	kill(getpid(), SIGTERM);
	pause();
	return data;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	static char one[] = "one", two[] = "two";

	atexit(said_at_exit);
	printf("begins\n");
	if (!strcmp(how, "main-pthread-exit")) {
		burn_ms(100);
		pthread_exit(NULL);
	} else if (!strcmp(how, "main-before-thread")) {
		make(returns, NULL);
		pthread_exit(NULL);
	} else if (!strcmp(how, "main-at-once")) {
		pthread_exit(NULL);
	} else if (!strcmp(how, "main-bare-exit")) {
		fflush(stdout);
		burn_ms(100);
		syscall(SYS_exit, 7);
	} else if (!strcmp(how, "main-bare-exit-then-thread")) {
		fflush(stdout);
		make(exits_barely, NULL);
		syscall(SYS_exit, 3);
	} else if (!strcmp(how, "thread-bare-exit")) {
		fflush(stdout);
		make(exits_barely, NULL);
		pthread_exit(NULL);
	} else if (!strcmp(how, "two-at-once")) {
		pthread_key_create(&late_key, late);
		make(with_destructor, one);
		make(with_destructor, two);
		pthread_exit(NULL);
	} else if (!strcmp(how, "child-of-thread")) {
		fflush(stdout);
		pthread_join(make(forks_and_returns, NULL), NULL);
		return 4;
	} else if (!strcmp(how, "signal-without-main")) {
		fflush(stdout);
		make(ends_by_signal, NULL);
		pthread_exit(NULL);
	} else if (!strcmp(how, "return")) {
		return 6;
	}
	return 98;
}
