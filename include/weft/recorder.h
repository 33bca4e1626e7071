/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder: opens a directory, starts the collector, and turns what threads emit into segments.
 *
 *     struct weft_recorder *rec;
 *     struct weft_error err;
 *     struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
 *     opts.dir = "/var/lib/server/weft";
 *     if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0)
 *             fprintf(stderr, "weft: %s\n", err.msg);
 *     ...
 *     weft_recorder_close(rec, NULL);
 *
 * One recorder can be open in a process at a time. All calls here may come from any thread and take the recorder's one
 * mutex; none is async-signal-safe unless it says so. Nothing here is needed for emitting (event.h). */
#ifndef WEFT_RECORDER_H
#define WEFT_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "options.h"

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

/* Whether the times at which threads were not on a CPU are recorded. */
enum weft_switch {
	WEFT_SWITCH_AUTO = 0,      /* intervals, while CPU samples are taken and the machine allows it */
	WEFT_SWITCH_OFF = 1,       /* nothing */
	WEFT_SWITCH_INTERVALS = 2, /* when and how long, blocked or preempted; 0.9 to 1.5 us for each context switch */
	WEFT_SWITCH_STACKS = 3,    /* with the stack that blocked, the kernel's part included; needs privilege */
};

/* Which polls are recorded one by one. All of them are counted, by duration, in every mode.
 *
 * In the modes slow and caught nothing is written when a poll begins, and when it ends only if it is to be recorded,
 * as one event with its begin and end (kind poll). A pair of begin and end then costs what reading the clock twice
 * costs, and takes no room in the ring. Every poll is counted: the collector tells once in flush_ns, and before a
 * segment ends, how many polls of each thread took how long (kind poll_count, four ranges for each power of two of
 * ns), so that the sums are exact in each segment.
 *
 * Caught are polls in which a CPU sample was taken, or in which a wait of wait_ns or more ended. A sample catches one
 * poll, the innermost that is open; a poll is recorded once, however many samples are in it. So there are no more such
 * events than samples and waits, and which polls there are says where the CPU time went: a poll is caught in proportion
 * to its CPU time.
 *
 * A thread records at most poll_cap polls a second; what is beyond is a loss of reason WEFT_LOSS_POLL_CAP, and
 * counted. Up to 16 polls within each other are timed; deeper ones are counted without a length. A poll that was
 * open when recording began, or was paused or stopped meanwhile, is neither recorded nor counted. Parks, wakes,
 * spawns and the rest are recorded in every mode, but for what mode auto says. */
enum weft_poll_mode {
	WEFT_POLLS_AUTO = 0,   /* all of them, as two events, as long as that fits budget_ppm; see below */
	WEFT_POLLS_SLOW = 1,   /* those that took at least poll_slow_ns */
	WEFT_POLLS_CAUGHT = 2, /* those in which a sample was taken */
	WEFT_POLLS_ALL = 3,    /* all of them, whatever it costs */
};

/* Mode auto begins like mode all. When events cost more than six tenths of the budget, it changes to mode slow with
 * poll_slow_ns (there 1 ms by default), while the program runs and with polls open. When that is not enough, parks
 * and queue depths are counted: the time parked stays exact, and parks of 1 ms and longer stay events. Then wakes
 * are counted: a poll that is recorded still has its own (kind woken). Each change is an event of kind mode, which
 * says when and why. When events have cost little for 10 s, it goes back by one step; each time that this was too
 * early the wait is twice as long. Events that the program defined itself are always recorded: weft does not know
 * which of them could be left out. The report says when they exceed the budget. */

/* Zero in any field means its default. `size` must be sizeof(struct weft_recorder_opts); bytes beyond those the library
 * knows must be zero. Behind each field stands the variable of the environment that weft_recorder_open_env takes. */
struct weft_recorder_opts {
	/* From src/record/options.list, by tools/gen-options: */
	size_t size; /* WEFT_OPTIONS_INIT sets it */
	/* Where segments go. NULL: memory only (weft_recorder_save writes them out). WEFT_DIR. */
	const char *dir;
	/* Name of the service in the segment. NULL: the program's name. WEFT_NAME. */
	const char *name;
	/* Begin a new segment at this size. 64 MiB, or a quarter of keep_bytes if that is less. Flight recorder:
	 * memory for what is kept. At least 4 KiB. WEFT_SEGMENT_BYTES. */
	uint64_t segment_bytes;
	/* Begin a new segment at this age. 60 s, or 30 s when segments are sent (ship_to). WEFT_SEGMENT_SECONDS. */
	uint64_t segment_ns;
	/* Sealed segments of this name together; the oldest are deleted first. 1 GiB; 64 MiB in memory. At least
	 * segment_bytes. WEFT_KEEP_BYTES. */
	uint64_t keep_bytes;
	/* Delete sealed segments of this name that are older. 0: no limit. WEFT_KEEP_SECONDS. */
	uint64_t keep_ns;
	/* About the longest time between two drains; twice that while the program does next to nothing. Default 250
	 * ms. From 1 ms to 250 ms. */
	uint64_t drain_ns;
	/* Longest time that an event waits in shared memory before it is in the file. Default 1 s. */
	uint64_t flush_ns;
	/* How often the callbacks of global queues are called. Where that takes too much of the budget: when the
	 * collector is awake, four times a second or more; while the program does next to nothing and they were
	 * empty, every 4 s. Default 10 ms. At least 1 ms. */
	uint64_t queue_ns;
	/* Slots of a thread. A busy thread's ring grows to four times that. Default 64 KiB. From 8 KiB to 1 GiB. A
	 * power of two. WEFT_RING_BYTES. */
	uint32_t ring_bytes;
	/* Threads that may record at the same time. Default 4096. At most 1048576. WEFT_MAX_THREADS. */
	uint32_t max_threads;
	/* Time resolution in the segment. Default 8. At most 1048576. A power of two. WEFT_QUANTUM_NS. */
	uint32_t quantum_ns;
	/* What a child has after fork: enum weft_fork. WEFT_FORK. */
	uint32_t on_fork;
	/* Where rings are: enum weft_ring_place. WEFT_RING. */
	uint32_t ring_place;
	/* 1: fdatasync after each block and seal. 0 only starts writeback. WEFT_SYNC. */
	uint32_t sync;
	/* "key=value" strings for the segment, NULL-terminated, copied; 64 at most. In the variable: k=v,k=v.
	 * WEFT_LABELS. */
	const char *const *labels;
	/* 1: leave alone what dead processes left in `dir`. */
	uint32_t no_recover;
	/* 1: frequencies only. 2 to 19: levels of zstd, a fifth smaller at twice the CPU time. Default 1. At most
	 * 19. WEFT_LEVEL. */
	uint32_t level;
	/* Samples a second of CPU time, of each thread; as many as budget_ppm allows: 999 take more than 1 % on many
	 * machines. In the variable 0 is off, too. Default 99. At most 50000. WEFT_OFF: none. WEFT_SAMPLE_HZ. */
	uint64_t sample_hz;
	/* What takes samples: enum weft_engine. WEFT_SAMPLE_ENGINE. */
	uint32_t sample_engine;
	/* 1: with the kernel's frames (perf; needs privilege). Stop before exec: see below. WEFT_SAMPLE_KERNEL. */
	uint32_t sample_kernel;
	/* Event of perf: "cpu-clock", "task-clock", "cycles" and so on. NULL: "cpu-clock". 31 bytes at most.
	 * WEFT_SAMPLE_EVENT. */
	const char *sample_event;
	/* Frames of a stack. 1: waits have no stack. Default 1024. At most 1024. WEFT_SAMPLE_DEPTH. */
	uint32_t sample_depth;
	/* Signal of the timer. 0: SIGPROF, or a real-time signal when that is taken. */
	int32_t sample_signal;
	/* 1: names of functions are put into each segment after it is sealed. WEFT_SYMBOLIZE. */
	uint32_t symbolize;
	/* Whether times off the CPU are recorded: enum weft_switch. WEFT_SWITCHES. */
	uint32_t switches;
	/* Wall samples a second of threads that wait. 0: 10 where switches cannot be recorded, else none. At most
	 * 1000. WEFT_OFF: none. WEFT_WALL_HZ. */
	uint64_t wall_hz;
	/* Which polls are recorded one by one: enum weft_poll_mode. WEFT_POLLS. */
	uint32_t poll_mode;
	/* Polls that a thread records one by one in a second, in the modes slow and caught. Default 1000.
	 * WEFT_POLL_CAP. */
	uint32_t poll_cap;
	/* A poll is slow from here on. 10 ms; 1 ms in mode auto. WEFT_OFF: none. WEFT_POLL_SLOW_MS. */
	uint64_t poll_slow_ns;
	/* Waits at least this long are recorded one by one, with their stack. Default 10 ms. WEFT_OFF: none.
	 * WEFT_WAIT_MS. */
	uint64_t wait_ns;
	/* A poll that still runs after this time is recorded while it runs. Default 1 s. At least 10 ms. WEFT_OFF:
	 * none. WEFT_STUCK_MS. */
	uint64_t stuck_ns;
	/* CPU time for all of weft, in millionths of what the program uses, or of half a CPU when it uses less.
	 * 10000 is 1 %. What the kernel does for samples counts: signals, interrupts of perf events, and what these
	 * add to context switches. WEFT_OFF: no limit, and exactly sample_hz samples a second. Default 10000. At
	 * most 1000000. WEFT_BUDGET_PPM. */
	uint64_t budget_ppm;
	/* Flight recorder: a signal that asks for a dump. In the variable a number, or a name such as USR2.
	 * WEFT_TRIGGER_SIGNAL. */
	uint32_t trigger_signal;
	/* Mode of the files in `dir`: 0600, or 0640 for a group (that of the process, or of a directory with chmod
	 * g+s) that may read them. Default 0600. WEFT_FILE_MODE. */
	uint32_t file_mode;
	/* Flight recorder: keep the last so much in memory and write only when asked (weft_recorder_dump). 0: write
	 * everything. Needs dir. From 100 ms to 86400 s. WEFT_FLIGHT_SECONDS. */
	uint64_t flight_ns;
	/* Flight recorder: a poll this long asks for a dump. 0: none. WEFT_TRIGGER_POLL_MS. */
	uint64_t trigger_poll_ns;
	/* Flight recorder: after a dump, triggers are only counted for this long. Default 60 s.
	 * WEFT_TRIGGER_QUIET_SECONDS. */
	uint64_t trigger_quiet_ns;
	/* Flight recorder: a dump that a trigger asks for is written this long after it, with what came meanwhile.
	 * 0: at once. At most 86400 s. WEFT_TRIGGER_FORWARD_SECONDS. */
	uint64_t trigger_forward_ns;
	/* Where sealed segments are sent: URLs (s3://BUCKET/PREFIX, http://HOST/PATH and more: weft-agent(7)) or
	 * directories, with spaces between; 8 at most. Without dir, segments wait in /var/tmp/weft-UID, and are
	 * removed when all targets have them. WEFT_SHIP_TO. */
	const char *ship_to;
	/* Stopping waits so long until the targets have the last segment. Default 2 s. WEFT_OFF: none.
	 * WEFT_SHIP_WAIT_MS. */
	uint64_t ship_wait_ns;
	/* Segments that are older are not sent any more. Default 604800 s. WEFT_SHIP_AGE_SECONDS. */
	uint64_t ship_age_ns;
	/* Sending makes no progress for so long: it has failed, and is tried again later. Default 30 s. From 100 ms
	 * to 600 s. WEFT_SHIP_TIMEOUT_MS. */
	uint64_t ship_timeout_ns;
	/* 1: segments are removed from dir when all targets have them. 0: keep_bytes and keep_ns say how long they
	 * stay. WEFT_SHIP_DELETE. */
	uint32_t ship_delete;
	/* A signal that pauses recording, and lets it go on when it comes again. In the variable a number, or a name
	 * such as USR1. WEFT_OFF_SIGNAL. */
	uint32_t off_signal;
	/* While a file of that name is there, nothing is recorded. WEFT_OFF_FILE. */
	const char *off_file;
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

/* Signals. Threads that wait are sampled from outside: they get no signal, so no call that waits ends because of
 * weft. The same holds for polls that stuck_ns is about. CPU samples come by signals, to threads that run. A handler
 * that the program installs over the sampling signal's stays, and within a second samples come by another signal.
 * The sampling signal's default action ends the process. So a program that sets all signals to their default, as
 * daemons do, must do so before it starts to record. (Under weft run it may do so at any time.) */

/* With sample_kernel, stop recording before the process calls exec in place: a signal that the kernel raises within
 * execve would kill the new program. Without it nothing needs to be done, nor under weft run. */

/* `dir` is made, with mode 0700, when it is not there. It has to be this user's or root's, and nobody else may write
 * to it, or it has to be this user's and sticky (chmod +t): else -EPERM, and the message says what to do. Of what is
 * there only regular files of this user that carry weft's mark are touched, and links are not followed
 * (docs/SECURITY.md). Retention deletes segments of the same name only. */

/* Opens a recorder and recovers what earlier processes left in `dir`. Nothing records yet. `opts` NULL takes
 * all defaults (memory only). On success `*ret` is the caller's, to be given to weft_recorder_close.
 * Returns 0; -WEFT_E_STATE when one is open already; -WEFT_E_OPTION; -E2BIG for options newer than the library;
 * -ENOMEM; or a negative errno of the directory. */
WEFT_API int weft_recorder_open(struct weft_recorder **ret, const struct weft_recorder_opts *opts,
				struct weft_error *err);

/* The same, with options from the environment, which override `opts`; that may be NULL. Variables are named beside the
 * fields of struct weft_recorder_opts, and weft-options(7) has them all. Sizes take K, M and G. Returns 1, with `*ret`
 * NULL, when neither WEFT_DIR nor `opts->dir` is set or WEFT_OFF is 1: recording stays off and every call accepts the
 * NULL recorder. */
WEFT_API int weft_recorder_open_env(struct weft_recorder **ret, const struct weft_recorder_opts *opts,
				    struct weft_error *err);

/* Starts the collector if it does not run, and recording. With samples, a thread of its own reads the unwind tables
 * of all that is loaded; the first start waits for it, 10 ms at most. With much code loaded (a tenth of a second for
 * a hundred megabytes) stacks may be cut until it is done, and are marked. 0 when it records already. NULL `rec`: 0. */
WEFT_API int weft_recorder_start(struct weft_recorder *rec, struct weft_error *err);

/* Pauses recording: from here emits cost one branch, and no samples are taken. What was emitted is kept. Start goes
 * on, in the same segment; the pause is noted there. NULL `rec`: 0. */
WEFT_API int weft_recorder_pause(struct weft_recorder *rec);

/* Stops recording, drains all rings, seals the segment and ends the collector. Start may follow. NULL `rec`: 0.
 * Returns 0, or the error that kept the last segment from being sealed (it stays recoverable, and `err` says how). */
WEFT_API int weft_recorder_stop(struct weft_recorder *rec, struct weft_error *err);

/* Stops, frees everything, removes the ring file. Threads may emit while it runs and after it; they record nothing.
 * `rec` is dead afterwards. NULL is allowed. Returns what weft_recorder_stop returned. */
WEFT_API int weft_recorder_close(struct weft_recorder *rec, struct weft_error *err);

/* Drains, writes and seals what there is now, and begins a new segment. Blocks until the collector has done so.
 * `path`, when not NULL, takes the path of the sealed segment ("" in memory-only mode). NULL `rec`: 0. Returns 0;
 * -WEFT_E_STATE when the collector does not run; or the error of the file. */
WEFT_API int weft_recorder_rotate(struct weft_recorder *rec, char *path, size_t path_bytes, struct weft_error *err);

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
