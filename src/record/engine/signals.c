/* SPDX-License-Identifier: Apache-2.0 */
/* The signal of an engine: chosen, taken, given back. CALLER and COLLECTOR.
 *
 * Who takes a signal whose handler somebody else has, calls that one for signals that are not its own. Who gives it back must see
 * to it that none of its own is still under way, because the default of most signals is death: setting a signal to be ignored makes
 * the kernel drop what is pending, on all threads. */
#include <errno.h>
#include <pthread.h>

#include "record/engine/state.h"

static int is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == weft__engine_handler;
}

static int is_free(int signal, const sigset_t *blocked)
{
	struct sigaction now;

	if (sigismember(blocked, signal) == 1 || sigaction(signal, NULL, &now) < 0)
		return 0;
	return is_ours(&now) || (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL);
}

int weft__signal_choose(int want, const sigset_t *blocked)
{
	if (want && is_free(want, blocked))
		return want;
	/* From the middle: programs count their own from either end. */
	for (int i = 0; i <= SIGRTMAX - SIGRTMIN; i++) {
		int half = (SIGRTMAX - SIGRTMIN) / 2, signal = SIGRTMIN + (half + i) % (SIGRTMAX - SIGRTMIN + 1);

		if (is_free(signal, blocked))
			return signal;
	}
	return 0;
}

int weft__signal_take(int signal, int mask)
{
	struct sigaction ours = {.sa_sigaction = weft__engine_handler,
				 .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK},
			 before;

	sigemptyset(&ours.sa_mask);
	if (mask)
		sigaddset(&ours.sa_mask, mask);
	if (sigaction(signal, NULL, &before) < 0)
		return -errno;
	if (is_ours(&before)) /* somebody kept it and put it back */
		return 0;
	weft__engine_before[signal] = before;
	return sigaction(signal, &ours, NULL) < 0 ? -errno : 0;
}

int weft__signal_ours(int signal)
{
	struct sigaction now;

	return sigaction(signal, NULL, &now) == 0 && is_ours(&now);
}

void weft__signal_give(int signal)
{
	struct sigaction *before = &weft__engine_before[signal];
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigemptyset(&ignore.sa_mask);
	if (!weft__signal_ours(signal))
		return;
	if (!(before->sa_flags & SA_SIGINFO) && (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN))
		sigaction(signal, &ignore, NULL);
	sigaction(signal, before, NULL);
}
