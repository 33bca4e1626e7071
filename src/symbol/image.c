/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/image.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "symbol/file.h"

#define PAGE_MASK UINT64_C(0xfff)

static int check(struct weft__elf_image *image)
{
	const char *ident = image->elf ? elf_getident(image->elf, NULL) : NULL;
	GElf_Ehdr ehdr;

	if (ident && elf_kind(image->elf) == ELF_K_ELF && ident[EI_DATA] == ELFDATA2LSB &&
	    gelf_getehdr(image->elf, &ehdr))
		return 0;
	weft__elf_image_close(image);
	return -ENOEXEC;
}

int weft__elf_image_open_fd(struct weft__elf_image *image, int fd)
{
	elf_version(EV_CURRENT);
	*image = (struct weft__elf_image){elf_begin(fd, ELF_C_READ_MMAP, NULL), fd, true, NULL};
	return check(image);
}

int weft__elf_image_open(struct weft__elf_image *image, const char *root, const char *path)
{
	uint64_t bytes;
	int fd = weft__file_open(root, path, &bytes);

	return fd < 0 ? fd : weft__elf_image_open_fd(image, fd);
}

int weft__elf_image_open_memory(struct weft__elf_image *image, void *bytes, size_t n, bool owned)
{
	elf_version(EV_CURRENT);
	*image = (struct weft__elf_image){.elf = n > EI_NIDENT ? elf_memory(bytes, n) : NULL,
					  .memory = owned ? bytes : NULL};
	return check(image);
}

void weft__elf_image_close(struct weft__elf_image *image)
{
	if (image->elf)
		elf_end(image->elf);
	if (image->has_fd)
		close(image->fd);
	weft__free(image->memory);
	memset(image, 0, sizeof(*image));
}

uint32_t weft__elf_image_build_id(const struct weft__elf_image *image, const uint8_t **ret)
{
	const void *bytes;
	ssize_t n = dwelf_elf_gnu_build_id(image->elf, &bytes);

	if (n <= 0 || n > 64)
		return 0;
	*ret = bytes;
	return (uint32_t)n;
}

bool weft__elf_image_is_build(const struct weft__elf_image *image, const uint8_t *build_id, uint32_t n)
{
	const uint8_t *own;

	return weft__elf_image_build_id(image, &own) == n && n && !memcmp(own, build_id, n);
}

Elf_Data *weft__elf_image_section(const struct weft__elf_image *image, const char *name)
{
	uint64_t at;

	return weft__elf_image_section_at(image, name, &at);
}

Elf_Data *weft__elf_image_section_at(const struct weft__elf_image *image, const char *name, uint64_t *ret)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(image->elf, &names) < 0)
		return NULL;
	while ((scn = elf_nextscn(image->elf, scn))) {
		GElf_Shdr shdr;
		const char *own;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		own = elf_strptr(image->elf, names, shdr.sh_name);
		if (!own || strcmp(own, name) != 0)
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf || !data->d_size)
			continue;
		*ret = shdr.sh_addr;
		return data;
	}
	return NULL;
}

bool weft__elf_image_address(const struct weft__elf_image *image, uint64_t offset, uint64_t *ret)
{
	size_t n, i;

	if (elf_getphdrnum(image->elf, &n) < 0)
		return false;
	for (i = 0; i < n; i++) {
		GElf_Phdr phdr;
		uint64_t first;

		if (!gelf_getphdr(image->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X))
			continue;
		first = phdr.p_offset & ~PAGE_MASK; /* whole pages are mapped */
		if (offset >= first && offset - first < phdr.p_filesz + (phdr.p_offset & PAGE_MASK)) {
			*ret = offset - phdr.p_offset + phdr.p_vaddr;
			return true;
		}
	}
	return false;
}

bool weft__elf_image_address_guess(const struct weft__elf_image *image, uint64_t offset_in_mapping, uint64_t *ret)
{
	bool found = false;
	size_t n, i;

	if (elf_getphdrnum(image->elf, &n) < 0)
		return false;
	for (i = 0; i < n; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(image->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X))
			continue;
		if (found)
			return false;
		found = true;
		*ret = (phdr.p_vaddr & ~PAGE_MASK) + offset_in_mapping;
	}
	return found;
}

int weft__elf_image_symbols(const struct weft__elf_image *image,
			    int (*take)(void *data, Elf *elf, const GElf_Shdr *shdr, const GElf_Sym *sym), void *data)
{
	Elf_Scn *scn = NULL;
	int rc = 0;

	while (rc >= 0 && (scn = elf_nextscn(image->elf, scn))) {
		Elf_Data *symbols;
		GElf_Shdr shdr;
		GElf_Sym sym;

		if (!gelf_getshdr(scn, &shdr) || (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM))
			continue;
		symbols = elf_getdata(scn, NULL);
		for (int i = 0; rc >= 0 && symbols && gelf_getsym(symbols, i, &sym); i++)
			rc = take(data, image->elf, &shdr, &sym);
	}
	return rc < 0 ? rc : 0;
}
