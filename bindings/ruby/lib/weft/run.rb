# SPDX-License-Identifier: Apache-2.0
# `weft run` has Ruby load this file (RUBYOPT=-r), before the program. It loads the gem if this Ruby has one, also where
# Bundler hides what is not in the Gemfile. Any Ruby can read it, and nothing that happens here reaches the program.
begin
  begin
    require "weft/auto"
  rescue LoadError
    gems = defined?(Gem) ? Gem.path.map { |path| Dir[File.join(path, "gems", "weft-[0-9]*", "lib")] }.flatten : []
    lib = gems.sort.last
    require File.join(lib, "weft", "auto") if lib
  end
rescue Exception => e # rubocop:disable Lint/RescueException
  warn "weft: Ruby is not recorded: #{e.message}" if ENV["WEFT_RUBY_VERBOSE"]
end
