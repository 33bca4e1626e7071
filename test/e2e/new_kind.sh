#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A new built-in kind is in the list (weft/kind.h) and then in rings, collector, recovery, segments, documents and the
# second reader, with no other line changed. What is left to write is who emits it, who reads it and a test: five files
# (CONTRIBUTING.md).
set -euo pipefail
root=$(cd "$WEFT_SOURCE" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/docs/man" "$dir/test"
cp -r "$root/include" "$dir"
cp "$root/docs/FORMAT.md" "$dir/docs"
cp "$root/docs/man/weft-report.1.scd" "$dir/docs/man"
cp -r "$root/test/reader" "$dir/test"

number=$(/usr/bin/python3 -B - "$dir/include/weft/kind.h" <<'END'
import re
import sys
with open(sys.argv[1]) as file:
    text = file.read()
last = re.search(r"^#define WEFT_KINDS\(K, F, E\) \\\n(?:.*\\\n)*(.*E\(\w+\))\n", text, re.M)
number = max(int(one) for one in re.findall(r"^\tK\(\w+, (\d+),", text, re.M)) + 1
kind = f''' \\
	K(SCRATCH, {number}, "scratch", WORDS, RARE, "only this test has it") \\
		F(SCRATCH, TID, "tid", U64, "", VALUE) \\
		F(SCRATCH, AGE, "age", U64, "ns", VALUE) \\
		F(SCRATCH, STACK, "stack", STACK, "", STACK) E(SCRATCH)'''
with open(sys.argv[1], "w") as file:
    file.write(text[:last.end(1)] + kind + text[last.end(1):])
print(number)
END
)

cat >"$dir/scratch.c" <<'END'
#include <stdio.h>
#include "record/collect/unpack.h"
#include "segment/defs.h"
#define CHECK(what) (what) || (printf("not so: %s\n", #what), bad = 1)
static int stack(void *who, uint64_t *field)
{
	(void)who;
	*field += 1000;
	return 0;
}
int main(void)
{
	static const struct weft__resolver by = {.stack = stack};
	struct weft_slot slots[] = {{77 << 8 | WEFT_KIND_SCRATCH, 1}, {2, 3}};
	struct weft__unpacked ev;
	struct weft__defs defs = {0};
	int bad = 0;

	CHECK(event_slots(slots) == 2);
	CHECK(weft__resolve(&by, NULL, 42, slots, &ev) == 0);
	CHECK(ev.n_fields == WEFT_FIELDS_OF_SCRATCH && ev.n_fields == 3);
	CHECK(WEFT_FIELD(&ev, SCRATCH, TID) == 1 && WEFT_FIELD(&ev, SCRATCH, AGE) == 2);
	CHECK(WEFT_FIELD(&ev, SCRATCH, STACK) == 1003);
	weft__defs_builtin_kinds(&defs);
	CHECK(memmem(defs.out.bytes, defs.out.n, "scratch", 7) != NULL);
	CHECK(defs.n == WEFT_KIND_BUILTIN_END - 1);
	return bad;
}
END
flags=(-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror "-I$dir/include" "-I$root/src")
cc "${flags[@]}" "$dir/scratch.c" "$root"/src/segment/defs.c "$root"/src/base/{buf,alloc,heap}.c -o "$dir/scratch"
"$dir/scratch"
# Who makes something of the list, or asserts something about it.
for file in record/event/wide_hot record/collect/gather record/collect/drain record/salvage \
	analyze/analysis trace/plain; do
	cc "${flags[@]}" -fsyntax-only "$root/src/$file.c"
done

row="| $number | scratch | tid, age (ns), stack (stack) | only this test has it |"
! "$root/tools/gen-lists" --check "$dir" >/dev/null || { echo "the document is not out of date"; exit 1; }
"$root/tools/gen-lists" "$dir"
grep -qxF "$row" "$dir/docs/FORMAT.md" || { echo "not in the document: $row"; exit 1; }
cd "$dir/test/reader"
/usr/bin/python3 -B -c "
import weftsamples
found = weftsamples.OWN_KINDS.get($number)
assert found == ('scratch', [('tid', 1, ''), ('age', 1, 'ns'), ('stack', 9, '')]), found"
changed=$({
	diff -rq "$root/include" "$dir/include"
	diff -rq "$root/docs/FORMAT.md" "$dir/docs/FORMAT.md"
} | wc -l) || true
[ "$changed" = 2 ] || { echo "$changed files changed, not the list and the document"; exit 1; }
