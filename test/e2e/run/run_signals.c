/* SPDX-License-Identifier: Apache-2.0 */
/* A program that wants the signals that samples come by: sets them all to their default as daemons do, has handlers
 * of its own for them, ignores them, dies of them in a child. It says what it saw, and that must not depend on who
 * looks on. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "times.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* siginterrupt */

static volatile sig_atomic_t plain, full, wrong;

static void on_plain(int signal)
{
	(void)signal;
	plain++;
}

static void on_full(int signal, siginfo_t *info, void *context)
{
	full++;
	wrong += info->si_signo != signal || info->si_code != SI_QUEUE || info->si_value.sival_int != 77 || !context;
}

__attribute__((noinline)) static void burn(void)
{
	uint64_t until = now_ns(CLOCK_THREAD_CPUTIME_ID) + 60 * MS;
	volatile unsigned x = 0;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		for (int i = 0; i < 10000; i++)
			x++;
}

static int child_dies_of(int number)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		raise(number);
		_exit(1);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == number;
}

static int vfork_is_apart(int number)
{
	struct sigaction now;
	pid_t child = vfork();
	int status = 0;

	if (child == 0) {
		signal(number, SIG_IGN);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return status == 0 && sigaction(number, NULL, &now) == 0 && now.sa_handler == on_plain;
}

/* Without the one that the C library adds on some machines. */
static int flags_of(const struct sigaction *action)
{
	return action->sa_flags & ~0x04000000;
}

static void see(int number, const char *name)
{
	struct sigaction action = {.sa_sigaction = on_full, .sa_flags = SA_SIGINFO}, old;

	burn();
	printf("%s: default %d", name, signal(number, on_plain) == SIG_DFL);
	burn();
	printf(", none come %d", plain == 0);
	raise(number);
	raise(number);
	printf(", mine %d, apart %d", plain, vfork_is_apart(number));
	sigaddset(&action.sa_mask, SIGUSR1);
	printf(", kept %d",
	       sigaction(number, &action, &old) == 0 && old.sa_handler == on_plain && flags_of(&old) == SA_RESTART);
	memset(&old, 0, sizeof(old));
	printf(", told %d", sigaction(number, NULL, &old) == 0 && old.sa_sigaction == on_full &&
				    flags_of(&old) == SA_SIGINFO && sigismember(&old.sa_mask, SIGUSR1) == 1);
	burn();
	sigqueue(getpid(), number, (union sigval){.sival_int = 77});
	printf(", with info %d of %d", full - wrong, full);
	printf(", interrupts %d", siginterrupt(number, 0) == 0 && sigaction(number, NULL, &old) == 0 &&
					  flags_of(&old) == (SA_SIGINFO | SA_RESTART));
	signal(number, SIG_IGN);
	raise(number);
	burn();
	printf(", ignored %d, once more %d", full + plain == 3, signal(number, SIG_DFL) == SIG_IGN);
	burn();
	printf(", deadly %d\n", child_dies_of(number));
	plain = full = wrong = 0;
}

int main(void)
{
	sigset_t none;

	for (int i = 1; i <= SIGRTMAX; i++)
		if (i < 32 || i >= SIGRTMIN)
			signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	see(SIGPROF, "SIGPROF");
	see(SIGTRAP, "SIGTRAP");
	see(SIGRTMIN + (SIGRTMAX - SIGRTMIN) / 2, "a real-time signal");
	return 0;
}
