// SPDX-License-Identifier: Apache-2.0
//! The load of dial9's own overhead benchmark: an echo server with four workers, and 50 clients, each with one request
//! of 21 bytes at a time, on four workers of a runtime of their own in the same process.
//!
//!     weft-bench-tokio none|weft|dial9 SECONDS DIR
//!     weft-bench-tokio pair
//!
//! Prints what it measured as a line of JSON. `pair` is what weft's hooks cost a poll.
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dial9_core::recording::Recorder as Dial9;
use dial9_tokio_telemetry::telemetry::{
    recorder, CpuProfilingConfig, Dial9HandleTokioExt, Dial9TokioHandle, DiskBuffer, RecorderPerfExt,
    TokioAttachOptions,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

const CLIENTS: usize = 50;
const WORKERS: usize = 4;
const WARM: Duration = Duration::from_secs(1);
const MESSAGE: &[u8] = b"hello echo benchmark!";

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const DONE: u8 = 2;

#[derive(Clone)]
enum Spawn {
    Plain,
    Weft,
    Dial9(Dial9TokioHandle),
}

enum Recording {
    None,
    Weft(weft::Recorder),
    Dial9(Dial9),
}

async fn echo(mut stream: TcpStream) {
    let mut buffer = [0u8; 256];
    loop {
        let n = match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => n,
        };
        if stream.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}

async fn serve(listener: TcpListener, spawn: Spawn) {
    while let Ok((stream, _)) = listener.accept().await {
        match &spawn {
            Spawn::Plain => drop(tokio::spawn(echo(stream))),
            Spawn::Weft => drop(weft_tokio::spawn(echo(stream))),
            Spawn::Dial9(handle) => drop(handle.spawn(echo(stream))),
        }
    }
}

async fn client(port: u16, phase: Arc<AtomicU8>) -> Vec<u32> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
    let mut buffer = [0u8; 256];
    let mut latencies = Vec::with_capacity(1 << 14);
    loop {
        let now = phase.load(Ordering::Relaxed);
        if now == DONE {
            return latencies;
        }
        let begin = Instant::now();
        stream.write_all(MESSAGE).await.expect("a request");
        stream.read(&mut buffer).await.expect("an answer");
        if now == MEASURING {
            latencies.push(u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX));
        }
    }
}

fn server(mode: &str, dir: &str) -> (Runtime, Recording) {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS).enable_all();
    match mode {
        "none" => (builder.build().expect("a runtime"), Recording::None),
        "weft" => {
            let recorder = weft::Recorder::options().dir(dir).name("echo").start().expect("a recorder");
            weft_tokio::attach(&mut builder).expect("attached");
            (builder.build().expect("a runtime"), Recording::Weft(recorder))
        }
        "dial9" => {
            std::fs::create_dir_all(dir).expect("a directory");
            let buffer = DiskBuffer::single_file(format!("{dir}/trace.bin")).expect("a file");
            let recorder = recorder(buffer).with_cpu_profiling(CpuProfilingConfig::default()).build();
            let options = TokioAttachOptions::builder().task_tracking_enabled(true).build();
            let runtime = recorder.handle().attach_tokio_runtime(builder, options).expect("attached");
            (runtime, Recording::Dial9(recorder))
        }
        _ => panic!("none, weft or dial9"),
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

fn bytes_below(dir: &str) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

fn load(mode: &str, seconds: f64, dir: &str) {
    let (runtime, recording) = server(mode, dir);
    let port = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let spawn = match &recording {
            Recording::None => Spawn::Plain,
            Recording::Weft(_) => Spawn::Weft,
            Recording::Dial9(_) => Spawn::Dial9(Dial9TokioHandle::current()),
        };
        tokio::spawn(serve(listener, spawn));
        port
    });
    let clients = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build().expect("a runtime");
    let phase = Arc::new(AtomicU8::new(WARMING));
    let (mut latencies, time, resident, all) = clients.block_on(async {
        let tasks: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(client(port, phase.clone()))).collect();
        tokio::time::sleep(WARM).await;
        phase.store(MEASURING, Ordering::Relaxed);
        let begin = Instant::now();
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        let time = begin.elapsed();
        phase.store(DONE, Ordering::Relaxed);
        let resident = resident_kib();
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await.expect("a client"));
        }
        let n = latencies.len() as f64;
        (latencies, time, resident, n * (1.0 + WARM.as_secs_f64() / time.as_secs_f64()))
    });
    drop(clients);
    drop(runtime);
    match recording {
        Recording::None => {}
        Recording::Weft(recorder) => recorder.close().expect("closed"),
        Recording::Dial9(recorder) => drop(recorder.graceful_shutdown(Duration::from_secs(5))),
    }
    latencies.sort_unstable();
    println!(
        "{{\"rate\": {:.1}, \"p50_ns\": {}, \"p99_ns\": {}, \"rss_kib\": {resident}, \"bytes\": {:.3}}}",
        latencies.len() as f64 / time.as_secs_f64(),
        latencies[latencies.len() / 2],
        latencies[latencies.len() * 99 / 100],
        bytes_below(dir) as f64 / all,
    );
}

/// A task that is polled again and again, on a runtime with one thread.
fn yields(builder: &mut Builder, polls: u32) -> f64 {
    let runtime = builder.build().expect("a runtime");
    runtime.block_on(async {
        let begin = Instant::now();
        tokio::spawn(async move {
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("it ends");
        begin.elapsed().as_nanos() as f64 / f64::from(polls)
    })
}

/// ns of a poll: plain; attached, with nothing that records; recording all polls.
fn pair() {
    const POLLS: u32 = 2_000_000;
    let plain = |_: ()| yields(Builder::new_multi_thread().worker_threads(1), POLLS);
    let mut best = [f64::MAX; 3];
    for _ in 0..5 {
        best[0] = best[0].min(plain(()));
        let mut builder = Builder::new_multi_thread();
        weft_tokio::attach(builder.worker_threads(1)).expect("attached");
        best[1] = best[1].min(yields(&mut builder, POLLS));
        let options = weft::Recorder::options().keep_bytes(64 << 20).sample_hz(weft::sys::WEFT_OFF);
        let recorder = options.poll_mode(weft::PollMode::All).start().expect("a recorder");
        best[2] = best[2].min(yields(&mut builder, POLLS));
        drop(recorder);
    }
    println!(
        "{{\"plain_ns\": {:.2}, \"idle_ns\": {:.2}, \"recording_ns\": {:.2}}}",
        best[0],
        best[1] - best[0],
        best[2] - best[0]
    );
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some("pair") => pair(),
        Some(mode) if args.len() == 4 => load(mode, args[2].parse().expect("seconds"), &args[3]),
        _ => panic!("usage: weft-bench-tokio none|weft|dial9 SECONDS DIR, or pair"),
    }
}
