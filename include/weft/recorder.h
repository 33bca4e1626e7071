/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder: opens a directory, starts the collector, and turns what threads emit into segments.
 *
 *     struct weft_recorder *rec;
 *     struct weft_error err;
 *     struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = "/var/lib/server/weft"};
 *     if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0)
 *             fprintf(stderr, "weft: %s\n", err.msg);
 *     ...
 *     weft_recorder_close(rec);
 *
 * One recorder can be open in a process at a time. All calls here may come from any thread and take the recorder's one
 * mutex; none is async-signal-safe unless it says so. Nothing here is needed for emitting (event.h). */
#ifndef WEFT_RECORDER_H
#define WEFT_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_recorder;

/* What a child has after fork(). In each case the parent goes on unharmed. */
enum weft_fork {
	WEFT_FORK_OFF = 0,     /* the child records nothing: every emit is inert */
	WEFT_FORK_RESTART = 1, /* the child opens a recorder of its own, same options, its own files */
};

/* Where the rings live. They must survive kill -9, and a store to them must never block on a disk. */
enum weft_ring_place {
	WEFT_RING_AUTO = 0,  /* a file in /dev/shm, with a link to it in `dir`; in `dir` where that fails */
	WEFT_RING_DIR = 1,   /* a file in `dir`: survives whatever `dir` survives; page writeback may stall an emit */
	WEFT_RING_MEMORY = 2 /* private memory: nothing to recover after a crash */
};

/* What takes samples of stacks. All of them sample every thread of the process. */
enum weft_engine {
	WEFT_ENGINE_AUTO = 0,  /* the timer up to the kernel's tick rate; above it perf events and timers together; perf
				* events for kernel frames and for other events than cpu-clock */
	WEFT_ENGINE_TIMER = 1, /* a CPU-time timer per thread: no privilege, no cost per context switch; at most HZ */
	WEFT_ENGINE_PERF = 2,  /* perf events: any rate, kernel frames, hardware events */
};
#define WEFT_SAMPLE_OFF UINT32_MAX

/* Whether the times at which threads were not on a CPU are recorded. */
enum weft_switch {
	WEFT_SWITCH_AUTO = 0,      /* intervals, while CPU samples are taken and the machine allows it */
	WEFT_SWITCH_OFF = 1,       /* nothing */
	WEFT_SWITCH_INTERVALS = 2, /* when and how long, blocked or preempted; 0.9 to 1.5 us for each context switch */
	WEFT_SWITCH_STACKS = 3,    /* with the stack that blocked, the kernel's part included; needs privilege */
};

/* Which polls are recorded one by one. All of them are counted, by duration, in every mode.
 *
 * In the modes slow and caught nothing is written when a poll begins, and when it ends only if it is to be told, as one
 * event with its begin and end (kind poll). A pair of begin and end then costs what reading the clock twice costs, and
 * takes no room in the ring. Every poll is counted: the collector tells once in flush_ns, and before a segment ends,
 * how many polls of each thread took how long (kind poll_count, four ranges for each power of two of ns), so that the
 * sums are exact in each segment.
 *
 * Caught are polls in which a CPU sample was taken, or in which a wait of wait_ns or more ended. A sample catches one
 * poll, the innermost that is open; a poll is told once, however many samples are in it. So there are no more such
 * events than samples and waits, and which polls there are says where the CPU time went: a poll is caught in proportion
 * to its CPU time.
 *
 * A thread tells of at most poll_cap polls a second; what is beyond is a loss of reason WEFT_LOSS_POLL_CAP, and
 * counted. Up to 16 polls within each other are timed; deeper ones are counted without a length. A poll that was open
 * when recording began, or was paused or stopped meanwhile, is neither told nor counted. Parks, wakes, spawns and the
 * rest are recorded in every mode, but for what mode auto says. */
enum weft_poll_mode {
	WEFT_POLLS_AUTO = 0,   /* all of them, as two events, as long as that fits budget_ppm; see below */
	WEFT_POLLS_SLOW = 1,   /* those that took at least poll_slow_ns */
	WEFT_POLLS_CAUGHT = 2, /* those in which a sample was taken */
	WEFT_POLLS_ALL = 3,    /* all of them, whatever it costs */
};

/* Mode auto begins like mode all. When events cost more than six tenths of the budget, it goes over to mode slow with
 * poll_slow_ns (there 1 ms by default), while the program runs and with polls open. When that is not enough, parks (with their time; those of 1 ms and
 * longer stay events) and queue depths are counted, and then wakes are: of these a poll that is told has its own (kind woken). Each change is an event of kind mode, which says when and why. When
 * events have cost little for 10 s, it goes back by one step; each time that this was too early the wait is twice as
 * long. Events that the program defined itself are always recorded: weft does not know which of them could be left out. The report says
 * when they exceed the budget. */
#define WEFT_OFF UINT64_MAX /* as a time: never */

/* Zero in any field means the default named beside it. `size` must be sizeof(struct weft_recorder_opts); bytes beyond
 * those the library knows must be zero. */
struct weft_recorder_opts {
	size_t size;
	const char *dir;        /* where segments go; NULL: memory only (weft_recorder_save writes them out) */
	const char *name;       /* service name in the segment; NULL: the program's name */
	uint64_t segment_bytes; /* rotate at this size; 64 MiB. Flight recorder: memory for what is kept */
	uint64_t segment_ns;    /* rotate at this age; 60 s */
	uint64_t keep_bytes; /* sealed segments of this name together, oldest deleted first; 1 GiB (64 MiB in memory) */
	uint64_t keep_ns;    /* delete sealed segments of this name older than this; 0: no limit */
	uint64_t drain_ns;   /* longest time between two drains; 250 ms, which is also the most */
	uint64_t flush_ns;   /* longest time an event waits in shared memory before it is in the file; 1 s */
	uint64_t queue_ns;   /* how often global queue callbacks are asked; 10 ms */
	uint32_t ring_bytes; /* slots of a thread, a power of two; 64 KiB, and up to four times that when it is busy */
	uint32_t max_threads;      /* threads that may record at the same time; 4096 */
	uint32_t quantum_ns;       /* time resolution in the segment, a power of two; 8 */
	uint32_t on_fork;          /* enum weft_fork */
	uint32_t ring_place;       /* enum weft_ring_place */
	uint32_t sync;             /* 1: fdatasync after each block and seal; the default only starts writeback */
	const char *const *labels; /* "key=value" strings for the segment, NULL-terminated; copied */
	uint32_t no_recover;       /* 1: leave what a dead process left in `dir` alone */
	uint32_t level;            /* 1: frequencies only; 2..19: zstd levels, a fifth smaller at twice the CPU; 1 */
	uint32_t sample_hz;        /* samples a second of CPU time, of each thread; 99. WEFT_SAMPLE_OFF: none. As many
				    * as budget_ppm allows: 999 take more than 1 % on many machines */
	uint32_t sample_engine;    /* enum weft_engine */
	const char *sample_event;  /* perf: "cpu-clock", "task-clock", "cycles", ...; NULL: "cpu-clock" */
	uint32_t sample_kernel; /* 1: with the kernel's frames (perf; needs privilege); stop before exec, see below */
	uint32_t sample_depth;  /* frames of a stack, at most and by default 1024; 1: waits have none */
	int32_t sample_signal;  /* of the timer; 0: SIGPROF, or a real-time signal when that is taken */
	uint32_t symbolize;     /* 1: names of functions are put into each segment after it is sealed */
	uint32_t switches;      /* enum weft_switch */
	uint32_t wall_hz;   /* looks a second at threads that wait; 0: 10 where switches cannot be recorded, else none.
				 * WEFT_SAMPLE_OFF: none */
	uint32_t poll_mode; /* enum weft_poll_mode; auto */
	uint32_t poll_cap;  /* polls recorded one by one in a second by a thread, in the modes slow and caught; 1000 */
	uint64_t poll_slow_ns; /* mode slow; 10 ms. Mode auto: 1 ms */
	uint64_t
		wait_ns; /* waits at least this long are recorded one by one, with their stack; 10 ms. WEFT_OFF: none */
	uint64_t stuck_ns;   /* a poll that still runs after this time is told of while it does; 1 s. WEFT_OFF: none */
	uint32_t budget_ppm; /* CPU time for all of weft, in millionths of what the program uses, or of half a CPU
				 * when it uses less; 10000 (1 %). What the kernel does for samples counts: signals,
				 * interrupts of perf events, and what these add to context switches.
				 * WEFT_SAMPLE_OFF: no limit, and really sample_hz samples a second */
	uint32_t trigger_signal;     /* flight recorder: a signal that asks for a dump; 0: none */
	uint64_t flight_ns;          /* flight recorder: keep the last so much in memory, write only when asked
				 * (weft_recorder_dump); 0: write everything */
	uint64_t trigger_poll_ns;    /* flight recorder: a poll this long asks for a dump; 0: none */
	uint64_t trigger_quiet_ns;   /* flight recorder: after a dump, triggers are not heard for this long; 60 s */
	uint64_t trigger_forward_ns; /* flight recorder: a dump that a trigger asks for is written this long after it,
				      * with what came meanwhile; 0: at once. A day at most */
	uint32_t file_mode;          /* of the files in `dir`: 0600, or 0640 for a group (that of the process, or of a
				      * directory with chmod g+s) that may read them; 0600 */
};

/* Flight recorder. With flight_ns nothing is written to `dir` until somebody asks: the last flight_ns are kept in
 * memory, at most segment_bytes of them, and weft_recorder_dump or a trigger writes them as one segment, named NAME-
 * PID-ID-dump-NUMBER.weft. keep_bytes and keep_ns are about these files. The triggers are a poll that took
 * trigger_poll_ns or longer, and the signal trigger_signal, sent to the process or any of its threads; they write all
 * that is kept at that moment and, with trigger_forward_ns, what is recorded in that time after it (stopping or
 * closing writes it sooner). A dump that is not over yet is in `dir` as NAME-PID-ID-dump-NUMBER.weft.active, one at a
 * time, and grows with each flush: when the process is killed meanwhile, recovery makes a whole one of it, with what
 * is in shared memory. Triggers that come meanwhile are counted, like those after it. The signal is heard while
 * recording; a handler that the program has set before is called, too, and is back after stop. After a dump, triggers
 * are only counted for trigger_quiet_ns (the fact dump.unheard of the next dump says how many); calls of
 * weft_recorder_dump always work. The fact dump.why says what asked. When a dump that a trigger asked for cannot be
 * written, because the disk is full or `dir` is gone, it is tried again once a second as long as what it is about is
 * kept. After kill -9 without such a dump, recovery finds what is in shared memory, the last flush_ns or so; what was
 * kept in memory is lost. With poll mode all, trigger_poll_ns makes a pair of begin and end about 1 ns slower. */

/* Threads that wait are looked at from outside: they get no signal, so no call that waits ends because of it, with or without a time-out. The same
 * holds for a poll that stuck_ns tells of. CPU samples come by signals, to threads that run. A handler that the program installs over
 * that of the samples stays, and within a second they come by another signal. But a program that sets all signals to their default, as
 * daemons do, must do so before it starts to record: by default the signal of the samples is death. (Under weft run it may.) */

/* With sample_kernel, stop recording before the process calls exec in place: a signal that the kernel raises within execve would kill the
 * new program. Without it nothing needs to be done, nor under weft run. */

/* `dir` is made, with mode 0700, when it is not there. It has to be this user's or root's, and nobody else may write to it, or it has to
 * be this user's and sticky (chmod +t): else -EPERM, and the message says what to do. Of what is there only regular files of this user
 * that carry weft's mark are touched, and links are not followed (docs/SECURITY.md). Retention deletes segments of the same name only. */

/* Opens a recorder and recovers what earlier processes left in `dir`. Nothing records yet. `opts` NULL takes
 * all defaults (memory only). On success `*ret` is the caller's, to be given to weft_recorder_close.
 * Returns 0; -WEFT_E_STATE when one is open already; -WEFT_E_OPTION; -E2BIG for options newer than the library;
 * -ENOMEM; or a negative errno of the directory. */
WEFT_API int weft_recorder_open(struct weft_recorder **ret, const struct weft_recorder_opts *opts,
				struct weft_error *err);

/* The same, with options from the environment: WEFT_DIR, WEFT_NAME, WEFT_SEGMENT_BYTES, WEFT_SEGMENT_SECONDS,
 * WEFT_KEEP_BYTES, WEFT_KEEP_SECONDS, WEFT_RING_BYTES, WEFT_MAX_THREADS, WEFT_QUANTUM_NS, WEFT_FORK (off, restart),
 * WEFT_RING (auto, dir, memory), WEFT_SYNC, WEFT_LEVEL, WEFT_LABELS (k=v,k=v), WEFT_SAMPLE_HZ (a number, or off),
 * WEFT_SAMPLE_ENGINE (auto, timer, perf), WEFT_SAMPLE_EVENT, WEFT_SAMPLE_KERNEL, WEFT_SAMPLE_DEPTH, WEFT_SYMBOLIZE, WEFT_SWITCHES (auto, off, intervals, stacks),
 * WEFT_WALL_HZ, WEFT_POLLS (auto, all, slow, caught), WEFT_POLL_CAP, WEFT_POLL_SLOW_MS, WEFT_WAIT_MS, WEFT_STUCK_MS (a number, or off),
 * WEFT_BUDGET_PPM, WEFT_FLIGHT_SECONDS, WEFT_TRIGGER_SIGNAL (a number, or a name such as USR2), WEFT_TRIGGER_POLL_MS,
 * WEFT_TRIGGER_QUIET_SECONDS, WEFT_TRIGGER_FORWARD_SECONDS, WEFT_FILE_MODE (0600, 0640). Sizes take K, M and G. Variables override `opts`, which may be NULL. Returns 1, with `*ret` NULL, when neither WEFT_DIR nor `opts->dir` is set or
 * WEFT_OFF is 1: recording stays off and every call accepts the NULL recorder. */
WEFT_API int weft_recorder_open_env(struct weft_recorder **ret, const struct weft_recorder_opts *opts,
				    struct weft_error *err);

/* Starts the collector if it does not run, and recording. With samples, a thread of its own reads the unwind tables of all that is loaded; the first
 * start waits for it, 10 ms at most. With much code loaded (a tenth of a second for a hundred megabytes) stacks may be cut until it is done, and are marked.
 * 0 when it records already. NULL `rec`: 0. */
WEFT_API int weft_recorder_start(struct weft_recorder *rec, struct weft_error *err);

/* Pauses recording: from here emits cost one branch, and no samples are taken. What was emitted is kept. Start goes on, in the same segment;
 * the pause is noted there. NULL `rec`: 0. */
WEFT_API int weft_recorder_pause(struct weft_recorder *rec);

/* Stops recording, drains all rings, seals the segment and ends the collector. Start may follow. NULL `rec`: 0.
 * Returns 0, or the error that kept the last segment from being sealed (it stays recoverable). */
WEFT_API int weft_recorder_stop(struct weft_recorder *rec);

/* Stops, frees everything, removes the ring file. Threads may emit while it runs and after it; they record nothing.
 * `rec` is dead afterwards. NULL is allowed. Returns what weft_recorder_stop returned. */
WEFT_API int weft_recorder_close(struct weft_recorder *rec);

/* Drains, writes and seals what there is now, and begins a new segment. Blocks until the collector has done so.
 * `path`, when not NULL, takes the path of the sealed segment ("" in memory-only mode). */
WEFT_API int weft_recorder_rotate(struct weft_recorder *rec, char *path, size_t path_bytes);

/* Memory-only mode: writes every sealed segment that is kept, oldest first, as files into `dir`.
 * Returns how many, or a negative error. -WEFT_E_STATE when the recorder has a directory. */
WEFT_API int weft_recorder_save(struct weft_recorder *rec, const char *dir, struct weft_error *err);

/* Flight recorder: writes what is known of the time from back_ns before the call (0: all that is kept) to forward_ns
 * after it, as one segment of its own into `dir`, and returns when it is written: that is after forward_ns, or when
 * another thread stops the recorder. `path`, when not NULL, takes its path. The window is rounded out: the file begins
 * up to an eighth of flight_ns earlier (but from 1 to 10 s), because what is kept is cut into pieces of that length,
 * and ends when it is written; the facts dump.from_ns and dump.to_ns (CLOCK_MONOTONIC) are the window itself, and
 * dump.why is "call". Works while recording, paused or stopped. Several threads may wait for dumps; dumps may overlap,
 * and then so do the files. NULL `rec`: 0. Returns 0; -WEFT_E_STATE without flight_ns; -ENODATA when nothing was
 * recorded then; or the error of the file, and then there is none. */
WEFT_API int weft_recorder_dump(struct weft_recorder *rec, uint64_t back_ns, uint64_t forward_ns, char *path,
				size_t path_bytes, struct weft_error *err);

enum weft_recorder_state {
	WEFT_STATE_CLOSED = 0,
	WEFT_STATE_IDLE = 1,      /* open, not recording */
	WEFT_STATE_RECORDING = 2, /* recording */
	WEFT_STATE_PAUSED = 3,    /* by weft_recorder_pause */
	WEFT_STATE_DISK_FULL = 4, /* paused by itself; goes on when there is room */
};

/* Counters since open. `size` is set by the caller; the rest is filled up to it. */
struct weft_recorder_stats {
	size_t size;
	uint32_t state;    /* enum weft_recorder_state */
	uint32_t threads;  /* threads with a ring now */
	uint64_t events;   /* events written to segments */
	uint64_t lost;     /* events dropped, each of them also in a loss record */
	uint64_t bytes;    /* bytes written to segments */
	uint64_t segments; /* sealed */
	uint64_t drains;
	uint64_t pauses;       /* times the disk was full */
	uint64_t collector_ns; /* CPU time of the collector thread */
	uint64_t rings;        /* rings ever made: the most threads at one time */
	uint64_t ring_bytes;   /* memory of one ring, header included, as it begins */
	uint64_t recovered;    /* segments recovered at open */
	uint64_t samples;      /* samples taken */
	uint64_t samples_lost; /* of these, dropped because there was no memory for their stacks; in `lost`, too */
	uint64_t uncovered;    /* threads that could not be sampled */
	uint64_t dumps;        /* flight recorder: written */
	uint64_t cost_ns;      /* CPU time that weft has used: its threads, handlers, and what the kernel does for it */
	uint64_t program_ns;   /* CPU time that the process has used besides, while recording */
	uint32_t sample_hz;    /* samples a second of CPU time now: fewer than asked for where budget_ppm demands it */
	uint32_t limited;      /* 1: some rate is lower now than asked for, because of budget_ppm */
};

/* Fills `stats`. NULL `rec`: all zero, state closed. Returns 0 or -EINVAL. */
WEFT_API int weft_recorder_stats(struct weft_recorder *rec, struct weft_recorder_stats *stats);

/* Turns what dead processes left in `dir` (rings and unsealed segments) into readable segments. Files of living
 * processes are left alone. `fn`, when not NULL, hears about each one. Returns the number recovered, or a negative
 * error. Any thread, any process. */
struct weft_recovered {
	const char *path;    /* the segment that was written, or what could not be recovered */
	int status;          /* 0, or the negative error for this one */
	uint64_t events;     /* events in it */
	uint64_t from_rings; /* of these, taken from rings and shared memory */
	uint64_t cut_bytes;  /* bytes of a torn last block that were dropped (their events came from the rings) */
	const char *note;    /* one line for a person */
	uint32_t pid;        /* of the process; 0: not known */
};
typedef void weft_recovered_fn(const struct weft_recovered *one, void *data);
WEFT_API int weft_recover(const char *dir, weft_recovered_fn *fn, void *data, struct weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
