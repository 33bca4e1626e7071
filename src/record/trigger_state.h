/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the trigger share. */
#ifndef WEFT_RECORD_TRIGGER_STATE_H
#define WEFT_RECORD_TRIGGER_STATE_H

#include "record/trigger.h"

/* Who had the signal. CALLER writes it before the handler is there; HOT reads it. */
extern struct sigaction weft__trigger_before;

/* HOT. */
void weft__trigger_handler(int signal, siginfo_t *info, void *context);

#endif
