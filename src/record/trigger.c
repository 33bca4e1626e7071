/* SPDX-License-Identifier: Apache-2.0 */
/* The signal that asks for a dump: taken and given back. CALLER. */
#include <errno.h>

#include "record/trigger_state.h"

static int listening;
static int heard; /* the signal; 0: none */

static int handler_is_ours(int signal)
{
	struct sigaction now;

	return sigaction(signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
	       now.sa_sigaction == weft__trigger_handler;
}

int weft__trigger_listen(int signal)
{
	struct sigaction ours = {.sa_sigaction = weft__trigger_handler,
				 .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

	if (!listening) {
		struct weft__triggered what;
		uint32_t n;

		weft__trigger_take(&what, &n); /* of an earlier recording, come too late */
	}
	listening = 1;
	if (!signal)
		return 0;
	sigemptyset(&ours.sa_mask);
	if (handler_is_ours(signal)) { /* somebody kept it and put it back */
		heard = signal;
		return 0;
	}
	if (sigaction(signal, NULL, &weft__trigger_before) < 0 || sigaction(signal, &ours, NULL) < 0)
		return -errno;
	heard = signal;
	return 0;
}

void weft__trigger_deafen(void)
{
	if (heard && handler_is_ours(heard))
		sigaction(heard, &weft__trigger_before, NULL);
	heard = listening = 0;
}
