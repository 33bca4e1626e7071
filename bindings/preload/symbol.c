/* SPDX-License-Identifier: Apache-2.0 */
/* Which loaded library has a symbol. dlsym says so, too, but it allocates memory to say no: a program without a heap
 * would have one, and each of its forks would copy a page table more. And a program that does nothing lives for half a
 * millisecond, a tenth of which would be the constructor's calls of dlsym: it wants some 200 names, nearly all of which
 * are the C library's alone. */
#include "symbol.h"

#include <gnu/libc-version.h>
#include <string.h>
#include <sys/auxv.h>

#define VERSION_HIDDEN 0x8000 /* of an older program's */

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

static bool has_range(const struct dl_phdr_info *info, uintptr_t at)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && at - info->dlpi_addr - part->p_vaddr < part->p_memsz)
			return true;
	}
	return false;
}

static int note_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	static const char here;
	struct symbol_objects *all = data;
	struct symbol_object object = {.base = info->dlpi_addr};
	const ElfW(Dyn) *entry = NULL;
	int i;

	(void)bytes;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(info->dlpi_addr +
						    info->dlpi_phdr[i].p_vaddr); /* NOLINT(performance-no-int-to-ptr) */
	if (!entry || info->dlpi_addr == getauxval(AT_SYSINFO_EHDR) || has_range(info, (uintptr_t)&here))
		return 0;
	all->more = all->n == SYMBOL_OBJECTS;
	if (all->more)
		return 1;
	for (; entry->d_tag != DT_NULL; entry++)
		/* NOLINTBEGIN(performance-no-int-to-ptr) */
		if (entry->d_tag == DT_GNU_HASH)
			object.table = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_SYMTAB)
			object.symbols = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_STRTAB)
			object.names = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_VERSYM)
			object.versions = (const void *)entry->d_un.d_ptr;
	/* NOLINTEND(performance-no-int-to-ptr) */
	if (!object.symbols || !object.names)
		object.table = NULL;
	object.is_libc = has_range(info, (uintptr_t)&gnu_get_libc_version);
	all->at[all->n++] = object;
	return 0;
}

void weft__preload_objects(struct symbol_objects *ret)
{
	ret->n = 0;
	ret->more = false;
	dl_iterate_phdr(note_object, ret);
}

/* The symbol, of its default version if it has several; NULL: there is none, or just older ones (*HIDDEN). */
static const ElfW(Sym) * find_in(const struct symbol_object *in, const char *name, uint32_t hash, bool *hidden)
{
	const struct gnu_hash *table = (const void *)in->table;
	const unsigned bits = sizeof(ElfW(Addr)) * 8;
	const uint32_t *buckets = (const uint32_t *)&table->words[table->n_words];
	const uint32_t *chain = buckets + table->n_buckets;
	ElfW(Addr) word = table->words[hash / bits & (table->n_words - 1)];
	uint32_t i;

	if (!(word >> hash % bits & word >> (hash >> table->shift) % bits & 1) || !table->n_buckets)
		return NULL;
	i = buckets[hash % table->n_buckets];
	if (i < table->first)
		return NULL;
	for (;; i++) {
		uint32_t other = chain[i - table->first];

		if ((other | 1) == (hash | 1) && in->symbols[i].st_shndx != SHN_UNDEF &&
		    strcmp(in->names + in->symbols[i].st_name, name) == 0) {
			if (!in->versions || !(in->versions[i] & VERSION_HIDDEN))
				return &in->symbols[i];
			*hidden = true;
		}
		if (other & 1)
			return NULL;
	}
}

static bool may_be_in(const struct symbol_object *in, const char *name, uint32_t hash)
{
	bool hidden = false;

	return !in->table || find_in(in, name, hash, &hidden) || hidden;
}

bool weft__preload_may_have(const struct symbol_objects *objects, const char *name)
{
	uint32_t hash = hash_of(name);

	for (size_t i = 0; i < objects->n; i++)
		if (may_be_in(&objects->at[i], name, hash))
			return true;
	return objects->more;
}

void *weft__preload_in_libc_only(const struct symbol_objects *objects, const char *name, bool *nobody)
{
	const struct symbol_object *libc = NULL;
	const ElfW(Sym) * symbol;
	uint32_t hash = hash_of(name);
	bool hidden = false;

	*nobody = false;
	for (size_t i = 0; i < objects->n; i++) {
		const struct symbol_object *at = &objects->at[i];

		if (at->is_libc && at->table)
			libc = at;
		else if (may_be_in(at, name, hash))
			return NULL;
	}
	if (objects->more || !libc)
		return NULL;
	symbol = find_in(libc, name, hash, &hidden);
	*nobody = !symbol && !hidden;
	/* What the loader itself would have to call, or place, is left to it. */
	return symbol && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC
		       ? (void *)(libc->base + symbol->st_value) /* NOLINT(performance-no-int-to-ptr) */
		       : NULL;
}
