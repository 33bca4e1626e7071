/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/needed.h"

#include <string.h>

/* The part of an image's dynamic section that matters here. */
struct dynamic {
	const ElfW(Dyn) * begin, *end;
	const char *strings;
	size_t strings_n;
	const char *soname; /* NULL: none */
};

static int is_mapped(const struct dl_phdr_info *info, uint64_t vaddr, uint64_t n)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_R && vaddr >= ph->p_vaddr && n <= ph->p_filesz &&
		    vaddr - ph->p_vaddr <= ph->p_filesz - n)
			return 1;
	}
	return 0;
}

/* A string of the image, or NULL when it does not end there. */
static const char *string_at(const struct dynamic *d, uint64_t at)
{
	return at < d->strings_n && memchr(d->strings + at, 0, d->strings_n - at) ? d->strings + at : NULL;
}

/* 0: there is none that can be read. Some loaders put addresses into it where the linker put those of the file. */
static int dynamic_read(const struct dl_phdr_info *info, struct dynamic *d)
{
	uint64_t strings = 0, soname = UINT64_MAX, bias = info->dlpi_addr;

	memset(d, 0, sizeof(*d));
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_DYNAMIC || !is_mapped(info, ph->p_vaddr, ph->p_filesz))
			continue;
		d->begin = (const void *)(uintptr_t)(bias + ph->p_vaddr);
		d->end = d->begin + ph->p_filesz / sizeof(*d->begin);
	}
	for (const ElfW(Dyn) *dyn = d->begin; dyn < d->end && dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_STRTAB)
			strings = dyn->d_un.d_ptr;
		else if (dyn->d_tag == DT_STRSZ)
			d->strings_n = dyn->d_un.d_val;
		else if (dyn->d_tag == DT_SONAME)
			soname = dyn->d_un.d_val;
	}
	if (bias && strings >= bias && is_mapped(info, strings - bias, d->strings_n))
		strings -= bias;
	if (!strings || !is_mapped(info, strings, d->strings_n))
		return 0;
	d->strings = (const char *)(uintptr_t)(bias + strings);
	d->soname = string_at(d, soname);
	return 1;
}

static uint32_t needed_hash(const char *name)
{
	uint32_t hash = 0;

	while (*name)
		hash = hash * 31 + (uint8_t)*name++;
	return hash;
}

/* Programs have hundreds of libraries, each of which names a dozen. */
static unsigned needed_find(const struct weft__needed *needed, const char *name, uint32_t hash)
{
	unsigned i = 0;

	while (i < needed->n && (needed->of[i].hash != hash || strcmp(needed->of[i].name, name) != 0))
		i++;
	return i;
}

static int needed_meet(struct weft__needed *needed, const char *name)
{
	unsigned at = needed_find(needed, name, needed_hash(name));
	int first = at < needed->n && !needed->of[at].met;

	if (first)
		needed->of[at].met = 1;
	return first;
}

int weft__needed_by_program(struct weft__needed *needed, const struct dl_phdr_info *info, const char *path, int program)
{
	const char *file = strrchr(path, '/');
	struct dynamic d;
	int is_one;

	if (!dynamic_read(info, &d))
		return program;
	is_one = program || (d.soname && needed_meet(needed, d.soname)) || needed_meet(needed, path) ||
		 needed_meet(needed, file ? file + 1 : path);
	for (const ElfW(Dyn) *dyn = d.begin; is_one && dyn < d.end && dyn->d_tag != DT_NULL; dyn++) {
		const char *name = dyn->d_tag == DT_NEEDED ? string_at(&d, dyn->d_un.d_val) : NULL;
		uint32_t hash = name ? needed_hash(name) : 0;

		if (!name || needed->n == WEFT__NEEDED_MAX || needed_find(needed, name, hash) < needed->n)
			continue;
		needed->of[needed->n].name = name;
		needed->of[needed->n].met = 0;
		needed->of[needed->n++].hash = hash;
	}
	return is_one;
}
