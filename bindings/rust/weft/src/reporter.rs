// SPDX-License-Identifier: Apache-2.0
//! Where segments go: weft-agent(7) has the targets, by URL. These are their names in Rust.
use std::ffi::{c_int, c_void, CStr};
use std::fmt;
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_sys as sys;

use crate::text::whole_ns;

/// What a function of the program's own says of a segment that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has it.
    Taken,
    /// It does not want this one, now or later.
    Refused,
    /// It failed. The same segment comes again, not before so long if that is more than weft waits by itself.
    Retry(Duration),
}

/// A sealed segment, for the time of the call.
#[derive(Debug)]
pub struct SealedSegment<'a> {
    raw: &'a sys::weft_report,
}

impl SealedSegment<'_> {
    /// Its name, which no other segment has.
    pub fn name(&self) -> String {
        // SAFETY: a string that lives for the call; so below.
        unsafe { CStr::from_ptr(self.raw.name) }.to_string_lossy().into_owned()
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        let bytes = unsafe { CStr::from_ptr(self.raw.path) }.to_bytes();
        Path::new(std::ffi::OsStr::from_bytes(bytes)).into()
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.raw.bytes
    }

    /// How often it was given to the function before.
    pub fn tries(&self) -> u32 {
        self.raw.tries
    }

    /// It, open for reading.
    pub fn file(&self) -> std::io::Result<File> {
        // SAFETY: the library closes its descriptor after the call.
        let fd: OwnedFd = unsafe { BorrowedFd::borrow_raw(self.raw.fd) }.try_clone_to_owned()?;
        Ok(fd.into())
    }
}

pub(crate) type Report = Box<dyn Fn(&SealedSegment<'_>) -> Verdict + Send + Sync>;

/// For C: calls the function that `data` points to. One that panics has failed.
pub(crate) unsafe extern "C" fn call(raw: *mut sys::weft_report, data: *mut c_void) -> c_int {
    // SAFETY: both live for the call, and `data` is what `report_to` was given.
    let (raw, report) = unsafe { (&mut *raw, &*data.cast::<Report>()) };
    let segment = SealedSegment { raw };
    let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| report(&segment)));
    match verdict.unwrap_or(Verdict::Retry(Duration::ZERO)) {
        Verdict::Taken => 0,
        Verdict::Refused => 1,
        Verdict::Retry(after) => {
            raw.retry_after_ns = whole_ns(after);
            -5 // EIO
        }
    }
}

pub(crate) enum Target {
    Dir(PathBuf),
    Url(String),
    Own(String, Report),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dir(dir) => write!(f, "{}", dir.display()),
            Self::Url(_) => f.write_str("a URL"), // it may have a password
            Self::Own(name, _) => f.write_str(name),
        }
    }
}

/// One place or several, for [`ProfilerBuilder::with_reporter`](crate::ProfilerBuilder::with_reporter).
#[derive(Debug)]
pub struct Reporter(pub(crate) Vec<Target>);

impl Reporter {
    /// Any URL of weft-agent(7).
    pub fn url(url: &str) -> Self {
        Self(vec![Target::Url(url.trim().replace(char::is_whitespace, "%20"))])
    }

    /// A function of the program's own, on a thread of weft's. `name`, of letters, digits, '-' and '_', stands for it
    /// in the next process, too. The builder needs a local reporter besides.
    pub fn custom(name: &str, report: impl Fn(&SealedSegment<'_>) -> Verdict + Send + Sync + 'static) -> Self {
        Self(vec![Target::Own(name.into(), Box::new(report))])
    }
}

/// A path as a URL of a target; all that is not plain is percent-encoded.
pub(crate) fn url_of_dir(dir: &Path) -> String {
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.into());
    format!("file://{}", encoded(whole.as_os_str().as_bytes()))
}

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => text.push(*byte as char),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// A directory of this machine. The first is where the recorder writes; others get copies.
#[derive(Clone, Debug)]
pub struct LocalReporter(PathBuf);

impl LocalReporter {
    /// It is made if it is not there.
    pub fn new(directory: impl AsRef<Path>) -> Self {
        Self(directory.as_ref().into())
    }
}

impl From<LocalReporter> for Reporter {
    fn from(local: LocalReporter) -> Self {
        Self(vec![Target::Dir(local.0)])
    }
}

/// Where in S3. Credentials and region are found as the AWS SDKs find them.
#[derive(Clone, Debug, Default)]
pub struct S3ReporterConfig {
    /// The bucket.
    pub bucket_name: String,
    /// The account that it has to belong to. Empty: not asked for.
    pub bucket_owner: String,
    /// The first part of each key. Empty: none.
    pub profiling_group_name: String,
    /// Empty: `AWS_REGION` and so on.
    pub region: String,
    /// URL of another store that speaks S3. Empty: AWS.
    pub endpoint: String,
}

/// A bucket of S3.
#[derive(Clone, Debug)]
pub struct S3Reporter(S3ReporterConfig);

impl S3Reporter {
    /// By its configuration.
    pub fn new(config: S3ReporterConfig) -> Self {
        Self(config)
    }
}

impl From<S3Reporter> for Reporter {
    fn from(s3: S3Reporter) -> Self {
        let at = &s3.0;
        let mut url = format!("s3://{}", encoded(at.bucket_name.as_bytes()));
        if !at.profiling_group_name.is_empty() {
            url += &format!("/{}", encoded(at.profiling_group_name.as_bytes()));
        }
        let queries = [("region", &at.region), ("endpoint", &at.endpoint), ("owner", &at.bucket_owner)];
        for (i, (key, value)) in queries.iter().filter(|(_, value)| !value.is_empty()).enumerate() {
            url += &format!("{}{key}={}", if i == 0 { '?' } else { '&' }, encoded(value.as_bytes()));
        }
        Self(vec![Target::Url(url)])
    }
}

macro_rules! by_url {
    ($($(#[$meta:meta])* $name:ident, $prefix:literal;)*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug)]
            pub struct $name(String);

            impl $name {
                /// By its URL, `http://HOST:PORT` or `https://...`. A path in it takes the place of the usual one.
                pub fn new(url: &str) -> Self {
                    Self(url.into())
                }
            }

            impl From<$name> for Reporter {
                fn from(of: $name) -> Self {
                    Self::url(&format!("{}{}", $prefix, of.0))
                }
            }
        )*
    };
}

by_url! {
    /// A server that takes each segment by PUT.
    HttpReporter, "";
    /// Profiles to Pyroscope.
    PyroscopeReporter, "pyroscope+";
    /// Profiles to Parca.
    ParcaReporter, "parca+";
    /// Profiles to an agent of Datadog.
    DatadogReporter, "datadog+";
    /// OTLP profiles.
    OtlpReporter, "otlp+";
}

/// Several at once. One that fails holds up no other.
#[derive(Debug)]
pub struct MultiReporter(Vec<Reporter>);

impl MultiReporter {
    /// Of these.
    pub fn new(reporters: Vec<Reporter>) -> Self {
        Self(reporters)
    }
}

impl From<MultiReporter> for Reporter {
    fn from(all: MultiReporter) -> Self {
        Self(all.0.into_iter().flat_map(|one| one.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(reporter: impl Into<Reporter>) -> Vec<String> {
        let targets = reporter.into().0.into_iter();
        targets.map(|target| if let Target::Url(url) = target { url } else { format!("{target:?}") }).collect()
    }

    #[test]
    fn a_bucket_is_a_url_with_what_is_set() {
        let config = S3ReporterConfig {
            bucket_name: "profiles".into(),
            bucket_owner: "123456789012".into(),
            profiling_group_name: "web shop".into(),
            endpoint: "http://127.0.0.1:9000".into(),
            ..Default::default()
        };
        let expected = "s3://profiles/web%20shop?endpoint=http%3A//127.0.0.1%3A9000&owner=123456789012";
        assert_eq!(urls(S3Reporter::new(config)), [expected]);
    }

    #[test]
    fn several_are_one() {
        let both = MultiReporter::new(vec![
            PyroscopeReporter::new("http://h:4040").into(),
            LocalReporter::new("/var/weft").into(),
        ]);
        assert_eq!(urls(both), ["pyroscope+http://h:4040", "/var/weft"]);
    }
}
