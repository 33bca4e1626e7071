#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The C reader and the one that was written from docs/FORMAT.md alone find the same in every segment: samples made by
# hand, real ones, recovered ones, and damaged copies of all these.
# presets: release
set -euo pipefail

dir=$(mktemp -d)
writer=
cleanup() {
	[ -z "$writer" ] || kill -9 "$writer" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
reader=$WEFT_SOURCE/test/reader
weft=$WEFT_BUILD/weft
compare() {
	/usr/bin/python3 "$reader/compare.py" "$weft" "$@"
}

/usr/bin/python3 "$reader/weftwrite.py" --samples "$dir/samples"
compare samples "$dir/samples"

mkdir "$dir/real" "$dir/killed"
"$WEFT_BUILD/test/second_reader_writer" "$dir/real"
mapfile -t real < <(find "$dir/real" -name '*.weft' | sort)
if [ "${#real[@]}" -lt 3 ]; then
	echo "expected three segments or more, got ${#real[@]}"
	exit 1
fi
compare files "${real[@]}"
compare covers "${real[@]}"
cp "${real[1]}" "$dir/named.weft"
"$weft" symbolize --no-debuginfod "$dir/named.weft"
compare files "$dir/named.weft"
"$weft" inspect --stacks "$dir/named.weft" >"$dir/stacks"
grep -q '    burn (.*second_reader_writer.c:' "$dir/stacks"

"$WEFT_BUILD/test/second_reader_writer" "$dir/killed" wait >"$dir/ready" 2>&1 &
writer=$!
until grep -q ready "$dir/ready"; do
	kill -0 "$writer"
	sleep 0.05
done
mapfile -t active < <(find "$dir/killed" -name '*.weft.active')
cp "${active[0]}" "$dir/active.weft"
kill -9 "$writer"
wait "$writer" 2>/dev/null || true
writer=
"$weft" recover "$dir/killed"
mapfile -t killed < <(find "$dir/killed" -name '*.weft' | sort)
compare files "${killed[@]}"
"$weft" inspect --json "${killed[-1]}" >"$dir/json"
grep -q '"recovered": true' "$dir/json"

# A small one, a large one, one without an index, and one with names.
compare damage "${real[0]}" "${real[2]}" "$dir/active.weft" "$dir/named.weft"
