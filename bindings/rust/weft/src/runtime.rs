// SPDX-License-Identifier: Apache-2.0
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::Mutex;

use weft_sys as sys;

use crate::error::{checked, checked_id};
use crate::text::c_text;
use crate::Error;

type Queue = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// A runtime of the process: it has a name and workers. At most 64 in the life of a process.
pub struct Runtime {
    id: u32,
    queue: Mutex<Option<*mut Queue>>,
}

// SAFETY: the pointer is an owned box of something that is Send and Sync.
unsafe impl Send for Runtime {}
// SAFETY: as above; it is behind a mutex.
unsafe impl Sync for Runtime {}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("id", &self.id).finish_non_exhaustive()
    }
}

unsafe extern "C" fn ask(data: *mut c_void) -> u64 {
    // SAFETY: the box that `add` made, which is freed after weft_runtime_del.
    let queue = unsafe { &*data.cast::<Queue>() };
    catch_unwind(AssertUnwindSafe(queue)).ok().flatten().unwrap_or(u64::MAX)
}

impl Runtime {
    /// Adds one whose global queue is not measured.
    pub fn add(name: &str) -> Result<Self, Error> {
        Self::add_raw(name, None)
    }

    /// Adds one. `queue` says how many tasks wait in its global queue, if that is known now; weft's collector thread
    /// asks every 10 ms while it records, so it must not block.
    pub fn add_with_queue(name: &str, queue: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Result<Self, Error> {
        Self::add_raw(name, Some(Box::new(queue)))
    }

    fn add_raw(name: &str, queue: Option<Queue>) -> Result<Self, Error> {
        let name = c_text(name);
        let queue = queue.map(|queue| Box::into_raw(Box::new(queue)));
        let opts = sys::weft_runtime_opts {
            size: size_of::<sys::weft_runtime_opts>(),
            name: if name.is_empty() { ptr::null() } else { name.as_ptr() },
            worker: None,
            queue: queue.map(|_| ask as sys::weft_queue_fn),
            data: queue.map_or(ptr::null_mut(), |queue| queue.cast()),
        };
        // SAFETY: the options live for the call, and what they point to until `forget`.
        match checked_id(|err| unsafe { sys::weft_runtime_add(&opts, err) }) {
            Ok(id) => Ok(Self { id, queue: Mutex::new(queue) }),
            Err(why) => {
                if let Some(queue) = queue {
                    // SAFETY: made above, and nobody has it.
                    drop(unsafe { Box::from_raw(queue) });
                }
                Err(why)
            }
        }
    }

    /// Its number; never 0.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Makes the calling thread worker `index` of it, from here on. Again with the same index: free.
    pub fn worker_enter(&self, index: u32) -> Result<u32, Error> {
        // SAFETY: numbers, and a place for the error.
        checked_id(|err| unsafe { sys::weft_worker_enter(self.id, index, err) })
    }

    /// The calling thread is no worker any more.
    pub fn worker_leave() {
        // SAFETY: the thread's own state only.
        unsafe { sys::weft_worker_leave() }
    }

    /// What is not measured of it, and what would change that, for people who read the report. Each segment has it from
    /// here on; a second text replaces the first.
    pub fn not_measured(&self, why: &str) -> Result<(), Error> {
        let why = c_text(why);
        // SAFETY: a string that ends with a NUL and lives for the call, and a place for the error.
        checked(|err| unsafe { sys::weft_runtime_not_measured(self.id, why.as_ptr(), err) }).map(|_| ())
    }

    /// The queue is not measured any more. Returns after a call of it that runs has returned. Id and name stay.
    pub fn forget(&self) {
        let queue = self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        // SAFETY: after this nobody calls the callback, so that the box may go.
        unsafe { sys::weft_runtime_del(self.id) };
        if let Some(queue) = queue {
            // SAFETY: made by `add_raw`, taken once.
            drop(unsafe { Box::from_raw(queue) });
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.forget();
    }
}
