/* SPDX-License-Identifier: Apache-2.0 */
/* What weft itself costs: measured for each source, kept within the budget by the governor, and reported in the
 * segment. COLLECTOR. */
#ifndef WEFT_COLLECT_COSTS_H
#define WEFT_COLLECT_COSTS_H

#include "record/collect/coarse.h"
#include "record/governor.h"
#include "record/source.h"
#include "weft/kind.h"

#define COSTS WEFT_COST_SHIP /* sources; numbers of enum weft_cost less 1 */

#define COSTS_SPREAD 3 /* unwind tables, symbols, reporters: made now and then */
#define COSTS_FIELDS 5

struct weft__cost {
	uint64_t ns; /* when */
	uint32_t kind;
	uint64_t fields[COSTS_FIELDS];
};
#define COSTS_PENDING 64

struct weft__collector;
struct weft__defs;
struct weft_recorder_stats;

struct weft__costs {
	struct weft__governor governor;
	uint64_t spent_ns[COSTS];         /* since open */
	uint64_t reported_ns[COSTS];      /* of that, what is in events */
	uint32_t rate[COSTS];             /* in force: Hz; of switches thousandths of the time; 0: it has none */
	uint64_t program_ns;              /* CPU time of the process besides, while recording */
	uint64_t reported_at_ns;          /* 0: nothing has been reported, and nothing recorded */
	uint64_t step_ns;                 /* when the governor is asked next */
	uint64_t pace_ns;                 /* and how long after that */
	uint64_t caused_ns[COSTS];        /* of the collector's, what was for a source */
	uint64_t spread_ns[COSTS_SPREAD]; /* of these, what the governor knows of by now */
	uint64_t spread_at_ns;            /* when that was worked out */
	uint64_t gate_ns;                 /* when a source has to be held, or let go */
	uint64_t fixed_ns[COSTS];         /* what no lower level would have saved */
	uint64_t cpu_ns;                  /* of the process, at the last look while recording */
	uint64_t limited_segment;         /* that says so, plus 1 */
	uint64_t looked_ns;               /* for what is hopeless */
	uint64_t hopeless_ns[COSTS];      /* since when it is; 0: it is not */
	int running;
	int trying; /* what a source costs is being found out */

	/* events that the next flush takes along: they are none of a ring's, and need none to wake up for */
	struct weft__cost pending[COSTS_PENDING];
	uint32_t n_pending;
	uint32_t n_gathered; /* of these, in the block that is being made */
	uint32_t stream;     /* that they are in; 0: none yet */
	uint64_t segment;    /* that defines it, plus 1 */
	uint64_t last_ns;    /* of the last one that was written */

	/* counters as they were at the last look */
	struct weft__source_cost seen[COSTS];
	uint64_t collector_ns, encoder_ns, tables_ns, symbols_ns, ship_ns, events;
	uint64_t slots; /* that threads of the program filled */
	uint64_t staged_runs;
	double emit_ns; /* what it takes to fill one */
	/* since the last step: what events cost, emitting and collecting them, and how many slots they were */
	double events_cost_ns;
	uint64_t accounts;               /* ticks that threads took for their accounts, at the last look */
	uint64_t accounts_ns;            /* when that was */
	double accounts_share;           /* of one CPU that they took, until then */
	uint64_t cold_ns;                /* of coarse.cold_ns, what is counted */
	uint64_t passed[COARSE_UNTIMED]; /* events that were only counted, at the last look */
	uint64_t events_slots;
};

/* What a counter says now, and how much that is more than at the last look. */
static inline uint64_t weft__costs_since(uint64_t *seen, uint64_t now)
{
	uint64_t more = now > *seen ? now - *seen : 0;

	*seen = now;
	return more;
}

/* costs_events.c. What threads of the program took for events since the last time, in ns: emitting them, counting
 * those that are only counted, and their accounts. `own` of the slots that were drained are the collector's, and
 * `collector_ns` went for the others. */
uint64_t weft__costs_events(struct weft__collector *c, uint64_t own, uint64_t collector_ns);
/* costs_events.c. What threads took for events that were only counted, by the level that passed them. */
double weft__costs_of_counts(const struct weft__costs *costs, const uint64_t *counts);
/* What they cost besides in `span_ns`, when so many threads had them that none finds anything in a cache. */
double weft__costs_of_cold(uint32_t threads, uint64_t polls, uint64_t span_ns);
/* costs_events.c. Lets accounts read again, for as much as that may cost in so long a time. */
void weft__costs_accounts(const struct weft__costs *costs, uint64_t passed_ns);
/* CALLER, at open. */
void weft__costs_init(struct weft__costs *costs, uint32_t budget_ppm, struct weft__defs *facts);
/* A new collector thread, whose CPU time begins at 0. */
void weft__costs_thread(struct weft__costs *costs);
/* Once in a round: measures, sets rates and reports, when that is due. 0 or the error of a drain or flush. */
int weft__costs_tend(struct weft__collector *c, uint64_t now_ns);
/* When it has to be asked again; UINT64_MAX: whenever. */
uint64_t weft__costs_due(const struct weft__costs *costs);
/* At a rotation and at the end: reports what is left to report. 0 or an error as above. */
int weft__costs_report(struct weft__collector *c);
/* An event of another kind, of COSTS_FIELDS fields, that the next flush takes along. When there are too many, the
 * last of the kind grows. */
void weft__costs_event(struct weft__costs *costs, const struct weft__cost *event);
/* In a flush: puts what is to be reported into the batch; and the block was written, or it was not. */
int weft__costs_gather(struct weft__collector *c);
void weft__costs_settle(struct weft__collector *c, int written);
/* Tables are made when a program starts, and names when a segment is sealed. Lower rates would not bring that back,
 * and a program that runs for seconds would be hardly sampled, so the governor hears of it bit by bit. Answers what
 * it has not heard of yet. */
uint64_t weft__costs_spread(struct weft__costs *costs, uint64_t now_ns);
/* What is degraded, for a segment that begins. */
void weft__costs_facts(struct weft__collector *c, struct weft__defs *defs);
void weft__costs_stats(const struct weft__costs *costs, struct weft_recorder_stats *stats);

#endif
