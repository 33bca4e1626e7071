# SPDX-License-Identifier: Apache-2.0
require_relative "../weft"

module Weft
  # Middleware for Sidekiq's server, and for anything that calls middleware as it does: each job is a poll.
  #
  #     Sidekiq.configure_server { |config| config.server_middleware { |chain| chain.add Weft::Sidekiq } }
  class Sidekiq
    def call(job, hash, _queue, &block)
      return yield unless Weft.recording?

      name = hash.is_a?(Hash) && (hash["wrapped"] || hash["class"]) || job.class.name
      Weft.request("#{name}#perform", endpoint: true, &block)
    end
  end
end
