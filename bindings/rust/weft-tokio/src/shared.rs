// SPDX-License-Identifier: Apache-2.0
//! One attached runtime, as its hooks and weft's collector thread see it.
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use tokio::runtime::{Handle, RuntimeFlavor, RuntimeMetrics};

use crate::local::{self, Local};

pub(crate) struct Shared {
    name: String,
    runtime: OnceLock<weft::Runtime>,
    /// Made when the first blocking work runs: most programs have none.
    blocking: OnceLock<Option<weft::Runtime>>,
    blocking_threads: AtomicU32,
    #[cfg_attr(tokio_unstable, allow(dead_code))]
    claimed: AtomicU32,
    /// What the collector asks, while workers live. The hooks of a runtime keep this struct, so this must not keep the
    /// runtime for longer.
    metrics: Mutex<Option<RuntimeMetrics>>,
    threads: AtomicUsize,
}

impl Shared {
    pub fn new(name: &str) -> Result<Arc<Self>, weft::Error> {
        let shared = Arc::new(Self {
            name: name.into(),
            runtime: OnceLock::new(),
            blocking: OnceLock::new(),
            blocking_threads: AtomicU32::new(0),
            claimed: AtomicU32::new(0),
            metrics: Mutex::new(None),
            threads: AtomicUsize::new(0),
        });
        let weak = Arc::downgrade(&shared);
        let runtime = weft::Runtime::add_with_queue(name, move || {
            weak.upgrade().and_then(|shared| shared.ask(|metrics| metrics.global_queue_depth()))
        })?;
        let _ = shared.runtime.set(runtime);
        Ok(shared)
    }

    /// Set as this was made.
    pub fn runtime(&self) -> &weft::Runtime {
        self.runtime.get().expect("set by new")
    }

    #[inline]
    pub fn id(&self) -> u32 {
        self.runtime().id()
    }

    fn metrics(&self) -> MutexGuard<'_, Option<RuntimeMetrics>> {
        self.metrics.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// On the collector's thread, which must not wait.
    fn ask(&self, question: impl FnOnce(&RuntimeMetrics) -> usize) -> Option<u64> {
        let metrics = self.metrics.try_lock().ok()?;
        metrics.as_ref().map(|metrics| question(metrics) as u64)
    }

    /// The calling thread is, or has become, a worker of this runtime.
    #[cold]
    pub fn enter(self: &Arc<Self>, local: &Local) {
        let Some(index) = self.worker_index(local) else { return };
        let Ok(handle) = Handle::try_current() else { return };
        let _ = self.runtime().worker_enter(index);
        local.runtime.set(self.id());
        local.index.set(index);
        // The thread of a current-thread runtime lives on after it, and would keep it.
        if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
            local::with_home(|home| home.metrics = None);
            return;
        }
        let metrics = handle.metrics();
        local::with_home(|home| home.metrics = Some(metrics.clone()));
        self.metrics().get_or_insert(metrics);
    }

    #[cfg(tokio_unstable)]
    fn worker_index(&self, _local: &Local) -> Option<u32> {
        tokio::runtime::worker_index().map(|index| index as u32)
    }

    /// In the order in which they come.
    #[cfg(not(tokio_unstable))]
    fn worker_index(&self, local: &Local) -> Option<u32> {
        if local.runtime.get() == self.id() {
            return Some(local.index.get());
        }
        Some(self.claimed.fetch_add(1, Ordering::Relaxed))
    }

    pub fn thread_start(self: &Arc<Self>) {
        self.threads.fetch_add(1, Ordering::AcqRel);
        local::with_home(|home| home.shared = Some(self.clone()));
    }

    pub fn thread_stop(&self) {
        local::with(|local| local.runtime.set(0));
        weft::Runtime::worker_leave();
        let kept = local::with_home(|home| (home.shared.take(), home.metrics.take()));
        drop(kept);
        if self.threads.fetch_sub(1, Ordering::AcqRel) == 1 {
            let last = self.metrics().take();
            drop(last);
        }
    }

    /// Makes the calling thread one of those that run blocking work.
    pub fn enter_blocking(self: &Arc<Self>, blocking: &mut Option<u32>) {
        let runtime = self.blocking.get_or_init(|| {
            let weak = Arc::downgrade(self);
            let depth = move || weak.upgrade().and_then(|shared| shared.ask(blocking_depth));
            let name = format!("{}-blocking", self.name);
            if cfg!(tokio_unstable) {
                weft::Runtime::add_with_queue(&name, depth).ok()
            } else {
                weft::Runtime::add(&name).ok()
            }
        });
        let index = *blocking.get_or_insert_with(|| self.blocking_threads.fetch_add(1, Ordering::Relaxed));
        if let Some(runtime) = runtime {
            let _ = runtime.worker_enter(index);
        }
        local::with(|local| local.runtime.set(0)); // a worker that becomes one again says so again
    }
}

#[cfg(tokio_unstable)]
fn blocking_depth(metrics: &RuntimeMetrics) -> usize {
    metrics.blocking_queue_depth()
}

#[cfg(not(tokio_unstable))]
fn blocking_depth(_metrics: &RuntimeMetrics) -> usize {
    0
}
