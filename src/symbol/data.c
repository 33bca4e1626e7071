/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/data.h"

#include <errno.h>
#include <string.h>

#include "symbol/debug_file.h"
#include "symbol/image.h"

struct search {
	struct weft__data_place *places;
	size_t n;
	uint64_t bias; /* an address of the file plus this is one in the process */
	struct weft__texts *texts;
	bool any; /* has a name now */
};

/* The first place that is not below an address. */
static size_t place_from(const struct search *s, uint64_t address)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->places[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Inner variables win, and of several names for one the first. */
static int take_data(void *data, Elf *elf, const GElf_Shdr *shdr, const GElf_Sym *sym)
{
	struct search *s = data;
	uint64_t start = sym->st_value + s->bias;
	const char *name, *kept = NULL;
	size_t i;

	if (GELF_ST_TYPE(sym->st_info) != STT_OBJECT || sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS ||
	    sym->st_shndx == SHN_COMMON || !sym->st_size)
		return 0;
	for (i = place_from(s, start); i < s->n && s->places[i].address - start < sym->st_size; i++) {
		struct weft__data_place *place = &s->places[i];

		if (place->name && place->offset <= place->address - start)
			continue;
		name = elf_strptr(elf, shdr->sh_link, sym->st_name);
		if (!name || !name[0])
			return 0;
		kept = kept ? kept : weft__texts_add(s->texts, name);
		if (!kept)
			return -ENOMEM;
		place->name = kept;
		place->offset = place->address - start;
		s->any = true;
	}
	return 0;
}

int weft__data_name(const struct weft__symbolizer_opts *opts, const struct weft__symbol_module *module,
		    struct weft__data_place *places, size_t n, struct weft__texts *texts)
{
	const char *root = opts && opts->root ? opts->root : "";
	const char *dirs = opts && opts->debug_dirs ? opts->debug_dirs : "/usr/lib/debug";
	struct search s = {places, n, 0, texts, false};
	struct weft__elf_image file = {0}, debug = {0};
	uint64_t address;
	int rc = 0;

	if (module->path[0] != '/' || weft__elf_image_open(&file, root, module->path) < 0)
		return 0;
	if ((!module->build_id_n || weft__elf_image_is_build(&file, module->build_id, module->build_id_n)) &&
	    weft__elf_image_address(&file, module->offset, &address)) {
		s.bias = module->start - address;
		rc = weft__elf_image_symbols(&file, take_data, &s);
		if (rc == 0 && !s.any &&
		    ((module->build_id_n &&
		      weft__debug_file_by_build(&debug, dirs, module->build_id, module->build_id_n) == 0) ||
		     weft__debug_file_by_link(&debug, root, dirs, &file, module->path) == 0))
			rc = weft__elf_image_symbols(&debug, take_data, &s);
	}
	weft__elf_image_close(&debug);
	weft__elf_image_close(&file);
	return rc;
}
