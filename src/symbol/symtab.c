/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define SYMS_MAX ((size_t)1 << 24)

static bool is_code(Elf *elf, const GElf_Sym *sym, uint64_t *ret_most)
{
	int type = GELF_ST_TYPE(sym->st_info);
	bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
	Elf_Scn *scn = sym->st_shndx < SHN_LORESERVE ? elf_getscn(elf, sym->st_shndx) : NULL;
	GElf_Shdr shdr = {0};

	*ret_most = 0;
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || sym->st_shndx == SHN_COMMON || !sym->st_value)
		return false;
	if (function && sym->st_size)
		return true;
	/* Assembly leaves labels without a type and functions without a size. */
	if ((!function && type != STT_NOTYPE) || !scn || !gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR))
		return false;
	*ret_most = shdr.sh_addr + shdr.sh_size;
	return true;
}

static int rank_of(const GElf_Sym *sym, const char *name)
{
	int bind = GELF_ST_BIND(sym->st_info);

	return (bind == STB_GLOBAL ? 16 : bind == STB_WEAK ? 8 : 0) - (int)strspn(name, "_");
}

static int take(void *data, Elf *elf, const GElf_Shdr *shdr, const GElf_Sym *sym)
{
	struct weft__symtab *symtab = data;
	struct weft__sym *at;
	const char *name;
	uint64_t most;

	if (!is_code(elf, sym, &most))
		return 0;
	name = elf_strptr(elf, shdr->sh_link, sym->st_name);
	if (!name || !name[0] || name[0] == '$' || !strncmp(name, ".L", 2)) /* marks of assemblers */
		return 0;
	if (symtab->n >= SYMS_MAX)
		return 0;
	at = weft__grow(symtab->at, &symtab->cap, symtab->n, sizeof(*at));
	if (!at)
		return -ENOMEM;
	symtab->at = at;
	at[symtab->n++] =
		(struct weft__sym){sym->st_value, sym->st_size, name, rank_of(sym, name), !sym->st_size, most};
	return 0;
}

int weft__symtab_add(struct weft__symtab *symtab, const struct weft__elf_image *image)
{
	return weft__elf_image_symbols(image, take, symtab);
}

bool weft__symtab_in(const struct weft__elf_image *image)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(image->elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_SYMTAB)
			return true;
	return false;
}

/* What should win comes last: inner over outer, known sizes over guessed ones, good names over others. */
static int by_worth(const void *a, const void *b)
{
	const struct weft__sym *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->guessed != y->guessed)
		return x->guessed ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->name, y->name);
}

int weft__symtab_seal(struct weft__symtab *symtab)
{
	struct weft__sym *at = symtab->at;
	uint64_t known = 0; /* how far functions with a size reach */
	size_t i, next;

	if (!symtab->n)
		return weft__ranges_seal(&symtab->ranges);
	qsort(at, symtab->n, sizeof(*at), by_worth);
	for (i = 0; i < symtab->n; i = next) {
		size_t j;

		for (next = i; next < symtab->n && at[next].start == at[i].start; next++)
			if (at[next].start + at[next].size > known)
				known = at[next].start + at[next].size;
		for (j = i; j < next; j++) {
			uint64_t end = next < symtab->n && at[next].start < at[j].most ? at[next].start : at[j].most;

			if (at[j].guessed)
				at[j].size = end > at[j].start && at[j].start >= known ? end - at[j].start : 0;
		}
	}
	for (i = 0; i < symtab->n; i++) {
		uint64_t end = at[i].start + at[i].size;

		if (weft__ranges_add(&symtab->ranges, at[i].start, end, (uint32_t)i, SYMS_MAX) == -ENOMEM)
			return -ENOMEM;
	}
	return weft__ranges_seal(&symtab->ranges);
}

const struct weft__sym *weft__symtab_get(const struct weft__symtab *symtab, uint64_t address)
{
	uint32_t i = weft__ranges_find(&symtab->ranges, address);

	return i == WEFT__RANGE_NONE ? NULL : &symtab->at[i];
}

void weft__symtab_fini(struct weft__symtab *symtab)
{
	weft__ranges_fini(&symtab->ranges);
	weft__free(symtab->at);
	memset(symtab, 0, sizeof(*symtab));
}
