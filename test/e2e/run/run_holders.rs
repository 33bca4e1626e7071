// SPDX-License-Identifier: Apache-2.0
// As run_holders.c, with Rust's Mutex: A holds it for 6 ms, then B for 30, while W waits.
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

#[repr(C)]
struct Timespec {
    sec: i64,
    nsec: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, ts: *mut Timespec) -> i32;
    fn gettid() -> i32;
}

static CACHE_LOCK: Mutex<u64> = Mutex::new(0);
static SPANS: Mutex<Vec<(bool, i32, i64, i64)>> = Mutex::new(Vec::new());

fn now() -> i64 {
    let mut ts = Timespec { sec: 0, nsec: 0 };
    unsafe { clock_gettime(1, &mut ts) };
    ts.sec * 1_000_000_000 + ts.nsec
}

fn act(rounds: &Barrier, delay: u64, hold: u64) {
    for _ in 0..4 {
        rounds.wait();
        thread::sleep(Duration::from_millis(delay));
        let begin = now();
        let mut guard = CACHE_LOCK.lock().unwrap();
        let got = now();
        thread::sleep(Duration::from_millis(hold));
        *guard += 1;
        let end = now();
        drop(guard);
        let tid = unsafe { gettid() };
        let mut spans = SPANS.lock().unwrap();
        spans.push((true, tid, got, end));
        if got - begin > 10_000_000 {
            spans.push((false, tid, begin, got));
        }
    }
}

fn main() {
    let rounds = Barrier::new(3);
    thread::scope(|scope| {
        for (name, delay, hold) in [("A", 0, 6), ("B", 2, 30), ("W", 4, 1)] {
            let rounds = &rounds;
            thread::Builder::new().name(name.into()).spawn_scoped(scope, move || act(rounds, delay, hold)).unwrap();
        }
    });
    let spans = SPANS.lock().unwrap();
    let waits: Vec<String> = spans
        .iter()
        .filter(|span| !span.0)
        .map(|wait| {
            let held: Vec<String> = spans
                .iter()
                .filter(|hold| hold.0 && hold.1 != wait.1 && hold.3.min(wait.3) > hold.2.max(wait.2))
                .map(|hold| format!("[{}, {}]", hold.1, hold.3.min(wait.3) - hold.2.max(wait.2)))
                .collect();
            format!("{{\"tid\": {}, \"begin\": {}, \"ns\": {}, \"held\": [{}]}}", wait.1, wait.2, wait.3 - wait.2, held.join(", "))
        })
        .collect();
    println!("{{\"object\": null, \"name\": \"run_holders::CACHE_LOCK\", \"waits\": [{}]}}", waits.join(", "));
}
