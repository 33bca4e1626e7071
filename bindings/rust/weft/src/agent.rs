// SPDX-License-Identifier: Apache-2.0
//! The agent: weft that runs all the time and sends what it records. Names are those of async-profiler's agent for
//! Rust where they mean the same.
use std::time::Duration;

use crate::reporter::{url_of_dir, Reporter, Target};
use crate::{Error, Health, Options, Recorder};

/// Where segments go, how often, and what is in them.
///
/// ```
/// use std::time::Duration;
/// use weft::{HttpReporter, ProfilerBuilder};
///
/// # let dir = std::env::temp_dir().join(format!("weft-agent-doc-{}", std::process::id()));
/// let profiler = ProfilerBuilder::default()
///     .with_service_name("shop")
///     .with_local_reporter(&dir)
///     .with_reporter(HttpReporter::new("http://127.0.0.1:9/segments"))
///     .with_reporting_interval(Duration::from_secs(30))
///     .with_custom_agent_metadata([("zone", "a")])
///     .build();
/// # if false {
/// let running = profiler.spawn_controllable()?;
/// // ...
/// running.stop()?;
/// # }
/// # Ok::<(), weft::Error>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct ProfilerBuilder {
    options: Options,
    targets: Vec<Target>,
    interval: Option<Duration>,
    facts: Vec<(String, String)>,
    name: Option<String>,
}

impl ProfilerBuilder {
    /// Segments go there, too. Each call adds one; 8 at most.
    pub fn with_reporter(mut self, reporter: impl Into<Reporter>) -> Self {
        self.targets.extend(reporter.into().0);
        self
    }

    /// Segments stay in this directory of the machine.
    pub fn with_local_reporter(self, path: impl AsRef<std::path::Path>) -> Self {
        self.with_reporter(crate::LocalReporter::new(path))
    }

    /// A segment ends, and is sent, after this time. 30 s by default.
    pub fn with_reporting_interval(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }

    /// What each segment says besides of where it comes from: labels. 64 at most. What the machine says of itself is
    /// found without it.
    pub fn with_custom_agent_metadata<K: Into<String>, V: Into<String>>(
        mut self,
        facts: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.facts.extend(facts.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    /// Name of the service. By default the program's.
    pub fn with_service_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// What is recorded: [`Options::with_cpu_interval`] and all others. A directory, targets, an interval and a name
    /// that are set there hold where the builder has none.
    pub fn with_profiler_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// What can be started.
    pub fn build(self) -> Profiler {
        Profiler(self)
    }
}

/// What [`ProfilerBuilder`] makes. It records nothing yet.
#[derive(Debug)]
#[must_use]
pub struct Profiler(ProfilerBuilder);

impl Profiler {
    /// Records until the process ends. Variables of the environment go before what was set (weft-options(7)).
    pub fn spawn(self) -> Result<(), Error> {
        self.spawn_controllable().map(RunningProfiler::detach)
    }

    /// Records until [`RunningProfiler::stop`]. There is no need for a runtime: weft has threads of its own.
    pub fn spawn_controllable(self) -> Result<RunningProfiler, Error> {
        let ProfilerBuilder { mut options, targets, interval, facts, name } = self.0;
        if let Some(interval) = interval {
            options = options.with_reporting_interval(interval);
        }
        if let Some(name) = name {
            options = options.name(name);
        }
        for (key, value) in facts {
            options = options.label(&key, &value);
        }
        let (urls, own) = sorted(&mut options, targets);
        if !urls.is_empty() {
            let urls = options.ship_to.take().and_then(|more| more.into_string().ok()).into_iter().chain(urls);
            options = options.ship_to(urls.collect::<Vec<_>>().join(" "));
        }
        let recorder = options.open_env()?;
        for (name, report) in own {
            recorder.report_to(&name, report)?;
        }
        recorder.start()?;
        Ok(RunningProfiler(recorder))
    }
}

type Own = (String, crate::reporter::Report);

/// The first directory is that of the recorder, if it has none; the others get copies.
fn sorted(options: &mut Options, targets: Vec<Target>) -> (Vec<String>, Vec<Own>) {
    let (mut urls, mut own) = (Vec::new(), Vec::new());
    for target in targets {
        match target {
            Target::Dir(dir) if options.dir.is_none() => options.dir = Some(crate::text::c_text(dir)),
            Target::Dir(dir) => urls.push(url_of_dir(&dir)),
            Target::Url(url) => urls.push(url),
            Target::Own(name, report) => own.push((name, report)),
        }
    }
    (urls, own)
}

/// A profiler that runs. Dropping it stops it, as [`stop`](Self::stop) does.
#[derive(Debug)]
#[must_use = "dropping it stops the profiler"]
pub struct RunningProfiler(Recorder);

impl RunningProfiler {
    /// Seals the last segment and waits until all have it, 2 s at most ([`Options::ship_wait`]).
    pub fn stop(self) -> Result<(), Error> {
        self.0.close()
    }

    /// It goes on until the process ends.
    pub fn detach(self) {
        std::mem::forget(self);
    }

    /// The recorder, to seal what there is now, or to pause.
    pub fn recorder(&self) -> &Recorder {
        &self.0
    }

    /// Whether all is as it should be, and what is not.
    pub fn health(&self) -> Health {
        self.0.health()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LocalReporter, S3Reporter, S3ReporterConfig};

    #[test]
    fn the_first_directory_is_the_recorders_and_others_get_copies() {
        let s3 = S3ReporterConfig { bucket_name: "b".into(), ..Default::default() };
        let builder = ProfilerBuilder::default()
            .with_reporter(S3Reporter::new(s3))
            .with_local_reporter("/a")
            .with_reporter(LocalReporter::new("/b c"));
        let mut options = Options::new();
        let (urls, own) = sorted(&mut options, builder.targets);
        assert_eq!(options.dir.unwrap().to_bytes(), b"/a");
        assert_eq!(urls, ["s3://b", "file:///b%20c"]);
        assert!(own.is_empty());
    }
}
