/* SPDX-License-Identifier: Apache-2.0 */
/* The signal of an engine: chosen, taken, given back. CALLER and COLLECTOR.
 *
 * Who takes a signal whose handler somebody else has, calls that one for signals that are not its own. Who gives it
 * back must see to it that none of its own is still under way, because the default of most signals is death: setting
 * a signal to be ignored makes the kernel drop what is pending, on all threads. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "record/sample/state.h"

static uint32_t signals_holder; /* the process whose thread has it: a fork may leave it taken */

/* No handler of this thread finds it taken; so it can be used in one. */
static void signals_hold(sigset_t *saved)
{
	uint32_t self = (uint32_t)getpid(), holder;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, saved);
	while ((holder = load_relaxed(&signals_holder)) == self || !cas_acq_rel(&signals_holder, &holder, self))
		sched_yield();
}

static void signals_release(const sigset_t *saved)
{
	store_release(&signals_holder, 0u);
	pthread_sigmask(SIG_SETMASK, saved, NULL);
}

static void before_set(int signal, const struct sigaction *action)
{
	uint32_t turn = load_relaxed(&weft__engine_before_turn[signal]) ^ 1;

	weft__engine_before[signal][turn & 1] = *action;
	store_release(&weft__engine_before_turn[signal], turn);
}

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

int weft__signal_take(int signal, int mask, int also)
{
	struct sigaction ours = {.sa_sigaction = weft__engine_handler,
				 .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK},
			 before;
	sigset_t saved;
	int r = 0;

	sigemptyset(&ours.sa_mask);
	if (mask)
		sigaddset(&ours.sa_mask, mask);
	if (also)
		sigaddset(&ours.sa_mask, also);
	signals_hold(&saved);
	if (sigaction(signal, NULL, &before) < 0) {
		r = -errno;
	} else {
		if (!is_ours(&before)) /* otherwise somebody kept it and put it back, perhaps with other masks */
			before_set(signal, &before);
		r = sigaction(signal, &ours, NULL) < 0 ? -errno : 0;
	}
	signals_release(&saved);
	return r;
}

int weft__signal_ours(int signal)
{
	struct sigaction now;

	return sigaction(signal, NULL, &now) == 0 && is_ours(&now);
}

void weft__signal_give(int signal)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, *before;
	sigset_t saved;

	sigemptyset(&ignore.sa_mask);
	signals_hold(&saved);
	if (weft__signal_ours(signal)) {
		before = weft__signal_before(signal);
		if (!(before->sa_flags & SA_SIGINFO) &&
		    (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN))
			sigaction(signal, &ignore, NULL);
		sigaction(signal, before, NULL);
	}
	signals_release(&saved);
}

int weft__signal_between(int signal, const struct sigaction *want, struct sigaction *ret)
{
	struct sigaction wanted, old;
	sigset_t saved;
	int taken;

	if (signal <= 0 || signal >= 65 || !weft__signal_ours(signal))
		return 0;
	if (want) /* `ret` may be the same */
		wanted = *want;
	signals_hold(&saved);
	taken = weft__signal_ours(signal); /* still */
	if (taken) {
		old = *weft__signal_before(signal);
		if (want && !is_ours(want))
			before_set(signal, &wanted);
	}
	signals_release(&saved);
	if (taken && ret)
		*ret = old;
	return taken;
}
