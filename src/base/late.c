/* SPDX-License-Identifier: Apache-2.0 */
#include "base/late.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/place.h"

#define NOTE_BYTES 512

void (*weft__late_tend)(void);
uint64_t weft__late_start_ns, weft__late_start_cpu_ns;
int weft__late_restarts FORK_DATA;

/* The one that counts is notes[late_number % 2]. No lock, which a child of fork would find taken. */
static char notes[2][NOTE_BYTES];
static uint32_t late_number, late_writing;

void weft__late_note(const char *text)
{
	uint32_t nobody = 0, n = load_acquire(&late_number);

	if (strncmp(notes[n % 2], text, NOTE_BYTES - 1) == 0 || !cas_acq_rel(&late_writing, &nobody, 1u))
		return;
	snprintf(notes[(n + 1) % 2], NOTE_BYTES, "%s", text);
	store_release(&late_number, n + 1);
	store_release(&late_writing, 0u);
}

uint32_t weft__late_noted(char *to, size_t bytes)
{
	uint32_t n = load_acquire(&late_number);

	if (to)
		snprintf(to, bytes, "%s", notes[n % 2]);
	return n;
}
