// SPDX-License-Identifier: Apache-2.0
//! Text and time as the C API takes them.
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Up to the first NUL, should there be one.
pub(crate) fn c_text(text: impl AsRef<OsStr>) -> CString {
    let bytes = text.as_ref().as_bytes();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// What does not fit is `WEFT_OFF`: never.
pub(crate) fn whole_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(weft_sys::WEFT_OFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_its_first_nul() {
        assert_eq!(c_text("ab\0c").to_bytes(), b"ab");
        assert_eq!(c_text("abc").to_bytes(), b"abc");
    }

    #[test]
    fn the_longest_duration_is_off() {
        assert_eq!(whole_ns(Duration::MAX), weft_sys::WEFT_OFF);
        assert_eq!(whole_ns(Duration::from_micros(3)), 3000);
    }
}
