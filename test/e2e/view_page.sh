#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft view in Chromium, over the trace of the demo.
# presets: release
# timeout: 300
set -euo pipefail
cd "$WEFT_SOURCE"

if [ ! -e "$WEFT_BUILD/viewer/weft.wasm" ]; then
	echo "reason: weft was built without the page of weft view"
	exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
WEFT_DEMO_OUT=$dir tools/demo >"$dir/demo.txt" 2>&1 || {
	cat "$dir/demo.txt"
	exit 1
}
export WEFT_TRACE=$dir/trace
node viewer/test/run.mjs viewer/test/*.spec.ts
