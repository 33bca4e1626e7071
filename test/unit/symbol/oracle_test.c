/* SPDX-License-Identifier: Apache-2.0 */
/* Every answer beside that of addr2line and of eu-addr2line: the same functions, files and lines in the same order. */
/* presets: asan release: it takes long */
#include <ctype.h>
#include <inttypes.h>

#include "unit/symbol/fixture.h"
#include "weft_test.h"

#define FRAMES 64

struct said {
	uint64_t address;
	int n;
	struct {
		char name[4096];
		char file[PATH_MAX];
		unsigned line;
	} at[FRAMES];
};

struct oracle {
	FILE *out;
	char line[16384];
	bool have;
};

static bool next_line(struct oracle *o)
{
	o->have = fgets(o->line, sizeof(o->line), o->out) != NULL;
	if (o->have)
		o->line[strcspn(o->line, "\n")] = 0;
	return o->have;
}

static void cut_at(char *text, const char *mark)
{
	char *p = strstr(text, mark);

	if (p)
		*p = 0;
}

/* FILE:LINE, FILE:LINE:COLUMN, FILE:LINE (discriminator N), or ?? in place of any of them. */
static void read_place(char *text, char *file, unsigned *line)
{
	char *colon;
	int numbers = 0;

	cut_at(text, " (");
	for (char *p = text + strlen(text); p > text && (isdigit((unsigned char)p[-1]) || p[-1] == ':'); p--)
		numbers += p[-1] == ':';
	if (numbers > 1)
		*strrchr(text, ':') = 0;
	colon = strrchr(text, ':');
	*line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
	if (colon)
		*colon = 0;
	snprintf(file, PATH_MAX, "%.*s", PATH_MAX - 1, text);
}

/* The next address and what it was said to be; the line after it is read. */
static bool next_said(struct oracle *o, struct said *said)
{
	if (!o->have || strncmp(o->line, "0x", 2) != 0)
		return false;
	said->address = strtoull(o->line, NULL, 16);
	said->n = 0;
	next_line(o);
	while (o->have && strncmp(o->line, "0x", 2) != 0 && said->n < FRAMES) {
		cut_at(o->line, " inlined at ");
		snprintf(said->at[said->n].name, sizeof(said->at[0].name), "%.4095s", o->line);
		if (!next_line(o))
			break;
		read_place(o->line, said->at[said->n].file, &said->at[said->n].line);
		said->n++;
		next_line(o);
	}
	return true;
}

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "??";
}

static bool same_name(const struct weft__symbol *frame, const char *name)
{
	size_t n = strlen(name);

	if (!frame->raw)
		return !strcmp(name, "??");
	/* The symbol of the outermost one may carry what the compiler did to it. */
	return !strcmp(frame->raw, name) || !strcmp(frame->function, name) ||
	       (!frame->inlined && !strncmp(frame->raw, name, n) && frame->raw[n] == '.');
}

/* Where the functions of the program are, by its symbol table, which is read here in another way than by what is
 * tested. */
struct spans {
	struct span {
		uint64_t lo, hi, name;
	} at[65536];
	size_t n;
};

/* A number for a name, without what the compiler adds to make it one of its own. */
static uint64_t number_of(const char *name)
{
	const char *end = strstr(name, ".llvm.");
	uint64_t number = 14695981039346656037u;

	for (; *name && name != end; name++)
		number = (number ^ (uint8_t)*name) * 1099511628211u;
	return number;
}

static void read_spans(struct spans *spans, const char *name)
{
	struct weft__elf_image image;
	Elf_Scn *scn = NULL;

	spans->n = 0;
	if (weft__elf_image_open(&image, "", fixture_path(name)) < 0)
		return;
	while ((scn = elf_nextscn(image.elf, scn))) {
		GElf_Shdr shdr;
		GElf_Sym sym;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_SYMTAB)
			continue;
		for (int i = 0; gelf_getsym(elf_getdata(scn, NULL), i, &sym); i++)
			if (GELF_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_size && spans->n < 65536)
				spans->at[spans->n++] =
					(struct span){sym.st_value, sym.st_value + sym.st_size,
						      number_of(elf_strptr(image.elf, shdr.sh_link, sym.st_name))};
	}
	weft__elf_image_close(&image);
}

static bool in_function(const struct spans *spans, uint64_t address)
{
	for (size_t i = 0; i < spans->n; i++)
		if (address >= spans->at[i].lo && address < spans->at[i].hi)
			return true;
	return false;
}

/* Functions that came out the same are one, with both names: either is right. */
static bool are_one(const struct spans *spans, uint64_t address, const char *one, const char *other)
{
	uint64_t a = number_of(one), b = number_of(other), lo[2] = {0, 1};

	for (size_t i = 0; i < spans->n; i++) {
		if (address < spans->at[i].lo || address >= spans->at[i].hi)
			continue;
		if (spans->at[i].name == a)
			lo[0] = spans->at[i].lo;
		if (spans->at[i].name == b)
			lo[1] = spans->at[i].lo;
	}
	return lo[0] == lo[1];
}

static bool agrees(const struct spans *spans, const struct weft__symbol_frames *frames, const struct said *said)
{
	const struct weft__symbol *outer = &frames->at[frames->n - 1];

	if ((int)frames->n != said->n)
		return false;
	for (int i = 0; i < said->n; i++) {
		const struct weft__symbol *frame = &frames->at[i];

		/* addr2line gives the symbol's name to the innermost frame when DWARF has no mangled one. */
		if (!same_name(frame, said->at[i].name) && (i || !same_name(outer, said->at[i].name)) &&
		    !(frame == outer && frame->raw && are_one(spans, said->address, frame->raw, said->at[i].name)))
			return false;
		if (frame->line != said->at[i].line)
			return false;
		if (said->at[i].line && strcmp(base_of(frame->file), base_of(said->at[i].file)) != 0)
			return false;
	}
	return true;
}

static void show(const struct weft__symbol_frames *frames, const struct said *said)
{
	printf("\t%#" PRIx64 ":", said->address);
	for (uint32_t i = 0; i < frames->n; i++)
		printf(" %s %s:%u", frames->at[i].raw ? frames->at[i].raw : "??", base_of(frames->at[i].file),
		       frames->at[i].line);
	printf("\n\t\tbut");
	for (int i = 0; i < said->n; i++)
		printf(" %s %s:%u", said->at[i].name, base_of(said->at[i].file), said->at[i].line);
	printf("\n");
}

/* Asks about many addresses of the program's code; answers how many of 1,000 agree, and how many that lie in a
 * function have no name although the tool has one. */
static int compare(const char *tool, const char *name, uint64_t step, long *missing)
{
	static struct spans spans;
	char path[] = "/tmp/weft-oracle-XXXXXX", command[2 * PATH_MAX];
	static struct said said;
	struct oracle o = {0};
	struct fixture f;
	FILE *list;
	long all = 0, good = 0;
	int fd = mkstemp(path);

	if (fd < 0 || !fixture_open(&f, name, NULL, NULL))
		return -1;
	read_spans(&spans, name);
	*missing = 0;
	list = fdopen(fd, "w");
	for (uint64_t at = f.address; at < f.address + (f.module.end - f.module.start); at += step)
		fprintf(list, "0x%" PRIx64 "\n", at);
	fclose(list);
	snprintf(command, sizeof(command), "DEBUGINFOD_URLS= %s -a -i -f -e %s <%s", tool, fixture_path(name), path);
	o.out = popen(command, "r");
	next_line(&o);
	while (next_said(&o, &said)) {
		if (fixture_resolve(&f, said.address) <= 0)
			break;
		if (!f.frames.at[0].raw && !strcmp(said.at[0].name, "??"))
			continue;
		if (!f.frames.at[0].raw && in_function(&spans, said.address))
			++*missing;
		else if (!f.frames.at[0].raw && !strcmp(tool, "addr2line"))
			continue; /* padding: it names the function before */
		all++;
		if (agrees(&spans, &f.frames, &said))
			good++;
		else if (all - good <= 5)
			show(&f.frames, &said);
	}
	pclose(o.out);
	unlink(path);
	fixture_close(&f);
	printf("\t%s %s: %ld of %ld agree\n", tool, name, good, all);
	return all ? (int)(good * 1000 / all) : -1;
}

static void check_against(const char *tool, const char *name, uint64_t step, int least)
{
	char command[64];
	long missing = 0;

	snprintf(command, sizeof(command), "command -v %s >/dev/null", tool);
	if (system(command) != 0)
		SKIP("the tool is not installed");
	if (!fixture_there(name))
		SKIP("the compiler for it is not here");
	CHECK(compare(tool, name, step, &missing) >= least);
	/* Lines may be read in more than one way, but a function that the symbol table has is there. */
	CHECK_EQ(missing, 0);
}

TEST(c_agrees_with_eu_addr2line)
{
	check_against("eu-addr2line", "inline", 1, 990);
}

TEST(c_agrees_with_addr2line)
{
	check_against("addr2line", "inline", 1, 990);
}

TEST(dwarf_4_agrees_with_eu_addr2line)
{
	check_against("eu-addr2line", "inline4", 1, 990);
}

/* eu-addr2line finds no lines without .debug_aranges, which clang does not write. */
TEST(clang_agrees_with_addr2line)
{
	check_against("addr2line", "inline_clang", 1, 990);
}

TEST(cxx_agrees_with_eu_addr2line)
{
	check_against("eu-addr2line", "mangled", 3, 990);
}

/* Of functions from headers addr2line sometimes names the file of the unit. */
TEST(cxx_agrees_with_addr2line)
{
	check_against("addr2line", "mangled", 3, 970);
}

TEST(rust_agrees_with_addr2line)
{
	check_against("addr2line", "hashed", 101, 990);
}
