#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# serial: the cost of six seconds is measured, and compared with the CPU time of a program that others keep from the CPU
# A program that is hardly anything but context switches, recorded with everything on: weft finds out what that costs,
# and stays within its budget of 2 %. Without one it costs more than ten times that.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
budget=20000

line=$("$WEFT_BUILD/test/budget_program" "$dir" $budget 9)
echo "$line"
facts=$("$WEFT_BUILD/weft" inspect "$dir"/*.weft)
if ! grep -q '^switch.mode *intervals' <<<"$facts"; then
	grep '^switch.mode\|^degraded.switch' <<<"$facts" || true
	echo "reason: context switches cannot be recorded here"
	exit 77
fi
read -r _ ppm _ _ _ limited _ _ _ _ _ program_ms _ <<<"$line"
# A program that uses less than half a CPU has the budget of one that uses half.
if [ "$program_ms" -lt 4500 ]; then
	echo "reason: the program had $program_ms ms of CPU time in 9 s"
	exit 77
fi
# What it cost in the first moments, when nothing was known yet, is not in the figure; half of the budget more is for a
# loaded machine.
[ "$ppm" -le $((budget * 3 / 2)) ] || { echo "FAIL: $ppm millionths"; exit 1; }
[ "$limited" = 1 ] || { echo "FAIL: nothing was lowered"; exit 1; }
grep -q '^degraded.budget' <<<"$facts" || { echo "FAIL: the segment does not say so"; exit 1; }
