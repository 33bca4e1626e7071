/* SPDX-License-Identifier: Apache-2.0 */
/* What asks the flight recorder for a dump, from wherever it happens. The collector hears of it (collect/flight.h). */
#ifndef WEFT_RECORD_TRIGGER_H
#define WEFT_RECORD_TRIGGER_H

#include <signal.h>
#include <stdint.h>

enum weft__trigger { WEFT__TRIGGER_NONE = 0, WEFT__TRIGGER_POLL = 1, WEFT__TRIGGER_SIGNAL = 2 };

struct weft__triggered {
	uint64_t task, ns; /* the poll */
	uint32_t tid;
	int signal;
};

/* HOT. A poll took as long as trigger_poll_ns. */
void weft__trigger_poll(uint64_t task, uint64_t ns, uint32_t tid);
/* COLLECTOR. What was asked for since the last call, the first of it; `*ret_n` is how often. */
enum weft__trigger weft__trigger_take(struct weft__triggered *ret, uint32_t *ret_n);

/* COLLECTOR. Whether there is something to be taken. */
int weft__trigger_waits(void);

/* CALLER. The signal that asks for a dump is heard from here on, besides by whoever had it before; 0: none. 0 or a
 * negative errno. */
int weft__trigger_listen(int signal);
/* CALLER, also in a forked child. Its handler is gone, unless somebody has put another over it. */
void weft__trigger_deafen(void);

#endif
