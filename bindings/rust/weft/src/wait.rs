// SPDX-License-Identifier: Apache-2.0
use std::marker::PhantomData;

use weft_sys as sys;

use crate::Text;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WaitKind {
    /// A mutex: its address.
    Lock = 2,
    /// A read-write lock: its address.
    RwLock = 3,
    /// A condition: its address.
    Condition = 4,
    /// A semaphore: its address.
    Semaphore = 5,
    /// A lock of the whole runtime.
    Runtime = 6,
    /// Garbage collection.
    Gc = 7,
    /// Stopped by the runtime for another reason.
    Pause = 8,
    /// The end of another thread.
    Thread = 9,
    /// Something else.
    Other = 10,
}

/// A wait of the calling thread, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Waiting {
    kind: WaitKind,
    object: u64,
    _thread: PhantomData<*const ()>,
}

/// The calling thread waits for `object`, which people know as `name`, until the guard is dropped. A wait of 10 ms or
/// longer is recorded with its stack, others are summed.
///
/// ```
/// use std::sync::Mutex;
/// static CACHE: Mutex<u32> = Mutex::new(0);
/// let name = weft::Text::new("CACHE"); // once
/// let guard = CACHE.try_lock().unwrap_or_else(|_| {
///     let _waiting = weft::wait(weft::WaitKind::Lock, name, &raw const CACHE as u64);
///     CACHE.lock().unwrap()
/// });
/// # drop(guard);
/// ```
#[inline]
pub fn wait(kind: WaitKind, name: Text, object: u64) -> Waiting {
    // SAFETY: numbers only; any thread.
    unsafe { sys::weft_wait_begin(kind as u32, name.0, object) };
    Waiting { kind, object, _thread: PhantomData }
}

impl Drop for Waiting {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: numbers only; on the thread that waits.
        unsafe { sys::weft_wait_end(self.kind as u32, self.object) }
    }
}

/// The calling thread has the lock `object` now: waits for it know who has it.
#[inline]
pub fn lock_held(object: u64) {
    // SAFETY: a number only.
    unsafe { sys::weft_lock_held(object) }
}

/// The calling thread is about to give the lock `object` back.
#[inline]
pub fn lock_released(object: u64) {
    // SAFETY: a number only.
    unsafe { sys::weft_lock_released(object) }
}
