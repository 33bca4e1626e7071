# SPDX-License-Identifier: Apache-2.0
# Two threads that compute without a pause, and what each saw of its waits for the GVL: a gap between two readings of
# the clock in which the other went on was one. (A gap in which nobody went on was the system's.) Such a gap may also
# have time in it for which the thread had the GVL and the system ran other programs, so how long it was ready to run
# in all is there, too. Prints that as JSON.
require "json"
require "weft"

SECONDS = (ARGV[0] || 2).to_f
GAP_NS = 200_000

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

# The first wait is from its creation on.
def burn_until(created, end_ns, gaps, marks)
  last = created
  over = false
  until over
    over = last >= end_ns # and one reading more: it may have had to wait as it ended
    t = now
    if t - last > GAP_NS
      gaps << [last, t]
      marks << last << t
    end
    last = t
  end
  marks << last
end

Weft.start
begun = now
end_ns = begun + (SECONDS * 1e9).to_i
seen = %w[burner-one burner-two].map do |name|
  gaps = []
  marks = [created = now]
  thread = Thread.new do
    tid = Thread.current.native_thread_id
    burn_until(created, end_ns, gaps, marks)
    [tid, File.read("/proc/thread-self/schedstat").split[1].to_i]
  end
  thread.name = name
  { name: name, thread: thread, gaps: gaps, marks: marks }
end
ended = seen.map { |s| s[:thread].value }

# The other was running in a gap when one of its own gaps begins or ends strictly inside.
truth = seen.each_with_index.map do |mine, i|
  other = seen[1 - i][:marks]
  waits = mine[:gaps].select { |from, to| other.any? { |t| t > from && t < to } }
  { name: mine[:name], tid: ended[i][0], ready_ns: ended[i][1], waits: waits.size,
    wait_ns: waits.sum { |from, to| to - from },
    long_ns: waits.sum { |from, to| to - from >= 10_000_000 ? to - from : 0 } }
end
puts JSON.generate(status: Weft.status, not_measured: Weft.not_measured, threads: truth)
