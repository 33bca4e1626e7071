# SPDX-License-Identifier: Apache-2.0
# Knows nothing of weft: two threads that compute, and one that waits for a pipe.
require "json"

def compute(ns)
  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) + ns
  nil while Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) < stop
end

def read_a_pipe(pipe)
  pipe.sysread(1)
end

from, to = IO.pipe
reader = Thread.new { read_a_pipe(from) }
burners = %w[burner-one burner-two].map { |name| Thread.new { compute(800_000_000) }.tap { |t| t.name = name } }
burners.each(&:join)
to.write("x")
reader.join
puts JSON.generate(required: $LOADED_FEATURES.any? { |file| file.end_with?("weft/weft.so") })
