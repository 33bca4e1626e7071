/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of our line tables beside libdw's. */
#include "symbol/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>

#include "unit/symbol/fixture.h"
#include "weft_test.h"

struct tally {
	uint64_t units, understood, rows, agree;
	uint64_t code; /* where the code begins: below it is what the linker dropped */
};

/* At the end of a sequence libdw may have an empty row. */
static bool at_an_end(Dwarf_Lines *lines, size_t n, Dwarf_Addr address)
{
	for (size_t i = 0; i < n; i++) {
		Dwarf_Addr other;
		bool end = false;

		dwarf_lineaddr(dwarf_onesrcline(lines, i), &other);
		dwarf_lineendsequence(dwarf_onesrcline(lines, i), &end);
		if (end && other == address)
			return true;
	}
	return false;
}

static void section_of(Elf *elf, const char *name, const uint8_t **bytes, size_t *n)
{
	Elf_Scn *scn = NULL;
	size_t names;

	*bytes = NULL;
	*n = 0;
	elf_getshdrstrndx(elf, &names);
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		Elf_Data *data = elf_getdata(scn, NULL);

		if (!gelf_getshdr(scn, &shdr) || strcmp(elf_strptr(elf, names, shdr.sh_name), name) != 0 || !data)
			continue;
		*bytes = data->d_buf;
		*n = data->d_size;
	}
}

static void compare_unit(Dwarf_Die *die, struct weft__lines *lines, struct weft__texts *texts, struct tally *tally)
{
	Dwarf_Lines *theirs;
	size_t n;

	if (dwarf_getsrclines(die, &theirs, &n) != 0)
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Addr address;
		Dwarf_Line *want;
		const struct weft__line_row *row;
		const char *file = NULL, *their_file = NULL;
		int line = 0;

		dwarf_lineaddr(dwarf_onesrcline(theirs, i), &address);
		if (address < tally->code)
			continue;
		want = dwarf_getsrc_die(die, address);
		if (want) {
			dwarf_lineno(want, &line);
			their_file = dwarf_linesrc(want, NULL, NULL);
		}
		row = weft__lines_find(lines, address);
		if (row)
			CHECK_EQ(weft__lines_file(lines, texts, row->file, &file), 0);
		tally->rows++;
		if (!row && at_an_end(theirs, n, address)) {
			tally->agree++;
			continue;
		}
		if (!want != !row || (row && ((int)row->line != line || !fixture_ends(file, their_file)))) {
			if (tally->rows - tally->agree < 5)
				printf("\t%#" PRIx64 ": %s:%u, libdw %s:%d\n", (uint64_t)address, file ? file : "none",
				       row ? row->line : 0, their_file ? their_file : "none", line);
			continue;
		}
		tally->agree++;
	}
}

static void compare_file(const char *path, uint64_t code)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Dwarf *dwarf = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	struct weft__lines_sections sections;
	struct tally tally = {.code = code};
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;

	if (!CHECK(dwarf != NULL))
		return;
	section_of(dwarf_getelf(dwarf), ".debug_line", &sections.line, &sections.line_n);
	section_of(dwarf_getelf(dwarf), ".debug_line_str", &sections.line_str, &sections.line_str_n);
	section_of(dwarf_getelf(dwarf), ".debug_str", &sections.str, &sections.str_n);
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
		struct weft__lines lines = {0};
		struct weft__texts texts = {0};
		Dwarf_Attribute attribute;
		Dwarf_Word offset;

		if (dwarf_formudata(dwarf_attr(&die, DW_AT_stmt_list, &attribute), &offset) != 0)
			continue;
		tally.units++;
		if (weft__lines_read(&lines, &sections, offset, 8,
				     dwarf_formstring(dwarf_attr(&die, DW_AT_comp_dir, &attribute))) == 0) {
			tally.understood++;
			compare_unit(&die, &lines, &texts, &tally);
		}
		weft__lines_fini(&lines);
		weft__texts_fini(&texts);
	}
	printf("\t%s: %" PRIu64 " of %" PRIu64 " units, %" PRIu64 " of %" PRIu64 " rows\n", path, tally.understood,
	       tally.units, tally.agree, tally.rows);
	CHECK(tally.units > 0 && tally.rows > 0);
	CHECK_EQ(tally.understood, tally.units);
	CHECK_EQ(tally.agree, tally.rows);
	dwarf_end(dwarf);
	close(fd);
}

static void compare_fixture(const char *name)
{
	struct weft__symbol_module module;
	uint64_t code;

	if (!fixture_there(name))
		SKIP("the compiler for it is not here");
	REQUIRE(fixture_module(name, &module, &code));
	compare_file(fixture_path(name), code);
}

TEST(dwarf_5_of_gcc)
{
	compare_fixture("inline");
}

TEST(dwarf_4_of_gcc)
{
	compare_fixture("inline4");
}

TEST(lines_of_a_program_of_clang_are_those_of_its_dwarf)
{
	compare_fixture("inline_clang");
}

TEST(lines_of_a_cxx_program_are_those_of_its_dwarf)
{
	compare_fixture("mangled");
}

TEST(lines_of_a_rust_program_are_those_of_its_dwarf)
{
	compare_fixture("hashed");
}

TEST(lines_of_a_program_with_split_dwarf_are_found)
{
	compare_fixture("split");
}

/* Any bytes in the place of the table: an error or an answer, and no more memory than the bytes are worth. */
TEST(tables_that_are_cut_or_wrong)
{
	int fd = open(fixture_path("inline4"), O_RDONLY | O_CLOEXEC);
	Dwarf *dwarf = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	struct weft__lines_sections sections;
	uint8_t *copy;
	size_t n;

	REQUIRE(dwarf != NULL);
	section_of(dwarf_getelf(dwarf), ".debug_line", &sections.line, &sections.line_n);
	sections.line_str = sections.str = NULL;
	sections.line_str_n = sections.str_n = 0;
	n = sections.line_n;
	for (size_t i = 0; i < n; i++) {
		struct weft__lines lines = {0};

		copy = malloc(n);
		REQUIRE(copy != NULL);
		memcpy(copy, sections.line, n);
		copy[i] ^= (uint8_t)(0x55 + i);
		for (size_t cut = 0; cut < 2; cut++) {
			struct weft__lines_sections bad = {.line = copy, .line_n = cut ? i : n};

			weft__lines_read(&lines, &bad, 0, 8, NULL);
			CHECK(lines.n <= n);
			weft__lines_find(&lines, 0x1234);
			weft__lines_fini(&lines);
		}
		free(copy);
	}
	dwarf_end(dwarf);
	close(fd);
}
