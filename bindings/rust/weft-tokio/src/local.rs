// SPDX-License-Identifier: Apache-2.0
//! What a thread knows of itself. HOT parts have no destructor, so that reaching them is one instruction.
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use tokio::runtime::RuntimeMetrics;

use crate::shared::Shared;

pub(crate) struct Local {
    /// weft's id of the runtime that this thread is a worker of; 0: of none.
    pub runtime: Cell<u32>,
    /// Which worker of it.
    pub index: Cell<u32>,
    /// The task whose poll Tokio's hooks have begun; 0: none.
    pub task: Cell<u64>,
    /// Where the task is spawned that this thread is about to spawn; taken by the hook.
    pub spawning: Cell<Option<weft::Location>>,
    /// This blocking thread has run work of [`spawn_blocking`](crate::spawn_blocking); taken by the hook of its end.
    pub own_work: Cell<bool>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            runtime: Cell::new(0),
            index: Cell::new(0),
            task: Cell::new(0),
            spawning: Cell::new(None),
            own_work: Cell::new(false),
        }
    };
    static HOME: RefCell<Home> = const { RefCell::new(Home { shared: None, metrics: None, blocking: None }) };
}

/// What a thread of a runtime keeps of it. It goes when the thread stops, so that it keeps no runtime alive.
pub(crate) struct Home {
    /// The runtime that started this thread.
    pub shared: Option<Arc<Shared>>,
    /// Of the runtime whose worker it is.
    pub metrics: Option<RuntimeMetrics>,
    /// Which blocking thread it is, if it ran such work.
    pub blocking: Option<u32>,
}

#[inline]
pub(crate) fn with<R>(work: impl FnOnce(&Local) -> R) -> R {
    LOCAL.with(work)
}

/// None while the thread ends.
pub(crate) fn with_home<R>(work: impl FnOnce(&mut Home) -> R) -> Option<R> {
    HOME.try_with(|home| home.try_borrow_mut().ok().map(|mut home| work(&mut home))).ok().flatten()
}

/// Length of the calling worker's own queue.
#[cfg(tokio_unstable)]
#[inline]
pub(crate) fn depth(local: &Local) -> Option<usize> {
    let index = local.index.get() as usize;
    with_home(|home| home.metrics.as_ref().map(|metrics| metrics.worker_local_queue_depth(index))).flatten()
}

/// Tokio says it with tokio_unstable only.
#[cfg(not(tokio_unstable))]
#[inline]
pub(crate) fn depth(_local: &Local) -> Option<usize> {
    None
}

/// The number behind an id. Tokio shows it to people only, as text; its hash is the number itself.
#[inline]
pub(crate) fn number(id: tokio::task::Id) -> u64 {
    struct Word(u64);

    impl Hasher for Word {
        #[inline]
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
            }
        }

        #[inline]
        fn write_u64(&mut self, word: u64) {
            self.0 = word;
        }

        #[inline]
        fn finish(&self) -> u64 {
            self.0
        }
    }

    let mut word = Word(0);
    id.hash(&mut word);
    word.finish()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_of_a_task_is_the_one_that_tokio_prints() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let id = runtime.block_on(async { tokio::spawn(async { tokio::task::id() }).await.unwrap() });
        assert_eq!(super::number(id).to_string(), id.to_string());
    }
}
