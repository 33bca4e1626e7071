// SPDX-License-Identifier: Apache-2.0
//! Blocking work: a task with one poll, on a thread of the pool. From its wake to its poll it waited for a thread.
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinHandle;

use crate::{local, location};

/// Numbers of such tasks, apart from Tokio's, which count from 1.
const FIRST: u64 = 1 << 47;
static NEXT: AtomicU64 = AtomicU64::new(FIRST);

/// `tokio::task::spawn_blocking` for work of which is known how long it waited for a thread, and how long it took. The
/// threads that run it are workers of a runtime called `NAME-blocking`.
///
/// # Panics
///
/// Outside of a Tokio runtime, as `spawn_blocking` does.
#[track_caller]
pub fn spawn_blocking<F, R>(work: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let at = Location::caller(); // a closure would be its own caller
    let queued = Queued(weft::recording().then(|| {
        let task = NEXT.fetch_add(1, Ordering::Relaxed);
        weft::task_spawn(task, location::named(at, std::any::type_name::<F>()));
        weft::wake(task);
        task
    }));
    tokio::task::spawn_blocking(move || {
        let queued = queued; // all of it: its end is the end of the work
        local::with(|local| local.own_work.set(true));
        let Some(task) = queued.0 else { return work() };
        enter();
        weft::poll(task, None, work)
    })
}

/// The calling thread is one of the pool's.
fn enter() {
    local::with_home(|home| {
        if let Some(shared) = home.shared.clone() {
            shared.enter_blocking(&mut home.blocking);
        }
    });
}

/// Work of a plain `spawn_blocking` has ended on this thread: all that Tokio says of it is this, and where it was
/// spawned. False: that was no such work.
#[cfg(tokio_unstable)]
pub(crate) fn plain_ended(task: u64, at: &'static Location<'static>) -> bool {
    let is_worker = local::with(|local| local.runtime.get()) != 0;
    if is_worker || local::with_home(|home| home.shared.is_some()) != Some(true) {
        return false;
    }
    if local::with(|local| local.own_work.take()) || !weft::recording() {
        return true; // of `spawn_blocking` above, which has said all
    }
    enter();
    weft::task_spawn(task, location::plain(at));
    weft::task_end(task);
    true
}

/// The end of the task, also of one that was never run.
struct Queued(Option<u64>);

impl Drop for Queued {
    fn drop(&mut self) {
        if let Some(task) = self.0 {
            weft::task_end(task);
        }
    }
}
