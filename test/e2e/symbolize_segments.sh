#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program whose code is in two parts of the file that are not as far apart as in memory (a stripped node is so):
# functions of both have their names.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/far.c" <<'END'
#include <time.h>
static volatile unsigned long sum;
static int on(long ms)
{
	struct timespec at;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return at.tv_sec * 1000 + at.tv_nsec / 1000000 < ms;
}
__attribute__((noinline)) void burn_near(void)
{
	while (on(200))
		for (int i = 0; i < 100000; i++)
			sum += i;
}
__attribute__((noinline, section(".far,\"ax\",@progbits#"))) void burn_far(void)
{
	while (on(400))
		for (int i = 0; i < 100000; i++)
			sum += i;
}
int main(void)
{
	burn_near();
	burn_far();
}
END
cc -O1 -no-pie -fno-pie -Wl,--section-start=.far=0x10000000 -o "$dir/far" "$dir/far.c"
readelf -lW "$dir/far" | awk '$1 == "LOAD" && / E /' | wc -l | grep -qx 2
"$WEFT_BUILD/weft" run -o "$dir/trace" -- "$dir/far" >"$dir/out" 2>&1
"$WEFT_BUILD/weft" query "$dir/trace" 'select distinct function from sample' >"$dir/functions"
for name in burn_near burn_far; do
	grep -qx "$name *" "$dir/functions" || {
		echo "$name has no sample:"
		cat "$dir/functions"
		exit 1
	}
done
