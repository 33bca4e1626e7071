#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# presets: dev release one
# Children of a program that is linked to the shared library, whose gate the linker may have moved into the program.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$WEFT_BUILD/test/fork_gate" "$dir"
