# SPDX-License-Identifier: Apache-2.0
require_relative "../weft"

module Weft
  # What lives, by class. It walks all objects, and no Ruby code runs meanwhile: some 0.2 us an object, 200 ms for a
  # million. So it is a call for the program to make, and nothing that weft does by itself.
  module Heap
    CLASS_OF = Kernel.instance_method(:class)
    private_constant :CLASS_OF

    class << self
      # Records the classes with the most bytes, as events `ruby_heap`: class, objects, bytes. Answers them.
      def record(most: 50)
        found = classes.sort_by { |_, (_, bytes)| -bytes }.first(most)
        found.each { |name, (objects, bytes)| Native.heap(name, objects, bytes) } if Weft.recording?
        found.to_h
      end

      private

      def classes
        require "objspace"
        sums = Hash.new { |hash, key| hash[key] = [0, 0] }.compare_by_identity
        ObjectSpace.each_object do |object|
          sum = sums[CLASS_OF.bind_call(object)]
          sum[0] += 1
          sum[1] += ObjectSpace.memsize_of(object)
        end
        by_name = Hash.new { |hash, key| hash[key] = [0, 0] }
        sums.each { |type, sum| sum.each_with_index { |n, i| by_name[name_of(type)][i] += n } }
        by_name
      end

      def name_of(type)
        Module.instance_method(:name).bind_call(type) || "(class without a name)"
      end
    end
  end
end
