// SPDX-License-Identifier: Apache-2.0
//! What events refer to by number. Each is registered once and valid for the life of the process; registering takes a
//! mutex, so keep what you get.
use std::ffi::CString;
use std::ptr;

use weft_sys as sys;

use crate::error::checked_id;
use crate::text::c_text;
use crate::Error;

/// An interned text, for names of waits and for fields of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text(pub(crate) u32);

impl Text {
    /// The same text gives the same id.
    pub fn new(text: &str) -> Self {
        let text = c_text(text);
        // SAFETY: a string that ends with a NUL and lives for the call.
        Self(unsafe { sys::weft_string(text.as_ptr()) })
    }

    /// The id, as the word of a field; 0 when the table of strings is full.
    pub fn id(self) -> u32 {
        self.0
    }
}

/// A place in the program that spawns tasks. The default is "not known".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location(pub(crate) u32);

impl Location {
    /// `name` is what people read. Equal arguments give the same location.
    pub fn new(name: &str, file: &str, line: u32) -> Self {
        let (name, file) = (c_text(name), c_text(file));
        // SAFETY: strings that end with a NUL and live for the call.
        Self(unsafe { sys::weft_location(name.as_ptr(), file.as_ptr(), line) })
    }

    /// Its number; 0: not known.
    pub fn id(self) -> u32 {
        self.0
    }
}

/// What a request is for, as `GET /users/:id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Endpoint(pub(crate) u32);

impl Endpoint {
    /// The same text gives the same endpoint. Once for each endpoint, not for each request.
    pub fn new(text: &str) -> Self {
        let text = c_text(text);
        // SAFETY: as above.
        Self(unsafe { sys::weft_endpoint(text.as_ptr()) })
    }
}

/// A set of labels of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(pub(crate) u32);

impl Labels {
    /// Keys and values. Values that never repeat, such as ids of requests, would fill the table: they belong into
    /// events.
    ///
    /// ```
    /// let labels = weft::Labels::new(&[("tenant", "blue"), ("tier", "2")])?;
    /// # Ok::<(), weft::Error>(())
    /// ```
    pub fn new(labels: &[(&str, &str)]) -> Result<Self, Error> {
        if labels.is_empty() {
            return Ok(Self(0));
        }
        let texts: Vec<CString> = labels.iter().map(|(key, value)| c_text(format!("{key}={value}"))).collect();
        let mut list: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        list.push(ptr::null());
        // SAFETY: a list that ends with null, of strings that live for the call.
        checked_id(|err| unsafe { sys::weft_labels(list.as_ptr(), err) }).map(Self)
    }
}

/// What a field of an event holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FieldType {
    /// A number without sign.
    U64 = sys::WEFT_TYPE_U64,
    /// A number with sign: `value as u64`.
    I64 = sys::WEFT_TYPE_I64,
    /// A float: `value.to_bits()`.
    F64 = sys::WEFT_TYPE_F64,
    /// 0 or 1.
    Bool = sys::WEFT_TYPE_BOOL,
    /// [`Text::id`].
    Text = sys::WEFT_TYPE_STRING,
    /// A task id.
    Task = sys::WEFT_TYPE_TASK,
}

/// A field of an event of the program's own: name, type and unit ("By", "ns", "1" or "").
pub type Field<'a> = (&'a str, FieldType, &'a str);

/// A type of event of the program's own.
///
/// ```
/// use weft::{EventKind, FieldType};
/// let upload = EventKind::define("upload", &[("bytes", FieldType::U64, "By")])?;
/// upload.emit(&[4096]);
/// # Ok::<(), weft::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventKind(u32);

impl EventKind {
    /// The same name with the same fields gives the same kind. At most 14 fields.
    pub fn define(name: &str, fields: &[Field<'_>]) -> Result<Self, Error> {
        let name = c_text(name);
        let texts: Vec<(CString, CString)> =
            fields.iter().map(|(name, _, unit)| (c_text(name), c_text(unit))).collect();
        let raw: Vec<sys::weft_field> = fields
            .iter()
            .zip(&texts)
            .map(|((_, kind, unit), (name, text))| sys::weft_field {
                name: name.as_ptr(),
                r#type: *kind as u32,
                unit: if unit.is_empty() { ptr::null() } else { text.as_ptr() },
            })
            .collect();
        // SAFETY: all of it lives for the call.
        checked_id(|err| unsafe { sys::weft_event_define(name.as_ptr(), raw.as_ptr(), raw.len(), err) }).map(Self)
    }

    /// Emits one: its fields in order, one word each.
    #[inline]
    pub fn emit(self, fields: &[u64]) {
        let n = fields.len().min(sys::WEFT_FIELDS_MAX) as u32;
        // SAFETY: `n` words are there.
        unsafe { sys::weft_event(self.0, fields.as_ptr(), n) }
    }
}
