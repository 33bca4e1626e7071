# SPDX-License-Identifier: Apache-2.0
# Workers that take jobs from a queue, as Sidekiq's do, with the same middleware: WEFT_DIR=~/weft ruby jobs.rb, then
# weft report ~/weft. With Sidekiq itself: config.server_middleware { |chain| chain.add Weft::Sidekiq }
require "weft/sidekiq"

class Thumbnail
  def perform(size)
    size.times.sum { |i| Math.sqrt(i) }
  end
end

class SendMail
  def perform(seconds)
    sleep(seconds)
  end
end

Weft.start
middleware = Weft::Sidekiq.new
queue = Queue.new
100.times do |i|
  queue << { "class" => "Thumbnail", "args" => [300_000] }
  queue << { "class" => "SendMail", "args" => [0.02] } if i.even?
end
workers = Array.new(4) do |i|
  queue << nil
  Thread.new do
    while (job = queue.pop)
      worker = Object.const_get(job["class"]).new
      middleware.call(worker, job, "default") { worker.perform(*job["args"]) }
    end
  end.tap { |thread| thread.name = "worker-#{i}" }
end
workers.each(&:join)
puts "150 jobs are done; weft: #{Weft.status}"
