# SPDX-License-Identifier: Apache-2.0
# What could break in the extension: threads that come and go, fibers, exceptions, code that is made and forgotten, objects
# that move, forks, and samples as often as they can be had.
require "json"
require "weft"

SECONDS = (ARGV[0] || 4).to_f

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def raise_deeply(n)
  raise "down here" if n.zero?

  raise_deeply(n - 1)
end

def use_fibers
  producer = Fiber.new { 5.times { |i| Fiber.yield(Array.new(50) { i.to_s }) } }
  3.times { producer.resume }
  Enumerator.new { |y| 20.times { |i| y << i } }.lazy.map { |i| i * 2 }.first(5)
end

def make_code(n)
  eval("def self.made_#{n % 50}(x) = [x].map { |y| y.to_s * 2 }", binding, "made-#{n}.rb", 1)
  send(:"made_#{n % 50}", n)
end

def work(stop)
  n = 0
  while now < stop
    n += 1
    begin
      raise_deeply(30)
    rescue RuntimeError
      use_fibers
    end
    make_code(n) if (n % 3).zero?
    { n => "x" * 100 }.to_a.sort_by(&:first).inspect
    Thread.pass if (n % 10).zero?
    sleep(0.0001) if (n % 50).zero?
  end
  n
end

Weft.start
stop = now + SECONDS
workers = Array.new(4) { Thread.new { work(stop) } }
short = 0
forks = 0
while now < stop
  Array.new(5) { Thread.new { "short".dup << "lived" } }.each(&:join)
  short += 5
  GC.compact if (short % 100).zero? && now > stop - SECONDS / 2
  next unless (short % 200).zero?

  pid = fork { exit!(work(now + 0.05).positive? ? 0 : 1) }
  forks += 1 if Process.wait2(pid)[1].success?
end
puts JSON.generate(loops: workers.sum(&:value), short: short, forks: forks, status: Weft.status)
