// SPDX-License-Identifier: Apache-2.0
// What a recorder can be told, from src/record/options.list; by tools/gen-options.
use std::ffi::{CString, OsStr};
use std::time::Duration;

use weft_sys as sys;

use crate::text::{c_text, whole_ns};

/// What a child has after fork.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFork {
    /// The word `off` of `WEFT_FORK`.
    #[default]
    Off = 0,
    /// The word `restart` of `WEFT_FORK`.
    Restart = 1,
}

/// Where rings are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingPlace {
    /// The word `auto` of `WEFT_RING`.
    #[default]
    Auto = 0,
    /// The word `dir` of `WEFT_RING`.
    Dir = 1,
    /// The word `memory` of `WEFT_RING`.
    Memory = 2,
}

/// What takes samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleEngine {
    /// The word `auto` of `WEFT_SAMPLE_ENGINE`.
    #[default]
    Auto = 0,
    /// The word `timer` of `WEFT_SAMPLE_ENGINE`.
    Timer = 1,
    /// The word `perf` of `WEFT_SAMPLE_ENGINE`.
    Perf = 2,
}

/// Whether times off the CPU are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switches {
    /// The word `auto` of `WEFT_SWITCHES`.
    #[default]
    Auto = 0,
    /// The word `off` of `WEFT_SWITCHES`.
    Off = 1,
    /// The word `intervals` of `WEFT_SWITCHES`.
    Intervals = 2,
    /// The word `stacks` of `WEFT_SWITCHES`.
    Stacks = 3,
}

/// Which polls are recorded one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollMode {
    /// The word `auto` of `WEFT_POLLS`.
    #[default]
    Auto = 0,
    /// The word `slow` of `WEFT_POLLS`.
    Slow = 1,
    /// The word `caught` of `WEFT_POLLS`.
    Caught = 2,
    /// The word `all` of `WEFT_POLLS`.
    All = 3,
}

/// Options of a [`Recorder`](crate::Recorder): what is not set has its default.
#[derive(Debug)]
#[must_use]
pub struct Options {
    pub(crate) raw: sys::weft_recorder_opts,
    pub(crate) dir: Option<CString>,
    pub(crate) name: Option<CString>,
    pub(crate) sample_event: Option<CString>,
    pub(crate) ship_to: Option<CString>,
    pub(crate) off_file: Option<CString>,
    pub(crate) labels: Vec<CString>,
}

impl Options {
    /// With pointers to its texts, which live as long as it does.
    pub(crate) fn pointing(&self) -> sys::weft_recorder_opts {
        let mut raw = self.raw;
        raw.dir = self.dir.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        raw.name = self.name.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        raw.sample_event = self.sample_event.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        raw.ship_to = self.ship_to.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        raw.off_file = self.off_file.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        raw
    }

    #[rustfmt::skip]
    pub(crate) fn empty(raw: sys::weft_recorder_opts) -> Self {
        Self {
            raw,
            dir: None,
            name: None,
            sample_event: None,
            ship_to: None,
            off_file: None,
            labels: Vec::new(),
        }
    }

    /// Where segments go. None: memory only (weft_recorder_save writes them out).
    pub fn dir(mut self, value: impl AsRef<OsStr>) -> Self {
        self.dir = Some(c_text(value.as_ref()));
        self
    }

    /// Name of the service in the segment. None: the program's name.
    pub fn name(mut self, value: impl AsRef<OsStr>) -> Self {
        self.name = Some(c_text(value.as_ref()));
        self
    }

    /// Begin a new segment at this size. 64 MiB, or a quarter of keep_bytes if that is less. Flight recorder: memory
    /// for what is kept. At least 4 KiB.
    pub fn segment_bytes(mut self, value: u64) -> Self {
        self.raw.segment_bytes = value;
        self
    }

    /// Begin a new segment at this age. 60 s, or 30 s when segments are sent (ship_to).
    pub fn segment(mut self, value: Duration) -> Self {
        self.raw.segment_ns = whole_ns(value);
        self
    }

    /// Sealed segments of this name together; the oldest are deleted first. 1 GiB; 64 MiB in memory. At least
    /// segment_bytes.
    pub fn keep_bytes(mut self, value: u64) -> Self {
        self.raw.keep_bytes = value;
        self
    }

    /// Delete sealed segments of this name that are older. 0: no limit.
    pub fn keep(mut self, value: Duration) -> Self {
        self.raw.keep_ns = whole_ns(value);
        self
    }

    /// About the longest time between two drains; twice that while the program does next to nothing. Default 250 ms.
    /// From 1 ms to 250 ms.
    pub fn drain(mut self, value: Duration) -> Self {
        self.raw.drain_ns = whole_ns(value);
        self
    }

    /// Longest time that an event waits in shared memory before it is in the file. Default 1 s.
    pub fn flush(mut self, value: Duration) -> Self {
        self.raw.flush_ns = whole_ns(value);
        self
    }

    /// How often the callbacks of global queues are called. Where that takes too much of the budget: when the
    /// collector is awake, four times a second or more; while the program does next to nothing and they were empty,
    /// every 4 s. Default 10 ms. At least 1 ms.
    pub fn queue(mut self, value: Duration) -> Self {
        self.raw.queue_ns = whole_ns(value);
        self
    }

    /// Slots of a thread. A busy thread's ring grows to four times that. Default 64 KiB. From 8 KiB to 1 GiB. A power
    /// of two.
    pub fn ring_bytes(mut self, value: u32) -> Self {
        self.raw.ring_bytes = value;
        self
    }

    /// Threads that may record at the same time. Default 4096. At most 1048576.
    pub fn max_threads(mut self, value: u32) -> Self {
        self.raw.max_threads = value;
        self
    }

    /// Time resolution in the segment. Default 8. At most 1048576. A power of two.
    pub fn quantum_ns(mut self, value: u32) -> Self {
        self.raw.quantum_ns = value;
        self
    }

    /// What a child has after fork: enum weft_fork.
    pub fn on_fork(mut self, value: OnFork) -> Self {
        self.raw.on_fork = value as u32;
        self
    }

    /// Where rings are: enum weft_ring_place.
    pub fn ring_place(mut self, value: RingPlace) -> Self {
        self.raw.ring_place = value as u32;
        self
    }

    /// 1: fdatasync after each block and seal. 0 only starts writeback.
    pub fn sync(mut self, value: bool) -> Self {
        self.raw.sync = value.into();
        self
    }

    /// 1: leave alone what dead processes left in `dir`.
    pub fn no_recover(mut self, value: bool) -> Self {
        self.raw.no_recover = value.into();
        self
    }

    /// 1: frequencies only. 2 to 19: levels of zstd, a fifth smaller at twice the CPU time. Default 1. At most 19.
    pub fn level(mut self, value: u32) -> Self {
        self.raw.level = value;
        self
    }

    /// Samples a second of CPU time, of each thread; as many as budget_ppm allows: 999 take more than 1 % on many
    /// machines. In the variable 0 is off, too. Default 99. At most 50000. `WEFT_OFF`: none. `u64::MAX`: none.
    pub fn sample_hz(mut self, value: u64) -> Self {
        self.raw.sample_hz = value;
        self
    }

    /// What takes samples: enum weft_engine.
    pub fn sample_engine(mut self, value: SampleEngine) -> Self {
        self.raw.sample_engine = value as u32;
        self
    }

    /// 1: with the kernel's frames (perf; needs privilege). Stop before exec: see below.
    pub fn sample_kernel(mut self, value: bool) -> Self {
        self.raw.sample_kernel = value.into();
        self
    }

    /// Event of perf: "cpu-clock", "task-clock", "cycles" and so on. None: "cpu-clock". 31 bytes at most.
    pub fn sample_event(mut self, value: impl AsRef<OsStr>) -> Self {
        self.sample_event = Some(c_text(value.as_ref()));
        self
    }

    /// Frames of a stack. 1: waits have no stack. Default 1024. At most 1024.
    pub fn sample_depth(mut self, value: u32) -> Self {
        self.raw.sample_depth = value;
        self
    }

    /// Signal of the timer. 0: SIGPROF, or a real-time signal when that is taken.
    pub fn sample_signal(mut self, value: i32) -> Self {
        self.raw.sample_signal = value;
        self
    }

    /// 1: names of functions are put into each segment after it is sealed.
    pub fn symbolize(mut self, value: bool) -> Self {
        self.raw.symbolize = value.into();
        self
    }

    /// Whether times off the CPU are recorded: enum weft_switch.
    pub fn switches(mut self, value: Switches) -> Self {
        self.raw.switches = value as u32;
        self
    }

    /// Wall samples a second of threads that wait. 0: 10 where switches cannot be recorded, else none. At most 1000.
    /// `WEFT_OFF`: none. `u64::MAX`: none.
    pub fn wall_hz(mut self, value: u64) -> Self {
        self.raw.wall_hz = value;
        self
    }

    /// Which polls are recorded one by one: enum weft_poll_mode.
    pub fn poll_mode(mut self, value: PollMode) -> Self {
        self.raw.poll_mode = value as u32;
        self
    }

    /// Polls that a thread records one by one in a second, in the modes slow and caught. Default 1000.
    pub fn poll_cap(mut self, value: u32) -> Self {
        self.raw.poll_cap = value;
        self
    }

    /// A poll is slow from here on. 10 ms; 1 ms in mode auto. `WEFT_OFF`: none. `Duration::MAX`: none.
    pub fn poll_slow(mut self, value: Duration) -> Self {
        self.raw.poll_slow_ns = whole_ns(value);
        self
    }

    /// Waits at least this long are recorded one by one, with their stack. Default 10 ms. `WEFT_OFF`: none.
    /// `Duration::MAX`: none.
    pub fn wait(mut self, value: Duration) -> Self {
        self.raw.wait_ns = whole_ns(value);
        self
    }

    /// A poll that still runs after this time is recorded while it runs. Default 1 s. At least 10 ms. `WEFT_OFF`:
    /// none. `Duration::MAX`: none.
    pub fn stuck(mut self, value: Duration) -> Self {
        self.raw.stuck_ns = whole_ns(value);
        self
    }

    /// CPU time for all of weft, in millionths of what the program uses, or of half a CPU when it uses less. 10000 is
    /// 1 %. What the kernel does for samples counts: signals, interrupts of perf events, and what these add to
    /// context switches. `WEFT_OFF`: no limit, and exactly sample_hz samples a second. Default 10000. At most
    /// 1000000. `u64::MAX`: none.
    pub fn budget_ppm(mut self, value: u64) -> Self {
        self.raw.budget_ppm = value;
        self
    }

    /// Flight recorder: a signal that asks for a dump. In the variable a number, or a name such as USR2.
    pub fn trigger_signal(mut self, value: u32) -> Self {
        self.raw.trigger_signal = value;
        self
    }

    /// Mode of the files in `dir`: 0600, or 0640 for a group (that of the process, or of a directory with chmod g+s)
    /// that may read them. Default 0600.
    pub fn file_mode(mut self, value: u32) -> Self {
        self.raw.file_mode = value;
        self
    }

    /// Flight recorder: keep the last so much in memory and write only when asked (weft_recorder_dump). 0: write
    /// everything. Needs dir. From 100 ms to 86400 s.
    pub fn flight(mut self, value: Duration) -> Self {
        self.raw.flight_ns = whole_ns(value);
        self
    }

    /// Flight recorder: a poll this long asks for a dump. 0: none.
    pub fn trigger_poll(mut self, value: Duration) -> Self {
        self.raw.trigger_poll_ns = whole_ns(value);
        self
    }

    /// Flight recorder: after a dump, triggers are only counted for this long. Default 60 s.
    pub fn trigger_quiet(mut self, value: Duration) -> Self {
        self.raw.trigger_quiet_ns = whole_ns(value);
        self
    }

    /// Flight recorder: a dump that a trigger asks for is written this long after it, with what came meanwhile. 0: at
    /// once. At most 86400 s.
    pub fn trigger_forward(mut self, value: Duration) -> Self {
        self.raw.trigger_forward_ns = whole_ns(value);
        self
    }

    /// Where sealed segments are sent: URLs (s3://BUCKET/PREFIX, http://HOST/PATH and more: weft-agent(7)) or
    /// directories, with spaces between; 8 at most. Without dir, segments wait in /var/tmp/weft-UID, and are removed
    /// when all targets have them.
    pub fn ship_to(mut self, value: impl AsRef<OsStr>) -> Self {
        self.ship_to = Some(c_text(value.as_ref()));
        self
    }

    /// Stopping waits so long until the targets have the last segment. Default 2 s. `WEFT_OFF`: none.
    /// `Duration::MAX`: none.
    pub fn ship_wait(mut self, value: Duration) -> Self {
        self.raw.ship_wait_ns = whole_ns(value);
        self
    }

    /// Segments that are older are not sent any more. Default 604800 s.
    pub fn ship_age(mut self, value: Duration) -> Self {
        self.raw.ship_age_ns = whole_ns(value);
        self
    }

    /// Sending makes no progress for so long: it has failed, and is tried again later. Default 30 s. From 100 ms to
    /// 600 s.
    pub fn ship_timeout(mut self, value: Duration) -> Self {
        self.raw.ship_timeout_ns = whole_ns(value);
        self
    }

    /// 1: segments are removed from dir when all targets have them. 0: keep_bytes and keep_ns say how long they stay.
    pub fn ship_delete(mut self, value: bool) -> Self {
        self.raw.ship_delete = value.into();
        self
    }

    /// A signal that pauses recording, and lets it go on when it comes again. In the variable a number, or a name
    /// such as USR1.
    pub fn off_signal(mut self, value: u32) -> Self {
        self.raw.off_signal = value;
        self
    }

    /// While a file of that name is there, nothing is recorded.
    pub fn off_file(mut self, value: impl AsRef<OsStr>) -> Self {
        self.off_file = Some(c_text(value.as_ref()));
        self
    }
}
