/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/demangle.h"

#include "base/alloc.h"
#include "symbol/texts.h"
#include "weft_test.h"

static void check(const char *raw, const char *want)
{
	char *text = weft__demangle(raw);

	CHECK_STR(text ? text : raw, want);
	weft__free(text);
}

TEST(cxx_names_lose_their_return_type)
{
	check("_ZN4loom7Shuttle4passIlEET_S2_", "loom::Shuttle::pass<long>(long)");
	check("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)");
}

TEST(rust_names_lose_their_hash)
{
	check("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	check("_RNvMCs4fqI2P2rA04_6hashedNtB2_4Loom5weave", "<hashed::Loom>::weave");
	check("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
}

TEST(names_of_c_stay)
{
	check("main", "main");
	check("_start", "_start");
	check("", "");
	check("_Z", "_Z");
	check("_ZN", "_ZN");
}

TEST(versions_are_cut_off)
{
	check("memcpy@@GLIBC_2.14", "memcpy");
	check("_ZNSt6vectorIiSaIiEE9push_backERKi@@V1",
	      "std::vector<int, std::allocator<int> >::push_back(int const&)");
}

TEST(the_name_of_a_clone_says_that_it_is_one)
{
	check("_ZL3fooi.constprop.0", "foo(int) [clone .constprop.0]");
}

/* Each argument is a function of two of the argument before: 160 bytes that stand for a megabyte. */
TEST(a_name_that_explodes_is_left_as_it_is)
{
	char raw[1024] = "_Z1fP1A";
	size_t n = strlen(raw);

	for (int i = 0; i < 17; i++) {
		char before = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[2 * i];

		n += (size_t)snprintf(raw + n, sizeof(raw) - n, "PFvS%c_S%c_E", before, before);
		if (i == 3) {
			char *text = weft__demangle(raw);

			CHECK(text && strlen(text) > 200);
			weft__free(text);
		}
	}
	CHECK(!weft__demangle(raw));
}

TEST(a_name_without_end_is_left_as_it_is)
{
	static char raw[100000] = "_Z";

	memset(raw + 2, 'P', sizeof(raw) - 3);
	CHECK(!weft__demangle(raw));
}

TEST(texts_are_kept_once)
{
	struct weft__texts names = {0};
	const char *first = weft__texts_add(&names, "a");

	for (int i = 0; i < 5000; i++) {
		char text[16];

		snprintf(text, sizeof(text), "n%d", i);
		CHECK_STR(weft__texts_add(&names, text), text);
	}
	CHECK(weft__texts_add(&names, "a") == first);
	CHECK_STR(weft__texts_demangled(&names, weft__texts_add(&names, "_Z1fv")), "f()");
	weft__texts_fini(&names);
}
