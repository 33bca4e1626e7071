/* SPDX-License-Identifier: Apache-2.0 */
/* A program of one thread whose files must be its alone: weft's threads have others, hold none of them open, and run
 * none of its handlers. Usage: run_private recorded|plain */
#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "times.h"

static int bad;

static void expect(int held, const char *what)
{
	if (held)
		return;
	printf("not so: %s\n", what);
	bad++;
}

/* Threads but this one; those that share its files are counted in *sharing. */
static int others(int *sharing)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid == 0 || tid == getpid())
			continue;
		n++;
		*sharing += syscall(SYS_kcmp, getpid(), tid, KCMP_FILES, 0, 0) == 0;
	}
	if (dir)
		closedir(dir);
	return n;
}

/* As a daemon does: a child that has let go of all that it was given is waited for no longer. */
static void be_a_daemon(void)
{
	struct pollfd wait = {.events = POLLIN};
	int fds[2], i;
	pid_t child;
	char byte;

	if (pipe(fds) < 0)
		exit(2);
	child = fork();
	if (child == 0) {
		dup2(fds[1], 0);
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		setpgid(0, 0);
		fork(); /* once more, with these for the standard ones */
		for (i = 0; i < 3; i++)
			close(i);
		for (i = 0; i < 3; i++)
			open("/dev/null", O_RDWR);
		for (;;)
			pause();
	}
	close(fds[1]);
	wait.fd = fds[0];
	expect(poll(&wait, 1, 10000) == 1 && read(fds[0], &byte, 1) == 0, "a pipe that a daemon closed ends");
	kill(-child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fds[0]);
}

static int handled[65], elsewhere;
static int to_self;

static void handle(int number)
{
	handled[number]++;
	if (syscall(SYS_gettid) != getpid() || write(to_self, "x", 1) != 1)
		elsewhere++;
}

/* What was sent to the process waits while its only thread blocks it. */
static void take_signals(void)
{
	struct sigaction action = {.sa_handler = handle};
	sigset_t all, before;
	int fds[2], i, early = 0, late = 0;

	if (pipe(fds) < 0)
		exit(2);
	to_self = fds[1];
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	for (i = SIGRTMIN; i <= SIGRTMAX; i++) {
		sigaction(i, &action, NULL);
		kill(getpid(), i);
	}
	spin(300 * MS);
	for (i = SIGRTMIN; i <= SIGRTMAX; i++)
		early += handled[i];
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (int turn = 0; turn < 500 && late < SIGRTMAX - SIGRTMIN + 1; turn++) {
		usleep(turn ? 10000 : 0); /* one may be on its way back to us */
		late = 0;
		for (i = SIGRTMIN; i <= SIGRTMAX; i++)
			late += handled[i];
	}
	expect(early == 0, "signals wait while they are blocked");
	expect(late == SIGRTMAX - SIGRTMIN + 1, "each comes once");
	expect(elsewhere == 0, "handlers run on the program's thread");
	close(fds[0]);
	close(fds[1]);
}

int main(int argc, char **argv)
{
	int recorded = argc > 1 && !strcmp(argv[1], "recorded"), sharing = 0;

	spin(300 *
	     MS); /* long enough for unwind tables, and for the collector to have seen to all it does now and then */
	expect(others(&sharing) >= recorded, "weft has a thread");
	expect(sharing == 0, "nobody shares the files");
	be_a_daemon();
	take_signals();
	puts(bad ? "bad" : "good");
	return bad != 0;
}
