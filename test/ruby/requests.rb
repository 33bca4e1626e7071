# SPDX-License-Identifier: Apache-2.0
# A Rack application under the middleware, called as a server does: one request computes, one sleeps, one waits for
# the GVL
# behind a thread that computes. How long each took, as it saw it.
require "json"
require "weft/rack"

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

def compute(ns)
  stop = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) + ns
  nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) < stop
end

def sleep_in_the_request(seconds)
  sleep(seconds)
end

app = lambda do |env|
  case env["PATH_INFO"]
  when "/computes" then compute(150_000_000)
  when "/sleeps" then sleep_in_the_request(0.12)
  when "/waits" then 3.times { sleep(0.001) }
  end
  [200, {}, ["ok"]]
end

Weft.start
stack = Weft::Rack.new(app)
took = {}
serve = lambda do |path|
  begun = now
  stack.call("REQUEST_METHOD" => "GET", "PATH_INFO" => path)
  took[path] = now - begun
end
server = Thread.new do
  20.times { serve.call("/quick") }
  serve.call("/computes")
  serve.call("/sleeps")
end
server.name = "server"
server.join
hog = Thread.new { compute(1_000_000_000) }
hog.name = "hog"
Thread.new { serve.call("/waits") }.tap { |t| t.name = "victim" }.join
hog.join
puts JSON.generate(status: Weft.status, not_measured: Weft.not_measured, took: took)
