/* SPDX-License-Identifier: Apache-2.0 */
/* Children of fork that end before weft starts in them, for test/e2e/run_children.sh:
 *   run_children faults [started]  says how many page faults such a child takes, the median of many
 *   run_children ends [started]    children that end in every way, and one that goes on: says "good", or what is not
 * "started": the recorder is started in the parent before. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS 101

static int by_size(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

static int faults(void)
{
	long found[FORKS];
	int i, status;

	for (i = 0; i < FORKS; i++) {
		struct rusage usage;
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
			return puts("a child did not end well");
		found[i] = usage.ru_minflt;
	}
	qsort(found, FORKS, sizeof(found[0]), by_size);
	printf("%ld\n", found[FORKS / 2]);
	return 0;
}

static void *nothing(void *data)
{
	return data;
}

static int waits_for(pid_t pid)
{
	int status;

	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

static void end_bare(void)
{
	_exit(0);
}

static void end_exit(void)
{
	exit(0);
}

static void end_thread(void)
{
	pthread_exit(NULL);
}

static void end_with_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	_exit(waits_for(pid));
}

static void end_after_vfork(void)
{
	pid_t pid = vfork(); /* NOLINT: that is what is tested */

	if (pid == 0)
		_exit(0);
	_exit(waits_for(pid));
}

static void end_after_signals(void)
{
	struct sigaction now;
	int i, bad = 0;

	for (i = SIGRTMIN; i <= SIGRTMAX; i++)
		bad += signal(i, SIG_DFL) != SIG_DFL || sigaction(i, NULL, &now) < 0 || now.sa_handler != SIG_DFL;
	exit(bad);
}

static void end_after_exec(void)
{
	execl("/nowhere", "nowhere", (char *)NULL);
	_exit(0);
}

static void end_with_thread(void)
{
	pthread_t thread;

	exit(pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0);
}

static int ends(void)
{
	static const struct {
		const char *name;
		void (*end)(void);
	} ways[] = {
		{"_exit", end_bare},          {"exit", end_exit},
		{"pthread_exit", end_thread}, {"a child of its own", end_with_child},
		{"vfork", end_after_vfork},   {"signals", end_after_signals},
		{"exec", end_after_exec},     {"a thread", end_with_thread},
	};
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(30);
			ways[i].end();
		}
		if (waits_for(pid)) {
			printf("the child with %s did not end well\n", ways[i].name);
			return 1;
		}
	}
	return puts("good") < 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[2], "started") == 0) {
		struct epoll_event event;
		int fd = epoll_create1(EPOLL_CLOEXEC);

		epoll_wait(fd, &event, 1, 1);
		close(fd);
	}
	return argc > 1 && strcmp(argv[1], "ends") == 0 ? ends() : faults();
}
