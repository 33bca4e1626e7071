/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for a dump. HOT: what comes first is kept until the collector has taken it, the rest is counted. */
#include <errno.h>
#include <stddef.h>

#include "base/atomic.h"
#include "record/ring/ring.h"
#include "record/trigger_state.h"

#define BEING_MADE UINT32_MAX

struct sigaction weft__trigger_before;

static uint32_t asked; /* enum weft__trigger, or BEING_MADE */
static uint32_t n_asked;
static struct weft__triggered first_trigger;

static void ask_dump(enum weft__trigger why, const struct weft__triggered *what)
{
	uint32_t none = WEFT__TRIGGER_NONE;

	add_relaxed(&n_asked, 1u);
	if (cas_acq_rel(&asked, &none, BEING_MADE)) {
		first_trigger = *what;
		store_release(&asked, (uint32_t)why);
	}
	weft__collector_wake();
}

void weft__trigger_poll(uint64_t task, uint64_t ns, uint32_t tid)
{
	struct weft__triggered what = {.task = task, .ns = ns, .tid = tid};

	ask_dump(WEFT__TRIGGER_POLL, &what);
}

int weft__trigger_waits(void)
{
	return load_acquire(&asked) != WEFT__TRIGGER_NONE;
}

enum weft__trigger weft__trigger_take(struct weft__triggered *ret, uint32_t *ret_n)
{
	uint32_t why = load_acquire(&asked);

	if (why == WEFT__TRIGGER_NONE || why == BEING_MADE)
		return WEFT__TRIGGER_NONE;
	*ret = first_trigger;
	*ret_n = __atomic_exchange_n(&n_asked, 0, __ATOMIC_RELAXED);
	store_release(&asked, (uint32_t)WEFT__TRIGGER_NONE);
	return (enum weft__trigger)why;
}

void weft__trigger_handler(int signal, siginfo_t *info, void *context)
{
	struct weft__triggered what = {.signal = signal};
	struct sigaction *before = &weft__trigger_before;
	int saved = errno;

	ask_dump(WEFT__TRIGGER_SIGNAL, &what);
	errno = saved;
	/* What the default would do, which is to end the process, is not what is wanted of a signal that asks for a
	 * dump. */
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(signal, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(signal);
}
