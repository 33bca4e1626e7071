// SPDX-License-Identifier: Apache-2.0
//! Faults that programs on Tokio have, one after the other, for a report to find: test/e2e/tokio.py does.
//!
//!     cargo run --example faults -- DIR
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, Notify};

const WORKERS: usize = 2;

#[inline(never)]
fn burn_cpu(time: Duration) {
    let begin = Instant::now();
    let mut n = 0u64;
    while begin.elapsed() < time {
        for i in 0..1000 {
            n = black_box(n.wrapping_add(i));
        }
    }
}

#[inline(never)]
fn sleep_in_the_poll(time: Duration) {
    std::thread::sleep(time);
}

async fn blocking_poll() {
    sleep_in_the_poll(Duration::from_millis(400)); // beside other work, weft's threads come late to see it
}

async fn slow_cpu_poll() {
    burn_cpu(Duration::from_millis(150));
}

/// Keeps each worker busy while somebody else is woken.
async fn hog(started: Arc<AtomicU32>, go: Arc<Notify>) {
    started.fetch_add(1, Ordering::SeqCst);
    while started.load(Ordering::SeqCst) < WORKERS as u32 {
        std::hint::spin_loop();
    }
    go.notify_one();
    burn_cpu(Duration::from_millis(200));
}

async fn starved(ready: oneshot::Sender<()>, go: Arc<Notify>) {
    let woken = go.notified();
    let _ = ready.send(());
    woken.await;
}

async fn starve() {
    let (go, started) = (Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
    let (ready, is_ready) = oneshot::channel();
    let waits = weft_tokio::spawn(starved(ready, go.clone()));
    let _ = is_ready.await;
    let hogs: Vec<_> = (0..WORKERS).map(|_| weft_tokio::spawn(hog(started.clone(), go.clone()))).collect();
    for task in hogs {
        let _ = task.await;
    }
    let _ = waits.await;
}

/// The task that it wakes is in its own worker's slot for the next task, which others do not steal from.
async fn wakes_then_burns(to: oneshot::Sender<()>) {
    let _ = to.send(());
    burn_cpu(Duration::from_millis(130));
}

async fn woken_late(wake: oneshot::Receiver<()>, ready: oneshot::Sender<()>) {
    let _ = ready.send(());
    let _ = wake.await;
}

async fn wake_late() {
    let (send, wake) = oneshot::channel();
    let (ready, is_ready) = oneshot::channel();
    let late = weft_tokio::spawn(woken_late(wake, ready));
    let _ = is_ready.await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let _ = weft_tokio::spawn(wakes_then_burns(send)).await;
    let _ = late.await;
}

/// Takes the waker, as a future that waits does, and forgets to keep it.
struct DropsItsWaker;

impl Future for DropsItsWaker {
    type Output = ();

    #[inline(never)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        drop(black_box(context.waker().clone()));
        Poll::Pending
    }
}

async fn loses_its_waker() {
    tokio::task::yield_now().await;
    DropsItsWaker.await;
}

struct WakesItself(u32);

impl Future for WakesItself {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

async fn self_waking() {
    WakesItself(500).await;
}

async fn waits_for_a_blocking_thread() {
    let first = weft_tokio::spawn_blocking(|| sleep_in_the_poll(Duration::from_millis(100)));
    let second = weft_tokio::spawn_blocking(|| burn_cpu(Duration::from_millis(10)));
    let _ = first.await;
    let _ = second.await;
}

async fn plain_task() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

async fn all() {
    let lost = weft_tokio::spawn(loses_its_waker());
    tokio::time::sleep(Duration::from_millis(20)).await; // it has lost it by then
    let _ = weft_tokio::spawn(blocking_poll()).await;
    let _ = weft_tokio::spawn(slow_cpu_poll()).await;
    let _ = weft_tokio::spawn(starve()).await;
    let _ = weft_tokio::spawn(wake_late()).await;
    let _ = weft_tokio::spawn(self_waking()).await;
    let _ = weft_tokio::spawn(waits_for_a_blocking_thread()).await;
    let _ = tokio::spawn(plain_task()).await;
    let _ = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(10))).await;
    drop(lost);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: faults DIR")?;
    // In a run of a second: all polls whatever they cost, and looks at threads that wait, for the stack of those.
    let options = weft::Recorder::options().dir(dir).name("faults").poll_mode(weft::PollMode::All).wall_hz(50);
    let recorder = options.budget_ppm(weft::sys::WEFT_OFF).start()?;
    let own_hook = Arc::new(AtomicU32::new(0));

    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(WORKERS).max_blocking_threads(1).enable_all();
    let hook = own_hook.clone();
    weft_tokio::Attach::new()
        .name("faulty")
        .wait_stacks(true)
        .on_thread_park(move || {
            hook.fetch_add(1, Ordering::Relaxed);
        })
        .to(&mut builder)?;
    let runtime = builder.build()?;
    let mut other = tokio::runtime::Builder::new_current_thread();
    weft_tokio::Attach::new().name("other").to(other.enable_all())?;
    let other = other.build()?;

    runtime.block_on(all());
    other.block_on(async {
        let _ = weft_tokio::spawn(async { tokio::time::sleep(Duration::from_millis(20)).await }).await;
    });
    recorder.close()?; // the task that lost its waker lives
    println!("{}", own_hook.load(Ordering::Relaxed));
    Ok(())
}
