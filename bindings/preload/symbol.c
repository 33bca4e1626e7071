/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a library that is loaded has a symbol. dlsym says so, too, but it allocates memory to say no: a program
 * without a heap would have one, and each of its forks would copy a page table more. */
#include "symbol.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

struct look {
	const char *name;
	uint32_t hash;
	bool found;
};

struct gnu_hash {
	uint32_t n_buckets, first, n_words, shift;
	ElfW(Addr) words[];
};

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static bool has_symbol(const struct look *look, const struct gnu_hash *table, const ElfW(Sym) * symbols,
		       const char *names)
{
	const uint32_t *buckets = (const uint32_t *)&table->words[table->n_words];
	const uint32_t *chain = buckets + table->n_buckets;
	uint32_t i = table->n_buckets ? buckets[look->hash % table->n_buckets] : 0;

	if (i < table->first)
		return false;
	for (;; i++) {
		uint32_t hash = chain[i - table->first];

		if ((hash | 1) == (look->hash | 1) && symbols[i].st_shndx != SHN_UNDEF &&
		    strcmp(names + symbols[i].st_name, look->name) == 0)
			return true;
		if (hash & 1)
			return false;
	}
}

/* This library has the names that it stands for, and the kernel's none of these. */
static bool is_passed_by(const struct dl_phdr_info *info)
{
	static const char here;
	uintptr_t own = (uintptr_t)&here;

	if (info->dlpi_addr == getauxval(AT_SYSINFO_EHDR))
		return true;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && own - info->dlpi_addr - part->p_vaddr < part->p_memsz)
			return true;
	}
	return false;
}

static int look_in(struct dl_phdr_info *info, size_t bytes, void *data)
{
	const void *table = NULL, *symbols = NULL, *names = NULL;
	const ElfW(Dyn) *entry = NULL;
	struct look *look = data;
	int i;

	(void)bytes;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(info->dlpi_addr +
						    info->dlpi_phdr[i].p_vaddr); /* NOLINT(performance-no-int-to-ptr) */
	if (!entry || is_passed_by(info))
		return 0;
	for (; entry->d_tag != DT_NULL; entry++)
		/* NOLINTBEGIN(performance-no-int-to-ptr) */
		if (entry->d_tag == DT_GNU_HASH)
			table = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_SYMTAB)
			symbols = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_STRTAB)
			names = (const void *)entry->d_un.d_ptr;
	/* NOLINTEND(performance-no-int-to-ptr) */
	/* One with a table of another kind may have it. */
	look->found = !table || !symbols || !names || has_symbol(look, table, symbols, names);
	return look->found;
}

bool weft__preload_may_have(const char *name)
{
	struct look look = {.name = name, .hash = hash_of(name)};

	dl_iterate_phdr(look_in, &look);
	return look.found;
}
