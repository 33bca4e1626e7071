// SPDX-License-Identifier: Apache-2.0
// Ticks of 1 ms of CPU time and something of Rust's library that waits, sleeps or reads.
// run: rust_mutex mutex
// run: rust_condvar condvar
// run: rust_channel channel
// run: rust_sleep sleep
// run: rust_read_file read
// run: rust_join join
use std::fs;
use std::sync::{mpsc, Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

#[repr(C)]
struct Timespec {
    sec: i64,
    nsec: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, ts: *mut Timespec) -> i32;
    fn epoll_create1(flags: i32) -> i32;
    fn epoll_wait(epfd: i32, events: *mut u64, n: i32, timeout: i32) -> i32;
    fn getrusage(who: i32, usage: *mut i64) -> i32;
    fn gettid() -> i32;
}

fn clock(which: i32) -> i64 {
    let mut ts = Timespec { sec: 0, nsec: 0 };
    unsafe { clock_gettime(which, &mut ts) };
    ts.sec * 1_000_000_000 + ts.nsec
}

/// Wall, CPU time, run delay, voluntary switches.
fn now() -> [i64; 4] {
    loop {
        let wall = clock(1);
        let cpu = clock(3);
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let delay = text.split(' ').nth(1).unwrap().parse().unwrap();
        let mut usage = [0i64; 18];
        unsafe { getrusage(1, usage.as_mut_ptr()) };
        if clock(1) - wall < 40_000 {
            return [wall, cpu, delay, usage[16]];
        }
    }
}

fn next(epfd: i32) {
    let mut events = [0u64; 2];
    unsafe { epoll_wait(epfd, events.as_mut_ptr(), 1, 1) };
}

fn burn(ns: i64) {
    let end = clock(3) + ns;
    while clock(3) < end {}
}

fn main() {
    let how = std::env::args().nth(1).unwrap_or("mutex".to_string());
    let epfd = unsafe { epoll_create1(0) };
    let mut polls = Vec::new();
    next(epfd); // two waits make a loop
    next(epfd);
    for _ in 0..8 {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let (to, from) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let (theirs, mode) = (shared.clone(), how.clone());
        let other = thread::spawn(move || {
            let held = if mode == "mutex" { Some(theirs.0.lock().unwrap()) } else { None };
            ready.send(()).unwrap();
            thread::sleep(Duration::from_millis(5));
            drop(held);
            if mode == "condvar" {
                *theirs.0.lock().unwrap() = true;
                theirs.1.notify_one();
            }
            to.send(1).unwrap();
        });
        let mut other = Some(other);
        is_ready.recv().unwrap();
        next(epfd);
        let begin = now();
        burn(1_000_000);
        let wait_begin = now();
        match how.as_str() {
            "mutex" => drop(shared.0.lock().unwrap()),
            "condvar" => drop(shared.1.wait_while(shared.0.lock().unwrap(), |done| !*done).unwrap()),
            "channel" => drop(from.recv().unwrap()),
            "sleep" => thread::sleep(Duration::from_millis(5)),
            "join" => other.take().unwrap().join().unwrap(),
            _ => for _ in 0..20 { fs::read("/proc/self/exe").unwrap(); },
        }
        let end = now();
        next(epfd);
        if let Some(thread) = other { thread.join().unwrap() }
        let left = |a: &[i64; 4], b: &[i64; 4]| (b[0] - a[0] - (b[1] - a[1]) - (b[2] - a[2])).max(0);
        let off = |a: &[i64; 4], b: &[i64; 4]| if a[3] == b[3] { 0 } else { left(a, b) };
        let waiting = if how == "sleep" || how == "read" { 0 } else { off(&wait_begin, &end) };
        polls.push(format!(
            "{{\"name\": \"{how}\", \"tid\": {}, \"open\": 0, \"unmeasured\": 0, \"begin\": {}, \"end\": {}, \"on_cpu\": {}, \
             \"blocked\": {}, \"waiting\": {}, \"preempted\": {}, \"unsure\": {}}}",
            unsafe { gettid() }, begin[0], end[0], end[1] - begin[1], off(&begin, &end) - waiting, waiting, end[2] - begin[2],
            left(&begin, &end) - off(&begin, &end)));
    }
    next(epfd);
    println!("{{\"truth\": 1, \"polls\": [{}]}}", polls.join(", "));
}
