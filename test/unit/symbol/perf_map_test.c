/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/perf_map.h"

#include "weft_test.h"

static struct weft__jitcode parsed(const char *text)
{
	struct weft__jitcode code = {0};

	CHECK_EQ(weft__perf_map_parse(&code, text, strlen(text)), 0);
	weft__jitcode_seal(&code);
	return code;
}

static void check_at(const struct weft__jitcode *code, uint64_t address, const char *want)
{
	const struct weft__jitcode_piece *piece = weft__jitcode_get(code, address, 0);
	char name[256] = "";

	if (piece)
		memcpy(name, piece->name, piece->name_n);
	CHECK_STR(name, want);
}

TEST(names_may_have_blanks)
{
	struct weft__jitcode code = parsed("7f0010 20 LazyCompile:~tick /srv/app.js:12:3\n0x7f0100 0x8 b\n");

	check_at(&code, 0x7f000f, "");
	check_at(&code, 0x7f0010, "LazyCompile:~tick /srv/app.js:12:3");
	check_at(&code, 0x7f002f, "LazyCompile:~tick /srv/app.js:12:3");
	check_at(&code, 0x7f0030, "");
	check_at(&code, 0x7f0107, "b");
	weft__jitcode_fini(&code);
}

TEST(the_last_line_for_an_address_wins)
{
	struct weft__jitcode code = parsed("1000 100 old\n1080 10 new\n1000 8 newest\r\n");

	check_at(&code, 0x1004, "newest");
	check_at(&code, 0x1008, "old");
	check_at(&code, 0x1085, "new");
	check_at(&code, 0x1095, "old");
	weft__jitcode_fini(&code);
}

TEST(lines_that_are_none_are_passed_over)
{
	struct weft__jitcode code = parsed("\n \nx y z\n1000\n1000 10\n1000 10 \n11111111111111111 1 a\n"
					   "ffffffffffffffff 2 wraps\n2000 0 empty\n3000 10 good");

	CHECK_EQ(code.n, 1);
	check_at(&code, 0x300f, "good");
	weft__jitcode_fini(&code);
}
