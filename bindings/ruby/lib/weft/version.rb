# SPDX-License-Identifier: Apache-2.0
module Weft
  VERSION = "0.1.0"
end
