/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of fixture/, as the tests see them: found beside the test, as modules that are loaded somewhere. */
#ifndef WEFT_TEST_SYMBOL_FIXTURE_H
#define WEFT_TEST_SYMBOL_FIXTURE_H

#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/image.h"
#include "symbol/symbol.h"

#define FIXTURE_START UINT64_C(0x7f1234560000)
#define FIXTURE_BUILD_ID "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67"

static inline const char *fixture_path(const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned next;
	char own[PATH_MAX / 2] = "", *path = paths[next++ % 8];

	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		return "";
	*strrchr(own, '/') = 0;
	snprintf(path, PATH_MAX, "%s/fixture/%s", own, name);
	return path;
}

static inline bool fixture_there(const char *name)
{
	return access(fixture_path(name), R_OK) == 0;
}

/* The value of a symbol in an ELF file that has not been stripped; 0: not there. */
static inline uint64_t fixture_symbol(const char *name, const char *symbol)
{
	struct weft__elf_image image;
	Elf_Scn *scn = NULL;
	uint64_t value = 0;

	if (weft__elf_image_open(&image, "", fixture_path(name)) < 0)
		return 0;
	while ((scn = elf_nextscn(image.elf, scn))) {
		GElf_Shdr shdr;
		GElf_Sym sym;
		int i;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_SYMTAB)
			continue;
		for (i = 0; gelf_getsym(elf_getdata(scn, NULL), i, &sym); i++)
			if (!strcmp(elf_strptr(image.elf, shdr.sh_link, sym.st_name), symbol))
				value = sym.st_value;
	}
	weft__elf_image_close(&image);
	return value;
}

/* The executable segment of the file as a module at FIXTURE_START; `ret_address` is the address that the file gives
 * to its start. */
static inline bool fixture_module(const char *name, struct weft__symbol_module *module, uint64_t *ret_address)
{
	struct weft__elf_image image;
	bool found = false;
	size_t n, i;

	if (weft__elf_image_open(&image, "", fixture_path(name)) < 0 || elf_getphdrnum(image.elf, &n) < 0)
		return false;
	for (i = 0; i < n && !found; i++) {
		GElf_Phdr phdr;

		gelf_getphdr(image.elf, (int)i, &phdr);
		if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_X))
			continue;
		found = true;
		*module = (struct weft__symbol_module){.path = fixture_path(name),
						       .start = FIXTURE_START,
						       .end = FIXTURE_START + phdr.p_memsz,
						       .offset = phdr.p_offset};
		*ret_address = phdr.p_vaddr;
	}
	weft__elf_image_close(&image);
	return found;
}

/* A symbolizer with one module. */
struct fixture {
	struct weft__symbolizer *sym;
	struct weft__symbol_module module;
	struct weft__symbol_frames frames;
	uint64_t address;
	uint32_t id;
};

static inline bool fixture_open(struct fixture *f, const char *name, const struct weft__symbolizer_opts *opts,
				const char *build_id)
{
	struct weft__symbolizer_opts none = {.debug_dirs = "/nonexistent", .no_debuginfod = true};

	memset(f, 0, sizeof(*f));
	if (!fixture_module(name, &f->module, &f->address))
		return false;
	if (build_id) {
		f->module.build_id = (const uint8_t *)build_id;
		f->module.build_id_n = 20;
	}
	return weft__symbolizer_open(&f->sym, opts ? opts : &none, NULL) == 0 &&
	       weft__symbolizer_add(f->sym, &f->module, &f->id) == 0;
}

/* The frames of an address as the file gives it. */
static inline int fixture_resolve(struct fixture *f, uint64_t address)
{
	struct weft__symbol_place place = {.module = f->id, .ip = address - f->address + FIXTURE_START};

	return weft__symbolizer_resolve(f->sym, &place, &f->frames);
}

static inline void fixture_close(struct fixture *f)
{
	weft__symbolizer_close(f->sym);
}

static inline bool fixture_ends(const char *text, const char *end)
{
	size_t n = text ? strlen(text) : 0;

	return n >= strlen(end) && !strcmp(text + n - strlen(end), end);
}

#endif
