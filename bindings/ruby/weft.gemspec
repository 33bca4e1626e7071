# SPDX-License-Identifier: Apache-2.0
require_relative "lib/weft/version"

Gem::Specification.new do |gem|
  gem.name = "weft"
  gem.version = Weft::VERSION
  gem.summary = "What the threads of a Ruby program do and wait for, among its native code"
  gem.description = "Waits for the GVL and who held it, Ruby frames among native ones, garbage collection, requests " \
                    "and allocations, recorded all the time by libweft."
  gem.authors = ["The weft authors"]
  gem.license = "Apache-2.0"
  gem.required_ruby_version = ">= 3.1"
  gem.files = Dir["lib/**/*.rb", "ext/**/*.{rb,c,h}", "README.md"]
  gem.extensions = ["ext/weft/extconf.rb"]
end
