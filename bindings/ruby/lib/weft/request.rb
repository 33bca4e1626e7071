# SPDX-License-Identifier: Apache-2.0
# Requests and jobs: what a thread does for one of them is a poll, which the report divides into CPU time, waits for the
# GVL, garbage collection and calls that block.
module Weft
  NAMES_MOST = 2000 # names of requests; what comes beyond is "(others)"
  private_constant :NAMES_MOST

  @locations = {}
  @endpoints = {}
  @names = Mutex.new

  class << self
    # Runs the block as one request of that name: "GET /users/:id", "SendMail#perform". Names that never repeat belong
    # elsewhere. What the block raises and answers passes through.
    def request(name, endpoint: false)
      return yield unless recording?

      task = Native.enter(location_of(name))
      before = Native.for_endpoint(endpoint_of(name)) if endpoint
      begin
        yield
      ensure
        Native.for_endpoint(before) if before
        Native.leave(task)
      end
    end

    private

    def location_of(name)
      @locations[name] || @names.synchronize { @locations[known(@locations, name)] ||= Native.location(name, "", 0) }
    end

    def endpoint_of(name)
      @endpoints[name] || @names.synchronize { @endpoints[known(@endpoints, name)] ||= Native.endpoint(name) }
    end

    def known(names, name)
      names.size < NAMES_MOST ? name.dup.freeze : "(others)"
    end
  end
end
