# SPDX-License-Identifier: Apache-2.0
require_relative "../weft"

module Weft
  # Middleware for Rack: each request is a poll of the thread that handles it.
  #
  #     use Weft::Rack
  #
  # A request is named by its method and route, where the framework says one (Rails, Sinatra, Grape), else by its method
  # and the first part of its path: ids in paths would make names without end.
  class Rack
    def initialize(app, name: nil)
      @app = app
      @name = name || method(:name_of)
    end

    def call(env)
      return @app.call(env) unless Weft.recording?

      Weft.request(@name.call(env), endpoint: true) { @app.call(env) }
    end

    private

    def name_of(env)
      path = env["PATH_INFO"].to_s
      part = path[%r{\A/[^/]*}] || "/"
      rest = path.length > part.length ? "/..." : ""
      "#{env['REQUEST_METHOD']} #{part}#{rest}"
    end
  end
end
