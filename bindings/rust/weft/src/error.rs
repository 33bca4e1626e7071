// SPDX-License-Identifier: Apache-2.0
use std::ffi::{c_int, CStr};
use std::fmt;

use weft_sys as sys;

/// What failed, on what, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: i32,
    text: String,
}

impl Error {
    /// The negative errno, or the negative code of `weft/error.h`.
    pub fn code(&self) -> i32 {
        self.code
    }

    fn from_raw(code: c_int, raw: &sys::weft_error) -> Self {
        // SAFETY: the library ends its messages with a NUL, and this one began as zeroes.
        let text = unsafe { CStr::from_ptr(raw.msg.as_ptr()) }.to_string_lossy().into_owned();
        if !text.is_empty() {
            return Self { code, text };
        }
        // SAFETY: never null, static storage.
        let text = unsafe { CStr::from_ptr(sys::weft_strerror(code)) }.to_string_lossy().into_owned();
        Self { code, text }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

fn empty() -> sys::weft_error {
    sys::weft_error { code: 0, msg: [0; 500] }
}

/// A call that returns a negative value when it fails.
pub(crate) fn checked(call: impl FnOnce(*mut sys::weft_error) -> c_int) -> Result<c_int, Error> {
    let mut raw = empty();
    let code = call(&mut raw);
    if code < 0 {
        return Err(Error::from_raw(code, &raw));
    }
    Ok(code)
}

/// A call that returns an id, and 0 when it fails.
pub(crate) fn checked_id(call: impl FnOnce(*mut sys::weft_error) -> u32) -> Result<u32, Error> {
    let mut raw = empty();
    let id = call(&mut raw);
    if id == 0 {
        return Err(Error::from_raw(raw.code, &raw));
    }
    Ok(id)
}
