// SPDX-License-Identifier: Apache-2.0
use std::marker::PhantomData;

use weft_sys as sys;

use crate::{Endpoint, Labels};

/// Which request a thread works for. What a thread records while it has one belongs to it, and `weft report --span` and
/// `--label` find it by that. It is also published as an OpenTelemetry thread context (OTEP 4947).
///
/// ```
/// let context = weft::Context::new(0x4bf92f3577b34da6a3ce929d0e0e4736, 0x00f067aa0ba902b7)
///     .endpoint(weft::Endpoint::new("POST /upload"));
/// let entered = context.enter();
/// // ... work for that request ...
/// drop(entered); // the thread has the context that it had before
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context(sys::weft_context);

impl Context {
    /// A span of a trace, W3C ids. The span counts as the one with which the request entered this process, until
    /// [`root`](Self::root) says another.
    pub fn new(trace: u128, span: u64) -> Self {
        Self(sys::weft_context {
            trace_hi: (trace >> 64) as u64,
            trace_lo: trace as u64,
            span,
            root: span,
            ..Default::default()
        })
    }

    /// The span with which the request entered this process.
    #[must_use]
    pub fn root(mut self, span: u64) -> Self {
        self.0.root = span;
        self
    }

    /// The same with another trace.
    #[must_use]
    pub fn with_trace(mut self, trace: u128) -> Self {
        self.0.trace_hi = (trace >> 64) as u64;
        self.0.trace_lo = trace as u64;
        self
    }

    /// The same with another span: a child has the root, the endpoint and the labels of its parent.
    #[must_use]
    pub fn with_span(mut self, span: u64) -> Self {
        self.0.span = span;
        self
    }

    /// What the request is for.
    #[must_use]
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.0.endpoint = endpoint.0;
        self
    }

    /// Its labels.
    #[must_use]
    pub fn labels(mut self, labels: Labels) -> Self {
        self.0.labels = labels.0;
        self
    }

    /// W3C trace flags: published, not recorded.
    #[must_use]
    pub fn flags(mut self, flags: u8) -> Self {
        self.0.flags = flags.into();
        self
    }

    /// What the calling thread has.
    pub fn current() -> Self {
        let mut context = Self::default();
        // SAFETY: a struct of that layout, and the thread's own.
        unsafe { sys::weft_context_get(&mut context.0) };
        context
    }

    /// The calling thread has this context from here on. Answers the one that it had.
    #[inline]
    pub fn set(&self) -> Self {
        let mut before = Self::default();
        // SAFETY: as above.
        unsafe { sys::weft_context_swap(&self.0, &mut before.0) };
        before
    }

    /// The same until the guard is dropped.
    #[inline]
    pub fn enter(&self) -> Entered {
        Entered { before: self.set(), _thread: PhantomData }
    }

    /// Trace id, 0: none.
    pub fn trace(&self) -> u128 {
        u128::from(self.0.trace_hi) << 64 | u128::from(self.0.trace_lo)
    }

    /// Span id, 0: none.
    pub fn span(&self) -> u64 {
        self.0.span
    }
}

/// Gives the thread its earlier context back when dropped.
#[derive(Debug)]
#[must_use]
pub struct Entered {
    before: Context,
    _thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.before.set();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_a_context_gives_the_outer_one_back() {
        let outer = Context::new(7, 1);
        let inner = Context::new(7, 2).root(1);
        let _outer = outer.enter();
        {
            let _inner = inner.enter();
            assert_eq!(Context::current(), inner);
        }
        assert_eq!(Context::current(), outer);
        assert_eq!(outer.trace(), 7);
    }
}
