# SPDX-License-Identifier: Apache-2.0
# weft for Ruby: what the threads of a program do and what they wait for, on one clock with its native code.
#
#     require "weft"
#     Weft.start(dir: "/var/lib/shop/weft")     # or WEFT_DIR; unset: nothing is recorded
#
# Nothing here raises: a program that cannot be recorded runs as it would without weft, and Weft.status says why.
require_relative "weft/version"

module Weft
  @status = "not started"

  begin
    require "weft/weft"
  rescue LoadError => e
    @status = "the extension cannot be loaded: #{e.message}"
  end

  # Two ways into Ruby code, by which the extension finds out which native frames are the interpreter.
  if defined?(Native)
    class << Native
      def look_by_method = look

      def find_interpreter = calibrate { look }
    end
  end

  class << self
    # What keeps it from recording, "recording" or "not started".
    attr_reader :status

    # Begins to record into `dir`, under `name`. Under `weft run` its recorder is used. Answers whether it records.
    def start(dir: nil, name: nil)
      return false unless defined?(Native)

      began = Native.start(dir, name)
      @status = began == true ? "recording" : began
      at_exit { Weft.stop } if began == true && !@at_exit
      @at_exit = true if began == true
      hook_in if began == true
      began == true
    end

    # Ends recording, and seals the last file. Under `weft run` that is its own business.
    def stop
      return unless @status == "recording" && !Native.of_run?

      ended = Native.stop
      @status = ended == true ? "stopped" : ended
    end

    def recording?
      defined?(Native) ? Native.recording? : false
    end

    # What is not measured in this process, and why; "" when all is.
    def not_measured
      defined?(Native) ? Native.missing : "everything: #{@status}"
    end

    private

    def hook_in
      Moves.hook if Native.respond_to?(:objects_move)
      Spans.hook
    end
  end
end

require_relative "weft/moves"
require_relative "weft/request"
require_relative "weft/spans"
