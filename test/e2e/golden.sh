#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The reports of three kept segments are what they were: first page, all tables and JSON. test/golden/README.md says
# what the segments are. After a change on purpose: WEFT_BUILD=build/dev test/e2e/golden.sh --update, and the diff is
# part of the commit.
# presets: dev release
set -euo pipefail

golden=$(cd "$(dirname "$0")/../golden" && pwd)
weft=$(cd "$WEFT_BUILD" && pwd)/weft
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset DEBUGINFOD_URLS PAGER COLUMNS
failed=0

compare() { # NAME FILE ARGUMENT...: the report of a segment beside what is kept
	local name=$1 file=$2
	shift 2
	(cd "$golden/$name" && "$weft" report --no-symbols "$@" 0.weft) >"$dir/$file"
	if [ "${update:-}" ]; then
		cp "$dir/$file" "$golden/$name/$file"
	elif ! diff -u --label "kept test/golden/$name/$file" --label "weft report $*" "$golden/$name/$file" "$dir/$file"; then
		failed=1
	fi
}

[ "${1:-}" != --update ] || update=yes
for name in server locks loop; do
	compare $name page.txt
	compare $name full.txt --full
	compare $name report.json --json --top 3
	/usr/bin/python3 -m json.tool <"$dir/report.json" >/dev/null || failed=1
	if grep -n 18446744073709551615 "$dir/report.json"; then
		echo "FAILED: a number that stands for no number"
		failed=1
	fi
	lines=$(wc -l <"$dir/page.txt")
	columns=$(LC_ALL=C.UTF-8 awk '{ if (length > most) most = length } END { print most }' "$dir/page.txt")
	if [ "$lines" -gt 40 ] || [ "$columns" -gt 100 ]; then
		echo "FAILED: the first page of $name has $lines lines of up to $columns columns; it should fit 40 of 100"
		failed=1
	fi
done
if [ $failed != 0 ]; then
	echo "FAILED: if the change is on purpose, run WEFT_BUILD=$WEFT_BUILD test/e2e/golden.sh --update"
	exit 1
fi
