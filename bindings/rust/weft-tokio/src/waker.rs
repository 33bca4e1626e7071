// SPDX-License-Identifier: Apache-2.0
//! Wakers that say whom they wake. One allocation for each task; Tokio's own waker of a task stays the same.
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

/// Whether stacks are taken where tasks begin to wait. Of the whole process: wakers of a task outlive polls.
pub(crate) static WAIT_STACKS: AtomicBool = AtomicBool::new(false);

pub(crate) struct Woken {
    inner: Waker,
    task: u64,
}

/// A future that waits keeps a waker that it has when the next one is the same. With stacks, each poll has another of
/// these two, so that whatever the task waits for asks for a clone: there, and then, the stack is where it waits.
static STACK_EVEN: RawWakerVTable = RawWakerVTable::new(clone_with_stack_even, wake, wake_by_ref, release);
static STACK_ODD: RawWakerVTable = RawWakerVTable::new(clone_with_stack_odd, wake, wake_by_ref, release);
static PLAIN: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

/// What a task keeps between its polls.
#[derive(Default)]
pub(crate) struct TaskWaker {
    woken: Option<Arc<Woken>>,
    odd: bool,
}

impl TaskWaker {
    /// The waker for a poll that was given `inner`. It is not to be dropped, and not to outlive `self`.
    #[inline]
    pub fn for_poll(&mut self, inner: &Waker, task: u64) -> ManuallyDrop<Waker> {
        if !self.woken.as_ref().is_some_and(|woken| woken.inner.will_wake(inner) && woken.task == task) {
            self.woken = Some(Arc::new(Woken { inner: inner.clone(), task }));
        }
        let vtable = if WAIT_STACKS.load(Ordering::Relaxed) && weft::recording() {
            self.odd = !self.odd;
            if self.odd {
                &STACK_ODD
            } else {
                &STACK_EVEN
            }
        } else {
            &PLAIN
        };
        let data = self.woken.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        // SAFETY: the functions below take what Arc::as_ptr gives; `self` keeps it alive.
        ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data.cast(), vtable)) })
    }
}

// SAFETY, of all below: `data` is of an Arc<Woken> that is alive; a waker that is dropped or used up owns one count.
unsafe fn clone(data: *const ()) -> RawWaker {
    unsafe { Arc::increment_strong_count(data.cast::<Woken>()) };
    RawWaker::new(data, &PLAIN)
}

unsafe fn clone_with_stack_even(data: *const ()) -> RawWaker {
    weft::task_wait(unsafe { &*data.cast::<Woken>() }.task);
    unsafe { Arc::increment_strong_count(data.cast::<Woken>()) };
    RawWaker::new(data, &STACK_EVEN)
}

unsafe fn clone_with_stack_odd(data: *const ()) -> RawWaker {
    weft::task_wait(unsafe { &*data.cast::<Woken>() }.task);
    unsafe { Arc::increment_strong_count(data.cast::<Woken>()) };
    RawWaker::new(data, &STACK_ODD)
}

unsafe fn wake(data: *const ()) {
    unsafe { wake_by_ref(data) };
    unsafe { release(data) };
}

unsafe fn wake_by_ref(data: *const ()) {
    let woken = unsafe { &*data.cast::<Woken>() };
    weft::wake(woken.task);
    woken.inner.wake_by_ref();
}

unsafe fn release(data: *const ()) {
    unsafe { Arc::decrement_strong_count(data.cast::<Woken>()) };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_waker_wakes_what_is_inside_and_frees_it_at_last() {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let inner = Waker::from(count.clone());
        let mut task = TaskWaker::default();
        let kept = Waker::clone(&task.for_poll(&inner, 1));
        assert!(kept.will_wake(&task.for_poll(&inner, 1)));
        kept.wake_by_ref();
        Waker::clone(&kept).wake();
        drop(inner);
        drop(task);
        kept.wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 3);
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
