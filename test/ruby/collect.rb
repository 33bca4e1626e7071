# SPDX-License-Identifier: Apache-2.0
# Garbage that makes Ruby collect, and major collections that are asked for; how long they took, as this saw it.
require "json"
begin
  require "weft"
  Weft.start
rescue LoadError
  nil
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

def keep_objects(n)
  Array.new(n) { |i| "object #{i}" }
end

def make_garbage(n)
  n.times { |i| "garbage #{i}" }
end

GC.measure_total_time = true
kept = keep_objects(600_000)
before = GC.stat(:time)
pauses = Array.new(6) do
  begun = now
  GC.start
  now - begun
end
forced_ms = GC.stat(:time) - before
begun_count = GC.count
before = GC.stat(:time)
make_garbage(3_000_000)
puts JSON.generate(kept: kept.size, forced_ns: pauses.sum, longest_ns: pauses.max, forced_ms: forced_ms,
                   garbage_ms: GC.stat(:time) - before, collections: GC.count - begun_count,
                   not_measured: defined?(Weft) ? Weft.not_measured : "no weft")
