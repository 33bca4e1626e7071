// SPDX-License-Identifier: Apache-2.0
//! The C API of [weft](https://github.com/weft), as it is in `include/weft/*.h`. These headers are the manual: what
//! each function does, which threads may call it, what may be 0 or null. The crate `weft` is the safe API over this.
//!
//! Emit functions are inline in C; the library also has each as a real function, and those are bound here.
#![no_std]
#![allow(non_camel_case_types)]

use core::ffi::{c_char, c_int, c_void};

mod options;
pub use options::weft_recorder_opts;

/// In place of a rate, a limit or a time: none, never.
pub const WEFT_OFF: u64 = u64::MAX;
/// No worker, or not known which.
pub const WEFT_WORKER_NONE: u32 = 0xffff;
/// A queue depth that was not measured.
pub const WEFT_DEPTH_UNKNOWN: u32 = 0xffff;
/// First kind of `weft_event_define`.
pub const WEFT_KIND_USER: u32 = 64;
/// Fields of an event of the program's own, at most.
pub const WEFT_FIELDS_MAX: usize = 14;

/// `weft/error.h`.
#[repr(C)]
pub struct weft_error {
    /// The negative value that the call returned.
    pub code: c_int,
    /// What failed, on what, and what to do about it.
    pub msg: [c_char; 500],
}

/// `weft/define.h`: a field of an event type.
#[repr(C)]
pub struct weft_field {
    /// Its name.
    pub name: *const c_char,
    /// `enum weft_type`.
    pub r#type: u32,
    /// UCUM-like; null: none.
    pub unit: *const c_char,
}

/// `enum weft_type`: a number without sign.
pub const WEFT_TYPE_U64: u32 = 1;
/// A number with sign.
pub const WEFT_TYPE_I64: u32 = 2;
/// The bits of a double.
pub const WEFT_TYPE_F64: u32 = 3;
/// 0 or 1.
pub const WEFT_TYPE_BOOL: u32 = 4;
/// An id of `weft_string`.
pub const WEFT_TYPE_STRING: u32 = 5;
/// A task id.
pub const WEFT_TYPE_TASK: u32 = 6;

/// `weft/runtime.h`: which worker the calling thread is.
pub type weft_worker_fn = unsafe extern "C" fn(data: *mut c_void) -> c_int;
/// `weft/runtime.h`: how many tasks wait in the global queue.
pub type weft_queue_fn = unsafe extern "C" fn(data: *mut c_void) -> u64;

/// `weft/runtime.h`.
#[repr(C)]
pub struct weft_runtime_opts {
    /// Of this struct.
    pub size: usize,
    /// Null: "runtime-N".
    pub name: *const c_char,
    /// None: threads say who they are with `weft_worker_enter`.
    pub worker: Option<weft_worker_fn>,
    /// None: the global queue is not measured.
    pub queue: Option<weft_queue_fn>,
    /// For both.
    pub data: *mut c_void,
}

/// `weft/span.h`: what a thread works for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct weft_context {
    /// Trace id, its first eight bytes.
    pub trace_hi: u64,
    /// Trace id, its last eight bytes.
    pub trace_lo: u64,
    /// Span id.
    pub span: u64,
    /// Span with which the request entered this process.
    pub root: u64,
    /// An id of `weft_endpoint`.
    pub endpoint: u32,
    /// An id of `weft_labels`.
    pub labels: u32,
    /// W3C trace flags.
    pub flags: u32,
    /// 0.
    pub reserved: u32,
}

/// `weft/recorder.h`: opaque.
#[repr(C)]
pub struct weft_recorder {
    _private: [u8; 0],
}

/// `weft/recorder.h`: counters since open.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct weft_recorder_stats {
    /// Of this struct.
    pub size: usize,
    /// `enum weft_recorder_state`.
    pub state: u32,
    /// Threads with a ring now.
    pub threads: u32,
    /// Events written to segments.
    pub events: u64,
    /// Events dropped.
    pub lost: u64,
    /// Bytes written to segments.
    pub bytes: u64,
    /// Segments sealed.
    pub segments: u64,
    /// Drains.
    pub drains: u64,
    /// Times the disk was full.
    pub pauses: u64,
    /// CPU time of the collector thread.
    pub collector_ns: u64,
    /// The most threads at one time.
    pub rings: u64,
    /// Memory of one ring as it begins.
    pub ring_bytes: u64,
    /// Segments recovered at open.
    pub recovered: u64,
    /// Samples taken.
    pub samples: u64,
    /// Samples dropped.
    pub samples_lost: u64,
    /// Threads that could not be sampled.
    pub uncovered: u64,
    /// Flight recorder: dumps written.
    pub dumps: u64,
    /// CPU time that weft has used.
    pub cost_ns: u64,
    /// CPU time that the process has used besides.
    pub program_ns: u64,
    /// Samples a second now.
    pub sample_hz: u32,
    /// 1: some rate is lower than asked for.
    pub limited: u32,
}

/// `weft/report.h`: a sealed segment.
#[repr(C)]
#[derive(Debug)]
pub struct weft_report {
    /// Of this struct in the library.
    pub size: usize,
    /// Where it is.
    pub path: *const c_char,
    /// Of the file, without its directory.
    pub name: *const c_char,
    /// Its length.
    pub bytes: u64,
    /// Open for reading.
    pub fd: c_int,
    /// How often it was given to the function before.
    pub tries: u32,
    /// The function may set it, when it fails.
    pub retry_after_ns: u64,
}

/// `weft/report.h`: takes a segment.
pub type weft_report_fn = unsafe extern "C" fn(report: *mut weft_report, data: *mut c_void) -> c_int;

/// `weft/report.h`: how the recorder and its targets are.
#[repr(C)]
pub struct weft_health {
    /// Of this struct.
    pub size: usize,
    /// 1: it does what was asked for.
    pub ok: u32,
    /// `enum weft_recorder_state`.
    pub state: u32,
    /// Where segments are to go.
    pub targets: u32,
    /// Of these, whose last try failed.
    pub failing: u32,
    /// Segments that a target took.
    pub sent: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Tries that failed and will be made again.
    pub retries: u64,
    /// Segments that a target will not take.
    pub refused: u64,
    /// Segments that a target does not have yet.
    pub waiting: u64,
    /// When a target last took one.
    pub sent_real_ns: u64,
    /// The first thing that is not as it should be.
    pub why: [c_char; 200],
    /// Of `enum weft_check`, what the self-check after the start found to work.
    pub passed: u32,
    /// And what not.
    pub failed: u32,
}

/// `weft/hooks.h`: where messages go.
pub type weft_log_fn = unsafe extern "C" fn(level: u32, msg: *const c_char, data: *mut c_void);

#[allow(missing_docs)] // the headers have it
extern "C" {
    pub fn weft_version() -> *const c_char;
    pub fn weft_strerror(code: c_int) -> *const c_char;
    pub fn weft_set_log(func: Option<weft_log_fn>, most: u32, data: *mut c_void);

    pub fn weft_string(text: *const c_char) -> u32;
    pub fn weft_location(name: *const c_char, file: *const c_char, line: u32) -> u32;
    pub fn weft_event_define(
        name: *const c_char,
        fields: *const weft_field,
        n_fields: usize,
        err: *mut weft_error,
    ) -> u32;

    pub fn weft_recording() -> c_int;
    pub fn weft_now_ticks() -> u64;
    pub fn weft_poll_begin(task: u64, depth: u32);
    pub fn weft_poll_begin_at(task: u64, depth: u32, tick: u64);
    pub fn weft_poll_end();
    pub fn weft_poll_end_at(tick: u64);
    pub fn weft_poll_next(task: u64, depth: u32);
    pub fn weft_poll_next_at(task: u64, depth: u32, tick: u64);
    pub fn weft_park(depth: u32);
    pub fn weft_park_at(depth: u32, tick: u64);
    pub fn weft_unpark(depth: u32);
    pub fn weft_unpark_at(depth: u32, tick: u64);
    pub fn weft_task_spawn(task: u64, location: u32);
    pub fn weft_task_spawn_at(task: u64, location: u32, tick: u64);
    pub fn weft_task_end(task: u64);
    pub fn weft_task_end_at(task: u64, tick: u64);
    pub fn weft_wake(task: u64, worker: u32);
    pub fn weft_wake_at(task: u64, worker: u32, tick: u64);
    pub fn weft_task_wait(task: u64);
    pub fn weft_queue_depth(runtime: u32, depth: u64);
    pub fn weft_event(kind: u32, fields: *const u64, n_fields: u32);

    pub fn weft_runtime_add(opts: *const weft_runtime_opts, err: *mut weft_error) -> u32;
    pub fn weft_runtime_del(runtime: u32) -> c_int;
    pub fn weft_runtime_not_measured(runtime: u32, what: *const c_char, err: *mut weft_error) -> c_int;
    pub fn weft_worker_enter(runtime: u32, index: u32, err: *mut weft_error) -> u32;
    pub fn weft_worker_leave();
    pub fn weft_worker_id(runtime: u32, index: u32, err: *mut weft_error) -> u32;

    pub fn weft_endpoint(text: *const c_char) -> u32;
    pub fn weft_labels(labels: *const *const c_char, err: *mut weft_error) -> u32;
    pub fn weft_context_set(next: *const weft_context);
    pub fn weft_context_swap(next: *const weft_context, before: *mut weft_context);
    pub fn weft_context_clear();
    pub fn weft_context_get(ret: *mut weft_context);

    pub fn weft_wait_begin(what: u32, name: u32, object: u64);
    pub fn weft_wait_end(what: u32, object: u64);
    pub fn weft_lock_held(object: u64);
    pub fn weft_lock_released(object: u64);

    pub fn weft_recorder_open(
        ret: *mut *mut weft_recorder,
        opts: *const weft_recorder_opts,
        err: *mut weft_error,
    ) -> c_int;
    pub fn weft_recorder_open_env(
        ret: *mut *mut weft_recorder,
        opts: *const weft_recorder_opts,
        err: *mut weft_error,
    ) -> c_int;
    pub fn weft_recorder_start(rec: *mut weft_recorder, err: *mut weft_error) -> c_int;
    pub fn weft_recorder_pause(rec: *mut weft_recorder) -> c_int;
    pub fn weft_recorder_stop(rec: *mut weft_recorder, err: *mut weft_error) -> c_int;
    pub fn weft_recorder_close(rec: *mut weft_recorder, err: *mut weft_error) -> c_int;
    pub fn weft_recorder_rotate(
        rec: *mut weft_recorder,
        path: *mut c_char,
        path_bytes: usize,
        err: *mut weft_error,
    ) -> c_int;
    pub fn weft_recorder_save(rec: *mut weft_recorder, dir: *const c_char, err: *mut weft_error) -> c_int;
    pub fn weft_recorder_dump(
        rec: *mut weft_recorder,
        back_ns: u64,
        forward_ns: u64,
        path: *mut c_char,
        path_bytes: usize,
        err: *mut weft_error,
    ) -> c_int;
    pub fn weft_recorder_report_to(
        rec: *mut weft_recorder,
        name: *const c_char,
        func: Option<weft_report_fn>,
        data: *mut c_void,
        err: *mut weft_error,
    ) -> c_int;
    pub fn weft_recorder_health(rec: *mut weft_recorder, health: *mut weft_health) -> c_int;
    pub fn weft_recorder_stats(rec: *mut weft_recorder, stats: *mut weft_recorder_stats) -> c_int;
}
