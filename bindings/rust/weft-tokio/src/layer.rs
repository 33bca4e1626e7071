// SPDX-License-Identifier: Apache-2.0
//! Spans of `tracing` as the context of what threads record.
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id};
use tracing_core::Subscriber;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// A layer by which each sample, poll and wait belongs to the span that the thread is in: `weft report --span`.
///
/// A span without a parent begins a trace, and is its root; its field `http.route`, or else its name, is the endpoint.
/// Ids are random, unless OpenTelemetry has some: with the feature `opentelemetry`, and with this layer added after
/// that of `tracing-opentelemetry`, trace and span are those of the OpenTelemetry context that is active on the thread.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
/// let subscriber = tracing_subscriber::registry().with(weft_tokio::SpanLayer::new());
/// tracing::subscriber::with_default(subscriber, || {
///     let span = tracing::info_span!("checkout");
///     let entered = span.enter();
///     assert_ne!(weft::Context::current().span(), 0);
///     drop(entered);
///     assert_eq!(weft::Context::current().span(), 0);
/// });
/// ```
#[derive(Debug, Default)]
pub struct SpanLayer(());

impl SpanLayer {
    /// There is nothing to set.
    pub fn new() -> Self {
        Self::default()
    }
}

/// What a span has of ours.
#[derive(Clone, Copy)]
struct Known {
    context: weft::Context,
    root: u64,
}

thread_local! {
    /// How many spans the thread is in, and the context that it had before the first.
    static ENTERED: Cell<(usize, weft::Context)> = Cell::new((0, weft::Context::default()));
}

struct Route(Option<weft::Endpoint>);

impl Visit for Route {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "http.route" {
            self.0 = Some(weft::Endpoint::new(value));
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn std::fmt::Debug) {}
}

/// Never 0, and not the same in two processes.
fn random_id() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut word = SEED.get_or_init(|| RandomState::new().hash_one(0)).wrapping_add(n.wrapping_mul(0x9e3779b97f4a7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d049bb133111eb);
    (word ^ (word >> 31)).max(1)
}

fn known<'a, S: Subscriber + LookupSpan<'a>>(span: &SpanRef<'a, S>) -> Option<Known> {
    span.extensions().get::<Known>().copied()
}

fn begin(attributes: &Attributes<'_>) -> Known {
    let mut route = Route(None);
    attributes.record(&mut route);
    let endpoint = route.0.unwrap_or_else(|| weft::Endpoint::new(attributes.metadata().name()));
    let span = random_id();
    let trace = u128::from(random_id()) << 64 | u128::from(random_id());
    Known { context: weft::Context::new(trace, span).endpoint(endpoint), root: span }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let ours = match span.parent().and_then(|parent| known(&parent)) {
            Some(parent) => Known { context: parent.context.with_span(random_id()), root: parent.root },
            None => begin(attributes),
        };
        span.extensions_mut().insert(ours);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let Some(ours) = known(&span) else { return };
        let before = active(&span, ours).set();
        let (depth, outer) = ENTERED.get();
        ENTERED.set((depth + 1, if depth == 0 { before } else { outer }));
    }

    fn on_exit(&self, _id: &Id, context: Context<'_, S>) {
        let (depth, outer) = ENTERED.get();
        ENTERED.set((depth.saturating_sub(1), outer));
        let inner = (depth > 1).then(|| context.lookup_current()).flatten();
        match inner.and_then(|span| known(&span).map(|ours| active(&span, ours))) {
            Some(context) => context.set(),
            None => outer.set(),
        };
    }
}

/// OpenTelemetry's ids, where it has a span on this thread. The one that a root span of ours has there is the root.
#[cfg(feature = "opentelemetry")]
fn active<'a, S: Subscriber + LookupSpan<'a>>(span: &SpanRef<'a, S>, mut ours: Known) -> weft::Context {
    use opentelemetry::trace::TraceContextExt;

    let current = opentelemetry::Context::current();
    let theirs = current.span().span_context().clone();
    if !theirs.is_valid() {
        return ours.context;
    }
    let id = u64::from_be_bytes(theirs.span_id().to_bytes());
    if span.parent().is_none() {
        ours.root = id;
    } else if let Some(root) = span.scope().from_root().next().and_then(|root| known(&root)) {
        ours.root = root.root;
    }
    ours.context = ours
        .context
        .with_trace(u128::from_be_bytes(theirs.trace_id().to_bytes()))
        .with_span(id)
        .root(ours.root)
        .flags(theirs.trace_flags().to_u8());
    span.extensions_mut().replace(ours);
    ours.context
}

#[cfg(not(feature = "opentelemetry"))]
fn active<'a, S: Subscriber + LookupSpan<'a>>(_span: &SpanRef<'a, S>, ours: Known) -> weft::Context {
    ours.context
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn a_child_span_is_of_its_parents_trace_and_root() {
        let subscriber = tracing_subscriber::registry().with(SpanLayer::new());
        tracing::subscriber::with_default(subscriber, || {
            let outer = tracing::info_span!("outer").entered();
            let root = weft::Context::current();
            let inner = tracing::info_span!("inner").entered();
            let child = weft::Context::current();
            assert_eq!(child.trace(), root.trace());
            assert_ne!(child.span(), root.span());
            assert_eq!(child, root.with_span(child.span()));
            drop(inner);
            assert_eq!(weft::Context::current(), root);
            drop(outer);
            assert_eq!(weft::Context::current(), weft::Context::default());
        });
    }

    #[cfg(feature = "opentelemetry")]
    #[test]
    fn ids_of_opentelemetry_go_before_ours() {
        use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};

        let theirs = SpanContext::new(
            TraceId::from_bytes([1; 16]),
            SpanId::from_bytes([2; 8]),
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        );
        let _attached = opentelemetry::Context::new().with_remote_span_context(theirs).attach();
        let subscriber = tracing_subscriber::registry().with(SpanLayer::new());
        tracing::subscriber::with_default(subscriber, || {
            let _entered = tracing::info_span!("request").entered();
            assert_eq!(weft::Context::current().trace(), u128::from_be_bytes([1; 16]));
            assert_eq!(weft::Context::current().span(), u64::from_be_bytes([2; 8]));
        });
    }
}
