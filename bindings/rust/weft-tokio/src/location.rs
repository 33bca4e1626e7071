// SPDX-License-Identifier: Apache-2.0
//! Spawn locations by number. Registering one takes a mutex, so each thread remembers those that it met.
use std::cell::RefCell;
use std::panic::Location;

const REMEMBERED: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    at: *const Location<'static>,
    name: *const u8,
}

const NONE: Key = Key { at: std::ptr::null(), name: std::ptr::null() };

thread_local! {
    static MET: RefCell<[(Key, weft::Location); REMEMBERED]> = RefCell::new([(NONE, Default::default()); REMEMBERED]);
}

/// Of a task of which only the line is known that spawned it.
#[cfg_attr(not(tokio_unstable), allow(dead_code))]
pub(crate) fn plain(at: &'static Location<'static>) -> weft::Location {
    find(at, None)
}

/// Of a task whose future has a type with a name, as `shop::cart::checkout::{{closure}}`.
pub(crate) fn named(at: &'static Location<'static>, name: &'static str) -> weft::Location {
    find(at, Some(name))
}

fn find(at: &'static Location<'static>, name: Option<&'static str>) -> weft::Location {
    let key = Key { at, name: name.map_or(std::ptr::null(), str::as_ptr) };
    let slot = (key.at as usize >> 3 ^ key.name as usize >> 4) % REMEMBERED;
    let met = MET.try_with(|met| met.try_borrow().ok().map(|met| met[slot]));
    if let Ok(Some((known, location))) = met {
        if known == key {
            return location;
        }
    }
    let location = register(at, name);
    let _ = MET.try_with(|met| {
        if let Ok(mut met) = met.try_borrow_mut() {
            met[slot] = (key, location);
        }
    });
    location
}

/// Futures around others, of which the one inside has the name that people look for.
const AROUND: [&str; 6] = [
    "tracing::instrument::Instrumented<",
    "tracing::instrument::WithDispatch<",
    "opentelemetry::trace::context::WithContext<",
    "tokio::time::timeout::Timeout<",
    "core::pin::Pin<",
    "alloc::boxed::Box<",
];

fn unwrap(name: &str) -> &str {
    let inside = AROUND.iter().find_map(|around| name.strip_prefix(around)?.strip_suffix('>'));
    inside.filter(|inside| !inside.starts_with("dyn ")).map_or(name, unwrap)
}

#[cold]
fn register(at: &Location<'_>, name: Option<&str>) -> weft::Location {
    let text = name.map(|name| unwrap(name).trim_end_matches("::{{closure}}"));
    match text {
        // A block in a function of many: the line tells them apart.
        Some(text) => weft::Location::new(&shorten(text), at.file(), at.line()),
        None => weft::Location::new(&format!("{}:{}", at.file(), at.line()), at.file(), at.line()),
    }
}

/// Without the arguments of generic types, which may be longer than a page.
fn shorten(name: &str) -> String {
    let mut depth = 0;
    let mut short = String::with_capacity(name.len().min(120));
    for letter in name.chars() {
        match letter {
            '<' => {
                depth += 1;
                if depth == 1 {
                    short.push_str("<..>");
                }
            }
            '>' => depth -= 1,
            _ if depth == 0 => short.push(letter),
            _ => {}
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_types_are_left_out() {
        assert_eq!(shorten("a::b<c::D<e>, f>::g"), "a::b<..>::g");
        assert_eq!(shorten("a::b"), "a::b");
    }

    #[test]
    fn a_future_inside_of_a_wrapper_has_the_name() {
        assert_eq!(
            unwrap("tracing::instrument::Instrumented<shop::checkout::{{closure}}>"),
            "shop::checkout::{{closure}}"
        );
        assert_eq!(unwrap("core::pin::Pin<alloc::boxed::Box<shop::A<b>>>"), "shop::A<b>");
        let boxed = "alloc::boxed::Box<dyn core::future::future::Future<Output = ()>>";
        assert_eq!(unwrap(boxed), boxed);
    }

    #[test]
    fn a_location_is_the_same_each_time_and_another_for_another_name() {
        let at = Location::caller();
        assert_eq!(plain(at), plain(at));
        assert_eq!(named(at, "x::y"), named(at, "x::y"));
        assert_ne!(named(at, "x::y"), plain(at));
    }
}
