// SPDX-License-Identifier: Apache-2.0
// The options of a recorder, from src/record/options.list; by tools/gen-options.
use core::ffi::c_char;

/// `weft/recorder.h`. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weft_recorder_opts {
    /// Of this struct.
    pub size: usize,
    /// Where segments go. None: memory only (weft_recorder_save writes them out).
    pub dir: *const c_char,
    /// Name of the service in the segment. None: the program's name.
    pub name: *const c_char,
    /// Begin a new segment at this size. 64 MiB, or a quarter of keep_bytes if that is less. Flight recorder: memory
    /// for what is kept.
    pub segment_bytes: u64,
    /// Begin a new segment at this age. 60 s, or 30 s when segments are sent (ship_to).
    pub segment_ns: u64,
    /// Sealed segments of this name together; the oldest are deleted first. 1 GiB; 64 MiB in memory. At least
    /// segment_bytes.
    pub keep_bytes: u64,
    /// Delete sealed segments of this name that are older. 0: no limit.
    pub keep_ns: u64,
    /// About the longest time between two drains; twice that while the program does next to nothing.
    pub drain_ns: u64,
    /// Longest time that an event waits in shared memory before it is in the file.
    pub flush_ns: u64,
    /// How often the callbacks of global queues are called. Where that takes too much of the budget: when the
    /// collector is awake, four times a second or more; while the program does next to nothing and they were empty,
    /// every 4 s.
    pub queue_ns: u64,
    /// Slots of a thread. A busy thread's ring grows to four times that.
    pub ring_bytes: u32,
    /// Threads that may record at the same time.
    pub max_threads: u32,
    /// Time resolution in the segment.
    pub quantum_ns: u32,
    /// What a child has after fork: enum weft_fork.
    pub on_fork: u32,
    /// Where rings are: enum weft_ring_place.
    pub ring_place: u32,
    /// 1: fdatasync after each block and seal. 0 only starts writeback.
    pub sync: u32,
    /// "key=value" strings for the segment, None-terminated, copied; 64 at most. In the variable: k=v,k=v.
    pub labels: *const *const c_char,
    /// 1: leave alone what dead processes left in `dir`.
    pub no_recover: u32,
    /// 1: frequencies only. 2 to 19: levels of zstd, a fifth smaller at twice the CPU time.
    pub level: u32,
    /// Samples a second of CPU time, of each thread; as many as budget_ppm allows: 999 take more than 1 % on many
    /// machines. In the variable 0 is off, too.
    pub sample_hz: u64,
    /// What takes samples: enum weft_engine.
    pub sample_engine: u32,
    /// 1: with the kernel's frames (perf; needs privilege). Stop before exec: see below.
    pub sample_kernel: u32,
    /// Event of perf: "cpu-clock", "task-clock", "cycles" and so on. None: "cpu-clock". 31 bytes at most.
    pub sample_event: *const c_char,
    /// Frames of a stack. 1: waits have no stack.
    pub sample_depth: u32,
    /// Signal of the timer. 0: SIGPROF, or a real-time signal when that is taken.
    pub sample_signal: i32,
    /// 1: names of functions are put into each segment after it is sealed.
    pub symbolize: u32,
    /// Whether times off the CPU are recorded: enum weft_switch.
    pub switches: u32,
    /// Wall samples a second of threads that wait. 0: 10 where switches cannot be recorded, else none.
    pub wall_hz: u64,
    /// Which polls are recorded one by one: enum weft_poll_mode.
    pub poll_mode: u32,
    /// Polls that a thread records one by one in a second, in the modes slow and caught.
    pub poll_cap: u32,
    /// A poll is slow from here on. 10 ms; 1 ms in mode auto.
    pub poll_slow_ns: u64,
    /// Waits at least this long are recorded one by one, with their stack.
    pub wait_ns: u64,
    /// A poll that still runs after this time is recorded while it runs.
    pub stuck_ns: u64,
    /// CPU time for all of weft, in millionths of what the program uses, or of half a CPU when it uses less. 10000 is
    /// 1 %. What the kernel does for samples counts: signals, interrupts of perf events, and what these add to
    /// context switches. `WEFT_OFF`: no limit, and exactly sample_hz samples a second.
    pub budget_ppm: u64,
    /// Flight recorder: a signal that asks for a dump. In the variable a number, or a name such as USR2.
    pub trigger_signal: u32,
    /// Mode of the files in `dir`: 0600, or 0640 for a group (that of the process, or of a directory with chmod g+s)
    /// that may read them.
    pub file_mode: u32,
    /// Flight recorder: keep the last so much in memory and write only when asked (weft_recorder_dump). 0: write
    /// everything. Needs dir.
    pub flight_ns: u64,
    /// Flight recorder: a poll this long asks for a dump. 0: none.
    pub trigger_poll_ns: u64,
    /// Flight recorder: after a dump, triggers are only counted for this long.
    pub trigger_quiet_ns: u64,
    /// Flight recorder: a dump that a trigger asks for is written this long after it, with what came meanwhile. 0: at
    /// once.
    pub trigger_forward_ns: u64,
    /// Where sealed segments are sent: URLs (s3://BUCKET/PREFIX, http://HOST/PATH and more: weft-agent(7)) or
    /// directories, with spaces between; 8 at most. Without dir, segments wait in /var/tmp/weft-UID, and are removed
    /// when all targets have them.
    pub ship_to: *const c_char,
    /// Stopping waits so long until the targets have the last segment.
    pub ship_wait_ns: u64,
    /// Segments that are older are not sent any more.
    pub ship_age_ns: u64,
    /// Sending makes no progress for so long: it has failed, and is tried again later.
    pub ship_timeout_ns: u64,
    /// 1: segments are removed from dir when all targets have them. 0: keep_bytes and keep_ns say how long they stay.
    pub ship_delete: u32,
    /// A signal that pauses recording, and lets it go on when it comes again. In the variable a number, or a name
    /// such as USR1.
    pub off_signal: u32,
    /// While a file of that name is there, nothing is recorded.
    pub off_file: *const c_char,
}
