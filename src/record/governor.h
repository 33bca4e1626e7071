/* SPDX-License-Identifier: Apache-2.0 */
/* The governor: keeps what weft costs within a budget of CPU time. Any context, one at a time; it reads no clock and
 * changes nothing but itself.
 *
 * A source is something that costs. Some can be lowered: to a level between their least and GOVERNOR_FULL, either by
 * doing it less often or, when that is not possible (`gated`), by doing it only a part of the time. Once in a while
 * it learns what each has cost so far and what the whole process used. From that it knows how much each would cost
 * at its full level, takes what cannot be lowered off the budget, and divides the rest, first among rates, then what
 * they leave among gated sources: each gets what it needs if that is no more than an equal share, and those that
 * need more share what is left. So a cheap source does not suffer from an expensive one. Levels fall fast and rise
 * slowly.
 *
 * What was spent too much, because a cost came before it could be known, is a debt that is paid back within some
 * seconds. */
#ifndef WEFT_RECORD_GOVERNOR_H
#define WEFT_RECORD_GOVERNOR_H

#include <stdint.h>

#define GOVERNOR_FULL 1024
#define GOVERNOR_SOURCES 9
#define GOVERNOR_STEP_NS UINT64_C(250000000)
#define GOVERNOR_NO_LIMIT UINT32_MAX

struct weft__governed {
	uint32_t least; /* level; 0: it cannot be lowered */
	int gated;

	uint32_t level;
	uint64_t seen_ns;    /* cost at the last step */
	double demand;       /* at the full level, as a share of one CPU */
	uint64_t learned_ns; /* when that was seen last: one that is off says nothing */
	int on;              /* gated: is to be, now */
	int really;          /* gated: is */
	uint64_t gate_ns;    /* since when; 0: not begun */
	uint64_t on_ns;      /* since the last step, up to counted_ns */
	uint64_t counted_ns;
};

struct weft__governor {
	uint32_t budget_ppm;
	uint32_t n;
	struct weft__governed sources[GOVERNOR_SOURCES];
	uint64_t at_ns, cpu_ns; /* of the last step */
	double allowed;         /* share of one CPU, of late */
	double fixed;           /* what cannot be lowered costs, of late */
	double credit_ns;       /* what was allowed and not spent; negative: a debt */
	int limited;            /* some source is not at its full level */
};

/* `budget_ppm`: millionths of what the program uses; GOVERNOR_NO_LIMIT: it only looks. Sources are then added one by
 * one, and numbered from 0. */
void weft__governor_init(struct weft__governor *g, uint32_t budget_ppm);
uint32_t weft__governor_add(struct weft__governor *g, uint32_t least, int gated);
/* From here on; what was before, and what comes before the next such call after a pause, does not count. */
void weft__governor_begin(struct weft__governor *g, uint64_t now_ns, uint64_t cpu_ns, const uint64_t *costs_ns);
/* What the process used so far, weft included, and what each source cost so far. Answers whether levels changed. */
int weft__governor_step(struct weft__governor *g, uint64_t now_ns, uint64_t cpu_ns, const uint64_t *costs_ns);
/* Whether a gated source is to be on now, and when to ask again. */
int weft__governor_gate(struct weft__governor *g, uint32_t source, uint64_t now_ns, uint64_t *next_ns);
/* It is not as it is to be: to go on takes it some time. */
void weft__governor_really(struct weft__governor *g, uint32_t source, uint64_t now_ns, int on);

#endif
