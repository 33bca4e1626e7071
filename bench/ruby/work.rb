# SPDX-License-Identifier: Apache-2.0
# Four threads serve requests: some Ruby code, some objects, and a short wait, as of a socket. What a request cost.
# With "busy" they do not wait, and there is always one that has the GVL.
# usage: work.rb none|weft|stackprof SECONDS [busy]
require "json"

kind = ARGV[0]
seconds = ARGV[1].to_f
PAUSE_S = ARGV[2] == "busy" ? nil : 0.0005

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

def render(items)
  items.map { |item| "<li>#{item[:name]}: #{item[:price] * 2}</li>" }.join("\n")
end

def serve(number)
  items = Array.new(40) { |i| { name: "item #{number + i}", price: i } }
  text = render(items)
  text.gsub(/item (\d)/) { "product #{$1}" }.length
end

def serve_until(stop)
  took = []
  number = 0
  while (begun = now) < stop
    serve(number += 1)
    sleep(PAUSE_S) if PAUSE_S
    took << now - begun
  end
  took
end

case kind
when "weft"
  require "weft"
  Weft.start
when "stackprof"
  require "stackprof"
  StackProf.start(mode: :cpu, interval: 10_000)
end

4.times.map { Thread.new { serve_until(now + 500_000_000) } }.each(&:join)
cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
begun = now
took = 4.times.map { Thread.new { serve_until(begun + (seconds * 1e9).to_i) } }.flat_map(&:value)
cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - cpu
wall = now - begun
StackProf.stop if kind == "stackprof"
rss = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i
took.sort!
puts JSON.generate(requests: took.size, rate: took.size * 1e9 / wall, cpu: cpu / took.size,
                   p99: took[took.size * 99 / 100], rss: rss, status: defined?(Weft) ? Weft.status : kind)
