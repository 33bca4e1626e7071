# SPDX-License-Identifier: Apache-2.0
# Ruby moves objects only where it is asked to. From then on frames of threads without the GVL are not read.
module Weft
  module Moves
    module OfGC
      def compact(...)
        Native.objects_move
        super
      end

      def auto_compact=(flag)
        Native.objects_move if flag
        super
      end

      def verify_compaction_references(...)
        Native.objects_move
        super
      end
    end

    module OfProcess
      def warmup(...)
        Native.objects_move
        super
      end
    end

    def self.hook
      return if @hooked

      @hooked = true
      Native.objects_move if GC.respond_to?(:auto_compact) && GC.auto_compact
      GC.singleton_class.prepend(OfGC) if GC.respond_to?(:compact)
      Process.singleton_class.prepend(OfProcess) if Process.respond_to?(:warmup)
    end
  end
end
