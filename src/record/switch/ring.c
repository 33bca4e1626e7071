/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel writes for context switches. Any context.
 *
 * With sample_id_all each record ends in the two words that a sample begins with: process and thread, and the time.
 * A record's size is believed only as far as the ring goes. */
#include <string.h>

#include "record/switch/state.h"

#define ID_WORDS 2    /* process and thread, time */
#define LEAST_WORDS 3 /* the header, and these */

static uint64_t word_at(const struct weft__switch_ring *ring, uint64_t at)
{
	return ring->words[at & ring->mask];
}

static enum weft__switch_type record_type(const struct perf_event_header *header, uint32_t n_words)
{
	switch (header->type) {
	case PERF_RECORD_SWITCH:
		return header->misc & PERF_RECORD_MISC_SWITCH_OUT ? SWITCH_OUT : SWITCH_IN;
	case PERF_RECORD_SAMPLE:
		return SWITCH_SAMPLE;
	case PERF_RECORD_EXIT:
		return n_words >= 3 + LEAST_WORDS ? SWITCH_EXIT : SWITCH_OTHER;
	case PERF_RECORD_LOST:
		return n_words >= 2 + LEAST_WORDS ? SWITCH_LOST : SWITCH_OTHER;
	case PERF_RECORD_LOST_SAMPLES:
		return n_words >= 1 + LEAST_WORDS ? SWITCH_LOST : SWITCH_OTHER;
	default:
		return SWITCH_OTHER;
	}
}

int weft__switch_peek(struct weft__switch_ring *ring)
{
	struct weft__switch_record *next = &ring->next;
	struct perf_event_header header;
	uint64_t first, id;

	ring->has_next = 0;
	if (ring->at >= ring->head)
		return 0;
	first = word_at(ring, ring->at);
	memcpy(&header, &first, sizeof(header));
	if (header.size % 8 || header.size / 8 < LEAST_WORDS || header.size / 8 > ring->head - ring->at) {
		ring->at = ring->head;
		return -1;
	}
	memset(next, 0, sizeof(*next));
	next->n_words = header.size / 8u;
	next->type = record_type(&header, next->n_words);
	id = ring->at + (next->type == SWITCH_SAMPLE ? 1 : next->n_words - ID_WORDS);
	next->pid = (uint32_t)word_at(ring, id);
	next->tid = (uint32_t)(word_at(ring, id) >> 32);
	next->time_ns = word_at(ring, id + 1);
	next->preempted = next->type == SWITCH_OUT && header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	if (next->type == SWITCH_LOST)
		next->lost = word_at(ring, ring->at + (header.type == PERF_RECORD_LOST ? 2 : 1));
	if (next->type == SWITCH_EXIT) { /* of whom, and not who said it */
		next->pid = (uint32_t)word_at(ring, ring->at + 1);
		next->tid = (uint32_t)word_at(ring, ring->at + 2);
	}
	ring->has_next = 1;
	return 1;
}

void weft__switch_skip(struct weft__switch_ring *ring)
{
	ring->at += ring->next.n_words;
	ring->fill += ring->next.n_words;
	if (ring->next.time_ns > ring->last_ns)
		ring->last_ns = ring->next.time_ns;
	ring->has_next = 0;
}

const uint64_t *weft__switch_words(const struct weft__switch_ring *ring, uint64_t *room)
{
	uint64_t from = ring->at & ring->mask, until_wrap = ring->mask + 1 - from;
	uint64_t n = ring->next.n_words;

	if (n <= until_wrap)
		return ring->words + from;
	memcpy(room, ring->words + from, until_wrap * sizeof(*room));
	memcpy(room + until_wrap, ring->words, (n - until_wrap) * sizeof(*room));
	return room;
}
