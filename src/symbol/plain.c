/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/plain.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <zstd.h>

#include "base/alloc.h"

#define SECTIONS_MAX 16
#define BYTES_MAX ((uint64_t)4 << 30) /* of all unpacked sections */
#define DEFLATE_MOST 1032             /* no byte of deflate makes more */
#define ZSTD_MOST 65536               /* zstd has runs without limit; this is far more than DWARF needs */
#define ALIGN(n) (((n) + 15) & ~UINT64_C(15))

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

struct section {
	const char *name;
	const void *bytes;
	uint64_t n;
	uint32_t packed; /* 0, or how */
	uint64_t size;   /* unpacked */
};

struct sections {
	struct section at[SECTIONS_MAX];
	size_t n;
	bool any_packed;
	uint64_t bytes;
};

static bool wanted(const char *name)
{
	static const char *const names[] = {"info",        "abbrev", "line",     "line_str", "str",
					    "str_offsets", "ranges", "rnglists", "addr",     "types"};
	size_t i;

	if (strncmp(name, ".debug_", 7) != 0)
		return false;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name + 7, names[i]))
			return true;
	return false;
}

static int take(struct sections *all, Elf_Scn *scn, const GElf_Shdr *shdr, const char *name)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	struct section *one = &all->at[all->n];
	Elf64_Chdr head;

	if (!data || !data->d_buf || !data->d_size)
		return 0;
	if (all->n == SECTIONS_MAX)
		return -ENOENT;
	*one = (struct section){name, data->d_buf, data->d_size, 0, data->d_size};
	if (shdr->sh_flags & SHF_COMPRESSED) {
		uint64_t most;

		if (data->d_size < sizeof(head))
			return -EINVAL;
		memcpy(&head, data->d_buf, sizeof(head));
		if (head.ch_type != ELFCOMPRESS_ZLIB && head.ch_type != ELFCOMPRESS_ZSTD)
			return -ENOENT;
		one->bytes = (const uint8_t *)data->d_buf + sizeof(head);
		one->n = data->d_size - sizeof(head);
		one->packed = head.ch_type;
		one->size = head.ch_size;
		most = head.ch_type == ELFCOMPRESS_ZLIB ? DEFLATE_MOST : ZSTD_MOST;
		if (one->size > BYTES_MAX || one->size / most > one->n)
			return -EINVAL;
		all->any_packed = true;
	}
	all->bytes += ALIGN(one->size);
	all->n++;
	return all->bytes > BYTES_MAX ? -EINVAL : 0;
}

static int collect(struct sections *all, const struct weft__elf_image *image)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (gelf_getclass(image->elf) != ELFCLASS64 || elf_getshdrstrndx(image->elf, &names) < 0)
		return -ENOENT;
	while ((scn = elf_nextscn(image->elf, scn))) {
		GElf_Shdr shdr;
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(image->elf, names, shdr.sh_name) : NULL;
		int failed = 0;

		if (!name || shdr.sh_type == SHT_NOBITS)
			continue;
		/* libdw finds the other file of these by the path of the first, which a copy in memory does not
		 * have. */
		if (!strcmp(name, ".gnu_debugaltlink"))
			return -ENOENT;
		if (wanted(name))
			failed = take(all, scn, &shdr, name);
		if (failed)
			return failed;
	}
	return all->any_packed ? 0 : -ENOENT;
}

static bool unpack(const struct section *one, uint8_t *out)
{
	struct libdeflate_decompressor *inflater;
	bool good;

	if (!one->packed) {
		memcpy(out, one->bytes, one->n);
		return true;
	}
	if (one->packed == ELFCOMPRESS_ZSTD)
		return ZSTD_decompress(out, one->size, one->bytes, one->n) == one->size;
	inflater = libdeflate_alloc_decompressor();
	good = inflater && libdeflate_zlib_decompress(inflater, one->bytes, one->n, out, one->size, NULL) == 0;
	libdeflate_free_decompressor(inflater);
	return good;
}

/* The file: head, sections, their names, their table. */
static int build(const struct sections *all, uint8_t *file, size_t table_at, uint16_t machine)
{
	Elf64_Shdr *table = (Elf64_Shdr *)(void *)(file + table_at);
	uint64_t at = ALIGN(sizeof(Elf64_Ehdr)), names_at = at + all->bytes;
	char *names = (char *)file + names_at;
	uint32_t name_at = 1;
	size_t i;

	for (i = 0; i < all->n; i++) {
		const struct section *one = &all->at[i];

		if (!unpack(one, file + at))
			return -EINVAL;
		table[i + 1] = (Elf64_Shdr){.sh_name = name_at,
					    .sh_type = SHT_PROGBITS,
					    .sh_offset = at,
					    .sh_size = one->size,
					    .sh_addralign = 1};
		memcpy(names + name_at, one->name, strlen(one->name) + 1);
		name_at += (uint32_t)strlen(one->name) + 1;
		at += ALIGN(one->size);
	}
	memcpy(names + name_at, ".shstrtab", 10);
	table[i + 1] = (Elf64_Shdr){.sh_name = name_at,
				    .sh_type = SHT_STRTAB,
				    .sh_offset = names_at,
				    .sh_size = name_at + 10,
				    .sh_addralign = 1};
	*(Elf64_Ehdr *)(void *)file = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_shoff = table_at,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (uint16_t)(all->n + 2),
		.e_shstrndx = (uint16_t)(all->n + 1),
	};
	return 0;
}

int weft__plain_open(struct weft__elf_image *plain, const struct weft__elf_image *image)
{
	struct sections all = {.n = 0};
	int failed = collect(&all, image);
	size_t table_at, table_bytes, i, names = 16;
	GElf_Ehdr ehdr;
	uint8_t *file;

	if (failed || !gelf_getehdr(image->elf, &ehdr))
		return failed ? failed : -EINVAL;
	for (i = 0; i < all.n; i++)
		names += strlen(all.at[i].name) + 1;
	table_at = ALIGN(sizeof(Elf64_Ehdr)) + all.bytes + ALIGN(names);
	table_bytes = (all.n + 2) * sizeof(Elf64_Shdr);
	file = weft__alloc(table_at + table_bytes);
	if (!file)
		return -ENOMEM;
	memset(file + table_at - ALIGN(names), 0, ALIGN(names) + table_bytes);
	failed = build(&all, file, table_at, ehdr.e_machine);
	if (failed) {
		weft__free(file);
		return failed;
	}
	return weft__elf_image_open_memory(plain, file, table_at + table_bytes, true) < 0 ? -EINVAL : 0;
}
