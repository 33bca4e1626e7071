# SPDX-License-Identifier: Apache-2.0
# Spans of OpenTelemetry and of datadog. Neither gem is in Debian: these stand for them, with the calls that weft hooks
# into.
require "json"

module OpenTelemetry
  Flags = Struct.new(:sampled?)
  SpanContext = Struct.new(:trace_id, :span_id, :trace_flags, :valid?)
  Span = Struct.new(:context)
  NONE = Span.new(SpanContext.new("", "", Flags.new(false), false))

  class Context
    STACK = []
    def self.attach(context) = STACK.push(context).size
    def self.detach(_token) = STACK.pop
    def self.clear = STACK.clear
  end

  class Trace
    def self.current_span = Context::STACK.last || NONE

    def self.with_span(trace, span)
      token = Context.attach(Span.new(SpanContext.new([trace].pack("H*"), [span].pack("H*"), Flags.new(true), true)))
      yield
    ensure
      Context.detach(token)
    end
  end
end

module Datadog
  module Tracing
    class TraceOperation
      Span = Struct.new(:id)
      attr_reader :id

      def initialize(id) = @id = id

      def measure(id)
        span = Span.new(id)
        before = @active_span
        activate_span!(span)
        yield
      ensure
        @active_span = before
        deactivate_span!(span)
      end

      private

      def activate_span!(span) = @active_span = span
      def deactivate_span!(_span) = nil
    end
  end
end

require "weft"

def compute(ns)
  stop = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) + ns
  nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) < stop
end

Weft.start
outer = "00f067aa0ba902b7"
inner = "00f067aa0ba902b8"
trace = "4bf92f3577b34da6a3ce929d0e0e4736"
OpenTelemetry::Trace.with_span(trace, outer) do
  compute(100_000_000)
  OpenTelemetry::Trace.with_span(trace, inner) { compute(200_000_000) }
end
compute(100_000_000)
Datadog::Tracing::TraceOperation.new(0x1234_0000_0000_0000_0000_0000_0000_5678).measure(77) { compute(150_000_000) }
puts JSON.generate(trace: trace, outer: outer, inner: inner, hooked: Weft::Spans.hook)
