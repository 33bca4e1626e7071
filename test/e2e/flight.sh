#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The server as a flight recorder that counts its polls: nothing is on disk until a signal asks, then the last seconds
# are, in a segment that both readers and the report take like any other.
# presets: dev release
set -euo pipefail

dir=$(mktemp -d)
server=
cleanup() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
weft=$WEFT_BUILD/weft
: >"$dir/out"

WEFT_DIR=$dir/trace WEFT_POLLS=caught WEFT_SAMPLE_HZ=199 WEFT_FLIGHT_SECONDS=30 WEFT_TRIGGER_SIGNAL=$(kill -l USR2) \
	"$WEFT_BUILD/examples/server" >"$dir/out" &
server=$!
until grep -q listening "$dir/out"; do
	kill -0 "$server"
	sleep 0.05
done
port=$(sed -n 's/.*127.0.0.1://p' "$dir/out")
"$WEFT_BUILD/examples/load" --port "$port" --seconds 1 --faults 7 >"$dir/load"
if [ -n "$(find "$dir/trace" -name '*.weft*')" ]; then
	echo "something was written before anybody asked:"
	ls "$dir/trace"
	exit 1
fi
kill -USR2 "$server"
for _ in $(seq 200); do
	dump=$(find "$dir/trace" -name '*-dump-000000.weft')
	[ -z "$dump" ] || break
	sleep 0.05
done
kill -USR2 "$server" # too soon: nothing comes of it
kill "$server"
wait "$server"
server=
[ "$(find "$dir/trace" -type f | wc -l)" = 1 ]

/usr/bin/python3 "$WEFT_SOURCE/test/reader/compare.py" "$weft" files "$dump"
"$weft" inspect --json "$dump" >"$dir/json"
/usr/bin/python3 - "$dir/json" "$dir/out" <<'END'
import json
import re
import sys

segment = json.load(open(sys.argv[1]))["segments"][0]
facts = segment["facts"]
assert facts["dump.why"] == "signal 12", facts
assert facts["poll.mode"] == "caught", facts
kinds = {kind["name"]: kind.get("events", kind.get("count")) for kind in segment["kinds"]}
assert not kinds.get("poll_begin") and not kinds.get("poll_end"), kinds
assert kinds["poll_count"] > 0, kinds
requests = int(re.search(r"served (\d+) requests", open(sys.argv[2]).read()).group(1))
assert requests > 0
END
"$weft" report "$dump" >"$dir/report"
grep -q . "$dir/report"
