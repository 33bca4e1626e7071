/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/kallsyms.h"

#include <stdlib.h>
#include <unistd.h>

#include "symbol/symbol.h"
#include "weft_test.h"

static const char sample[] = "ffffffff81000000 T _text\n"
			     "ffffffff81000000 T _stext\n"
			     "ffffffff81000100 t do_one\n"
			     "ffffffff81000180 D a_variable\n"
			     "ffffffff81000200 W do_two\n"
			     "ffffffffc0001000 t in_module\t[loom]\n";

static void check_at(const struct weft__kallsyms *syms, uint64_t address, const char *want)
{
	const struct weft__kallsym *sym = weft__kallsyms_get(syms, address);

	CHECK_STR(sym ? sym->name : "", want);
}

TEST(functions_reach_to_the_next)
{
	struct weft__kallsyms syms = {0};
	char text[sizeof(sample)];

	memcpy(text, sample, sizeof(sample));
	CHECK_EQ(weft__kallsyms_parse(&syms, text), 0);
	check_at(&syms, UINT64_C(0xffffffff80ffffff), "");
	check_at(&syms, UINT64_C(0xffffffff810001ff), "do_one");
	check_at(&syms, UINT64_C(0xffffffff81000200), "do_two");
	check_at(&syms, UINT64_C(0xffffffffc0001004), "in_module");
	check_at(&syms, UINT64_C(0xffffffffd0000000), "");
	CHECK_EQ(syms.text, UINT64_C(0xffffffff81000000));
	weft__kallsyms_fini(&syms);
}

TEST(hidden_addresses_are_noticed)
{
	struct weft__kallsyms syms = {0};
	char text[] = "0000000000000000 T _text\n0000000000000000 t do_one\n";

	CHECK_EQ(weft__kallsyms_parse(&syms, text), 0);
	CHECK_EQ(syms.n, 0);
	CHECK(syms.hidden);
	weft__kallsyms_fini(&syms);
}

TEST(lines_that_are_none_are_passed_over)
{
	struct weft__kallsyms syms = {0};
	char text[] = "\n\nx\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \nffffffff81000000 T good";

	CHECK_EQ(weft__kallsyms_parse(&syms, text), 0);
	CHECK_EQ(syms.n, 1);
	weft__kallsyms_fini(&syms);
}

static void resolve(const char *text, uint64_t start, uint64_t end, uint64_t ip, const char *want, const char *why)
{
	char path[] = "/tmp/weft-kallsyms-XXXXXX";
	struct weft__symbolizer_opts opts = {.kallsyms = path};
	struct weft__symbol_module module = {.path = "[kernel]", .start = start, .end = end};
	struct weft__symbol_place place = {.ip = ip};
	struct weft__symbol_frames frames;
	struct weft__symbolizer *sym;
	int fd = mkstemp(path);

	REQUIRE(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	REQUIRE(weft__symbolizer_open(&sym, &opts, NULL) == 0);
	CHECK_EQ(weft__symbolizer_add(sym, &module, &place.module), 0);
	CHECK_EQ(weft__symbolizer_resolve(sym, &place, &frames), 1);
	CHECK_STR(frames.at[0].function, want);
	CHECK(strstr(weft__symbolizer_why(sym, place.module), why));
	weft__symbolizer_close(sym);
	unlink(path);
}

TEST(kernel_addresses_get_their_names)
{
	resolve(sample, 0, 0, UINT64_C(0xffffffff81000140), "do_one", "");
}

TEST(a_kernel_that_lay_elsewhere_is_shifted)
{
	resolve(sample, UINT64_C(0xffffffff9a000000), UINT64_C(0xffffffff9b000000), UINT64_C(0xffffffff9a000140),
		"do_one", "");
}

TEST(the_reason_for_hidden_addresses_is_given)
{
	resolve("0000000000000000 T _text\n", 0, 0, UINT64_C(0xffffffff81000140), "[kernel]+0xffffffff81000140",
		"kptr_restrict");
}
