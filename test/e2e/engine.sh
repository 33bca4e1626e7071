#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# presets: dev release one
# Samples of a program that is linked to the shared library.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$WEFT_BUILD/test/engine_shared" "$dir"
