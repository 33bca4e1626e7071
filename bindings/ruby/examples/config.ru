# SPDX-License-Identifier: Apache-2.0
# A Rack application: WEFT_DIR=~/weft puma -t 4:4 config.ru, some requests, then weft report ~/weft.
# /cpu computes, /io sleeps, /garbage makes garbage.
require "weft/rack"

Weft.start
use Weft::Rack

def fibonacci(n)
  n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2)
end

run lambda { |env|
  case env["PATH_INFO"]
  when "/cpu" then fibonacci(23)
  when "/io" then sleep(0.05)
  when "/garbage" then Array.new(200_000) { |i| "object #{i}" }.size
  end
  [200, { "content-type" => "text/plain" }, ["ok\n"]]
}
