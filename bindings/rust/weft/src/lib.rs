// SPDX-License-Identifier: Apache-2.0
//! weft weaves CPU, off-CPU and lock samples into an event loop's own timeline, inside the process, in production.
//! It answers: this poll took 50 ms; what was the thread doing, why, and who waited for it?
//!
//! This is the safe API over the C library. A program on Tokio wants the crate `weft-tokio`, which reports polls, wakes
//! and queues by itself; what is here is for the recorder and for what only the program knows.
//!
//! ```
//! # fn main() -> Result<(), weft::Error> {
//! # let dir = std::env::temp_dir().join(format!("weft-doc-{}", std::process::id()));
//! let recorder = weft::Recorder::options().dir(&dir).name("shop").label("zone", "a").start()?;
//!
//! let location = weft::Location::new("handle_upload", file!(), line!());
//! weft::task_spawn(1, location);
//! weft::poll(1, None, || {
//!     // ... the work of a task ...
//! });
//! weft::task_end(1);
//!
//! assert!(weft::recording());
//! recorder.close()?; // or let it drop
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! Then `weft report DIR`.
//!
//! Emitting takes no lock, allocates nothing and never waits. When nothing records, each call is one load and one
//! branch behind a call of a function. No frame pointers are needed.
//!
//! # Minimum Rust version
//!
//! 1.85.

mod agent;
mod context;
mod define;
mod error;
mod event;
mod options;
mod recorder;
mod reporter;
mod runtime;
mod text;
mod wait;

pub use agent::{Profiler, ProfilerBuilder, RunningProfiler};
pub use context::{Context, Entered};
pub use define::{Endpoint, EventKind, Field, FieldType, Labels, Location, Text};
pub use error::Error;
pub use event::{
    now_ticks, park, poll, poll_begin, poll_end, queue_depth, recording, task_end, task_spawn, task_spawn_at,
    task_wait, unpark, wake, wake_at, Polling,
};
pub use options::{OnFork, Options, PollMode, RingPlace, SampleEngine, Switches};
pub use recorder::{Health, Recorder, State, Stats};
pub use reporter::{
    DatadogReporter, HttpReporter, LocalReporter, MultiReporter, OtlpReporter, ParcaReporter, PyroscopeReporter,
    Reporter, S3Reporter, S3ReporterConfig, SealedSegment, Verdict,
};
pub use runtime::Runtime;
pub use wait::{lock_held, lock_released, wait, WaitKind, Waiting};

/// The C API, for what is not here.
pub use weft_sys as sys;
