// SPDX-License-Identifier: Apache-2.0
//! What Tokio's hooks do. HOT: no lock and no allocation, but for the first time on a thread.
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::local;
use crate::shared::Shared;

const QUEUE_EVERY: Duration = Duration::from_millis(10);

pub(crate) fn park(shared: &Arc<Shared>) {
    local::with(|local| {
        if local.runtime.get() != shared.id() {
            shared.enter(local);
        }
        weft::park(local::depth(local));
    });
}

/// Also where a thread that was given another worker's core by `block_in_place` is known again.
pub(crate) fn unpark(shared: &Arc<Shared>) {
    local::with(|local| {
        if local.runtime.get() != shared.id() || moved(local) {
            shared.enter(local);
        }
        weft::unpark(local::depth(local));
    });
    queue_of_current_thread(shared);
}

#[cfg(tokio_unstable)]
fn moved(local: &local::Local) -> bool {
    tokio::runtime::worker_index() != Some(local.index.get() as usize)
}

#[cfg(not(tokio_unstable))]
fn moved(_local: &local::Local) -> bool {
    false
}

/// A current-thread runtime has no worker whose life could bound that of a callback, so the thread itself tells.
fn queue_of_current_thread(shared: &Shared) {
    thread_local! {
        static TOLD: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    if !weft::recording() || local::with_home(|home| home.metrics.is_some()) == Some(true) {
        return;
    }
    let now = Instant::now();
    if TOLD.get().is_some_and(|told| now.duration_since(told) < QUEUE_EVERY) {
        return;
    }
    TOLD.set(Some(now));
    if let Ok(handle) = Handle::try_current() {
        if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
            weft::queue_depth(shared.runtime(), handle.metrics().global_queue_depth() as u64);
        }
    }
}

#[cfg(tokio_unstable)]
pub(crate) mod tasks {
    use std::sync::Arc;

    use tokio::runtime::TaskMeta;

    use crate::blocking;
    use crate::local::{self, number};
    use crate::location;
    use crate::shared::Shared;

    #[inline]
    pub(crate) fn before_poll(shared: &Arc<Shared>, meta: &TaskMeta<'_>) {
        let task = number(meta.id());
        local::with(|local| {
            if local.runtime.get() != shared.id() {
                shared.enter(local);
            }
            local.task.set(task);
            if weft::recording() {
                weft::poll_begin(task, local::depth(local));
            }
        });
    }

    #[inline]
    pub(crate) fn after_poll() {
        weft::poll_end();
        local::with(|local| local.task.set(0));
    }

    /// Tokio puts the task into a queue right after this, so that this is its first wake.
    pub(crate) fn spawn(meta: &TaskMeta<'_>) {
        let said = local::with(|local| local.spawning.take());
        if weft::recording() {
            let location = said.unwrap_or_else(|| location::plain(meta.spawned_at()));
            let (task, tick) = (number(meta.id()), weft::now_ticks());
            weft::task_spawn_at(task, location, tick);
            weft::wake_at(task, tick);
        }
    }

    pub(crate) fn terminate(meta: &TaskMeta<'_>) {
        let task = number(meta.id());
        if !blocking::plain_ended(task, meta.spawned_at()) {
            weft::task_end(task);
        }
    }
}
