/* SPDX-License-Identifier: Apache-2.0 */
/* A source: something that finds events out beside what the program emits. CPU samples, context switches, wall
 * samples, the watchdog of stuck polls, waits, contexts, queues and the flight recorder are one each. sources.c has
 * the list; the recorder and the collector go through it and know no source by name.
 *
 *     recorder     open -> start -> [gate opens] -> attach ... detach -> leave -> [gate shuts] -> stop -> close
 *     fork         fork(LOCK), and UNLOCK in both processes, then CHILD in the child
 *     collector    due -> turn, again and again; finish at a rotation and at the end; facts, loss and stats in each
 *                  round
 *     budget       try_out -> cost -> limit or hold, several times a second (collect/costs.c)
 *
 * What a source does not need is NULL. Calls that begin something go through the list from the front, those that end
 * something from the back. There is one recorder at a time, so a source keeps its state in variables of its own. */
#ifndef WEFT_RECORD_SOURCE_H
#define WEFT_RECORD_SOURCE_H

#include <pthread.h>
#include <stdint.h>

#include "weft/kind.h"
#include "weft/recorder.h"

struct weft__collector;
struct weft__defs;
struct weft__timeline;
struct weft_loss;

/* When in the collector's round it has its turn. */
enum weft__source_stage {
	SOURCE_USUAL = 0, /* after the rings were drained */
	SOURCE_EARLY = 1, /* before */
	SOURCE_LATE = 2,  /* at the end, also when the round failed, and while a full disk holds everything else */
};

/* What a turn answers: a negative error, or bits of what the collector is to do about it. */
enum weft__source_want {
	SOURCE_NOTHING = 0,
	SOURCE_MORE = 1,    /* there is no room in staging: another turn when there is */
	SOURCE_SOON = 2,    /* what it emitted should be in the file soon */
	SOURCE_MODULES = 4, /* the modules of the process may have changed */
};

enum weft__source_fork { SOURCE_LOCK, SOURCE_UNLOCK, SOURCE_CHILD };
enum weft__source_end { SOURCE_PAUSE, SOURCE_STOP };
/* What is lost, if anything: to be recorded as it is, or also to be counted among the events that were lost. */
enum weft__source_loss { SOURCE_NO_LOSS = 0, SOURCE_LOSS = 1, SOURCE_LOST_EVENTS = 2 };

/* Of a source that is on for a part of the time: whether it is; it is to be off; it may be on again. */
enum weft__source_hold { SOURCE_ASK, SOURCE_HOLD, SOURCE_LET };

#define SOURCE_FULL 1024 /* the level of a source that nobody limits */

/* What a source has cost since it was opened, or since longer: only differences count. */
struct weft__source_cost {
	uint64_t spent_ns; /* CPU time, on whichever thread */
	uint64_t own_ns;   /* of that, on the collector */
	uint64_t fixed_ns; /* of that, what no lower level would have saved */
	/* Events that the collector found out for it, and slots that they took. The same part of the
	 * collector's other work is for this source, too. */
	uint64_t events, slots;
};

/* What the process used of the CPU while it was sampled, and what the samples stand for; only differences count. */
struct weft__source_cpu {
	uint64_t program_ns, sampled_ns;
	uint64_t unhit, unhit_ns; /* threads that ended without a sample, and their CPU time, as far as it is known */
	uint64_t run;             /* how often sampling has begun: differences are of one run */
};

struct weft__turn {
	struct weft__collector *collector;
	const struct weft__timeline *timeline;
	uint64_t now_ns;
	int awake; /* due: the collector is awake anyway, so what would be due soon may be done now */
	int calm;  /* the program does next to nothing (collect/calm.h): what can wait is no reason to wake up */
	int err;   /* SOURCE_LATE: what the round came to before */
	int last;  /* finish: the collector ends */
};

struct weft__source {
	const char *name; /* also of its fact degraded.NAME */
	const char *what; /* it records; behind "no" when it cannot start */
	enum weft__source_stage stage;
	int facts_change; /* weft__source_changed may be about it */

	/* CALLER, under the recorder's mutex. What the machine does not allow is degraded and in the facts. An
	 * option that makes no sense is -WEFT_E_OPTION, and nothing is recorded. With another error the others go on
	 * without it. */
	int (*open)(const struct weft_recorder_opts *opts, struct weft_error *err);
	/* The collector has its options and its clock; no thread yet. */
	void (*setup)(struct weft__collector *c, const struct weft__timeline *line,
		      const struct weft_recorder_opts *opts);
	/* The collector runs, and the gate is shut. 0 or a negative error: nothing of it is recorded. */
	int (*start)(pthread_t collector);
	/* The gate is open. On the thread that has weft's files: the collector, where its table of files is its own. */
	void (*attach)(pthread_t collector);
	/* Behind attach, when that came later than the start said. */
	void (*late)(uint64_t from_ns, uint64_t to_ns);
	/* On that thread, before the gate is shut. */
	void (*detach)(void);
	/* Before the gate is shut for good: what is not over yet is recorded as it is. */
	void (*leave)(void);
	/* The gate is shut. Also on the collector, when the program's last thread has ended. */
	void (*stop)(enum weft__source_end end);
	void (*close)(struct weft__collector *c);
	/* Around a fork and in its child, whether or not it is open. CHILD: the parent's threads are not there. */
	void (*fork)(enum weft__source_fork when, struct weft__collector *c);
	/* Whether one thread closes files that another has opened, so that all must have the same table. Known at
	 * open. */
	int (*shares_files)(void);
	/* CALLER. Whether it records when threads are off the CPU. Known at open. */
	int (*sees_switches)(void);
	/* CALLER and COLLECTOR. What readers are to know of it, for the front of a segment. */
	void (*facts)(struct weft__defs *defs);
	/* CALLER and COLLECTOR, under the collector's mutex. The gate is about to have this value; 0: to be shut. */
	void (*gate)(uint32_t on);

	/* COLLECTOR. When it wants its turn; UINT64_MAX: not. NULL: in each round, and no reason to wake up. */
	uint64_t (*due)(const struct weft__turn *turn);
	int (*turn)(const struct weft__turn *turn);
	/* At a rotation and at the end, before the segment is sealed; SOURCE_LATE: at the end, and after. Answers as
	 * turn does. */
	int (*finish)(const struct weft__turn *turn);
	/* One loss at a time, until there is none. */
	enum weft__source_loss (*loss)(struct weft_loss *ret, uint64_t now_ns);
	void (*stats)(struct weft_recorder_stats *stats);

	/* COLLECTOR. Whether it records, or will when the gate opens: then its cost is worth an event. NULL: not by
	 * itself. */
	int (*works)(void);
	/* What it costs, which is reported as `costs`. `least`: the level below which it is not lowered; 0: it cannot
	 * be. */
	enum weft_cost costs;
	uint32_t least;
	void (*cost)(struct weft__source_cost *ret);
	/* COLLECTOR. 1, or 0 when it takes no samples. Reports hold one against the other (collect/cputime.c). */
	int (*cpu)(struct weft__source_cpu *ret);
	/* Before the first turn of a recording: finds out what it costs. 1: there is more to find out. */
	int (*try_out)(void);
	/* May cost `level` of SOURCE_FULL of what it would. Answers the rate in force, for readers; 0: it has none. */
	uint32_t (*limit)(uint32_t level);
	/* What cannot be done less often is done for a part of the time: then there is this one. Answers whether it
	 * is on, which may lag behind. */
	int (*hold)(enum weft__source_hold what);
	/* Much of the budget goes for what no lower level saves. Whether it does with something cheaper from now on. */
	int (*give_up)(void);
	/* The collector's wakeups are dear, or they are not any more. */
	void (*spare)(int dear);
};

/* For due: something that is due at `due_ns`, `pace_ns` after the last time. Who is awake does it a quarter of that
 * earlier. */
static inline uint64_t weft__turn_due(const struct weft__turn *turn, uint64_t due_ns, uint64_t pace_ns)
{
	uint64_t early_ns = turn->awake ? pace_ns / 4 : 0;

	return due_ns > early_ns ? due_ns - early_ns : 0;
}

/* The next time for what is done every `pace_ns`, on a grid that all have in common, so that one wakeup is for all of
 * them. What was done up to a quarter of the pace too early was done for the point that follows. */
static inline uint64_t weft__grid_next(uint64_t now_ns, uint64_t pace_ns)
{
	return ((now_ns + pace_ns / 4) / pace_ns + 1) * pace_ns;
}

/* The first point of the grid from `at_ns` on. */
static inline uint64_t weft__grid_from(uint64_t at_ns, uint64_t pace_ns)
{
	return (at_ns + pace_ns - 1) / pace_ns * pace_ns;
}

#define SOURCES_MAX 32

/* The list, and which of its sources are out until the next open. Tests put their own in its place. */
struct weft__source_list {
	const struct weft__source *const *all;
	uint32_t n;
	uint32_t out; /* bit by bit */
	int why[SOURCES_MAX];
};
extern struct weft__source_list weft__sources;

/* The next one that is not out, from *i on; NULL: there is none. *i is moved behind it. */
const struct weft__source *weft__source_next(uint32_t *i);
/* The same backwards, from the one before *i on. */
const struct weft__source *weft__source_back(uint32_t *i);

/* Any context. Facts of a source are not what they were: what worked at open did not work later. */
void weft__source_changed(void);
/* Another number when that was so. */
uint32_t weft__sources_version(void);

/* CALLER. 0, or -WEFT_E_OPTION with a message; then none is open. */
int weft__sources_open(const struct weft_recorder_opts *opts, struct weft_error *err);
void weft__sources_setup(struct weft__collector *c, const struct weft__timeline *line,
			 const struct weft_recorder_opts *opts);
void weft__sources_start(pthread_t collector);
/* On the thread that has the files. */
void weft__sources_attach(pthread_t collector);
void weft__sources_late(uint64_t from_ns, uint64_t to_ns);
void weft__sources_detach(void);
void weft__sources_leave(void);
void weft__sources_stop(enum weft__source_end end);
void weft__sources_close(struct weft__collector *c);
void weft__sources_fork(enum weft__source_fork when, struct weft__collector *c);
int weft__sources_share_files(void);
int weft__sources_see_switches(void);
/* Facts of all; `again`: of those only that may change. */
void weft__sources_facts(struct weft__defs *defs, int again);
void weft__sources_gate(uint32_t on);
/* COLLECTOR. When the first of them wants its turn; with `late`, of those of SOURCE_LATE alone. */
uint64_t weft__sources_due(const struct weft__turn *turn, int late);

#endif
