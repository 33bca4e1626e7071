// SPDX-License-Identifier: Apache-2.0
//! weft for Tokio: which task held which worker for how long, what the thread did meanwhile, who woke it, who waited.
//!
//! One call attaches to a runtime's builder:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = std::env::temp_dir().join(format!("weft-tokio-doc-{}", std::process::id()));
//! let recorder = weft::Recorder::options().dir(&dir).name("shop").start()?;
//!
//! let mut builder = tokio::runtime::Builder::new_multi_thread();
//! weft_tokio::attach(&mut builder.worker_threads(2).enable_all())?;
//! let runtime = builder.build()?;
//!
//! runtime.block_on(async {
//!     // tokio::spawn is seen, too; this one also says who woke the task.
//!     weft_tokio::spawn(async { /* ... */ }).await
//! })?;
//! # drop(runtime);
//! recorder.close()?;
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok(())
//! # }
//! ```
//!
//! Then `weft report DIR`. [`Attach`] has the options: a name, hooks of your own, stacks of tasks that wait.
//!
//! # What is seen
//!
//! | what | `--cfg tokio_unstable` | without |
//! |---|---|---|
//! | polls, task begin and end | every task | tasks of [`spawn`] and its like |
//! | where a task was spawned | every task | tasks of [`spawn`] and its like |
//! | who spawned a task, and how long it waited for its first poll | every task | tasks of [`spawn`] and its like |
//! | who woke a task, and how long it waited for its poll | tasks of [`spawn`] and its like | the same |
//! | tasks that wake themselves: `weft query --run self-wakes` | tasks of [`spawn`] and its like | the same |
//! | parks of workers | yes | yes |
//! | worker index | Tokio's | in the order of their first park |
//! | global queue | yes | yes |
//! | local queue of a worker | yes | no |
//! | queueing delay of blocking work, and its threads | [`spawn_blocking`] | the same |
//! | plain `spawn_blocking` | where, how many, their end; not how long they waited or took: Tokio has no hook | no |
//! | queue of blocking work | yes | no |
//! | CPU samples, waits, switches, stacks | yes | yes |
//!
//! What is not measured is in each segment and in the report. The future of `block_on` is not a task; Tokio has no hook
//! for it. [`in_poll`] shows it.
//!
//! A poll costs two events, tens of nanoseconds; there is no allocation and no lock in it. When nothing records, it is
//! two loads. No frame pointers are needed.
//!
//! # Minimum Rust version
//!
//! 1.85, which is Tokio's.

mod attach;
mod blocking;
mod hooks;
#[cfg(feature = "tracing")]
mod layer;
mod local;
mod location;
mod shared;
mod task;
mod waker;

pub use attach::{attach, Attach};
pub use blocking::spawn_blocking;
#[cfg(feature = "tracing")]
pub use layer::SpanLayer;
pub use task::{in_poll, spawn, spawn_local, spawn_on, Traced};
