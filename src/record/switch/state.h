/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the switch source share.
 *
 *     switch.c        whether it runs, and its life
 *     open.c   events and rings: of all CPUs, or of each thread
 *     ring.c   what the kernel wrote into a ring, record by record
 *     pair.c   records to intervals
 *     stack.c  a sample of a switch to frames
 *     drain.c  the collector's turn: rings in order of time to events
 *     watch.c  whether there are too many switches for any records */
#ifndef WEFT_SWITCH_STATE_H
#define WEFT_SWITCH_STATE_H

#include <linux/perf_event.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "record/switch/switch.h"

struct weft_ring;

#define SWITCH_WHY_BYTES 512
#define SWITCH_LOOK_NS UINT64_C(100000000) /* how many switches there are is taken over that at least */

enum weft__switch_type { SWITCH_OTHER, SWITCH_IN, SWITCH_OUT, SWITCH_SAMPLE, SWITCH_EXIT, SWITCH_LOST };

struct weft__switch_record {
	enum weft__switch_type type;
	uint32_t pid, tid;
	uint32_t n_words; /* of the whole of it */
	int preempted;    /* out: it could have gone on */
	uint64_t time_ns;
	uint64_t lost; /* lost: how many records */
};

/* A ring as the kernel writes it, in words of 8 bytes, of which all records are made. */
struct weft__switch_ring {
	const uint64_t *words;
	uint64_t mask; /* words of it less 1; their number is a power of two */
	/* In words since it began: read up to here; written up to there, when that was looked at last. */
	uint64_t at, head;
	uint64_t last_ns;                /* of the last record that was read */
	struct weft__switch_record next; /* when `has_next` */
	int has_next;

	struct perf_event_mmap_page *page;
	size_t bytes;     /* of the mapping */
	uint64_t fill;    /* words that were read in this turn */
	uint64_t full_at; /* where it was full, so that what came after is missing; 0: it was not */
	uint64_t owed_ns; /* since when, if that was reckoned with and the kernel has not said how much; 0: not */
	uint32_t tid;     /* whose it is; 0: of all threads on a CPU */
	int fd;           /* of that thread; else the first one of the CPU, which is in the list of all */
	int over;         /* the thread ended */
};

/* Any context. Reads the record at `at` to `next`: 1; 0: there is none; -1: what is there is none, and the rest up
 * to `head` is left out. */
int weft__switch_peek(struct weft__switch_ring *ring);
/* Goes on behind it. */
void weft__switch_skip(struct weft__switch_ring *ring);
/* The words of `next` in a row: in place, or copied to `room`, which has room for the longest there can be. */
#define SWITCH_RECORD_WORDS 8192
const uint64_t *weft__switch_words(const struct weft__switch_ring *ring, uint64_t *room);

/* Frames, leaf first, of user code and then of the kernel. */
struct weft__switch_stack {
	uint64_t *frames;
	uint32_t n_user, n_kernel, cap;
	uint32_t flags; /* of the user's part: enum weft_stack_flag */
};

enum weft__switch_on { THREAD_UNKNOWN, THREAD_ON, THREAD_OFF };

struct weft__switch_thread {
	uint32_t tid; /* 0: nobody is here */
	uint8_t state;
	uint8_t reason; /* off */
	uint8_t early;  /* on: it got the CPU and had not left it, as far as was known */
	uint8_t twice;  /* how often it left without having come back */
	/* Unknown: its records are complete from here on, 0: it is new. On and off: when it came or left. */
	uint64_t since_ns;
	uint64_t cpu_ns; /* its CPU time, when it was covered */
	uint32_t left;   /* how often, since its CPU time was reported */
	struct weft__switch_stack stack;
};

/* The threads, by id. */
struct weft__switch_pairs {
	struct weft__switch_thread *threads;
	struct weft__map map; /* tid to index */
	size_t n, cap;
	uint32_t free; /* index plus 1 of one that is free (tid 0), whose since_ns is that of the next; 0: none is */
};

struct weft__switch_interval {
	uint32_t tid;
	uint32_t reason; /* enum weft_offcpu */
	uint64_t begin_ns, end_ns;
	struct weft__switch_stack *stack; /* until the thread's next record; NULL: none */
};

/* Any context, one at a time. Each answers 1 when that made an interval, 0 when not, and -ENOMEM. */
int weft__pairs_in(struct weft__switch_pairs *pairs, uint32_t tid, uint64_t now_ns, struct weft__switch_interval *ret);
int weft__pairs_out(struct weft__switch_pairs *pairs, uint32_t tid, uint64_t now_ns, int preempted,
		    struct weft__switch_interval *ret);
/* Nothing is known between two times: an interval that is open ends where that begins, and those that are open at
 * its end begin there. Gives the intervals one by one; *cursor is 0 at first, and all are done when it answers 0. */
int weft__pairs_cut(struct weft__switch_pairs *pairs, size_t *cursor, uint64_t from_ns, uint64_t to_ns,
		    struct weft__switch_interval *ret);
/* A thread that is there already, whose records are complete from now on. 0 or -ENOMEM. */
int weft__pairs_add(struct weft__switch_pairs *pairs, uint32_t tid, uint64_t now_ns);
/* NULL: it is not there, and with `make` there is no memory for it. */
struct weft__switch_thread *weft__pairs_get(struct weft__switch_pairs *pairs, uint32_t tid, int make);
void weft__pairs_del(struct weft__switch_pairs *pairs, uint32_t tid);
void weft__pairs_fini(struct weft__switch_pairs *pairs);

/* COLLECTOR. From the words of a sample to the frames. 0 or -ENOMEM. */
int weft__switch_unwind(struct weft__switch_stack *stack, const uint64_t *words, uint32_t n_words);
/* The registers that it needs, as perf's mask. */
uint64_t weft__switch_regs(void);

struct weft__switch_fd {
	int fd;
	uint32_t tid;
};

/* What was opened at one start, until the collector has read all of it. */
struct weft__switch_set {
	struct weft__switch_set *next; /* stopped later than this one */
	struct weft__switch_ring *rings;
	size_t n_rings, rings_cap;
	struct weft__switch_fd *fds; /* of threads, on each CPU */
	size_t n_fds, fds_cap;
	uint32_t *cpus;
	size_t n_cpus, cpus_cap;
	int by_thread;    /* a ring for each thread; else one for each CPU */
	size_t pages;     /* of a ring */
	uint32_t refused; /* threads that could not be covered */
	int refused_why;
	uint64_t start_ns, stop_ns; /* the latter 0: it runs */
	uint64_t last_ns;           /* the newest record that was read */
	uint64_t scanned_ns;        /* when threads were looked for last, in a set by thread */
	uint64_t due_ns;            /* between the last turn and the next */
	int read_due;               /* the CPU time of some thread is to be reported */
	uint64_t rated_ns, rated;   /* when the rate of samples was looked at last, and their number then */
	struct weft__switch_pairs pairs;
	struct {
		int on;
		size_t cursor;
		uint64_t from_ns, to_ns;
	} cut; /* under way */
};

enum weft__switch_mode { SWITCH_MODE_OFF, SWITCH_MODE_INTERVALS, SWITCH_MODE_STACKS };

/* How many context switches there are. */
struct weft__switch_watch {
	uint64_t at_ns, switches; /* the last look */
	uint64_t few_ns;          /* since when there are few; 0: there are not */
	uint64_t back_ns;         /* when records came back */
	uint64_t patience_ns;     /* for how long there must be few until they do */
	int looked;               /* there was a look */
	int many;                 /* there are to be no records */
};

/* COLLECTOR. What the records have cost the threads that switch. */
struct weft__switch_spent {
	uint64_t switches; /* that are in it */
	uint64_t ns;
	uint32_t price_ns; /* of one, the last time that they were recorded */
};

struct weft__switch {
	pthread_mutex_t lock;
	enum weft__switch_mode mode; /* of this recording */
	struct perf_event_attr attr;
	size_t pages_most; /* of a ring, for tests; 0: as many as are useful */
	uint32_t collector_tid;
	uint32_t pid;
	int busy;        /* somebody is at the sets */
	int private_fds; /* their files are in another table than the program's (base/private_fds.h) */
	struct weft__switch_set *running;
	struct weft__switch_set *stopped; /* oldest first */
	uint64_t due_ns;                  /* when the collector should look; UINT64_MAX: not at all */
	uint64_t held_ns;                 /* since when it is held; 0: it is not */
	int let_go;                       /* and shall not be any longer, as soon as it is worth it */
	uint64_t opening_ns;              /* what the last opening took */
	uint64_t first_ns;                /* they have not begun yet, and may then; 0: they have */
	/* In which it was held at times, and that is not reported yet; 0: it was not. */
	uint64_t gap_from_ns, gap_to_ns;
	int wanted;    /* between start and stop */
	int by_itself; /* nobody asked for records, and there is a budget: none when there are too many switches */
	struct weft__switch_watch watch;
	struct weft__collector *collector; /* whose turn it is */
	uint64_t out_ns;                   /* of the last event */
	struct weft__switch_counts counts;
	struct weft__switch_spent spent;
	struct weft_loss losses[8];
	uint32_t n_losses;
	char degraded[SWITCH_WHY_BYTES];
};
extern struct weft__switch weft__switch;

/* switch_open.c, under the lock. 0 or a negative error. */
int weft__switch_set_open(struct weft__switch_set **ret);
/* Nothing is written to it any more; what is in it stays. */
void weft__switch_set_stop(struct weft__switch_set *set);
/* In the child of a fork the rings are not there. */
void weft__switch_set_free(struct weft__switch_set *set, int forked);
/* Looks for threads that came, in a set by thread. Answers whether CPUs came, which needs another set. */
int weft__switch_set_tend(struct weft__switch_set *set, uint64_t now_ns);
/* Takes the thread's own event away: it has inherited one. */
void weft__switch_set_single(struct weft__switch_set *set, uint32_t tid);
/* Takes away the rings of threads that ended. */
void weft__switch_set_sweep(struct weft__switch_set *set);
/* With stacks or without; 0 or a negative error. */
int weft__switch_probe(int stacks);
/* Whether a thread is one of ours. */
int weft__switch_ours(uint32_t tid);

/* switch.c, under the lock. Remembers a loss for the collector to report. */
void weft__switch_lose(uint64_t count, uint64_t from_ns, uint64_t to_ns);
void weft__switch_degrade(const char *text);
/* What runs is held. */
void weft__switch_pause(uint64_t now_ns);
/* What is held and shall not be any longer goes on, if it is time. */
void weft__switch_resume(uint64_t now_ns);
/* watch.c, under the lock. */
void weft__switch_watch_begin(uint64_t now_ns);
int weft__switch_watch_many(uint64_t now_ns);
/* The process has had that many by now. */
void weft__switch_watch_see(struct weft__switch_watch *watch, uint64_t now_ns, uint64_t switches);
/* Stops what runs, and starts it again. */
void weft__switch_retire(uint64_t now_ns);
int weft__switch_begin(void);

#endif
