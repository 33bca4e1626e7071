# SPDX-License-Identifier: Apache-2.0
# For RUBYOPT=-rweft/auto, as `weft run` sets it: records if it can, and never breaks the program.
begin
  require_relative "../weft"
  Weft.start
rescue Exception => e # rubocop:disable Lint/RescueException
  warn "weft: Ruby is not recorded: #{e.message}" if ENV["WEFT_RUBY_VERBOSE"]
end
