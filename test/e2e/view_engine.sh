#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The engine of weft view and the parts of its page that need no browser, in node.
# presets: release
# timeout: 120
set -euo pipefail
cd "$WEFT_SOURCE"

if [ ! -e "$WEFT_BUILD/viewer/weft.wasm" ]; then
	echo "reason: weft was built without the page of weft view"
	exit 77
fi
node viewer/test/run.mjs viewer/test/*.test.ts
cd viewer
node node_modules/typescript/bin/tsc --noEmit -p .
