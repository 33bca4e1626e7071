/* SPDX-License-Identifier: Apache-2.0 */
/* One ELF file, or one that lies in memory. CALLER. */
#ifndef WEFT_SYMBOL_IMAGE_H
#define WEFT_SYMBOL_IMAGE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__elf_image {
	Elf *elf; /* NULL: not open */
	int fd;
	bool has_fd;
	void *memory; /* freed with it, when it has some */
};

/* -errno; -ENOEXEC when it is not an ELF file of this byte order. `root` is put before the path. */
int weft__elf_image_open(struct weft__elf_image *image, const char *root, const char *path);
/* Takes the descriptor, also when it fails. */
int weft__elf_image_open_fd(struct weft__elf_image *image, int fd);
/* With `owned`, takes the bytes, also when it fails. */
int weft__elf_image_open_memory(struct weft__elf_image *image, void *bytes, size_t n, bool owned);
void weft__elf_image_close(struct weft__elf_image *image);

/* The number of bytes, 0 when there is none. */
uint32_t weft__elf_image_build_id(const struct weft__elf_image *image, const uint8_t **ret);
bool weft__elf_image_is_build(const struct weft__elf_image *image, const uint8_t *build_id, uint32_t n);
/* The bytes of a section, as they are in the file; NULL when it is not there, is empty or has no bytes here. */
Elf_Data *weft__elf_image_section(const struct weft__elf_image *image, const char *name);
/* ... and the address that it has when it is loaded. */
Elf_Data *weft__elf_image_section_at(const struct weft__elf_image *image, const char *name, uint64_t *ret);
/* The address that the file gives to the byte at `offset`, or false. */
bool weft__elf_image_address(const struct weft__elf_image *image, uint64_t offset, uint64_t *ret);
/* The same for a file whose offsets are not those of what was mapped, as debug files are: by its only executable
 * segment. */
bool weft__elf_image_address_guess(const struct weft__elf_image *image, uint64_t offset_in_mapping, uint64_t *ret);
/* Each symbol of its tables, until `take` answers less than 0, which is the answer then. */
int weft__elf_image_symbols(const struct weft__elf_image *image,
			    int (*take)(void *data, Elf *elf, const GElf_Shdr *shdr, const GElf_Sym *sym), void *data);

#endif
