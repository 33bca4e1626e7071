// SPDX-License-Identifier: Apache-2.0
//! Tasks that say who woke them. Where Tokio's hooks do not show their polls, they do so themselves.
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::local::{self, number};
use crate::location;
use crate::waker::TaskWaker;

pin_project! {
    /// The future of a task of [`spawn`].
    pub struct Traced<F> {
        #[pin]
        future: F,
        seen: Seen,
    }
}

/// What is known of the task, apart from its future.
#[derive(Default)]
struct Seen {
    task: u64,
    hooked: bool,
    waker: TaskWaker,
}

impl<F> std::fmt::Debug for Traced<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traced").field("task", &self.seen.task).finish_non_exhaustive()
    }
}

impl<F> Traced<F> {
    fn new(future: F) -> Self {
        Self { future, seen: Seen::default() }
    }
}

impl Seen {
    /// Once, at the first poll: outside of a task there is no number, and the address will do.
    #[cold]
    fn find_task(&mut self) {
        self.task = tokio::task::try_id().map_or(address(self), number);
    }
}

/// A number for what is no task, while it stays where it is.
fn address<T>(of: &T) -> u64 {
    of as *const T as u64 & ((1 << 48) - 1)
}

impl Drop for Seen {
    fn drop(&mut self) {
        if !self.hooked && (self.task != 0 || !cfg!(tokio_unstable)) {
            if self.task == 0 {
                self.find_task();
            }
            weft::task_end(self.task);
        }
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if this.seen.task == 0 {
            this.seen.find_task();
        }
        let task = this.seen.task;
        this.seen.hooked = local::with(|local| local.task.get()) == task;
        let _polling = (!this.seen.hooked).then(|| weft::Polling::begin(task, local::with(local::depth)));
        let waker = this.seen.waker.for_poll(context.waker(), task);
        this.future.poll(&mut Context::from_waker(&waker))
    }
}

/// `tokio::spawn` for a task of which is known who woke it, and what its future is called.
///
/// # Panics
///
/// Outside of a Tokio runtime, as `tokio::spawn` does.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    announce(Location::caller(), std::any::type_name::<F>(), || tokio::spawn(Traced::new(future)))
}

/// `Handle::spawn` for such a task.
#[track_caller]
pub fn spawn_on<F>(handle: &Handle, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    announce(Location::caller(), std::any::type_name::<F>(), || handle.spawn(Traced::new(future)))
}

/// `tokio::task::spawn_local` for such a task.
///
/// # Panics
///
/// Outside of a `LocalSet` or a `LocalRuntime`, as `spawn_local` does.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    announce(Location::caller(), std::any::type_name::<F>(), || tokio::task::spawn_local(Traced::new(future)))
}

/// A future whose polls are seen although it is no task: that of `block_on`, or a part of a task.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// runtime.block_on(weft_tokio::in_poll(async { /* ... */ }));
/// ```
#[track_caller]
pub fn in_poll<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let location = location::named(Location::caller(), std::any::type_name::<F>());
    async move {
        let mut traced = Box::pin(Traced::new(future));
        let task = address(&*traced);
        traced.as_mut().project().seen.task = task;
        weft::task_spawn(task, location);
        traced.await
    }
}

/// Where a task is spawned is said by the hook, which knows its number before it can run. Without the hook it is said
/// afterwards, with the time of before.
fn announce<T>(
    at: &'static Location<'static>,
    name: &'static str,
    spawn: impl FnOnce() -> JoinHandle<T>,
) -> JoinHandle<T> {
    let tick = weft::now_ticks();
    if tick == 0 {
        return spawn();
    }
    let location = location::named(at, name);
    local::with(|local| local.spawning.set(Some(location)));
    let handle = spawn();
    if local::with(|local| local.spawning.take()).is_some() {
        weft::task_spawn_at(number(handle.id()), location, tick);
        weft::wake_at(number(handle.id()), tick);
    }
    handle
}
