/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the engines share. Fields say who writes them.
 *
 *     engine.c       starts and stops an engine; life.h
 *     tend.c         sees it through
 *     rate.c         how often it samples
 *     choice.c       chooses it, and keeps the facts
 *     machine.c      what the choice depends on
 *     signals.c      the signal: which one, taken and given back
 *     guard.c        what was missed while another handler had it
 *     threads.c      which threads there are, and which of them are covered
 *     slots_hot.c    the table of threads, by thread id
 *     handler_hot.c  the one handler: whose signal is it, where was the thread, a sample
 *     timer_hot.c    the engine that uses CPU-time timers
 *     perf.c, perf_hot.c   the engine that uses perf events
 *     perf_duty.c          how much of the time these are on
 *     precise.c, precise_hot.c   perf events of single threads beside their timers
 *     meter.c              what samples take from the program */
#ifndef WEFT_SAMPLE_STATE_H
#define WEFT_SAMPLE_STATE_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "base/atomic.h"
#include "base/late.h"
#include "record/sample/engine.h"
#include "record/tables/tables.h"
#include "record/thread/thread.h"

#define ENGINE_WHY_BYTES 640

enum weft__slot_state {
	SLOT_NEW = 0,       /* somebody is covering it */
	SLOT_COVERED = 1,   /* it has a timer or an event of its own */
	SLOT_UNCOVERED = 2, /* it could not be had, which was counted */
	SLOT_SKIPPED = 3,   /* a thread of ours */
	SLOT_AWAITED = 4,   /* the net's first signal in it shows whether its signal stack has room for two handlers */
};
enum weft__slot_tls { TLS_UNKNOWN = 0, TLS_OWN = 1, TLS_SHARED = 2 };

/* A thread. Whoever put its tid into the table fills it; after that the handler on the thread itself and the
 * collector. */
struct weft__slot {
	_Alignas(64) uint32_t state; /* enum weft__slot_state */
	int32_t timer;               /* the kernel's number of it; -1: none */
	int32_t fd;                  /* a perf event of its own: plus 1; 0: none */
	uint32_t interval_ns;        /* in force */
	uint32_t first_ns;         /* timer: what the next expiry stands for, when that is not the interval; 0: it is */
	uint32_t hits;             /* handler */
	uint32_t tls;              /* handler: enum weft__slot_tls */
	uint64_t stack_low;        /* handler: of the thread's own stack */
	uint64_t stack_high;       /* 0: not known yet */
	uint64_t cpu_ns;           /* its CPU time: timer, when looked at last; perf, as far as samples stand for it */
	struct weft_ring *foreign; /* handler: ring of a thread without thread-local memory of its own */
	void *ring;                /* perf, with kernel frames: the mapped ring */

	uint32_t born;  /* the thread: it was covered when it began, */
	uint32_t ended; /* and ended: it said so */

	/* threads with a timer and an event: precise.h */
	uint64_t sampled_ns;    /* handler: CPU time that samples stand for */
	uint64_t owed_ns;       /* of before the event was closed, which the timer's next sample stands for, too */
	uint32_t events;        /* handler: signals of the event */
	uint32_t events_seen;   /* collector: when its period was set */
	uint32_t unfit;         /* it can have none */
	uint64_t looked_cpu_ns; /* collector: at the last look */
	uint64_t looked_runs;
	uint32_t little; /* collector: looks in a row at which it had used hardly any CPU */
	uint64_t looked_ns;

	/* collector */
	uint32_t seen;      /* scan that saw it last */
	uint32_t hits_seen; /* hits at the last look */
	uint32_t redraw;    /* the handler is to draw a new interval for the timer */
	uint32_t mute; /* looks in a row without a hit although it used the CPU; reported when it is MUTE_REPORTED */

	/* perf, handler */
	uint32_t epoch;    /* recording of the last sample */
	uint32_t twice;    /* has an event of its own and an inherited one */
	uint64_t tick;     /* of the last sample by an event */
	uint64_t ridden;   /* and of the last one by the timer */
	uint64_t known_ns; /* its CPU time when the clock was read last */
	uint64_t known;    /* tick of that */
	uint32_t step_ns;  /* CPU time from one sample to the next; 0: not known */
	uint32_t steps;    /* samples since `known` */
};
#define MUTE_REPORTED 3

#define SLOT_GONE UINT32_MAX /* a key that was deleted: probing goes on behind it */
#define SLOT_NET 0xffffffu   /* number of the timer of the process, among the numbers of slots */

/* A signal of ours. */
struct weft__hit {
	struct weft__slot *slot; /* NULL: not known yet */
	uint64_t weight_ns;      /* 0: no sample */
	uint32_t tid;            /* 0: not known yet */
	uint32_t engine;         /* enum weft_engine: where it comes from */
	uint64_t tick;           /* when it came */
	const ucontext_t *context;
};

struct weft__engine_ops {
	const char *name;
	uint32_t id; /* enum weft_engine */
	/* CALLER. Whether it can run on this machine, and if not, why. 0 or a negative error. */
	int (*probe)(char *why, size_t bytes);
	/* CALLER and COLLECTOR; each may be NULL. The handler is there; all threads that were there have been
	 * covered; they are not any more. */
	void (*start)(void);
	void (*started)(void);
	void (*stop)(void);
	/* In the child of a fork. May be NULL. */
	void (*forked)(void);
	/* HOT. Whether the calling thread can cover nobody now; a scan does it. May be NULL. */
	int (*later)(void);
	/* HOT, of the thread itself or from another one. 0, -ESRCH when it is gone, or another negative error. */
	int (*cover)(struct weft__slot *slot, uint32_t number, uint32_t tid);
	/* CALLER and COLLECTOR. */
	void (*uncover)(struct weft__slot *slot);
	/* COLLECTOR. For one covered thread, once a second or so. */
	void (*tend)(struct weft__slot *slot, uint32_t tid);
	/* HOT, at any time. Whether a signal is one of its own. */
	int (*mine)(const siginfo_t *info);
	/* HOT, while it is on. What such a signal stands for. */
	void (*match)(const siginfo_t *info, struct weft__hit *hit);
	/* HOT, in the handler. The kernel's frames of this sample. May be NULL. */
	uint32_t (*kernel)(struct weft__slot *slot, uint64_t *out, uint32_t max);
};
extern const struct weft__engine_ops weft__timer_ops, weft__perf_ops;

/* Set at open and start, constant while `on`. */
struct weft__engine {
	const struct weft__engine_ops *ops; /* NULL: no sampling */
	uint32_t hz;
	uint32_t chosen_ns; /* the period that was asked for */
	int signal;
	int net_signal;    /* 0: no net */
	int kernel;        /* with the kernel's frames */
	uint32_t tick_ns;  /* perf: of the kernel's tick, when timers that ride it take samples, too; 0: they do not */
	uint32_t jiffy_ns; /* of the kernel's tick, at which CPU timers are looked at */
	const char *event;
	int32_t tid_at; /* where the thread library keeps a thread's id, from the thread pointer; 0: not known */
	int has_rdtscp;
	uint32_t *keys; /* thread ids, 0 or SLOT_GONE */
	struct weft__slot *slots;
	uint32_t n_slots; /* a power of two */
	uint32_t generation;

	_Alignas(64) uint32_t on; /* CALLER */
	uint32_t churn;           /* HOT: threads that came by themselves */
	int32_t net;              /* the timer of the process; -1: none */
	uint32_t net_ns;          /* its interval in force; 0: not armed */
	uint32_t net_astray;      /* HOT: its signals that came to a thread that slept */
	uint32_t net_first;       /* COLLECTOR: threads that nobody has met yet get their timer from the net */
	uint32_t cramped;         /* HOT: a thread has a signal stack for one handler only; it stays set */
	uint64_t stack_least;     /* bytes of a signal stack that has room for two */
	uint32_t period_ns;       /* COLLECTOR: the one in force, which the governor makes longer */

	_Alignas(64) uint32_t inside; /* handlers, and threads that are being covered */
	_Alignas(64) uint64_t samples;
	uint64_t weight_ns; /* HOT: that they stand for */
	uint64_t signals;   /* HOT: of ours */
	uint64_t spent_ns;  /* HOT: in the handler */
	uint64_t uncovered; /* threads, each once */
	uint64_t unhit;     /* HOT and COLLECTOR: threads that ended without a sample */
	uint64_t unhit_ns;  /* and their CPU time, as far as it is known */
	int uncovered_why;  /* the last error */
};
extern struct weft__engine weft__engine;
/* The engine's lock, which a fork takes, too. */
extern pthread_mutex_t weft__engine_mutex;

/* HOT. The slot of a thread; NULL when there is none. `number` may be NULL. */
struct weft__slot *weft__slot_find(uint32_t tid, uint32_t *number);
/* HOT. The same, and takes one when there is none: then *added is 1 and the caller fills it. NULL when the table is
 * full. */
struct weft__slot *weft__slot_take(uint32_t tid, uint32_t *number, int *added);
/* HOT. Takes a slot for the thread and covers it, if nobody did so already. */
struct weft__slot *weft__slot_cover(uint32_t tid);
/* HOT and COLLECTOR. Covers a thread that was awaited, unless somebody else does. */
void weft__slot_meet(struct weft__slot *slot, uint32_t number, uint32_t tid);
/* COLLECTOR and CALLER, one at a time. */
void weft__slot_drop(uint32_t number);

/* Whether it is sampled, as far as weft can tell. */
static inline int weft__slot_sampled(struct weft__slot *slot)
{
	uint32_t state = load_acquire(&slot->state);

	return state == SLOT_COVERED || state == SLOT_AWAITED;
}

/* HOT. CPU time of the calling thread. */
uint64_t weft__thread_cpu_ns(void);

/* HOT. Enters the engine: 0 when it is off, and then there is no leave. */
int weft__engine_enter(void);
void weft__engine_leave(void);

void weft__engine_handler(int signal, siginfo_t *info, void *context);
/* What was there before ours, by signal, or what the program wants there since. Written before the handler is
 * installed, kept for stragglers. There are two, in turn, because the program may want another while a handler looks
 * at the one in force. */
extern struct sigaction weft__engine_before[65][2];
extern uint32_t weft__engine_before_turn[65];

static inline struct sigaction *weft__signal_before(int signal)
{
	return &weft__engine_before[signal][load_acquire(&weft__engine_before_turn[signal]) & 1];
}

/* signals.c, CALLER and COLLECTOR. Chooses a signal that is free and not in `blocked`, beginning with `want`; 0:
 * none is. */
int weft__signal_choose(int want, const sigset_t *blocked);
/* `mask` and `also`: other signals that are held back while the handler runs; 0: none. 0 or a negative error. */
int weft__signal_take(int signal, int mask, int also);
/* Whether our handler is still there. */
int weft__signal_ours(int signal);
/* Gives it back, unless somebody else has it by now. */
void weft__signal_give(int signal);
/* Any context, for who stands between the program and the kernel (bindings/preload): the program's sigaction() of a
 * signal that may be taken. 1: it is, and what the program wants is kept, and followed for signals that are not
 * ours; 0: it is not. */
int weft__signal_between(int signal, const struct sigaction *want, struct sigaction *ret);

/* threads.c, CALLER and COLLECTOR, one at a time. */
/* The table of threads. 0 or a negative error. */
int weft__slots_make(uint32_t max_threads);
void weft__slots_free(void);
/* Looks whether threads came or went since the last time; if so, covers and drops. `force`: looks at all of them
 * anyway. */
int weft__threads_scan(int force);
void weft__threads_drop(void);
/* Once a second or so. Answers how many threads are not covered. */
uint32_t weft__threads_tend(void);
/* COLLECTOR. Before the net is out: a thread without a sample so far loses its timer. After it: it gets one. */
void weft__threads_await(void);
void weft__threads_meet(void);

/* rate.c, CALLER. A recorder is opened: nobody has set a rate. */
void weft__rate_open(void);
/* COLLECTOR. May cost that level of SOURCE_FULL; answers how many samples a second that is, and what it was the last
 * time. */
uint32_t weft__rate_limit(uint32_t level);
uint32_t weft__rate_hz(void);
/* COLLECTOR. When perf events have to be switched, or looked at, and doing that. */
uint64_t weft__rate_due(int awake);
void weft__rate_turn(uint64_t now_ns);

/* choice.c, CALLER, and COLLECTOR under the engine's lock. Sets the engine, the event, and whether there are kernel
 * frames. */
void weft__choice_make(const struct weft_recorder_opts *opts, const char *event, int is_clock);
/* To the timer, after open. `why` it is that, and what is degraded by it. */
void weft__choice_fall_back(const char *why, const char *degraded);
/* Perf events alone, after open. */
void weft__choice_walk(const char *degraded);
/* Something is worse than it was at open. */
void weft__choice_degrade(const char *text);
void weft__choice_facts(struct weft__defs *defs);
/* Whether there can be a net: the kernel gives a signal of the process to the thread that runs, and a usual
 * alternate stack has room for two signals at a time. */
int weft__choice_net(void);

/* timer_hot.c, any context. The timer of the process, which open does not arm; its interval, 0 for off; HOT: keeps its
 * signal away until the handler, which needs the stack for itself, has returned. */
void weft__net_open(void);
void weft__net_close(int forked);
void weft__net_set(uint32_t interval_ns);
void weft__net_hold(void);
/* HOT. A signal stack has no room for two handlers: the net is taken in, and stays in. */
void weft__net_cramped(void);

/* machine.c, CALLER. How often the kernel looks at CPU timers; whether it is of this version or a newer one; whether
 * an instruction says the CPU's number. */
uint32_t weft__machine_tick_hz(void);
int weft__machine_kernel(unsigned major, unsigned minor);
int weft__machine_rdtscp(void);
/* Bytes of the largest signal frame that this process does not have: registers that a program must ask for first
 * (AMX). */
unsigned long weft__machine_unused_frame(void);

/* perf_hot.c, any context. What a signal of a timer beside perf events stands for; how long from one expiry of such
 * a timer to the next. */
void weft__perf_ridden(struct weft__hit *hit);
uint32_t weft__perf_rider_ns(void);

/* perf.c, CALLER. 0: it is an event that perf knows; *clock: it counts time. */
int weft__perf_event_find(const char *name, int *clock);

#endif
