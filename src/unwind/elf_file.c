/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information from the sections of an ELF file. It is read, not mapped: a file that shrinks meanwhile is
 * an error then, not a signal. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/alloc.h"
#include "unwind/table.h"

#define SECTION_MAX (1ull << 30)
#define UNPACKED_MAX (UINT64_C(1) << 28) /* of a section that is compressed: its size is only a claim */
#define COMPRESSED_ZSTD 2                /* newer than some elf.h */

#if defined(__x86_64__)
#define ELF_MACHINE EM_X86_64
#else
#define ELF_MACHINE EM_AARCH64
#endif

static int read_at(int fd, void *to, uint64_t n, uint64_t at)
{
	uint64_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, (char *)to + done, n - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EINVAL;
		done += (uint64_t)got;
	}
	return 0;
}

/* New memory with [at, at + n) of the file, or NULL. */
static void *read_new(int fd, uint64_t n, uint64_t at, int *error)
{
	struct stat st;
	void *bytes;

	if (n > SECTION_MAX || at > INT64_MAX - n) {
		*error = -EFBIG;
		return NULL;
	}
	if (fstat(fd, &st) < 0 || at + n > (uint64_t)st.st_size) {
		*error = -EINVAL; /* before memory is taken for what is not there */
		return NULL;
	}
	bytes = weft__alloc(n ? n : 1);
	*error = bytes ? read_at(fd, bytes, n, at) : -ENOMEM;
	if (*error == 0)
		return bytes;
	weft__free(bytes);
	return NULL;
}

struct sections {
	Elf64_Shdr *at;
	size_t n;
	char *names;
	size_t names_n;
};

static int sections_read(int fd, struct sections *ret)
{
	Elf64_Ehdr ehdr;
	int error = read_at(fd, &ehdr, sizeof(ehdr), 0);

	if (error < 0)
		return error;
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_ident[EI_DATA] != ELFDATA2LSB || ehdr.e_machine != ELF_MACHINE ||
	    ehdr.e_shentsize != sizeof(Elf64_Shdr) || ehdr.e_shstrndx >= ehdr.e_shnum)
		return -ENOEXEC;
	ret->n = ehdr.e_shnum;
	ret->at = read_new(fd, ret->n * sizeof(*ret->at), ehdr.e_shoff, &error);
	if (!ret->at)
		return error;
	ret->names_n = ret->at[ehdr.e_shstrndx].sh_size;
	ret->names = read_new(fd, ret->names_n, ret->at[ehdr.e_shstrndx].sh_offset, &error);
	return ret->names ? 0 : error;
}

static const Elf64_Shdr *section_find(const struct sections *sections, const char *name)
{
	size_t n = strlen(name) + 1;

	for (size_t i = 0; i < sections->n; i++) {
		const Elf64_Shdr *shdr = &sections->at[i];

		if (shdr->sh_type != SHT_NOBITS && shdr->sh_size && shdr->sh_name < sections->names_n &&
		    sections->names_n - shdr->sh_name >= n && memcmp(sections->names + shdr->sh_name, name, n) == 0)
			return shdr;
	}
	return NULL;
}

static void text_range(const struct sections *sections, struct weft__cfi_input *in)
{
	in->text_low = UINT64_MAX;
	in->text_high = 0;
	for (size_t i = 0; i < sections->n; i++) {
		const Elf64_Shdr *shdr = &sections->at[i];

		if (!(shdr->sh_flags & SHF_EXECINSTR) || shdr->sh_addr + shdr->sh_size < shdr->sh_addr)
			continue;
		if (shdr->sh_addr < in->text_low)
			in->text_low = shdr->sh_addr;
		if (shdr->sh_addr + shdr->sh_size > in->text_high)
			in->text_high = shdr->sh_addr + shdr->sh_size;
	}
}

static int unpack(const Elf64_Chdr *chdr, const uint8_t *from, size_t n, uint8_t *to)
{
	struct libdeflate_decompressor *inflater = NULL;
	int good = 0;

	if (chdr->ch_type == ELFCOMPRESS_ZLIB) {
		inflater = libdeflate_alloc_decompressor();
		good = inflater && libdeflate_zlib_decompress(inflater, from, n, to, chdr->ch_size, NULL) == 0;
		libdeflate_free_decompressor(inflater);
		return good ? 0 : -EINVAL;
	}
	return ZSTD_decompress(to, chdr->ch_size, from, n) == chdr->ch_size ? 0 : -EINVAL;
}

/* A compressed section as it was before. */
static int decompress(struct weft__cfi_input *in)
{
	Elf64_Chdr chdr;
	uint8_t *bytes;

	if (in->n < sizeof(chdr))
		return -EINVAL;
	memcpy(&chdr, in->bytes, sizeof(chdr));
	if ((chdr.ch_type != COMPRESSED_ZSTD && chdr.ch_type != ELFCOMPRESS_ZLIB) || !chdr.ch_size)
		return -ENOTSUP;
	if (chdr.ch_size > UNPACKED_MAX)
		return -EFBIG;
	bytes = weft__alloc(chdr.ch_size);
	if (!bytes)
		return -ENOMEM;
	if (unpack(&chdr, in->bytes + sizeof(chdr), in->n - sizeof(chdr), bytes) < 0) {
		weft__free(bytes);
		return -EINVAL;
	}
	weft__free((uint8_t *)(uintptr_t)in->bytes);
	in->bytes = bytes;
	in->n = chdr.ch_size;
	return 0;
}

/* One section as an input; 0 when it is not there, negative when it cannot be read. The caller frees `bytes`. */
static int section_input(int fd, const struct sections *sections, const char *name, struct weft__cfi_input *in)
{
	const Elf64_Shdr *shdr = section_find(sections, name);
	int error;

	if (!shdr)
		return 0;
	in->bytes = read_new(fd, shdr->sh_size, shdr->sh_offset, &error);
	if (!in->bytes)
		return error;
	in->n = shdr->sh_size;
	in->vaddr = shdr->sh_addr;
	error = shdr->sh_flags & SHF_COMPRESSED ? decompress(in) : 0;
	if (error < 0) {
		weft__free((uint8_t *)(uintptr_t)in->bytes);
		in->bytes = NULL;
		return error;
	}
	text_range(sections, in);
	return 1;
}

int weft__unwind_table_read(struct weft__unwind_table **ret, int fd, const struct weft__cfi_input *eh_frame,
			    int (*halt)(void))
{
	struct sections sections = {0};
	struct weft__cfi_input in[2] = {{0}, {.debug_frame = 1}}, hdr = {0};
	uint8_t *own[3] = {NULL, NULL, NULL};
	int error;
	unsigned n = 0;

	error = sections_read(fd, &sections);
	if (error < 0)
		goto done;
	if (eh_frame) {
		in[n++] = *eh_frame;
	} else if (section_input(fd, &sections, ".eh_frame", &in[0]) > 0) {
		own[0] = (uint8_t *)(uintptr_t)in[n++].bytes;
		if (section_input(fd, &sections, ".eh_frame_hdr", &hdr) > 0) {
			own[1] = (uint8_t *)(uintptr_t)hdr.bytes;
			in[0].hdr = hdr.bytes;
			in[0].hdr_n = hdr.n;
			in[0].hdr_vaddr = hdr.vaddr;
		}
	}
	in[n].debug_frame = 1;
	if (section_input(fd, &sections, ".debug_frame", &in[n]) > 0)
		own[2] = (uint8_t *)(uintptr_t)in[n++].bytes;
	error = n ? weft__unwind_table_make(ret, in, n, halt) : -ENOENT;
done:
	for (int i = 0; i < 3; i++)
		weft__free(own[i]);
	weft__free(sections.names);
	weft__free(sections.at);
	return error;
}

int weft__unwind_table_open(struct weft__unwind_table **ret, const char *path, const struct weft__cfi_input *eh_frame)
{
	int error, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	error = weft__unwind_table_read(ret, fd, eh_frame, NULL);
	close(fd);
	return error;
}
