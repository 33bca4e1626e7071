// SPDX-License-Identifier: Apache-2.0
//! Emitting events. No lock, no allocation, from any thread.
use std::marker::PhantomData;

use weft_sys as sys;

use crate::Location;

/// Whether events are being recorded now.
#[inline]
pub fn recording() -> bool {
    // SAFETY: no arguments, any thread; so are all calls in this file.
    unsafe { sys::weft_recording() != 0 }
}

/// Ticks of the recorder's clock, now; 0 when nothing records. For [`task_spawn_at`].
#[inline]
pub fn now_ticks() -> u64 {
    unsafe { sys::weft_now_ticks() }
}

#[inline]
fn depth_word(depth: Option<usize>) -> u32 {
    depth.map_or(sys::WEFT_DEPTH_UNKNOWN, |depth| depth.min(0xfffe) as u32)
}

/// A poll of `task` begins on this thread. `depth` is the length of the worker's own queue. [`poll`] ends it, too.
#[inline]
pub fn poll_begin(task: u64, depth: Option<usize>) {
    unsafe { sys::weft_poll_begin(task, depth_word(depth)) }
}

/// The innermost poll of this thread ends.
#[inline]
pub fn poll_end() {
    unsafe { sys::weft_poll_end() }
}

/// A poll that ends when this is dropped, on the thread that began it.
#[derive(Debug)]
#[must_use]
pub struct Polling(PhantomData<*const ()>);

impl Polling {
    /// Begins it.
    #[inline]
    pub fn begin(task: u64, depth: Option<usize>) -> Self {
        poll_begin(task, depth);
        Self(PhantomData)
    }
}

impl Drop for Polling {
    #[inline]
    fn drop(&mut self) {
        poll_end();
    }
}

/// Runs `work` as one poll of `task`. The poll ends when `work` panics, too.
#[inline]
pub fn poll<R>(task: u64, depth: Option<usize>, work: impl FnOnce() -> R) -> R {
    let _polling = Polling::begin(task, depth);
    work()
}

/// The worker on this thread is about to wait for something to do.
#[inline]
pub fn park(depth: Option<usize>) {
    unsafe { sys::weft_park(depth_word(depth)) }
}

/// It has stopped waiting.
#[inline]
pub fn unpark(depth: Option<usize>) {
    unsafe { sys::weft_unpark(depth_word(depth)) }
}

/// A task was made. A task id is any 48-bit number that means one task while it lives.
#[inline]
pub fn task_spawn(task: u64, location: Location) {
    unsafe { sys::weft_task_spawn(task, location.0) }
}

/// The same, at a time that [`now_ticks`] gave.
#[inline]
pub fn task_spawn_at(task: u64, location: Location, tick: u64) {
    unsafe { sys::weft_task_spawn_at(task, location.0, tick) }
}

/// A task is finished, and its id may be used again.
#[inline]
pub fn task_end(task: u64) {
    unsafe { sys::weft_task_end(task) }
}

/// This thread made `task` ready to run. Who woke it is the task whose poll is open on this thread.
#[inline]
pub fn wake(task: u64) {
    unsafe { sys::weft_wake(task, 0) }
}

/// The same, at a time that [`now_ticks`] gave.
#[inline]
pub fn wake_at(task: u64, tick: u64) {
    unsafe { sys::weft_wake_at(task, 0, tick) }
}

/// `task` begins to wait: the stack of this call is where. About a microsecond.
pub fn task_wait(task: u64) {
    unsafe { sys::weft_task_wait(task) }
}

/// The length of a runtime's global queue now, for runtimes without a queue callback.
#[inline]
pub fn queue_depth(runtime: &crate::Runtime, depth: u64) {
    unsafe { sys::weft_queue_depth(runtime.id(), depth) }
}
