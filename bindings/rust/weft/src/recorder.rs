// SPDX-License-Identifier: Apache-2.0
use std::ffi::{c_char, CStr, OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use weft_sys as sys;

use crate::error::checked;
use crate::reporter::{self, Report};
use crate::text::{c_text, whole_ns};
use crate::{Error, Options};

const PATH_BYTES: usize = 4096;

impl Default for Options {
    fn default() -> Self {
        // SAFETY: numbers and pointers, of which all may be 0.
        let mut raw: sys::weft_recorder_opts = unsafe { std::mem::zeroed() };
        raw.size = size_of::<sys::weft_recorder_opts>();
        Self::empty(raw)
    }
}

impl Options {
    /// All defaults: segments in memory only.
    pub fn new() -> Self {
        Self::default()
    }

    /// A label of each segment, such as `("zone", "a")`. 64 at most.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push(c_text(format!("{key}={value}")));
        self
    }

    /// As in async-profiler's agent: a segment ends, and may be shipped, after this time. The same as
    /// [`segment`](Self::segment).
    pub fn with_reporting_interval(self, interval: Duration) -> Self {
        self.segment(interval)
    }

    /// As in async-profiler's agent: where profiles go on this machine. The same as [`dir`](Self::dir).
    pub fn with_local_reporter(self, path: impl AsRef<Path>) -> Self {
        self.dir(path.as_ref())
    }

    /// As in async-profiler's agent: CPU time between two samples of a thread. [`sample_hz`](Self::sample_hz) as a
    /// time.
    pub fn with_cpu_interval(self, interval: Duration) -> Self {
        self.sample_hz(rate(interval))
    }

    /// As in async-profiler's agent: time between two samples of a thread that waits. [`wall_hz`](Self::wall_hz) as a
    /// time.
    pub fn with_wall_clock_interval(self, interval: Duration) -> Self {
        self.wall_hz(rate(interval))
    }

    /// Opens a recorder, which does not record yet. One can be open in a process at a time.
    pub fn open(self) -> Result<Recorder, Error> {
        self.open_by(sys::weft_recorder_open)
    }

    /// The same, with variables of the environment, which go before what was set here (weft-options(7)). Without a
    /// directory here or in `WEFT_DIR`, and with `WEFT_OFF=1`, recording stays off and every call of the recorder is
    /// allowed.
    pub fn open_env(self) -> Result<Recorder, Error> {
        self.open_by(sys::weft_recorder_open_env)
    }

    /// Opens a recorder and starts it.
    pub fn start(self) -> Result<Recorder, Error> {
        let recorder = self.open()?;
        recorder.start()?;
        Ok(recorder)
    }

    /// The same by [`open_env`](Self::open_env): the line for `main`.
    ///
    /// ```
    /// let recorder = weft::Options::new().name("shop").start_env()?;
    /// # Ok::<(), weft::Error>(())
    /// ```
    pub fn start_env(self) -> Result<Recorder, Error> {
        let recorder = self.open_env()?;
        recorder.start()?;
        Ok(recorder)
    }

    fn open_by(
        self,
        open: unsafe extern "C" fn(
            *mut *mut sys::weft_recorder,
            *const sys::weft_recorder_opts,
            *mut sys::weft_error,
        ) -> i32,
    ) -> Result<Recorder, Error> {
        let mut raw = self.pointing();
        let mut labels: Vec<*const c_char> = self.labels.iter().map(|label| label.as_ptr()).collect();
        labels.push(ptr::null());
        raw.labels = labels.as_ptr();
        let mut recorder = ptr::null_mut();
        // SAFETY: all that the options point to lives for the call, and the library copies what it keeps.
        checked(|err| unsafe { open(&mut recorder, &raw, err) })?;
        Ok(Recorder { raw: recorder })
    }
}

/// How often a second, for a time between two.
fn rate(interval: Duration) -> u64 {
    match interval.as_nanos() {
        0 => sys::WEFT_OFF,
        ns => u64::try_from(1_000_000_000 / ns).unwrap_or(1).max(1),
    }
}

/// What a recorder does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Closed,
    /// Open, not recording.
    Idle,
    /// Recording.
    Recording,
    /// Paused by [`Recorder::pause`].
    Paused,
    /// Paused by itself; goes on when there is room on the disk.
    DiskFull,
}

/// Counters of a recorder since it was opened, as in `weft/recorder.h`.
pub type Stats = sys::weft_recorder_stats;

/// The recorder: turns what threads emit, and samples of them, into segments. Dropping it stops recording and seals the
/// last segment.
#[derive(Debug)]
pub struct Recorder {
    raw: *mut sys::weft_recorder,
}

/// How a recorder and the targets of its segments are, as in `weft/report.h`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// It does what was asked for.
    pub ok: bool,
    /// The first thing that is not as it should be; empty when all is well.
    pub why: String,
    /// Where segments are to go.
    pub targets: u32,
    /// Of these, whose last try failed.
    pub failing: u32,
    /// Segments that a target took, one for each target.
    pub sent: u64,
    /// Segments that a target does not have yet.
    pub waiting: u64,
    /// Segments that a target will not take.
    pub refused: u64,
}

// SAFETY: every call of the C API may come from any thread and takes the recorder's mutex.
unsafe impl Send for Recorder {}
// SAFETY: as above.
unsafe impl Sync for Recorder {}

impl Recorder {
    /// What it can be told.
    pub fn options() -> Options {
        Options::default()
    }

    /// Starts recording, or goes on after a pause.
    pub fn start(&self) -> Result<(), Error> {
        // SAFETY: the recorder is open, or null, which the calls allow; so below.
        checked(|err| unsafe { sys::weft_recorder_start(self.raw, err) }).map(|_| ())
    }

    /// Nothing is recorded until [`start`](Self::start).
    pub fn pause(&self) -> Result<(), Error> {
        checked(|_| unsafe { sys::weft_recorder_pause(self.raw) }).map(|_| ())
    }

    /// Stops recording and seals the segment.
    pub fn stop(&self) -> Result<(), Error> {
        checked(|err| unsafe { sys::weft_recorder_stop(self.raw, err) }).map(|_| ())
    }

    /// Seals what there is now, and begins a new segment. Answers the path of the sealed one; none in memory.
    pub fn rotate(&self) -> Result<Option<PathBuf>, Error> {
        with_path(|path, bytes, err| unsafe { sys::weft_recorder_rotate(self.raw, path, bytes, err) })
    }

    /// Memory only: writes every sealed segment that is kept into `dir`. Answers how many.
    pub fn save(&self, dir: impl AsRef<OsStr>) -> Result<usize, Error> {
        let dir = c_text(dir);
        checked(|err| unsafe { sys::weft_recorder_save(self.raw, dir.as_ptr(), err) }).map(|n| n as usize)
    }

    /// Flight recorder: writes what is known of the time from `back` before the call to `forward` after it, and returns
    /// when it is written. `back` zero: all that is kept.
    pub fn dump(&self, back: Duration, forward: Duration) -> Result<Option<PathBuf>, Error> {
        with_path(|path, bytes, err| unsafe {
            sys::weft_recorder_dump(self.raw, whole_ns(back), whole_ns(forward), path, bytes, err)
        })
    }

    /// Counters since it was opened.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { size: size_of::<Stats>(), ..Default::default() };
        unsafe { sys::weft_recorder_stats(self.raw, &mut stats) };
        stats
    }

    /// Gives each sealed segment to `report`, too. Before [`start`](Self::start); see
    /// [`Reporter::custom`](crate::Reporter::custom).
    pub(crate) fn report_to(&self, name: &str, report: Report) -> Result<(), Error> {
        let name = c_text(name);
        // It is never freed: closing waits for a call of it for a while only.
        let report: *mut Report = Box::leak(Box::new(report));
        // SAFETY: strings for the call, and a function that lives for ever.
        let done = checked(|err| unsafe {
            sys::weft_recorder_report_to(self.raw, name.as_ptr(), Some(reporter::call), report.cast(), err)
        });
        done.map(|_| ())
    }

    /// Whether all is as it should be, and what is not.
    pub fn health(&self) -> Health {
        // SAFETY: numbers and a text, of which all may be 0.
        let mut raw: sys::weft_health = unsafe { std::mem::zeroed() };
        raw.size = size_of::<sys::weft_health>();
        unsafe { sys::weft_recorder_health(self.raw, &mut raw) };
        Health {
            ok: raw.ok != 0,
            // SAFETY: the library ends it with a NUL.
            why: unsafe { CStr::from_ptr(raw.why.as_ptr()) }.to_string_lossy().into_owned(),
            targets: raw.targets,
            failing: raw.failing,
            sent: raw.sent,
            waiting: raw.waiting,
            refused: raw.refused,
        }
    }

    /// What it does now.
    pub fn state(&self) -> State {
        match self.stats().state {
            1 => State::Idle,
            2 => State::Recording,
            3 => State::Paused,
            4 => State::DiskFull,
            _ => State::Closed,
        }
    }

    /// Stops, seals and frees everything; the error is the one of the last segment.
    pub fn close(mut self) -> Result<(), Error> {
        let recorder = std::mem::replace(&mut self.raw, ptr::null_mut());
        checked(|err| unsafe { sys::weft_recorder_close(recorder, err) }).map(|_| ())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // SAFETY: null is allowed, and nobody has it any more.
        unsafe { sys::weft_recorder_close(self.raw, ptr::null_mut()) };
    }
}

fn with_path(call: impl FnOnce(*mut c_char, usize, *mut sys::weft_error) -> i32) -> Result<Option<PathBuf>, Error> {
    let mut path = vec![0u8; PATH_BYTES];
    checked(|err| call(path.as_mut_ptr().cast(), PATH_BYTES, err))?;
    path.truncate(path.iter().position(|byte| *byte == 0).unwrap_or(0));
    Ok((!path.is_empty()).then(|| OsString::from_vec(path).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_rates() {
        assert_eq!(Options::new().with_cpu_interval(Duration::from_millis(10)).raw.sample_hz, 100);
        assert_eq!(Options::new().with_wall_clock_interval(Duration::from_secs(3)).raw.wall_hz, 1);
        assert_eq!(Options::new().with_reporting_interval(Duration::from_secs(30)).raw.segment_ns, 30_000_000_000);
    }

    /// One test: a process has one recorder at a time.
    #[test]
    fn a_recording_in_memory_counts_its_events() {
        let why = Options::new().ring_bytes(12345).open().unwrap_err();
        assert!(why.to_string().contains("ring_bytes"), "{why}");
        assert!(why.code() < 0);
        let recorder = Recorder::options().sample_hz(sys::WEFT_OFF).start().unwrap();
        assert_eq!(recorder.state(), State::Recording);
        crate::poll(9, Some(0), || ());
        assert_eq!(recorder.rotate().unwrap(), None);
        assert!(recorder.stats().events >= 2);
        recorder.stop().unwrap();
        assert_eq!(recorder.state(), State::Idle);
        recorder.close().unwrap();
    }
}
