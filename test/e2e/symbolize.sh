#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names for real samples: by the command, here and where the program is another build, and by the process itself.
# presets: release asan
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weft=$WEFT_BUILD/weft
unset DEBUGINFOD_URLS
fail() {
	echo "$*"
	exit 1
}
says() { # FILE PATTERN: whether the stacks of the segment, with the names that it has itself, say that
	"$weft" inspect --stacks "$1" >"$dir/stacks"
	grep -q "$2" "$dir/stacks"
}

# The command. The program is a copy, so that it can be taken away. (LD_LIBRARY_PATH finds libweft.so for it.)
mkdir "$dir/bin" "$dir/a"
cp "$WEFT_BUILD/test/symbolize_program" "$dir/bin/program"
export LD_LIBRARY_PATH=$WEFT_BUILD
WEFT_DIR=$dir/a WEFT_SAMPLE_HZ=999 "$dir/bin/program" 2
mapfile -t segments < <(find "$dir/a" -name '*.weft' | sort)
[ "${#segments[@]}" = 2 ] || fail "two segments were recorded, ${#segments[@]} found"
if says "${segments[0]}" burn_in_this_function; then fail "names before anybody looked"; fi

# Another program at the same path must give no names.
mv "$dir/bin/program" "$dir/bin/real"
cp /bin/true "$dir/bin/program"
"$weft" symbolize -o "$dir/wrong.weft" "${segments[0]}" | tee "$dir/out"
grep -q "bin/program has build-id .*, but .* was recorded" "$dir/out" || fail "no reason given"
if says "$dir/wrong.weft" burn_in_this_function; then fail "a name from nowhere"; fi

mv "$dir/bin/real" "$dir/bin/program"
"$weft" symbolize "$dir/a" | tee "$dir/out"
rm -rf "${dir:?}/bin"
for segment in "${segments[@]}"; do
	says "$segment" 'burn_in_this_function (.*symbolize_program.c:' || fail "no name in $segment"
	says "$segment" 'spin_inlined (.*symbolize_program.c:' || fail "no inlined function in $segment"
	says "$segment" 'main (.*symbolize_program.c:' || fail "no main in $segment"
done
find "$dir/a" -type f ! -name '*.weft' >"$dir/out"
[ ! -s "$dir/out" ] || fail "left behind: $(cat "$dir/out")"

# The process itself: every segment has names when it is closed, without a command.
mkdir "$dir/b"
WEFT_DIR=$dir/b WEFT_SAMPLE_HZ=999 WEFT_SYMBOLIZE=1 "$WEFT_BUILD/test/symbolize_program" 3
mapfile -t segments < <(find "$dir/b" -name '*.weft' | sort)
[ "${#segments[@]}" = 3 ] || fail "three segments were recorded, ${#segments[@]} found"
for segment in "${segments[@]}"; do
	says "$segment" 'spin_inlined (.*symbolize_program.c:' || fail "no names in $segment"
	"$weft" inspect "$segment" >"$dir/out"
	if grep degraded.symbolize "$dir/out"; then fail "it says that it could not"; fi
done

# Without the plugin it records all the same and says why there are no names.
mkdir "$dir/lib" "$dir/c"
cp "$WEFT_BUILD"/libweft.so.0 "$dir/lib/"
cp "$WEFT_BUILD/test/symbolize_program" "$dir/program"
if [ "$WEFT_PRESET" != asan ]; then
	LD_LIBRARY_PATH=$dir/lib
	# The program of the build has a path to the build in it; LD_PRELOAD comes before that.
	LD_PRELOAD=$dir/lib/libweft.so.0 WEFT_DIR=$dir/c WEFT_SYMBOLIZE=1 "$dir/program" 1
	"$weft" inspect "$dir"/c/*.weft >"$dir/out"
	grep -q 'degraded.symbolize.*libweft-symbolize.so' "$dir/out" || fail "it does not say why"
fi
echo "names for real samples: fine"
