# SPDX-License-Identifier: Apache-2.0
# Objects in known numbers, of two classes and at two places.
require "json"
require "weft"

class Small; end
class Large; end

def make_small(n) = n.times { Small.new }
def make_large(n) = n.times { Large.new }

def keep_small(n) = Array.new(n) { make_one }
def make_one = Small.new

Weft.start
before = GC.stat(:total_allocated_objects)
100.times do
  make_small(9_000)
  make_large(3_000)
end
kept = keep_small(50_000)
all = GC.stat(:total_allocated_objects) - before
require "weft/heap"
heap = Weft::Heap.record
puts JSON.generate(small: 900_000, large: 300_000, all: all,
                   live: heap.fetch("Small"), kept: kept.size,
                   not_measured: Weft.not_measured)
