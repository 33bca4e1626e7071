// SPDX-License-Identifier: Apache-2.0
//! An agent that sends what it records: `agent DIR COPY URL`. Segments are in DIR, copies in COPY, and the URL of an
//! HTTP server gets each by PUT; a function of the program's own gets them, too. Prints what that one got.
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weft::{HttpReporter, LocalReporter, MultiReporter, Options, ProfilerBuilder, Reporter, Verdict};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, copy, url] = &args[..] else { return Err("usage: agent DIR COPY URL".into()) };
    let got = Arc::new(Mutex::new(Vec::new()));
    let list = got.clone();
    let own = Reporter::custom("own", move |segment| {
        if segment.tries() == 0 {
            return Verdict::Retry(Duration::ZERO); // as if it had failed
        }
        list.lock().expect("no panic").push((segment.name(), segment.bytes()));
        Verdict::Taken
    });
    let profiler = ProfilerBuilder::default()
        .with_service_name("agent-example")
        .with_local_reporter(dir)
        .with_reporter(MultiReporter::new(vec![HttpReporter::new(url).into(), LocalReporter::new(copy).into()]))
        .with_reporter(own)
        .with_reporting_interval(Duration::from_millis(200))
        .with_custom_agent_metadata([("zone", "a")])
        .with_profiler_options(Options::new().with_cpu_interval(Duration::from_millis(10)));
    let running = profiler.build().spawn_controllable()?;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20)
        && (running.health().sent < 6 || got.lock().expect("no panic").is_empty())
    {
        weft::poll(1, None, || std::thread::sleep(Duration::from_millis(5)));
    }
    let health = running.health();
    running.stop()?;
    eprintln!("{health:?}");
    for (name, bytes) in got.lock().expect("no panic").iter() {
        println!("{name} {bytes}");
    }
    Ok(())
}
