/* SPDX-License-Identifier: Apache-2.0 */
/* The signal of the samples, and what the program wants of it. The recorder chose one that was free before the
 * program began; the program may want it later, and many a daemon sets all signals to their default first, which for
 * most is death. So what it wants is kept and followed for signals that are not samples, it reads that back when it
 * asks, and the recorder's handler stays. The recorder's own calls come here by the linker's --wrap. */
#include <signal.h>
#include <unistd.h>

#include "preload.h"

/* Of the library inside: record/sample/signals.c. */
int weft__signal_between(int signal, const struct sigaction *want, struct sigaction *ret);
/* record/setup.h */
int weft__recorder_unsettled(void);

int __wrap_sigaction(int signal, const struct sigaction *want, struct sigaction *ret);

static void *real_sigaction PRELOAD_NEAR;

int __wrap_sigaction(int signal, const struct sigaction *want, struct sigaction *ret)
{
	int (*call)(int, const struct sigaction *, struct sigaction *) = PRELOAD_REAL(real_sigaction, "sigaction");

	return call(signal, want, ret);
}

/* Whether the recorder has that signal. The child of a vfork has handlers of its own, and shares all else with us. */
static bool taken(int signal, const struct sigaction *want, struct sigaction *ret)
{
	int saved = errno, r;

	if (want)
		weft__preload_late_give_signal(signal);
	/* A child of fork has the parent's handlers until it is settled. */
	if ((!__atomic_load_n(&weft__preload_on, __ATOMIC_ACQUIRE) && !weft__recorder_unsettled()) ||
	    !weft__preload_is_own())
		return false;
	r = weft__signal_between(signal, want, ret);
	errno = saved;
	return r;
}

PRELOAD_API int sigaction(int signal, const struct sigaction *want, struct sigaction *ret)
{
	return taken(signal, want, ret) ? 0 : __wrap_sigaction(signal, want, ret);
}

typedef void (*handler_fn)(int);

static bool taken_simply(int signal, handler_fn *handler, int flags)
{
	struct sigaction want = {.sa_handler = *handler, .sa_flags = flags}, old;

	sigemptyset(&want.sa_mask);
	if (!(flags & SA_NODEFER))
		sigaddset(&want.sa_mask, signal);
	if (*handler == SIG_ERR || !taken(signal, &want, &old))
		return false;
	*handler = old.sa_handler;
	return true;
}

#define SIMPLE(name, flags)                                                                                            \
	PRELOAD_API handler_fn name(int number, handler_fn handler)                                                    \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		handler_fn (*call)(int, handler_fn) = PRELOAD_REAL(real, #name);                                       \
                                                                                                                       \
		return taken_simply(number, &handler, (flags)) ? handler : call(number, handler);                      \
	}

SIMPLE(signal, SA_RESTART)
SIMPLE(ssignal, SA_RESTART)
SIMPLE(__sysv_signal, (int)SA_RESETHAND | SA_NODEFER)
SIMPLE(sysv_signal, (int)SA_RESETHAND | SA_NODEFER)

PRELOAD_API int sigignore(int signal)
{
	static void *real PRELOAD_NEAR;
	int (*call)(int) = PRELOAD_REAL(real, "sigignore");
	handler_fn handler = SIG_IGN;

	return taken_simply(signal, &handler, 0) ? 0 : call(signal);
}

/* Samples interrupt no system call, whatever the program's own signals do. */
PRELOAD_API int siginterrupt(int signal, int interrupt)
{
	static void *real PRELOAD_NEAR;
	int (*call)(int, int) = PRELOAD_REAL(real, "siginterrupt");
	struct sigaction action;

	if (!taken(signal, NULL, &action))
		return call(signal, interrupt);
	action.sa_flags = interrupt ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
	return taken(signal, &action, NULL) ? 0 : call(signal, interrupt);
}
