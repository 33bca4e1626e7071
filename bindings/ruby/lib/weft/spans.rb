# SPDX-License-Identifier: Apache-2.0
# The span that a thread works for, from OpenTelemetry or from datadog, when they are there. Both say when the current
# span of a thread changes; weft notes its ids. What changes with a fiber and not by these calls is not seen.
module Weft
  module Spans
    # OpenTelemetry::Context: the current span is in the context that is attached.
    module OpenTelemetry
      def attach(context)
        super.tap { Spans.of_opentelemetry }
      end

      def detach(token)
        super.tap { Spans.of_opentelemetry }
      end

      def clear
        super.tap { Spans.none }
      end
    end

    # Datadog::Tracing::TraceOperation: the active span of a trace.
    module Datadog
      private

      def activate_span!(span)
        super.tap { Spans.of_datadog(span, self) }
      end

      def deactivate_span!(span)
        super.tap { Spans.of_datadog(@active_span, self) }
      end
    end

    NONE = "".b.freeze

    class << self
      # Looks which of them is loaded, and hooks in once. Answers their names.
      def hook
        @hooked ||= {}
        if defined?(::OpenTelemetry::Context) && defined?(::OpenTelemetry::Trace) && !@hooked[:opentelemetry]
          @hooked[:opentelemetry] = true
          ::OpenTelemetry::Context.singleton_class.prepend(OpenTelemetry)
        end
        if defined?(::Datadog::Tracing::TraceOperation) && !@hooked[:datadog] && datadog_fits?
          @hooked[:datadog] = true
          ::Datadog::Tracing::TraceOperation.prepend(Datadog)
        end
        @hooked.keys
      end

      def of_opentelemetry
        context = ::OpenTelemetry::Trace.current_span.context
        context.valid? ? set(context.trace_id, context.span_id, context.trace_flags.sampled?) : none
      rescue StandardError
        nil
      end

      def of_datadog(span, trace)
        return none unless span

        id = trace.id
        set([id >> 64, id & 0xffff_ffff_ffff_ffff].pack("Q>Q>"), [span.id].pack("Q>"), true)
      rescue StandardError
        nil
      end

      def none
        Native.span(NONE, NONE, false)
      end

      private

      def set(trace, span, sampled)
        Native.span(trace, span, sampled)
      end

      def datadog_fits?
        trace = ::Datadog::Tracing::TraceOperation
        %i[activate_span! deactivate_span!].all? do |name|
          trace.private_method_defined?(name) || trace.method_defined?(name)
        end
      end
    end
  end
end
