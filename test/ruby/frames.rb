# SPDX-License-Identifier: Apache-2.0
# Methods that burn CPU time in known shares, in Ruby code, in a block under a C function and in a C function.
require "json"
require "weft"

def burn_in_ruby(ns)
  stop = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) + ns
  nil while add_up(200) && Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) < stop
end

def add_up(n)
  sum = 0
  i = 0
  while i < n
    sum += i
    i += 1
  end
  sum
end

def burn_in_block(ns)
  [1].each { burn_in_ruby(ns) }
end

def burn_in_c(ns)
  stop = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) + ns
  text = "a" * 2_000_000
  text.count("b-z") while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) < stop
end

Weft.start
burn_in_ruby(300_000_000)
burn_in_block(300_000_000)
burn_in_c(300_000_000)
puts JSON.generate(status: Weft.status, not_measured: Weft.not_measured, cpu_ns: 300_000_000,
                   interpreter: Weft::Native.find_interpreter)
