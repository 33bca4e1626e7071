/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/object.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "symbol/debug_file.h"
#include "symbol/minidebug.h"

static void hex(char *text, const uint8_t *bytes, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n && i < 8; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", bytes[i]);
}

/* The file at the module's path, when it is of the recorded build. */
static void open_file(struct weft__object *object, struct weft__symbol_env *env, struct weft__symbol_entry *module)
{
	const struct weft__symbol_module *at = &module->at;
	char wanted[17] = "", found[17] = "none";
	const uint8_t *own = NULL;
	uint32_t n;
	int failed = at->path[0] == '/' ? weft__elf_image_open(&object->file, env->opts.root, at->path) : -ENOENT;

	if (failed) {
		weft__symbol_why(env, module, "%s%s: %s", env->opts.root, at->path,
				 failed == -ENOEXEC ? "not an ELF file" : strerror(-failed));
		return;
	}
	if (!at->build_id_n || weft__elf_image_is_build(&object->file, at->build_id, at->build_id_n))
		return;
	n = weft__elf_image_build_id(&object->file, &own);
	hex(wanted, at->build_id, at->build_id_n);
	hex(found, own, n);
	weft__symbol_why(env, module, "%s%s has build-id %s, but %s was recorded", env->opts.root, at->path, found,
			 wanted);
	weft__elf_image_close(&object->file);
}

static void open_debug(struct weft__object *object, struct weft__symbol_env *env,
		       const struct weft__symbol_module *module, struct weft__debuginfod *servers)
{
	const char *dirs = env->opts.debug_dirs;
	const uint8_t *build_id = module->build_id;
	uint32_t n = module->build_id_n;
	int fd;

	if (!n && object->file.elf)
		n = weft__elf_image_build_id(&object->file, &build_id);
	if (n && weft__debug_file_by_build(&object->debug, dirs, build_id, n) == 0)
		return;
	if (object->file.elf &&
	    weft__debug_file_by_link(&object->debug, env->opts.root, dirs, &object->file, module->path) == 0)
		return;
	if (!n || env->opts.no_debuginfod)
		return;
	fd = weft__debuginfod_get(servers, WEFT__DEBUGINFOD_DEBUG, build_id, n);
	if (fd >= 0)
		weft__elf_image_open_fd(&object->debug, fd);
	if (object->file.elf)
		return;
	/* Without the file its offsets cannot be turned into addresses, except by guessing. */
	fd = weft__debuginfod_get(servers, WEFT__DEBUGINFOD_EXECUTABLE, build_id, n);
	if (fd >= 0)
		weft__elf_image_open_fd(&object->file, fd);
}

static int read_image(struct weft__object *object, struct weft__elf_image *image)
{
	if (!image->elf)
		return 0;
	if (weft__symtab_add(&object->symtab, image) < 0)
		return -ENOMEM;
	if (!object->dwarf && weft__dwarf_open(&object->dwarf, image) == -ENOMEM)
		return -ENOMEM;
	return 0;
}

int weft__object_open(struct weft__object *object, struct weft__symbol_env *env, struct weft__symbol_entry *module,
		      struct weft__debuginfod *servers)
{
	open_file(object, env, module);
	if (read_image(object, &object->file) < 0)
		return -ENOMEM;
	if (!object->dwarf) {
		open_debug(object, env, &module->at, servers);
		if (read_image(object, &object->debug) < 0)
			return -ENOMEM;
		if (!object->dwarf)
			weft__symbol_why(env, module, "%s: no debug information, so no lines and no inlined functions",
					 module->at.path);
	}
	if (object->file.elf && !object->debug.elf && !weft__symtab_in(&object->file)) {
		if (weft__minidebug_open(&object->mini, &object->file) == 0 &&
		    weft__symtab_add(&object->symtab, &object->mini) < 0)
			return -ENOMEM;
	}
	if (object->file.elf)
		weft__fdes_open(&object->fdes, &object->file);
	return weft__symtab_seal(&object->symtab);
}

int weft__object_open_memory(struct weft__object *object, void *bytes, size_t n)
{
	if (weft__elf_image_open_memory(&object->file, bytes, n, false) < 0)
		return 0;
	if (read_image(object, &object->file) < 0)
		return -ENOMEM;
	weft__fdes_open(&object->fdes, &object->file);
	return weft__symtab_seal(&object->symtab);
}

/* From where the module begins on, as in memory: parts of its code behind the first may be nearer in the file. */
static bool address_of(const struct weft__object *object, const struct weft__symbol_module *module, uint64_t ip,
		       uint64_t *ret)
{
	if (object->file.elf && weft__elf_image_address(&object->file, module->offset, ret)) {
		*ret += ip - module->start;
		return true;
	}
	if (object->file.elf)
		return weft__elf_image_address(&object->file, ip - module->start + module->offset, ret);
	return object->debug.elf && weft__elf_image_address_guess(&object->debug, ip - module->start, ret);
}

int weft__object_resolve(struct weft__object *object, struct weft__symbol_env *env,
			 const struct weft__symbol_module *module, uint64_t ip, struct weft__frame_list *out)
{
	struct weft__dwarf_line line = {NULL, 0};
	const struct weft__sym *sym;
	const char *name;
	uint64_t address, start = 0;
	int n = 0;

	if (!address_of(object, module, ip, &address))
		return 0;
	if (object->dwarf)
		n = weft__dwarf_resolve(object->dwarf, env, address, out, &line, &start);
	if (n < 0)
		return n;
	sym = weft__symtab_get(&object->symtab, address);
	name = sym ? weft__texts_add(&env->texts, sym->name) : NULL;
	if (sym && !name)
		return -ENOMEM;
	if (!n && !sym && weft__fdes_start(&object->fdes, address, &start))
		out->within = address - start;
	if (!n && sym)
		return weft__frame_add(env, out, name, line.file, line.line, address - sym->start);
	if (n && sym)
		out->at[out->n - 1].raw = name; /* has what DWARF does not say: .cold, .constprop.0 */
	if (n)
		out->at[out->n - 1].offset = address - (sym ? sym->start : start);
	return n;
}

void weft__object_close(struct weft__object *object)
{
	weft__dwarf_close(object->dwarf);
	weft__symtab_fini(&object->symtab);
	weft__elf_image_close(&object->mini);
	weft__elf_image_close(&object->debug);
	weft__elf_image_close(&object->file);
	memset(object, 0, sizeof(*object));
}
