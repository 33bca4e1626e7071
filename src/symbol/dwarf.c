/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "symbol/die.h"
#include "symbol/lines.h"
#include "symbol/plain.h"
#include "symbol/range.h"

#define UNITS_MAX ((size_t)1 << 22)
#define RANGES_MAX ((size_t)1 << 23) /* of one unit, and of all units together */
#define DEPTH_MAX 256                /* deeper entries count as children of the last level */
#define NONE UINT32_MAX

/* A function, or one that is inlined at one place. */
struct node {
	const uint8_t *die;
	uint64_t start;
	uint32_t parent; /* what it is inlined into; NONE: a function of its own */
	uint32_t call_file;
	uint32_t call_line;
	const char *name; /* NULL: not looked up yet */
};

struct unit {
	Dwarf_Die die;  /* has the lines */
	Dwarf_Die tree; /* has the functions: the same, or that of a .dwo file */
	bool built;
	bool by_libdw; /* its lines */
	bool old;      /* before DWARF 4, where mangled names had another attribute */
	struct weft__lines lines;
	struct node *nodes;
	size_t n;
	size_t cap;
	struct weft__ranges ranges; /* values: indices of `nodes` */
};

struct weft__dwarf {
	Dwarf *dwarf;
	struct weft__elf_image plain; /* when the file's own is packed */
	struct unit *units;
	size_t n;
	size_t cap;
	struct weft__ranges ranges; /* values: indices of `units` */
	size_t n_ranges;            /* of all units */
};

/* Adds the ranges of an entry. Code that the linker dropped is left at address 0. */
static int add_ranges(struct weft__ranges *ranges, Dwarf_Die *die, uint32_t value, uint64_t *start)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	*start = UINT64_MAX;
	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		int failed = lo ? weft__ranges_add(ranges, lo, hi, value, RANGES_MAX) : 0;

		if (failed)
			return failed;
		if (lo && lo < hi && lo < *start)
			*start = lo;
	}
	return 0;
}

static int add_unit(struct weft__dwarf *dwarf, Dwarf_Die *die)
{
	struct unit *units;
	uint64_t start;
	int failed;

	if (dwarf->n >= UNITS_MAX)
		return -E2BIG;
	units = weft__grow(dwarf->units, &dwarf->cap, dwarf->n, sizeof(*units));
	if (!units)
		return -ENOMEM;
	dwarf->units = units;
	units[dwarf->n] = (struct unit){.die = *die, .tree = *die};
	failed = add_ranges(&dwarf->ranges, die, (uint32_t)dwarf->n, &start);
	if (start != UINT64_MAX)
		dwarf->n++;
	return failed;
}

int weft__dwarf_open(struct weft__dwarf **ret, const struct weft__elf_image *image)
{
	struct weft__dwarf *dwarf = weft__calloc(1, sizeof(*dwarf));
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Die die;
	int failed;

	if (!dwarf)
		return -ENOMEM;
	failed = weft__plain_open(&dwarf->plain, image);
	if (!failed || failed == -ENOENT) {
		failed = 0;
		dwarf->dwarf = dwarf_begin_elf(dwarf->plain.elf ? dwarf->plain.elf : image->elf, DWARF_C_READ, NULL);
	}
	if (!failed && !dwarf->dwarf)
		failed = -ENOENT;
	while (!failed && dwarf_get_units(dwarf->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			failed = add_unit(dwarf, &die);
	if (!failed || failed == -E2BIG)
		failed = dwarf->n ? weft__ranges_seal(&dwarf->ranges) : -ENOENT;
	if (failed) {
		weft__dwarf_close(dwarf);
		return failed;
	}
	*ret = dwarf;
	return 0;
}

static void forget(struct unit *unit)
{
	weft__ranges_fini(&unit->ranges);
	weft__free(unit->nodes);
	weft__lines_fini(&unit->lines);
	unit->nodes = NULL;
	unit->n = unit->cap = 0;
	unit->built = false;
}

void weft__dwarf_close(struct weft__dwarf *dwarf)
{
	size_t i;

	if (!dwarf)
		return;
	for (i = 0; i < dwarf->n; i++)
		forget(&dwarf->units[i]);
	weft__ranges_fini(&dwarf->ranges);
	weft__free(dwarf->units);
	if (dwarf->dwarf)
		dwarf_end(dwarf->dwarf);
	weft__elf_image_close(&dwarf->plain);
	weft__free(dwarf);
}

/* The bytes of one of two section names (plain, or in a .dwo file) as libdw sees them, unpacked. */
static Elf_Data *section(Elf *elf, const char *plain, const char *split)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if (name && (!strcmp(name, plain) || !strcmp(name, split)))
			return elf_getdata(scn, NULL);
	}
	return NULL;
}

static int begin(struct weft__dies *dies, Dwarf_Die *die)
{
	Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(die->cu));
	bool split = section(elf, ".debug_info.dwo", ".zdebug_info.dwo");
	Elf_Data *info = split ? section(elf, ".debug_info.dwo", ".zdebug_info.dwo")
			       : section(elf, ".debug_info", ".zdebug_info");
	Elf_Data *abbrev = split ? section(elf, ".debug_abbrev.dwo", ".zdebug_abbrev.dwo")
				 : section(elf, ".debug_abbrev", ".zdebug_abbrev");
	uint64_t at = dwarf_dieoffset(die), in_unit = dwarf_cuoffset(die);

	/* Only when these are the very bytes that libdw reads can its entries be made from addresses in them. */
	if (!info || !abbrev || !info->d_buf || !abbrev->d_buf || at >= info->d_size || in_unit > at ||
	    (uint8_t *)info->d_buf + at != die->addr)
		return -EINVAL;
	return weft__dies_init(dies, (uint8_t *)die->addr - in_unit, info->d_size - (at - in_unit), abbrev->d_buf,
			       abbrev->d_size);
}

static int add_node(struct unit *unit, const struct weft__die *die, uint32_t parent)
{
	struct node *nodes = weft__grow(unit->nodes, &unit->cap, unit->n, sizeof(*nodes));
	uint32_t value = (uint32_t)unit->n;
	Dwarf_Die own = {.addr = (void *)die->at, .cu = unit->tree.cu};
	int failed;

	if (!nodes)
		return -ENOMEM;
	unit->nodes = nodes;
	nodes[unit->n++] = (struct node){die->at, die->low, parent, die->call_file, die->call_line, NULL};
	if (!die->has_range)
		return add_ranges(&unit->ranges, &own, value, &nodes[value].start);
	failed = die->low ? weft__ranges_add(&unit->ranges, die->low, die->high, value, RANGES_MAX) : 0;
	return failed;
}

static int walk(struct unit *unit, struct weft__dies *dies)
{
	uint32_t parents[DEPTH_MAX + 1], depth = 0;
	struct weft__die die;
	int failed = 0;

	parents[0] = NONE;
	while (!failed && weft__dies_next(dies, &die)) {
		uint32_t level = depth < DEPTH_MAX ? depth : DEPTH_MAX;
		uint32_t node = parents[level];

		if (!die.tag) {
			if (!depth)
				break;
			depth--;
			continue;
		}
		if (die.tag == DW_TAG_subprogram)
			node = NONE;
		if (die.has_code) {
			failed = add_node(unit, &die, node);
			node = (uint32_t)unit->n - 1;
		}
		if (die.has_children) {
			depth++;
			parents[depth < DEPTH_MAX ? depth : DEPTH_MAX] = node;
		}
	}
	return failed;
}

static void put_section(Elf *elf, const char *plain, const char *packed, const uint8_t **bytes, size_t *n)
{
	Elf_Data *data = section(elf, plain, packed);

	*bytes = data ? data->d_buf : NULL;
	*n = data && data->d_buf ? data->d_size : 0;
}

/* Our own reader of lines; where it does not understand a table, libdw's. */
static int read_lines(struct weft__dwarf *dwarf, struct unit *unit)
{
	Elf *elf = dwarf_getelf(dwarf->dwarf);
	struct weft__lines_sections sections;
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	uint8_t address_bytes = 0;
	int failed = -EINVAL;

	put_section(elf, ".debug_line", ".zdebug_line", &sections.line, &sections.line_n);
	put_section(elf, ".debug_line_str", ".zdebug_line_str", &sections.line_str, &sections.line_str_n);
	put_section(elf, ".debug_str", ".zdebug_str", &sections.str, &sections.str_n);
	if (dwarf_formudata(dwarf_attr(&unit->die, DW_AT_stmt_list, &attribute), &offset) == 0 &&
	    dwarf_cu_die(unit->die.cu, &(Dwarf_Die){0}, NULL, NULL, &address_bytes, NULL, NULL, NULL))
		failed = weft__lines_read(&unit->lines, &sections, offset, address_bytes,
					  dwarf_formstring(dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute)));
	unit->by_libdw = failed != 0;
	if (failed)
		weft__lines_fini(&unit->lines);
	return failed == -ENOMEM ? failed : 0;
}

static int build(struct weft__dwarf *dwarf, struct unit *unit)
{
	struct weft__dies dies = {0};
	Dwarf_Half version = 0;
	Dwarf_Die tree;
	uint8_t type;
	int failed;

	unit->built = true;
	if (dwarf->n_ranges >= RANGES_MAX)
		return 0;
	if (dwarf_cu_info(unit->die.cu, &version, &type, NULL, &tree, NULL, NULL, NULL) == 0 &&
	    type == DW_UT_skeleton && tree.addr)
		unit->tree = tree;
	unit->old = version < 4;
	failed = read_lines(dwarf, unit);
	if (!failed)
		failed = begin(&dies, &unit->tree);
	if (!failed)
		failed = walk(unit, &dies);
	weft__dies_fini(&dies);
	dwarf->n_ranges += unit->ranges.n;
	if (failed != -ENOMEM)
		failed = weft__ranges_seal(&unit->ranges);
	if (failed == -ENOMEM)
		forget(unit);
	return failed;
}

static const char *attribute_text(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static const char *node_name(struct weft__texts *names, const struct unit *unit, struct node *node)
{
	Dwarf_Die die = {.addr = (void *)node->die, .cu = unit->tree.cu};
	const char *name;

	if (node->name)
		return node->name;
	name = attribute_text(&die, DW_AT_linkage_name);
	if (!name && unit->old)
		name = attribute_text(&die, DW_AT_MIPS_linkage_name);
	if (!name)
		name = dwarf_diename(&die);
	node->name = weft__texts_add(names, name && name[0] ? name : "??");
	return node->name;
}

static int line_of(struct weft__texts *names, struct unit *unit, uint64_t address, struct weft__dwarf_line *ret)
{
	const struct weft__line_row *row = weft__lines_find(&unit->lines, address);
	Dwarf_Line *line;
	const char *file;
	int number = 0;

	if (row) {
		ret->line = row->line;
		return weft__lines_file(&unit->lines, names, row->file, &ret->file);
	}
	line = unit->by_libdw ? dwarf_getsrc_die(&unit->die, address) : NULL;
	file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	if (!file)
		return 0;
	ret->file = weft__texts_add(names, file);
	if (!ret->file)
		return -ENOMEM;
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		ret->line = (uint32_t)number;
	return 0;
}

static int call_of(struct weft__texts *names, struct unit *unit, const struct node *node, struct weft__dwarf_line *ret)
{
	Dwarf_Files *files;
	size_t n;
	const char *file;

	*ret = (struct weft__dwarf_line){NULL, node->call_line};
	/* Calls in a .dwo file count the files of its own table. */
	if (!unit->by_libdw && unit->tree.addr == unit->die.addr)
		return weft__lines_file(&unit->lines, names, node->call_file, &ret->file);
	if (dwarf_getsrcfiles(&unit->tree, &files, &n) != 0 && dwarf_getsrcfiles(&unit->die, &files, &n) != 0)
		return 0;
	file = node->call_file < n ? dwarf_filesrc(files, node->call_file, NULL, NULL) : NULL;
	if (!file)
		return 0;
	ret->file = weft__texts_add(names, file);
	return ret->file ? 0 : -ENOMEM;
}

static int add_frames(struct weft__symbol_env *env, struct unit *unit, uint32_t i, struct weft__dwarf_line line,
		      struct weft__frame_list *out, uint64_t *start)
{
	for (; i != NONE; i = unit->nodes[i].parent) {
		struct node *node = &unit->nodes[i];
		const char *name = node_name(&env->texts, unit, node);

		if (!name || weft__frame_add(env, out, name, line.file, line.line, 0) < 0)
			return -ENOMEM;
		out->at[out->n - 1].inlined = node->parent != NONE;
		*start = node->start;
		if (node->parent != NONE && call_of(&env->texts, unit, node, &line) < 0)
			return -ENOMEM;
	}
	return (int)out->n;
}

int weft__dwarf_resolve(struct weft__dwarf *dwarf, struct weft__symbol_env *env, uint64_t address,
			struct weft__frame_list *out, struct weft__dwarf_line *line, uint64_t *start)
{
	uint32_t i = weft__ranges_find(&dwarf->ranges, address);
	struct unit *unit;

	*line = (struct weft__dwarf_line){NULL, 0};
	if (i == WEFT__RANGE_NONE)
		return 0;
	unit = &dwarf->units[i];
	if (!unit->built && build(dwarf, unit) < 0)
		return -ENOMEM;
	if (line_of(&env->texts, unit, address, line) < 0)
		return -ENOMEM;
	i = weft__ranges_find(&unit->ranges, address);
	return i == WEFT__RANGE_NONE ? 0 : add_frames(env, unit, i, *line, out, start);
}
