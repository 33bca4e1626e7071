# SPDX-License-Identifier: Apache-2.0
# A process with threads forks; parent and child compute in two threads each, which contend for the GVL.
require "json"
require "weft"

def compute(ns)
  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) + ns
  nil while Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) < stop
end

def contend(name)
  threads = Array.new(2) { |i| Thread.new { compute(700_000_000) }.tap { |t| t.name = "#{name}-#{i}" } }
  threads.each(&:join)
end

Weft.start
idle = Thread.new { sleep }
child = fork { contend("child") }
contend("parent")
_, status = Process.wait2(child)
idle.kill
puts JSON.generate(status: Weft.status, parent: Process.pid, child: child, ended: status.exitstatus)
