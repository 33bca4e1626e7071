# SPDX-License-Identifier: Apache-2.0
# Two threads that compute without a pause, and what each saw of its waits for the GVL: a gap between two readings of
# the
# clock in which the other went on was one. (A gap in which nobody went on was the system's.) Prints that as JSON.
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
    tid
  end
  thread.name = name
  { name: name, thread: thread, gaps: gaps, marks: marks }
end
tids = seen.map { |s| s[:thread].value }

# The other was running in a gap when one of its own gaps begins or ends strictly inside.
truth = seen.each_with_index.map do |mine, i|
  other = seen[1 - i][:marks]
  waits = mine[:gaps].select { |from, to| other.any? { |t| t > from && t < to } }
  { name: mine[:name], tid: tids[i], waits: waits.size, wait_ns: waits.sum { |from, to| to - from },
    long_ns: waits.sum { |from, to| to - from >= 10_000_000 ? to - from : 0 } }
end
puts JSON.generate(status: Weft.status, not_measured: Weft.not_measured, threads: truth)
